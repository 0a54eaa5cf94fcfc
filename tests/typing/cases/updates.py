# mypy: ignore-errors
"""What type checkers know about updates without a read. E: an error, R: a revealed type."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, reveal_type

from annotated_types import Ge

from holdall import AsyncTransaction, Database, Key, Model, Transaction, col, field
from holdall.models import FieldUpdate


class Order(Model):
    id: Key[str]
    quantity: Annotated[int, Ge(0)] = 1
    price: Decimal = Decimal(1)
    weight: float | None = None
    note: str | None = None
    tags: set[str] = field(default_factory=set)
    fixed: frozenset[int] | None = None
    log: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def updates(anything: Any) -> None:
    reveal_type(col(Order.tags).add("x", "y"))  # R: FieldUpdate
    reveal_type(col(Order.fixed).discard(1))  # R: FieldUpdate
    reveal_type(col(Order.log).append("x"))  # R: FieldUpdate
    reveal_type(col(Order.quantity).increment_by(1))  # R: FieldUpdate
    reveal_type(col(Order.price).increment_by(Decimal("0.1")))  # R: FieldUpdate
    reveal_type(col(Order.weight).increment_by(0.5))  # R: FieldUpdate
    reveal_type(col(Order.note).set(None))  # R: FieldUpdate
    reveal_type(col(Order.counts)["x"].increment_by(1))  # R: FieldUpdate
    reveal_type(col(Order.note).remove())  # R: FieldUpdate
    col(Order.tags).add(1)  # E
    col(Order.log).add("x")  # E
    col(Order.tags).append("x")  # E
    col(Order.log).append(1)  # E
    col(Order.quantity).increment_by(0.5)  # E
    col(Order.note).increment_by(1)  # E
    col(Order.quantity).set("1")  # E


def alone(db: Database, some: list[FieldUpdate]) -> None:
    reveal_type(db.update(Order.key("a"), note="x"))  # R: Order
    db.update(Order.key("a"), col(Order.tags).add("x"), *some, where=col(Order.quantity) >= 3)
    db.update(Order.key("a"), *some, create_if_missing=True)
    db.put(Order(id="a"), where=col(Order.quantity) >= 3)
    db.delete(Order.key("a"), where=col(Order.quantity) >= 3)
    db.update(Order.key("a"), "x")  # E


def transactions(tx: Transaction, other: AsyncTransaction, order: Order, some: list[FieldUpdate]) -> None:
    key = Order.key("a")
    tx.update(key, col(Order.tags).add("x"), *some, where=col(Order.quantity) >= 3)
    tx.update(key, *some, create_if_missing={"note": "x"})
    other.update(key, *some, create_if_missing=True)
    tx.update(Order, {"id": "a", "note": None}, {"note": "x"}, where=col(Order.quantity) >= 3)
    tx.create_or_put(Order, {"id": "a"}, {}, where=col(Order.quantity) >= 3)
    tx.delete(key, where=col(Order.quantity) >= 3)
    order.field("tags").add("x")
    order.field("log").append("x", "y")
    order.field("tags").discard("x")
    tx.update(key, "x")  # E
    tx.update(key, *some, where=True)  # E
    tx.delete(key, where="x")  # E
