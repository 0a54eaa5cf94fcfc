"""``with fresh():``, inside which no cache answers a read, whatever its consistency.

Pure. Each request has a field ``fresh`` that keeps caches from answering it, and Holdall sets it where an old answer
would do harm. `fresh` is for callers that do not build their requests themselves: `Port.send` writes it into each
request (`insist`), and nothing below the port reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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


@contextmanager
def fresh() -> Iterator[None]:
    """Inside this ``with`` statement, no read is answered by a cache; nor in tasks that are started inside it."""
    token = insisting.set(True)
    try:
        yield
    finally:
        insisting.reset(token)
