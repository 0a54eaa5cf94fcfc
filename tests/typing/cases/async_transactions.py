# mypy: ignore-errors
"""What type checkers know about transactions in async code. E: an error, R: a revealed type."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import reveal_type

from holdall import AsyncDatabase, AsyncTransaction, Key, Model, SortKey, field


class User(Model):
    name: str


class Order(Model):
    customer: Key[str]
    number: SortKey[int] = field(default=1)
    quantity: int = 1


async def create(tx: AsyncTransaction, order: Order) -> None:
    reveal_type(tx.create(User, name="Ada"))  # R: User
    reveal_type(tx.create(order))  # R: Order
    tx.create(User)  # E
    tx.create(User, name="Ada", nmae="Ada")  # E
    tx.create(User, name=1)  # E
    await tx.create(User, name="Ada")  # E


async def get(tx: AsyncTransaction) -> None:
    reveal_type(await tx.get(Order, "ada"))  # R: Order | None
    reveal_type(await tx.get(Order, customer="ada", number=1))  # R: Order | None
    reveal_type(await tx.get(Order.key("ada")))  # R: Order | None
    reveal_type(await tx.get(Order, "ada", create_if_missing=True))  # R: Order
    reveal_type(await tx.get(Order.key("ada"), create_if_missing={"quantity": 2}))  # R: Order
    reveal_type(await tx.get_one(Order, "ada"))  # R: Order
    reveal_type(await tx.get_all([Order.key("ada"), Order.key("bob")]))  # R: list[Order | None]
    one, two = await asyncio.gather(tx.get_one(Order, "ada"), tx.get(User, "x"))
    reveal_type(one)  # R: Order
    reveal_type(two)  # R: User | None
    print(tx.get_one(Order, "ada").quantity)  # E: quantity


async def query(tx: AsyncTransaction) -> None:
    async for order in tx.query(Order, customer="ada"):
        reveal_type(order)  # R: Order
    reveal_type(await tx.query(Order, customer="ada").all())  # R: list[Order]
    print(list(tx.query(Order, customer="ada")))  # E: AsyncRows[Order]


async def ship(tx: AsyncTransaction, number: int, *, note: str = "") -> Order:
    return await tx.get_one(Order, customer="ada", number=number)


def return_one(tx: AsyncTransaction) -> int:
    return 1


async def run(db: AsyncDatabase) -> None:
    reveal_type(await db.run(ship, 1))  # R: Order
    reveal_type(await db.run(lambda tx: tx.get_one(Order, "ada")))  # R: Order
    await db.run(ship, 1, retries=4, timeout=2.5)
    await db.run(ship, "1")  # E
    await db.run(ship, 1, retrys=4)  # E: retrys
    await db.run(return_one)  # E: Awaitable


async def transactional(db: AsyncDatabase) -> None:
    shipped = db.transactional(ship)
    reveal_type(await shipped(1))  # R: Order
    await shipped("1")  # E: int
    task = asyncio.create_task(shipped(1, note="soon"))
    reveal_type(await task)  # R: Order

    @db.transactional(retries=5)
    async def patient(tx: AsyncTransaction, customer: str) -> int:
        return (await tx.get_one(Order, customer)).quantity

    reveal_type(await patient("ada"))  # R: int


async def outside(db: AsyncDatabase) -> None:
    reveal_type(await db.get(Order, "ada"))  # R: Order | None
    reveal_type(await db.get_one(Order.key("ada")))  # R: Order
    reveal_type(await db.get_all([Order.key("ada")]))  # R: list[Order | None]
    async with db.transaction() as tx:
        reveal_type(tx)  # R: AsyncTransaction
    reveal_type(db.sync)  # R: Database


async def many(db: AsyncDatabase, order: Order, orders: AsyncIterator[Order]) -> None:
    async with db.bulk(Order) as bulk:
        reveal_type(bulk)  # R: AsyncBulk[Order]
        await bulk.put(order)
    reveal_type((await db.bulk(Order).put_all(orders)).put)  # R: int
    reveal_type((await db.update_all(Order, {"quantity": 2}, customer="ada")).changed)  # R: int
    reveal_type((await db.move(Order, Order, lambda order: {"quantity": order.quantity})).copied)  # R: int
