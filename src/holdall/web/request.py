"""The request that is running here: its transaction, and whether it may be run again.

Kept in a context variable, which threads of a framework are given a copy of; so it holds an object, and what is noted
on that is seen by the middleware.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar, cast, overload

F = TypeVar("F", bound=Callable[..., Any])


class RunningRequest:
    """One run of the application for a request. ``error`` is what one of our handlers has answered."""

    def __init__(self, tx: Any) -> None:
        self.tx = tx
        self.repeatable = False
        self.error: Exception | None = None


running: ContextVar[RunningRequest | None] = ContextVar("holdall_request", default=None)


@overload
def retry_on_contention() -> None: ...
@overload
def retry_on_contention(handler: F, /) -> F: ...
def retry_on_contention(handler: Any = None, /) -> Any:
    """Say that the request may be run again, from its start, when its transaction meets contention.

    Called in a handler, or as a decorator of one (without parentheses, below the one that makes it a route). Say so
    where everything that the handler does besides the transaction may be done twice. Where no middleware is around,
    nothing is run again, and this means nothing.
    """
    if handler is not None:
        return _repeatable(handler)
    request = running.get()
    if request is not None:
        request.repeatable = True
    return None


def _repeatable(handler: F) -> F:
    from inspect import iscoroutinefunction

    if iscoroutinefunction(handler):

        @wraps(handler)
        async def await_handler(*args: Any, **keywords: Any) -> Any:
            retry_on_contention()
            return await handler(*args, **keywords)

        return cast("F", await_handler)

    @wraps(handler)
    def call_handler(*args: Any, **keywords: Any) -> Any:
        retry_on_contention()
        return handler(*args, **keywords)

    return cast("F", call_handler)
