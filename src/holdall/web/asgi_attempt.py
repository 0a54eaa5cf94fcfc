"""One run of an ASGI application for a request, held back before its first byte is sent.

The application runs in a separate task. Its messages are held until the first part of the body; there it waits, inside
``send``, until the middleware releases the response or gives up the run. A run that is given up is cancelled: ``send``
raises `asyncio.CancelledError`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from holdall.errors import RequestAbandoned
from holdall.transactions import Participant
from holdall.web.inbox import DISCONNECT, Inbox, Message, Receive
from holdall.web.request import RunningRequest

Scope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_START = "http.response.start"


class Attempt:
    """One run, started on creation. ``error`` is what the application raised, ``refusal`` why it must not commit.

    Each run has its own ``scope``: frameworks keep state in it, which the next run must not see.
    """

    def __init__(self, app: ASGIApp, scope: dict[str, Any], inbox: Inbox, send: Send) -> None:
        self.error: BaseException | None = None
        self.refusal: RequestAbandoned | None = None
        self.scope = scope
        self._inbox = inbox
        self._send = send
        self._place = 0
        self._status: int | None = None
        self._held: deque[Message] = deque()
        self._flushing = asyncio.Lock()
        self._go = asyncio.Event()
        self._is_released = False
        self._is_over = False
        self._decisive: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._run(app))
        self._task.add_done_callback(self._decide)

    async def _run(self, app: ASGIApp) -> None:
        await app(self.scope, self.receive, self.send)

    async def reach_response(self, request: RunningRequest) -> None:
        """Wait until the application sends its first bytes, and raise if it must not be committed."""
        try:
            await self._decisive
        except BaseException:
            await self.give_up()
            raise
        if self._task.done():
            self._raise_error()
            self.refusal = RequestAbandoned("the application sent no response")
        elif self._inbox.is_gone:
            self.refusal = RequestAbandoned("the client has disconnected")
        elif self._status is not None and self._status >= 400:
            self.refusal = RequestAbandoned(
                f"the application answered with {self._status}", status=self._status
            )
        if self.refusal is not None:
            raise (request.error if self.is_error_response else None) or self.refusal

    async def check_client(self) -> None:
        """Raise if the client has disconnected."""
        if await self._inbox.look():
            self.refusal = RequestAbandoned("the client has disconnected")
            raise self.refusal

    @property
    def is_error_response(self) -> bool:
        """Whether the status of the response forbids the commit; the response is then sent unchanged."""
        return self.refusal is not None and self.refusal.status is not None and not self._inbox.is_gone

    def _raise_error(self) -> None:
        if not self._task.cancelled():
            self.error = self._task.exception()
        self._task.result()

    async def release(self) -> None:
        """Send the response, and let the application run to its end."""
        self._inbox.record.whole = False
        self._go.set()
        await self._task
        await self._flush()  # messages of an application that did not await its send

    async def give_up(self) -> None:
        """Cancel the application and wait for its end; raises what it raises then, unless it had already ended."""
        self._is_over = True
        if self._task.done():
            return
        cancellation: asyncio.CancelledError | None = None
        while not self._task.done():
            self._task.cancel()
            try:
                await asyncio.wait([self._task])
            except asyncio.CancelledError as error:
                cancellation = error
        if cancellation is not None:
            raise cancellation
        if not self._task.cancelled():
            self._task.result()

    # --- passed to the application ------------------------------------------------------------------------

    async def receive(self) -> Message:
        """The next message: one that an earlier run has read, or a new one from the server."""
        if self._is_over:
            return {"type": DISCONNECT}
        kept = self._inbox.record.messages
        if self._place < len(kept):
            self._place += 1
            return dict(kept[self._place - 1])
        message = await self._inbox.next()
        self._place = len(kept)
        return message

    async def send(self, message: Message) -> None:
        """Send a message, or hold it back until the response is released."""
        if self._is_released:
            await self._send(message)
            return
        if self._is_over:
            raise ConnectionAbortedError("this run of the request was given up, so its response is not sent")
        self._held.append(message)
        if message["type"] == _START:
            self._status = message["status"]
        elif self._status is not None:
            self._decide()
            await self._go.wait()
            await self._flush()

    def _decide(self, _: object = None) -> None:
        if not self._decisive.done():
            self._decisive.set_result(None)

    async def _flush(self) -> None:
        async with self._flushing:  # several tasks of the application may send at once
            while self._held:
                await self._send(self._held.popleft())
            self._is_released = True


class ClientWatch(Participant):
    """The participant that keeps a request's transaction from committing once its client has disconnected."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    async def check(self) -> None:
        """Check for a disconnect, once everything else is prepared."""
        await self._attempt.check_client()
