"""A shop over HTTP: products with photos, stock that cannot be oversold, orders page by page, and receipts as jobs.

Run it: python examples/fastapi_shop.py (needs fastapi, httpx and python-multipart). It sends requests to itself. To
serve it, pass the result of ``create_shop`` to a server such as uvicorn.
"""

import asyncio
from datetime import UTC, datetime
from typing import Annotated

from annotated_types import Ge
from fastapi import Depends, FastAPI, HTTPException, UploadFile
from httpx import ASGITransport, AsyncClient, Response
from pydantic import BaseModel

import holdall
from holdall import Accept, AsyncDatabase, AsyncTransaction, Key, Model, SortKey, field, has_one_attached
from holdall.web import TransactionMiddleware, create_app, install_error_handlers, retry_on_contention
from holdall.web.fastapi import transaction


class Product(Model):
    """A product for sale."""

    name: Key[str]
    cents: Annotated[int, Ge(0)]
    stock: Annotated[int, Ge(0)] = 0
    photo = has_one_attached(validate=Accept(types=["image/*"], max_bytes=5_000_000))


class Order(Model):
    """An order of a customer."""

    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: Annotated[int, Ge(1)] = 1
    cents: int
    placed_at: datetime = field(default_factory=lambda: datetime.now(UTC), read_only=True)


class Wish(BaseModel):
    """The part of an order that the client decides, without the price and the time."""

    product: str
    quantity: Annotated[int, Ge(1)] = 1


class Orders(BaseModel):
    """A page of orders, and the token for the next page."""

    orders: list[Order]
    next: str | None


RECEIPTS: list[str] = []  # in place of a mail server


@holdall.job("shop.send-receipt", retries=5)
async def send_receipt(order: Order) -> None:
    """Run after the commit; run again until it succeeds."""
    RECEIPTS.append(f"{order.customer}: {order.quantity} {order.product} for {order.cents / 100:.2f}")


Tx = Annotated[AsyncTransaction, Depends(transaction)]


def create_shop(db: AsyncDatabase) -> FastAPI:
    app = FastAPI(title="Shop")
    app.add_middleware(TransactionMiddleware, db=db)
    install_error_handlers(app)
    app.mount("/attachments", create_app(db))

    # A model can be a request body and a response; FastAPI validates it and documents it under /docs.
    @app.post("/products", status_code=201)
    async def add_product(product: Product, tx: Tx) -> Product:
        return tx.create(product)  # an existing name is a 409

    @app.get("/products/{name}")
    async def show_product(name: str, tx: Tx) -> Product:
        return await tx.get_one(Product, name)  # a missing name is a 404

    @app.put("/products/{name}/photo")
    async def set_photo(name: str, photo: UploadFile, tx: Tx) -> None:
        product = await tx.get_one(Product, name)
        product.photo = photo  # the commit uploads it; a type other than an image is a 422

    @app.get("/products/{name}/photo")
    async def find_photo(name: str, tx: Tx) -> str:
        product = await tx.get_one(Product, name, include=["photo"])
        address = product.photo.url()
        if address is None:
            raise HTTPException(404, "this product has no photo")
        return address

    # The client chooses the number, so a request that it sends twice is one order. The function can run twice, because
    # all its effects are in the transaction.
    @app.put("/customers/{customer}/orders/{number}", status_code=201)
    @retry_on_contention
    async def place(customer: str, number: int, wish: Wish, tx: Tx) -> Order:
        order = await tx.get(Order, customer=customer, number=number)
        if order is not None:
            return order
        product = await tx.get_one(Product, wish.product)
        if product.stock < wish.quantity:
            raise HTTPException(409, f"only {product.stock} left")
        product.stock -= wish.quantity
        cents = product.cents * wish.quantity
        order = tx.create(Order, customer=customer, number=number, cents=cents, **wish.model_dump())
        tx.enqueue(send_receipt, order)
        return order

    @app.get("/customers/{customer}/orders")
    async def list_orders(customer: str, tx: Tx, after: str | None = None) -> Orders:
        page = await tx.query(Order, customer=customer, reverse=True).page(2, after=after)
        return Orders(orders=list(page.items), next=page.next)

    return app


def show(reply: Response) -> Response:
    print(
        f"{reply.request.method:4} {reply.request.url.path}  {reply.status_code}  {reply.text.strip()[:90]}"
    )
    return reply


async def main() -> None:
    async with AsyncDatabase("memory:", secret="in production, a long random text") as db:
        transport = ASGITransport(app=create_shop(db))
        async with AsyncClient(transport=transport, base_url="http://shop") as client:
            await use(client)
        await db.worker().drain()  # in production, a worker runs all the time
        print(*sorted(RECEIPTS), sep="\n")
        assert len(RECEIPTS) == 4


async def use(client: AsyncClient) -> None:
    tea = {"name": "tea", "cents": 350, "stock": 3}
    assert show(await client.post("/products", json=tea)).status_code == 201
    assert show(await client.post("/products", json=tea)).status_code == 409
    assert show(await client.get("/products/milk")).status_code == 404

    wrong = await client.post("/products", json={"name": "milk", "cents": "dear", "stok": 1})
    assert wrong.status_code == 422
    for problem in wrong.json()["detail"]:
        print(f"{'':6}{'.'.join(problem['loc'])}: {problem['msg']}")

    photo = {"photo": ("tea.gif", b"GIF89a...", "image/gif")}
    assert show(await client.put("/products/tea/photo", files=photo)).status_code == 200
    address = (await client.get("/products/tea/photo")).json()
    seen = await client.get(address, follow_redirects=True)
    print("the photo is", seen.headers["content-type"])
    letter = {"photo": ("letter.txt", b"Dear shop", "text/plain")}
    assert show(await client.put("/products/tea/photo", files=letter)).status_code == 422

    # Four customers order one of the last three at the same time.
    names = ["ada", "alan", "bo", "grace"]
    placed = await asyncio.gather(
        *(client.put(f"/customers/{name}/orders/1", json={"product": "tea"}) for name in names)
    )
    statuses = sorted(reply.status_code for reply in placed)
    print("four orders for three:", statuses)
    assert statuses == [201, 201, 201, 409]
    assert (await client.get("/products/tea")).json()["stock"] == 0

    # A client that got no reply sends its request again, and gets the existing order.
    name = next(reply.json()["customer"] for reply in placed if reply.status_code == 201)
    again = await client.put(f"/customers/{name}/orders/1", json={"product": "tea"})
    assert again.json() in [reply.json() for reply in placed]

    await client.post("/products", json={"name": "coffee", "cents": 900, "stock": 99})
    await client.put("/customers/ada/orders/2", json={"product": "coffee", "quantity": 3})
    page = show(await client.get("/customers/ada/orders")).json()
    assert page["orders"][0]["cents"] == 2700


if __name__ == "__main__":
    asyncio.run(main())
