"""One recorder of requests for all tests: records requests and replies, and lets a test act in between."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from holdall.core.objects import DescribeService
from holdall.core.port import Backend, Send
from holdall.core.requests import Request
from rig.wrapper import Wrapper

__all__ = ["Recorder"]


class Recorder(Wrapper):
    """A backend around a backend.

    ``requests`` lists all requests in order, ``exchanges`` the answered ones with their replies. ``before`` is called
    with each request before it is sent, ``after`` once it was answered; if they raise an error, the caller gets it. In
    the awaiting colour they may be async. `DescribeService` needs no network request, so it is not recorded.

    A recorder ``beside`` another records there and calls the other's ``before`` and ``after``: so the requests of the
    table and the service are in one order.
    """

    def __init__(self, inner: Backend, beside: Recorder | None = None) -> None:
        super().__init__(inner)
        self.requests: list[Any] = []
        self.exchanges: list[tuple[Any, Any]] = []
        self.before: Callable[[Any], Any] = _ignore
        self.after: Callable[[Any], Any] = _ignore
        self._log = beside or self

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        log = self._log
        if isinstance(request, DescribeService):
            return await send(self.inner, request)
        log.requests.append(request)
        if isawaitable(pending := log.before(request)):
            await pending
        reply = await send(self.inner, request)
        log.exchanges.append((request, reply))
        if isawaitable(pending := log.after(request)):
            await pending
        return reply

    def list_sent(self, *kinds: type[Any]) -> list[Any]:
        """List the requests of these kinds so far."""
        return [request for request in self.requests if isinstance(request, kinds)]

    def forget(self) -> None:
        """Count requests from here."""
        self.requests.clear()
        self.exchanges.clear()


def _ignore(request: Any) -> None:
    pass
