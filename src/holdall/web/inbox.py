"""The messages of an ASGI request, and whether its client has disconnected.

Only the server's ``receive`` reports a disconnect, after the body. Several callers may wait for a message at once: the
application, a cancelled run of it, and the commit, which checks for a disconnect. So one task at a time waits for the
server, it outlives its callers, and its messages are handed out in order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from holdall.web.replay import MessageRecord

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]

DISCONNECT = "http.disconnect"

_AHEAD = 65_536
"""How many bytes of an unread body are read to look for a disconnect after it."""

_TURNS = 6
"""How many iterations the event loop needs to turn a closed socket, through TLS, into a message."""


class Inbox:
    """The messages of one request. ``record`` keeps those that a run has read; ``is_gone`` is set once the client has
    disconnected.

    ``expects`` says whether the client waits for a status 100 before it sends its body. Asking the server for a message
    sends that status, so only the application may be the first to ask.
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
        """Whether the client is known to have disconnected."""
        while not (self.is_gone or self._expects) and self._ahead < _AHEAD:
            pending = self._ask()
            for _ in range(_TURNS):
                await asyncio.sleep(0)
                if pending.done():
                    break
            if not pending.done() or pending.exception() is not None:
                break  # a server error is raised where the application receives
            self._collect()
        return self.is_gone

    def close(self) -> None:
        """Stop asking the server for messages."""
        if self._pending is not None and not self._pending.cancel() and not self._pending.cancelled():
            self._pending.exception()  # the application no longer receives

    def _ask(self) -> asyncio.Future[Message]:
        if self._pending is None:
            self._pending = asyncio.ensure_future(self._receive())
        return self._pending

    def _collect(self) -> None:
        """Take the server's message, unless another waiting caller has taken it."""
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
