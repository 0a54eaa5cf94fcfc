"""Orders over HTTP: one model is the body of requests, the rows and the replies; each request has a transaction.

Run it: python examples/fastapi_orders.py (needs fastapi and httpx). It asks itself; to serve others, give what
``create_app`` makes to a server of your choice.
"""

import asyncio
from datetime import UTC, datetime
from typing import Annotated

from annotated_types import Ge
from fastapi import Body, Depends, FastAPI, HTTPException
from httpx import ASGITransport, AsyncClient, Response

from holdall import AsyncDatabase, AsyncTransaction, Key, Model, SortKey, field
from holdall.web import TransactionMiddleware, retry_on_contention
from holdall.web.fastapi import transaction


class Order(Model):
    """What somebody ordered."""

    customer: Key[str]
    number: SortKey[int]
    product: str = field(description="as the catalogue has it")
    quantity: Annotated[int, Ge(0)] = 1
    note: str | None = None
    placed_at: datetime = field(default_factory=lambda: datetime.now(UTC), read_only=True)


# Body() says that the order is the request's body; FastAPI would look for it in the query of the address.
NewOrder = Annotated[Order, Body()]
Tx = Annotated[AsyncTransaction, Depends(transaction)]


def create_app(db: AsyncDatabase) -> FastAPI:
    app = FastAPI(title="Orders")
    app.add_middleware(TransactionMiddleware, db=db)

    @app.post("/orders", status_code=201)
    async def create(order: NewOrder, tx: Tx) -> Order:
        return tx.create(order)  # if there is one already, the client gets a 409

    @app.get("/orders/{customer}")
    async def find_all(customer: str, tx: Tx) -> list[Order]:
        return await tx.query(Order, customer=customer).all()

    @app.post("/orders/{customer}/{number}/ship")
    @retry_on_contention
    async def ship(customer: str, number: int, tx: Tx, count: Annotated[int, Ge(1)] = 1) -> Order:
        order = await tx.get(Order, customer=customer, number=number)
        if order is None or order.quantity < count:
            raise HTTPException(409, "there are not that many to ship")
        order.quantity -= count
        return order

    return app


def told(reply: Response) -> None:
    print(f"{reply.request.method:4} {reply.request.url.path}  {reply.status_code}  {reply.text.strip()}")


async def main() -> None:
    async with AsyncDatabase("memory:") as db:
        transport = ASGITransport(app=create_app(db))
        async with AsyncClient(transport=transport, base_url="http://orders") as client:
            order = {"customer": "ada", "number": 1, "product": "tea", "quantity": 3}
            told(await client.post("/orders", json=order))
            again = await client.post("/orders", json=order)
            told(again)
            assert again.status_code == 409

            wrong = await client.post("/orders", json={"customer": "ada", "number": "x", "prodcut": "tea"})
            assert wrong.status_code == 422
            for problem in wrong.json()["detail"]:
                print(f"{'':6}{'.'.join(problem['loc'])}: {problem['msg']}")

            shipped = await asyncio.gather(*(client.post("/orders/ada/1/ship") for _ in range(4)))
            statuses = sorted(reply.status_code for reply in shipped)
            print("shipped at once, 4 of 3:", statuses)
            assert statuses == [200, 200, 200, 409]
            left = await client.get("/orders/ada")
            told(left)
            assert [row["quantity"] for row in left.json()] == [0]


if __name__ == "__main__":
    asyncio.run(main())
