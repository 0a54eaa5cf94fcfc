# mypy: ignore-errors
"""What mypy finds with the plugin ``holdall.mypy``, and pyright with stubs from ``holdall models stubs``."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal, TypeVar, reveal_type
from uuid import uuid4

from key_models import (
    Account,
    Dated,
    Gift,
    Inventory,
    Money,
    Opaque,
    Order,
    Part,
    Profile,
    Purchase,
    Ticket,
    Visit,
)

from holdall import AsyncDatabase, Database, Model, Transaction, col

M = TypeVar("M", bound=Model)
G = TypeVar("G", bound=Order)

db = Database("memory:")


def read(tx: Transaction, values: dict[str, Any], number: int, text: str) -> None:
    reveal_type(db.get(Order, customer="ada", number=1))  # R: Order | None
    reveal_type(tx.get_one(Gift, customer="ada", number=number))  # R: Gift
    db.get(Order, {"customer": "ada", "number": 1})
    db.get(Order, values)
    db.get(Order, **values)  # E[pyright]
    db.get(Order, customer="ada", **values)  # E[pyright]
    db.get(Order.key(customer="ada", number=1), consistent=False)
    tx.get(Account, "x", create_if_missing={"email": "a"})
    db.get(Account, id="x")
    db.get(Part, uuid4())
    db.get(Profile, tenant="t", day=date(2026, 1, 1))
    db.get(Money, "bo")
    db.get(Opaque, 1)

    db.get(Order, custmer="ada", number=1)  # E: no "custmer"; did you mean "customer"?
    db.get(Order, customer="ada", number="1")  # E: "number" of "Order" must be "int", not "str"
    db.get(Order, customer="ada")  # E: The key of "Order" needs "number"
    db.get(Order, customer="ada", number=1, product="tea")  # E: The key of "Order" has no "product"
    db.get(Order, custmer="ada", **values)  # E: did you mean "customer"?
    db.get(Order, "ada")  # E: The key of "Order" has 2 components: write customer=..., number=...
    db.get(Order, {"customer": "ada", "nummer": 1})  # E[mypy]: did you mean "number"?
    tx.get(Gift, customer="ada", number=text)  # E: "number" of "Gift" must be "int", not "str"
    tx.get_one(Order, customer=None, number=1)  # E: "customer" of "Order" must be "str", not "None"
    db.get(Account, 3)  # E: "id" of "Account" must be "str", not "int"
    db.get(Account, key="x")  # E: The key of "Account" has no "key"
    db.get(Part, "x")  # E: "id" of "Part" must be "UUID", not "str"
    db.get(Profile, tenant="t")  # E: The key of "Profile" needs "day"
    db.get(Inventory, "bo")  # E: The key of "Inventory" has 2 components
    db.get(Money, 3)  # E: "user" of "Money" must be "str", not "int"
    db.get(Opaque, "x")  # E: "id" of "Opaque" must be "int", not "str"


def make_keys() -> None:
    reveal_type(Order.key(customer="ada", number=1))  # R: ModelKey[Order]
    Account.key("x")
    Profile.key({"tenant": "t", "day": date(2026, 1, 1)})
    Order.key(customer="ada", numbr=1)  # E: The key of "Order" has no "numbr"; did you mean "number"?
    Order.key(customer=3, number=1)  # E: "customer" of "Order" must be "str", not "int"
    Order.key()  # E: The key of "Order" needs "customer"
    Part.key("x")  # E: "id" of "Part" must be "UUID", not "str"


def query(name: str, size: Literal["by_size"]) -> None:
    reveal_type(db.query(Order, customer="ada", limit=3).first())  # R: Order | None
    db.query(Order, customer="ada", sort=Order.number > 3, where=col(Order.note).exists(), reverse=True)
    db.query(Order, index="by_product", product="tea")
    db.query(Order, index=size, product="tea", quantity=3)
    db.query(Order, index=name, anything="tea")  # E[pyright]
    db.query(Order, index=None, customer="ada")
    db.query(Gift, index="by_greeting", greeting="hi")
    db.query(Gift, index="by_product", product="tea")
    db.query(Opaque, index="by_label", label="x")
    db.query(Ticket, index="gsi1", status="free")
    db.query(Ticket, index="gsi2", status="free", buyer="ada")
    db.query(Ticket, index="by_buyer", show="x")
    db.query(Visit, index="by_day", page="/")
    db.query(Purchase, index="by_size", size="big")
    db.get(Purchase, 7, only=["size"])
    db.update_all(Order, {"note": None}, customer="ada")
    db.delete_all(Order, scan=True)

    db.query(Order, "ada")  # E
    db.query(Order, customr="ada")  # E: The partition key of "Order" has no "customr"; did
    db.query(Order, customer="ada", number=1)  # E: The partition key of "Order" has no "number"
    db.query((Order, Gift), customr="ada")  # E[mypy]: The partition key of "Order" has no "customr"; did
    db.query(Order, customer=1)  # E: "customer" of "Order" must be "str", not "int"
    db.query(Order, limit=3)  # E: The partition key of "Order" needs "customer"
    db.query(Order, index="by_prodct", product="tea")  # E: no index "by_prodct"; did you
    db.query(Order, index="by_greeting", greeting="hi")  # E: "Order" has no index "by_greeting"
    db.query(Order, index="by_product", customer="ada")  # E: "by_product" of "Order" has no
    db.query(Order, index=size, product="tea")  # E: The index "by_size" of "Order" needs "quantity"
    db.query(Ticket, index="gsi3", status="free")  # E: "Ticket" has no index "gsi3"; did you mean "gsi
    db.query(Ticket, index="gsi1", status=1)  # E: "status" of "Ticket" must be "str", not "int"
    db.query(Ticket, index="by-status", status=1)  # E: "status" of "Ticket" must be "str", not "int"
    db.query(Ticket, index="gsi2", status="free")  # E: The index "gsi2" of "Ticket" needs "buyer"
    db.query(Ticket, index="by_buyer", buyer="x")  # E: The index "by_buyer" of "Ticket" has no "buyer"
    db.query(Purchase, index="by_size", size=3)  # E: "size" of "Purchase" must be "str", not "int"
    db.query(Visit, index="by_day", day="x")  # E: The index "by_day" of "Visit" has no "day"
    db.update_all(Order, {"noet": "x"}, customer="ada")  # E[mypy]: "Order" has no "noet"; did
    db.delete_all(Order, custmer="ada")  # E: did you mean "customer"?


def change(tx: Transaction, order: Order) -> None:
    key = Order.key(customer="ada", number=1)
    db.get_by(Account, email="ada@example.com")
    reveal_type(db.update(key, note=None, quantity=3))  # R: Order
    order.assign({"note": "x", "quantity": 3})
    order.field("note")
    tx.increment(order, quantity=1)
    tx.update(Order, {"customer": "ada", "number": 1, "quantity": None}, {"quantity": 2})

    db.get_by(Account, emial="x")  # E: "Account" has no "emial"; did you mean "email"?
    db.get_by(Account, name="x")  # E: "name" of "Account" is not unique
    db.get_by(Account, email=3)  # E: "email" of "Account" must be "str", not "int"
    db.update(key, noet="x")  # E: "Order" has no "noet"; did you mean "note"?
    db.update(key, note=3)  # E: "note" of "Order" must be "str | None", not "int"
    db.update(key, limit=4)  # E: "Order" has no "limit"
    order.assign({"noet": "x"})  # E[mypy]: "Order" has no "noet"; did you mean "note"?
    order.assign({"quantity": "x"})  # E[mypy]: "quantity" of "Order" must be "int", not "str"
    order.field("noet")  # E[mypy]: "Order" has no "noet"; did you mean "note"?
    tx.increment(order, quantty=1)  # E[mypy]: "Order" has no "quantty"; did you mean "quantity"?
    tx.update(Order, {"customer": "ada", "numbr": 1}, {})  # E[mypy]: "Order" has no "numbr"
    tx.create_or_put(Order, {"customer": "ada", "number": "1"}, {})  # E[mypy]: "number" of "Order" must


async def read_async(db: AsyncDatabase) -> None:
    reveal_type(await db.get(Order, customer="ada", number=1))  # R: Order | None
    await db.get(Order, custmer="ada", number=1)  # E: The key of "Order" has no "custmer"
    db.query(Order, custmer="ada")  # E: The partition key of "Order" has no "custmer"
    await db.update(Order.key(customer="ada", number=1), noet="x")  # E: "Order" has no "noet"


def read_any(model: type[M], dated: type[Dated]) -> M | None:
    db.get(dated, "x")
    return db.get(model, "x")


def read_order(model: type[G]) -> G | None:
    db.get(model, custmer="ada", number=1)  # E: The key of "Order" has no "custmer"
    return db.get(model, customer="ada", number=1)
