"""The options of a middleware: the database, how often and which requests to run again, how much body to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdall.errors import ConfigurationError, InvalidOptionsError
from holdall.scope import TransactionScope
from holdall.web.answer import find_answer

if TYPE_CHECKING:
    from holdall import AsyncDatabase, Database

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that by definition change nothing, so that running them twice is harmless."""

MARK = "holdall.transaction"
"""The name in a request's scope or environ under which a middleware notes that it provides the transaction."""


class Rules:
    """The options of a middleware, checked.

    ``retry`` is called with the request as the server passes it: a scope or an environ.
    """

    def __init__(
        self,
        db: Database | AsyncDatabase,
        *,
        retries: int | None,
        max_body: int,
        retry: Callable[[Any], bool] | None,
        answer: Callable[[Exception], Any] | None,
    ) -> None:
        self.scope = TransactionScope(db, retries=retries)
        if isinstance(max_body, bool) or not isinstance(max_body, int) or max_body < 0:
            raise InvalidOptionsError(
                f"max_body must be a whole number of bytes, 0 or more, not {max_body!r}"
            )
        if retry is not None and not callable(retry):
            raise InvalidOptionsError(
                f"retry must be a function, not {retry!r:.80}",
                hint="pass a function that takes the request and returns True or False",
            )
        if answer is not None and not callable(answer):
            raise InvalidOptionsError(
                f"answer must be a function, not {answer!r:.80}",
                hint="pass a function that takes an error and returns a response, a Problem or None",
            )
        self.max_body = max_body
        self.find_answer = find_answer if answer is None else answer
        self._retry = retry

    def repeatable(self, method: str, request: Any) -> bool:
        """Whether a request may be run again even if its handler does not allow it."""
        if method in SAFE_METHODS:
            return True
        if self._retry is None:
            return False
        allowed = self._retry(request)
        if not isinstance(allowed, bool):  # a coroutine would otherwise count as True for every request
            close = getattr(allowed, "close", None)
            if close is not None:
                close()
            raise ConfigurationError(
                f"the retry function must return True or False, not {type(allowed).__name__}"
            )
        return allowed


def is_inside(request: Any, rules: Rules) -> bool:
    """Whether another middleware already provides a transaction of the same database for this request."""
    around: TransactionScope | None = request.get(MARK)
    if around is not None and not around.is_of_same_store(rules.scope):
        raise ConfigurationError(
            "the request passes through two TransactionMiddlewares with different databases",
            hint="two databases cannot commit together: keep one middleware, and use db.run for the other database",
        )
    return around is not None
