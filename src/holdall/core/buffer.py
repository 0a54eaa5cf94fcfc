"""A buffer: memory of a known size that another thread fills, and that becomes bytes without being copied.

Pure. The thread that runs a flow allocates it, not the thread that reads into it: each thread has its own heap, which
never shrinks.
"""

from __future__ import annotations

from io import BytesIO


class Buffer:
    """Memory for ``size`` bytes."""

    __slots__ = ("_memory",)

    def __init__(self, size: int) -> None:
        self._memory = BytesIO()
        if size:
            self._memory.seek(size - 1)
            self._memory.write(b"\0")
            self._memory.seek(0)

    def view(self) -> memoryview:
        """Return the memory, to be filled; release it before `take`."""
        return self._memory.getbuffer()

    def write(self, piece: bytes) -> None:
        """Write the next bytes; the memory grows if they are too many."""
        self._memory.write(piece)

    def take(self, size: int | None = None) -> bytes:
        """Return the first ``size`` bytes, or all that was written."""
        self._memory.truncate(size)
        return self._memory.getvalue()
