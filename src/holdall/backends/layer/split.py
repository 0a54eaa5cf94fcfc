"""A backend for reads before another: a cache that answers what may be a little old.

Eventually consistent reads go to the one, everything else to the main one: writes, strongly consistent and
transactional reads, what tables look like, and reads that have to be ``fresh``. Each request says which it is.

When the backend for reads cannot answer, its error is the caller's. The main one is not asked in its place: a table
whose reads a cache has been taking would get them all at once, and be too slow for its writes as well. Each caller can
decide otherwise, by asking again with ``consistent=True``; a transaction does, in its next attempt.
"""

from __future__ import annotations

from typing import Any

from holdall.core.port import Backend, Layer, Send
from holdall.core.requests import Request
from holdall.errors import HoldallError

_NOTE = "the reads= backend was asked, as the answer may be a little old; consistent=True asks the main one"


class SplitBackend(Layer):
    """Reads that may be old from one backend, everything else from the main one. Closing closes both.

    A backend for reads that has a method ``beside`` is told of the main one, to ask it for what it cannot answer.
    """

    def __init__(self, main: Backend, reads: Backend) -> None:
        self.main = main
        self.reads = reads
        beside = getattr(reads, "beside", None)
        if beside is not None:
            beside(main)

    def through(self, main: Backend, reads: Backend) -> SplitBackend:
        """The same, by way of others that stand before the two."""
        other = SplitBackend.__new__(SplitBackend)
        other.main, other.reads = main, reads
        return other

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        if not request.may_be_old:
            return await send(self.main, request)
        try:
            return await send(self.reads, request)
        except HoldallError as error:
            error.add_note(_NOTE)
            raise

    def close(self) -> None:
        """Close both, the main one also when the other makes trouble."""
        try:
            self.reads.close()
        finally:
            self.main.close()
