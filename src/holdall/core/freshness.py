"""Reads that must not come from a cache, whatever consistency they ask for.

Pure. A strongly consistent read says so itself, but an index has none. Where an old answer would do harm (another
attempt of a transaction that has just met contention, a program that waits for something new) reads are sent inside of
`fresh`, and a backend with a cache before it (`holdall.backends.reads`) passes the cache by.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType

__all__ = ["fresh", "insisting"]

insisting: ContextVar[bool] = ContextVar("holdall_insisting", default=False)
"""Whether the running code insists on fresh reads."""


class fresh:  # noqa: N801 - reads as a statement: with fresh():
    """Inside of it no read comes from a cache. Tasks, and flows of a ``gather``, that begin inside insist, too."""

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._tokens.append(insisting.set(True))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        insisting.reset(self._tokens.pop())
