"""What a client is told when its request's transaction did not commit, and no handler is left to say so.

The texts have nothing in them of what was read or written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdall.errors import (
    ConflictError,
    ContentionError,
    EndpointError,
    InvalidModelUpdateError,
    ModelAlreadyExistsError,
    ServiceUnavailableError,
    StoreBusyError,
    ThrottledError,
    TransactionCanceledError,
    TransactionFailedError,
    UniqueViolationError,
)

_CONTENTION = (ContentionError, ConflictError, TransactionCanceledError)
_BUSY = (EndpointError, ServiceUnavailableError, StoreBusyError, ThrottledError)
_CONFLICT = (InvalidModelUpdateError, ModelAlreadyExistsError, UniqueViolationError)


class Answer(NamedTuple):
    """A small response of the middleware's own."""

    status: int
    reason: str
    text: str
    again: bool

    @property
    def body(self) -> bytes:
        """The text as it is sent."""
        return self.text.encode()

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Its headers; ``Retry-After`` where the same request can go through."""
        found = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(self.body)))]
        return [*found, ("retry-after", "1")] if self.again else found


CONTENTION = Answer(
    409, "Conflict", "This request met another one. Nothing was stored; please try again.\n", True
)
BUSY = Answer(503, "Service Unavailable", "The store is busy. Nothing was stored; please try again.\n", True)
CONFLICT = Answer(
    409, "Conflict", "This request does not go with what is stored. Nothing was stored.\n", False
)


def answer_to(error: BaseException) -> Answer | None:
    """The answer to a commit that failed with an error; None for one that is the application's to deal with."""
    if isinstance(error, TransactionFailedError) and error.__cause__ is not None:
        reasons = list(_leaves(error.__cause__))
        if all(isinstance(reason, _CONTENTION) for reason in reasons):
            return CONTENTION
        if all(isinstance(reason, (*_CONTENTION, *_BUSY)) for reason in reasons):
            return BUSY
        return None
    return CONFLICT if all(isinstance(reason, _CONFLICT) for reason in _leaves(error)) else None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from _leaves(member)
    else:
        yield error
