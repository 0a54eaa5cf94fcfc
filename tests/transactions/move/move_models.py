"""The models of a shop before and after a move: in other programs' layouts, and in the database's table."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from holdall import Index, Key, Model, SortKey, Template, computed, field


class Kind(Enum):
    TEA = "tea"
    TIN = "tin"


class OldProduct(Model, table="products", layout="plain", name="Product"):
    sku: Key[int] = field(name="SKU")
    kind: str | None = None
    price: float = 0
    mail: str | None = None
    made_at: datetime | None = field(default=None, stored="epoch")
    changed_at: datetime | None = field(default=None, stored="epoch_ms")
    version: int = field(default=0, version=True)


class Product(Model, indexes=[Index("by_kind", key=["kind"], sort_key=["price"])]):
    sku: Key[int]
    kind: Kind = Kind.TIN
    price: float = 0
    mail: str | None = field(default=None, unique=True)
    made_at: datetime = field(now="create")
    changed_at: datetime = field(now="update")
    version: int = field(default=0, version=True)


class OldOrder(
    Model,
    table="app",
    layout=Template(
        pk="C#{customer}",
        sk="O#{number:04d}",
        gsi1=("S#{status}", "{customer}"),
        type={"entity": "Order", "v": "1"},
    ),
    ttl="until",
):
    customer: Key[str]
    number: SortKey[int]
    status: str = "open"
    tags: set[str] = field(default_factory=set)
    until: datetime | None = field(default=None, stored="epoch")


class Order(Model, ttl="until", indexes=[Index("by_status", key=["status"])]):
    customer: Key[str]
    number: SortKey[int]
    status: str = "open"
    tags: set[str] = field(default_factory=set)
    until: datetime | None = None
    id: str = field(default_factory=lambda: "a default id")


class OldCrate(Model, table="Crates", name="Crate"):
    id: Key[int]
    side: SortKey[str]
    weight: int = 0
    secret: str = field(default="", hidden=True)


class Crate(Model):
    id: Key[int]
    side: SortKey[str]
    weight: int = 0
    secret: str = field(default="", hidden=True)

    @computed("weight")
    def is_heavy(self) -> bool:
        return self.weight > 2


class Parcel(Model, collection="parcel"):
    id: Key[int]
    side: SortKey[str]
    weight: int = 0


class PlainCrate(Model, table="plain-crates", layout="plain", name="Crate"):
    id: Key[int]
    side: SortKey[str]
    weight: int = 0
    secret: str = field(default="", hidden=True)
    is_heavy: bool
