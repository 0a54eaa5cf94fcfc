"""The current transaction: the one whose body is running, for nested code that does not get it as an argument.

Pure. It is kept in a context variable, so each thread and each task has its own. A task that is started inside a body
inherits that body's transaction, and so does ``asyncio.to_thread``; a plain thread starts without one. A transaction
that has ended is never returned. Raises `NoTransactionError`.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, overload

from holdall.errors import InvalidOptionsError, NoTransactionError

if TYPE_CHECKING:
    from holdall.transactions.api import AsyncTransaction, Transaction

T = TypeVar("T", bound="Transaction | AsyncTransaction")

_current: ContextVar[Any] = ContextVar("holdall_transaction", default=None)


@overload
def current_transaction() -> Any: ...
@overload
def current_transaction(kind: type[T], /) -> T: ...
def current_transaction(kind: Any = None, /) -> Any:
    """The innermost transaction whose body is running: that of ``db.run``, of a ``with`` block or of a web request.

    ``current_transaction(Transaction)`` and ``current_transaction(AsyncTransaction)`` are typed, and refuse a
    transaction of the other kind. Raises `NoTransactionError` if no transaction is running, or it has ended.
    """
    found = _current.get()
    if found is None:
        raise NoTransactionError(
            "no transaction is running here",
            hint="call this inside db.run, a with block or a web request; a new thread starts without a transaction",
        )
    if not found._unit.open:
        raise NoTransactionError(
            "the transaction that was running here has ended",
            hint="start a new transaction in code that runs after it: handlers, background tasks, the rest of a stream",
        )
    found = found._here()
    if kind is None or (isinstance(kind, type) and isinstance(found, kind)):
        return found
    if not isinstance(kind, type):
        raise InvalidOptionsError(
            f"{kind!r:.80} is not a transaction class", hint="pass Transaction or AsyncTransaction"
        )
    raise NoTransactionError(
        f"the transaction that is running here is not of type {kind.__name__}",
        hint="pass Transaction in sync code, AsyncTransaction in async code",
    )


def is_retry() -> bool:
    """Whether this code runs in a later attempt of a transaction, whose reads must not come from a cache."""
    found = _current.get()
    return found is not None and bool(found._unit.insist)


def enter_transaction(tx: Any) -> Any:
    """Make a transaction the current one; return the previous one, for `exit_transaction`."""
    outer = _current.get()
    _current.set(tx)
    return outer


def exit_transaction(tx: Any, outer: Any) -> None:
    """Undo `enter_transaction`; does nothing in another context than the one it was entered in.

    If the previous transaction has ended meanwhile, because blocks overlap, there is no current one.
    """
    if _current.get() is tx:
        _current.set(outer if outer is not None and outer._unit.open else None)
