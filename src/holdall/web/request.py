"""The current request: its transaction, and whether it may be run again.

It is kept in a context variable. Frameworks give their threads a copy of the context, so the variable holds one mutable
object, through which the middleware sees what a thread has noted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar, cast, overload

F = TypeVar("F", bound=Callable[..., Any])


class RunningRequest:
    """One run of the application for a request. ``error`` is the error that one of our handlers has answered."""

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
    """Allow the request to be run again from its start if its transaction meets contention.

    Call it in a handler, or use it as a decorator (without parentheses, below the decorator that makes the handler a
    route). Use it only if everything that the handler does outside the transaction may happen twice. Without a
    `TransactionMiddleware`, it has no effect.
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
