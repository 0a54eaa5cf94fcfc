"""A backend that answers requests with one flow, for sync and async code."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from holdall.backends.aws.blocking import BlockingPace
from holdall.backends.aws.courier import Pace
from holdall.core.port import run
from holdall.core.requests import Request
from holdall.errors import StoreClosedError

R = TypeVar("R")


class AwsBackend:
    """Sends each request through ``answer``, at the pace of sync or of async code."""

    def __init__(self, answer: Callable[[Pace, Request[Any]], Coroutine[Any, Any, Any]], what: str) -> None:
        """``what`` names the backend in the error after `close`."""
        self._answer = answer
        self._what = what
        self._blocking: Pace = BlockingPace()
        self._awaiting: Pace | None = None
        self._closed = False

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request; the calling thread waits."""
        if self._closed:
            raise self._explain_closed()
        return run(self._answer(self._blocking, request))  # type: ignore[no-any-return]

    def send_awaiting(self, request: Request[R]) -> Coroutine[Any, Any, R]:
        """Answer the request without blocking the event loop."""
        if self._closed:
            raise self._explain_closed()
        if self._awaiting is None:
            from holdall.backends.aws.awaiting import AwaitingPace  # asyncio takes a while to load

            self._awaiting = AwaitingPace()
        return self._answer(self._awaiting, request)

    def _explain_closed(self) -> StoreClosedError:
        return StoreClosedError(f"the {self._what} is closed", hint="open it again")

    def close(self) -> None:
        """Refuse further requests."""
        self._closed = True
