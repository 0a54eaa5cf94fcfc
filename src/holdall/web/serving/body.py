"""The body of a request as a stream that reads only on demand and does not wait forever."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from holdall.web.serving.refusal import RefusedError

IDLE = 60.0
"""Seconds after which a client that sends nothing counts as gone, so that it occupies no resources."""


class Body:
    """A stream that can be read once."""

    def __init__(self, request: Request) -> None:
        self._pieces = request.stream()
        self._held = memoryview(b"")

    async def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; empty at the end."""
        while not self._held:
            try:
                async with asyncio.timeout(IDLE):
                    piece = await anext(self._pieces, None)
            except TimeoutError:
                raise RefusedError(408, f"No data arrived for {IDLE:g} seconds.") from None
            if piece is None:
                return b""
            self._held = memoryview(piece)
        found, self._held = bytes(self._held[:size]), self._held[size:]
        return found
