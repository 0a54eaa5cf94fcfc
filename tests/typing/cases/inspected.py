# mypy: ignore-errors
# The table order-lines, as `holdall models inspect` found it.
# Key: SKU (N) and "placed at" (S). Sample: 5 items; the table has no others.
#
# Please check:
# - SKU: all sampled numbers are whole, so the type is int, not Decimal
# - "placed at": all sampled texts are times in Holdall's own form, so the type is datetime
# - day: all sampled texts are dates, so the type is date
# - created_at: all sampled numbers can be times in milliseconds since 1970, so it has
#   stored="epoch_ms"
# - seen: all sampled texts are times as pydantic writes them, so it has stored="iso"
# - written: all sampled texts are times as PynamoDB writes them, so it has stored="pynamodb"
# - settings: all sampled texts are JSON, so it has stored="json"
# - is_hot: all sampled numbers are 0 or 1, so it has stored="number"
# - changed holds times; as datetime it would be read, but written as 2026-01-31T09:30:00.000000Z
# - mixed has no single type: number (3), text (2)
# - colour is in no item of the sample
# - hash is in no item of the sample
# - note is null in every item that has it
# - until is in no item of the sample
# - entity is "Box", "Crate": if these are different kinds of items, declare one model for each,
#   with layout=Template(..., type="entity")

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from holdall import Index, Key, Model, SortKey, field


class OrderLines(
    Model,
    table="order-lines",
    layout="plain",
    ttl="until",
    indexes=[
        Index("by-kind", key=["kind"], sort_key=["price"]),
        Index("by-day", key=["day"], include=["class_", "kind", "colour"]),
        Index("by-hash", key=["hash"], include=[]),
    ],
):
    SKU: Key[int]
    placed_at: SortKey[datetime] = field(name="placed at")
    changed: str
    class_: str = field(name="class")
    counts: dict[str, int]
    created_at: datetime = field(stored="epoch_ms")
    day: date
    entity: str
    fragile: bool
    is_hot: bool = field(stored="number")
    kind: str
    lines: list[dict[str, Any]]
    mixed: Any
    payload: bytes
    price: Decimal
    seen: datetime = field(stored="iso")
    settings: dict[str, Any] = field(stored="json")
    sizes: list[Decimal]
    tags: set[str]
    written: datetime = field(stored="pynamodb")
    colour: Any | None = None
    extra: str | None = None
    hash: bytes | None = None
    note: Any | None = None
    until: datetime | None = field(default=None, stored="epoch")
