"""Request bodies, kept as they are read, so that another run of the application can read them again.

Nothing is read ahead: bytes that a run did not ask for stay with the server. A body over the limit is not kept, and its
request cannot be run again (``whole`` is False). The same holds once the request is answered: nothing more is kept, but
the last run can still read what an earlier run had read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol


class MessageRecord:
    """The messages read so far of an ASGI request's body."""

    def __init__(self, limit: int) -> None:
        self.messages: list[dict[str, Any]] = []
        self.whole = True
        self._left = limit

    def keep(self, message: Any) -> None:
        """Keep one more message, if all of them fit."""
        if not self.whole:
            return
        self._left -= len(message.get("body", b""))
        if self._left >= 0:
            self.messages.append(dict(message))
        else:
            self.whole = False
            self.messages.clear()


class Input(Protocol):
    """The part of WSGI's input stream that is used here."""

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes; all if it is negative."""

    def readline(self, size: int = -1, /) -> bytes:
        """The rest of a line, up to ``size`` bytes."""


class InputRecord:
    """The bytes read so far of a WSGI request's body."""

    def __init__(self, stream: Input, limit: int) -> None:
        self.data = bytearray()
        self.whole = True
        self._stream = stream
        self._limit = limit

    def read(self, size: int) -> bytes:
        """Up to ``size`` more bytes of the stream; all if it is negative."""
        return self._keep(self._stream.read(size) if size >= 0 else self._stream.read())

    def readline(self, size: int) -> bytes:
        """The rest of a line of the stream."""
        return self._keep(self._stream.readline(size) if size >= 0 else self._stream.readline())

    def _keep(self, data: bytes) -> bytes:
        if self.whole and len(self.data) + len(data) > self._limit:
            self.whole = False
            self.data.clear()
        if self.whole:
            self.data += data
        return data


class ReplayedInput:
    """A body as one run of the application sees it: first the bytes that earlier runs have read, then the rest."""

    def __init__(self, record: InputRecord) -> None:
        self._record = record
        self._place = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to ``size`` bytes; all if it is negative."""
        size = -1 if size is None else size
        known = self._replay(len(self._record.data) if size < 0 else self._place + size)
        if 0 <= size <= len(known):
            return known
        return known + self._more(self._record.read(-1 if size < 0 else size - len(known)))

    def readline(self, size: int | None = -1, /) -> bytes:
        """The rest of a line, up to ``size`` bytes."""
        size = -1 if size is None else size
        data = self._record.data
        stop = len(data) if size < 0 else self._place + size
        end = data.find(b"\n", self._place, stop)
        known = self._replay(stop if end < 0 else end + 1)
        if end >= 0 or 0 <= size <= len(known):
            return known
        return known + self._more(self._record.readline(-1 if size < 0 else size - len(known)))

    def readlines(self, hint: int | None = -1, /) -> list[bytes]:
        """The remaining lines; with a hint, it stops once that many bytes were read."""
        lines: list[bytes] = []
        total = 0
        for line in self:
            lines.append(line)
            total += len(line)
            if hint is not None and 0 < hint <= total:
                break
        return lines

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")

    def _replay(self, stop: int) -> bytes:
        """The bytes to read again, up to a position."""
        found = bytes(self._record.data[self._place : stop])
        self._place += len(found)
        return found

    def _more(self, data: bytes) -> bytes:
        self._place += len(data)
        return data
