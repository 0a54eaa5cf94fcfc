"""What a middleware was told: the database, how often to run a request, which ones, and how much body to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdall.errors import ConfigurationError, InvalidOptionsError
from holdall.scope import TransactionScope
from holdall.web.answer import find_answer

if TYPE_CHECKING:
    from holdall import AsyncDatabase, Database

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that by their definition ask for nothing to be done, so that asking twice is harmless."""

MARK = "holdall.transaction"
"""Where a request says, in its scope or environ, that it has a transaction, and of which scope."""


class Rules:
    """The options of a middleware, checked.

    ``retry`` is asked about a request as the server gives it: a scope or an environ.
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
                f"max_body is {max_body!r}, and has to be a whole number of bytes from 0 up"
            )
        if retry is not None and not callable(retry):
            raise InvalidOptionsError(
                f"retry is {retry!r:.80}", hint="give a function of the request that says True or False"
            )
        if answer is not None and not callable(answer):
            raise InvalidOptionsError(
                f"answer is {answer!r:.80}",
                hint="give a function of an error that returns a response, a Problem or None",
            )
        self.max_body = max_body
        self.find_answer = find_answer if answer is None else answer
        self._retry = retry

    def repeatable(self, method: str, request: Any) -> bool:
        """Whether a request may be run again whatever its handler says."""
        if method in SAFE_METHODS:
            return True
        if self._retry is None:
            return False
        said = self._retry(request)
        if not isinstance(said, bool):  # a coroutine, say, would be a yes to everything
            close = getattr(said, "close", None)
            if close is not None:
                close()
            raise ConfigurationError(
                f"the function given as retry said {type(said).__name__}, and has to say True or False"
            )
        return said


def is_inside(request: Any, rules: Rules) -> bool:
    """Whether another middleware already gives the request a transaction, of the same database."""
    around: TransactionScope | None = request.get(MARK)
    if around is not None and not around.is_of_same_store(rules.scope):
        raise ConfigurationError(
            "one request has two TransactionMiddlewares, of different databases",
            hint="two databases cannot commit as one: keep one middleware, and use db.run for the other database",
        )
    return around is not None
