"""``with fresh():``, inside which no cache answers a read, whatever its consistency.

Pure. Each request has a field ``fresh`` that keeps caches from answering it, and Holdall sets it where an old answer
would do harm. `fresh` is for code that does not build its requests itself: the port passes each request through
`insist`, so everything below the port decides from the request alone.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, TypeVar

from holdall.core.frozen import replace
from holdall.core.requests import BatchGet, Request

R = TypeVar("R")

insisting: ContextVar[bool] = ContextVar("holdall_insisting", default=False)
"""Whether the running code is inside ``with fresh():``."""


def insist(request: Request[R]) -> Request[R]:
    """Return the request in a form that no cache may answer."""
    if not request.may_be_old:
        return request
    read: Any = request
    if isinstance(request, BatchGet):
        return replace(read, reads=tuple([replace(each, fresh=True) for each in request.reads]))  # type: ignore[no-any-return]
    return replace(read, fresh=True)  # type: ignore[no-any-return]


class fresh:  # noqa: N801 - reads as a statement: with fresh():
    """Inside this ``with`` statement, no read is answered by a cache; nor in tasks that are started inside it."""

    def __init__(self) -> None:
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._tokens.append(insisting.set(True))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        insisting.reset(self._tokens.pop())
