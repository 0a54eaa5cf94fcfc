"""One recorder of requests for all tests: records requests and replies, and lets a test act in between."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable
from typing import Any, TypeVar

from holdall.core.objects import DescribeService
from holdall.core.port import Backend
from holdall.core.requests import Request

__all__ = ["Recorder"]

R = TypeVar("R")


class Recorder:
    """A backend around a backend.

    ``requests`` lists all requests in order, ``exchanges`` the answered ones with their replies. ``before`` is called
    with each request before it is sent, ``after`` once it was answered; if they raise an error, the caller gets it. In
    the awaiting colour they may be async. `DescribeService` needs no network request, so it is not recorded.

    A recorder ``beside`` another records there and calls the other's ``before`` and ``after``: so the requests of the
    table and the service are in one order.
    """

    def __init__(self, inner: Backend, beside: Recorder | None = None) -> None:
        self.inner = inner
        self.requests: list[Any] = []
        self.exchanges: list[tuple[Any, Any]] = []
        self.before: Callable[[Any], Any] = _ignore
        self.after: Callable[[Any], Any] = _ignore
        self._log = beside or self

    def send_blocking(self, request: Request[R]) -> R:
        log = self._log
        if isinstance(request, DescribeService):
            return self.inner.send_blocking(request)  # type: ignore[return-value]
        log.requests.append(request)
        log.before(request)
        reply = self.inner.send_blocking(request)
        log.exchanges.append((request, reply))
        log.after(request)
        return reply

    async def send_awaiting(self, request: Request[R]) -> R:
        log = self._log
        if isinstance(request, DescribeService):
            return await self.inner.send_awaiting(request)  # type: ignore[arg-type]
        log.requests.append(request)
        if isawaitable(pending := log.before(request)):
            await pending
        reply = await self.inner.send_awaiting(request)
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

    def close(self) -> None:
        self.inner.close()


def _ignore(request: Any) -> None:
    pass
