"""The models that most tests of behaviour use, and helpers that store items and act as another process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import pytest
from annotated_types import Ge

from holdall import Key, Model, ModelKey, SortKey, field
from holdall.core import PutItem
from holdall.errors import ContentionError, TransactionFailedError
from rig.behaviour import Db

__all__ = [
    "Line",
    "Mark",
    "Order",
    "User",
    "expect_contention",
    "expect_failure",
    "arrange",
    "meanwhile",
    "put_raw",
]

E = TypeVar("E", bound=BaseException)


class Order(Model):
    id: Key[str]
    product: str = "coffee"
    quantity: Annotated[int, Ge(0)] = 1
    note: str | None = None
    tags: list[str] = field(default_factory=list)


class Line(Model):
    order: Key[str]
    number: SortKey[int]
    text: str = ""


class Mark(Model):
    """A model with a key and no other fields."""

    id: Key[str]


class User(Model):
    """A model that declares no key."""

    name: str


async def arrange(db: Db, *items: Model) -> None:
    """Store these items, and count requests from here."""
    async with db.transaction() as tx:
        for item in items:
            tx.create(item)
    db.forget()


async def meanwhile(db: Db, key: ModelKey[Any], **values: Any) -> None:
    """Change an item in another process's transaction."""
    async with db.transaction() as tx:
        item = await tx.get_one(key)
        for name, value in values.items():
            setattr(item, name, value)


async def put_raw(db: Db, model: type[Model], item: dict[str, Any]) -> None:
    """Store an item unchanged in the model's table, and count requests from here."""
    if model._schema.table is None:
        await db.get(Mark, "none")  # creates the table
        item = {"_type": {"S": model._schema.name}, **item}
    await db.send(PutItem(db.table_of(model), item))
    db.forget()


@contextmanager
def expect_failure(error: type[E], match: str | None = None) -> Iterator[pytest.ExceptionInfo[E]]:
    """Check that the transaction inside fails with this error."""
    with pytest.raises(error, match=match) as caught:
        yield caught


@contextmanager
def expect_contention() -> Iterator[pytest.ExceptionInfo[TransactionFailedError]]:
    """Check that the only attempt inside fails because the items that it read have changed."""
    with pytest.raises(TransactionFailedError) as caught:
        yield caught
    assert isinstance(caught.value.__cause__, ContentionError)
