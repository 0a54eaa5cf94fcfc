"""Dependencies for FastAPI: the transaction of the request, in either colour.

::

    @app.post("/orders")
    async def create(order: NewOrder, tx: Annotated[AsyncTransaction, Depends(transaction)]) -> Order: ...

    @app.get("/orders/{number}")
    def find(number: int, tx: Annotated[Transaction, Depends(blocking_transaction)]) -> Order: ...

The transaction is that of the `holdall.web.TransactionMiddleware` around the application, which also ends it.
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
    # async itself, as FastAPI would go to a thread and back just to fetch it
    return _of_request().in_thread()


def _of_request() -> ScopedTransaction:
    request = running.get()
    if request is None or not isinstance(request.tx, ScopedTransaction):
        raise ConfigurationError(
            "this request has no transaction",
            hint="app.add_middleware(TransactionMiddleware, db=db); a websocket has none, there use db.run",
        )
    return request.tx
