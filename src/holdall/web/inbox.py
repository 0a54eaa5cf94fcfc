"""The messages of an ASGI request, and whether its client has gone.

The server's ``receive`` is the only place where a disconnect shows, behind the body. Several may wait for a message at
once: the application, a run of it that was cancelled, and the commit, which looks for a disconnect. So one task at a
time waits for the server, it outlives those that wait for it, and what it brings is handed out in order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from holdall.web.replay import MessageRecord

__all__ = ["DISCONNECT", "Inbox", "Message", "Receive"]

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]

DISCONNECT = "http.disconnect"

_AHEAD = 65_536
"""How many bytes of a body that the application does not read are read to look for a disconnect behind them."""

_TURNS = 6
"""Turns of the event loop in which a closed socket, through TLS, becomes a message."""


class Inbox:
    """The messages of one request. ``record`` keeps those that a run has read, ``is_gone`` says that the client left.

    ``expects`` is whether the client waits for a 100 before it sends its body. To ask the server for a message would
    send that, so without the application's asking there is no look.
    """

    def __init__(self, receive: Receive, limit: int, *, expects: bool) -> None:
        self.record = MessageRecord(limit)
        self.is_gone = False
        self._receive = receive
        self._expects = expects
        self._unread: deque[Message] = deque()
        self._ahead = 0
        self._pending: asyncio.Future[Message] | None = None

    async def next(self) -> Message:
        """The next message that no run has read."""
        self._expects = False
        while not self._unread:
            if self.is_gone:
                return {"type": DISCONNECT}
            await asyncio.wait([self._ask()])
            self._collect()
        message = self._unread.popleft()
        self._ahead -= _size(message)
        self.record.keep(message)
        return message

    async def look(self) -> bool:
        """Whether the client is known to have gone by now."""
        while not (self.is_gone or self._expects) and self._ahead < _AHEAD:
            pending = self._ask()
            for _ in range(_TURNS):
                await asyncio.sleep(0)
                if pending.done():
                    break
            if not pending.done() or pending.exception() is not None:
                break  # an error of the server's is raised where the application receives
            self._collect()
        return self.is_gone

    def close(self) -> None:
        """Ask the server for no more."""
        if self._pending is not None and not self._pending.cancel() and not self._pending.cancelled():
            self._pending.exception()  # the application did not want to know

    def _ask(self) -> asyncio.Future[Message]:
        if self._pending is None:
            self._pending = asyncio.ensure_future(self._receive())
        return self._pending

    def _collect(self) -> None:
        """Take what the server said; another that waited for it may have done so."""
        pending = self._pending
        if pending is None or not pending.done():
            return
        self._pending = None
        message = pending.result()
        if message["type"] == DISCONNECT:
            self.is_gone = True
        else:
            self._unread.append(message)
            self._ahead += _size(message)


def _size(message: Message) -> int:
    return len(message.get("body", b""))
