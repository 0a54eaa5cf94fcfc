"""Dependencies for FastAPI: the request's transaction, sync or async.

::

    @app.post("/orders")
    async def create(order: NewOrder, tx: Annotated[AsyncTransaction, Depends(transaction)]) -> Order: ...

    @app.get("/orders/{number}")
    def find(number: int, tx: Annotated[Transaction, Depends(blocking_transaction)]) -> Order: ...

The transaction belongs to the `holdall.web.TransactionMiddleware` around the application, which also ends it.
"""

from __future__ import annotations

from holdall import AsyncTransaction, Transaction
from holdall.errors import ConfigurationError
from holdall.scope import ScopedTransaction
from holdall.web.request import running

__all__ = ["blocking_transaction", "transaction"]


async def transaction() -> AsyncTransaction:
    """The request's transaction, for ``async def`` endpoints."""
    return _of_request()


async def blocking_transaction() -> Transaction:
    """The request's transaction, for ``def`` endpoints, which FastAPI runs in threads."""
    # async, because FastAPI would run a sync dependency in a thread just to return this
    return _of_request().in_thread()


def _of_request() -> ScopedTransaction:
    request = running.get()
    if request is None or not isinstance(request.tx, ScopedTransaction):
        raise ConfigurationError(
            "this request has no transaction",
            hint="add the middleware: app.add_middleware(TransactionMiddleware, db=db); in a websocket, use db.run",
        )
    return request.tx
