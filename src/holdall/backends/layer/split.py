"""A backend for reads in front of the main one: a cache that answers reads which may be slightly stale.

Eventually consistent reads go to the backend for reads, everything else to the main one: writes, strongly consistent
and transactional reads, descriptions of tables, and reads that must be ``fresh``. Each request states which it is.

When the backend for reads fails, the caller gets its error. The main backend is not used instead: a table whose reads a
cache has been serving would suddenly get them all, and become too slow for its writes, too. A caller can decide
otherwise by repeating the read with ``consistent=True``; a transaction does so in its next attempt.
"""

from __future__ import annotations

from typing import Any

from holdall.core.port import Backend, Layer, Send
from holdall.core.requests import Request
from holdall.errors import HoldallError

_NOTE = "this read may be slightly stale, so it went to the reads= backend; consistent=True reads from the main one"


class SplitBackend(Layer):
    """Reads that may be stale from one backend, everything else from the main one. Closing closes both."""

    def __init__(self, main: Backend, reads: Backend) -> None:
        self.main = main
        self.reads = reads

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        if not request.may_be_old:
            return await send(self.main, request)
        try:
            return await send(self.reads, request)
        except HoldallError as error:
            error.add_note(_NOTE)
            raise

    def close(self) -> None:
        """Close both; the main one even if closing the other fails."""
        try:
            self.reads.close()
        finally:
            self.main.close()
