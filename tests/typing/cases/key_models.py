# mypy: ignore-errors
"""Models in a separate module, so that mypy's plugin also reads them from mypy's cache."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, ClassVar
from uuid import UUID

from holdall import Index, Key, Model, SortKey, Template, computed, field
from holdall import field as option


class Order(
    Model,
    indexes=[
        Index("by_product", key=["product"], sort_key=["placed_at"], slot=1),
        Index("by_size", ["product", "quantity"], slot=2),
    ],
):
    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: int = 1
    note: str | None = None
    placed_at: datetime
    limit: ClassVar[int] = 3


class Gift(Order, indexes=(Index("by_greeting", key=("greeting",), slot=3),)):
    greeting: str = ""


class Dated(Model, abstract=True):
    tenant: Key[str]


class Profile(Dated):
    kind: SortKey[str] = option(default="main")
    day: SortKey[date] = field(default_factory=date.today)


class Account(Model):
    email: str = field(unique=True)
    name: str = ""


class Part(Model):
    id: Key[UUID]


class Inventory(Model):
    user: Key[str]
    kind: SortKey[str]


class Money(Inventory):
    kind = "money"  # E[pyright]


def make_indexes() -> list[Index]:
    return [Index("by_label", key=["label"])]


def make_option() -> Any:
    return field(default="x")


class Opaque(Model, indexes=make_indexes()):
    """A type checker cannot see its indexes, nor whether its sort key has a default."""

    id: Key[int]
    kind: SortKey[str] = make_option()
    label: str = ""


class Ticket(
    Model,
    table="app",
    layout=Template(
        {"PK": "SHOW#{show}", "SK": "SEAT#{seat:05d}"},
        gsi1=("STATUS#{status}", "{seat}"),
        gsi2={"GSI2PK": "{buyer}#{status}"},
        indexes={"by-status": {"GSI3PK": "{status}"}},
        local={"by_buyer": "{buyer}"},
    ),
):
    show: Key[str]
    seat: SortKey[int]
    status: str = ""
    buyer: str = ""


class Purchase(Model, indexes=[Index("by_size", key=["size"])]):
    id: Key[int]
    cents: int

    @computed("cents")
    def size(self) -> str:
        return "big" if self.cents > 100 else "small"


class Visit(Model, table="visits", indexes=[Index("by_day", sort_key=["day"], local=True)]):
    page: Key[str]
    visitor: SortKey[str]
    day: date
