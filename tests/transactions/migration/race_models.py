"""Three versions of one model, for programs that run side by side."""

from __future__ import annotations

from typing import Any

from holdall import Index, Key, Model, ModelKey, field
from holdall.core import Item, encode_item

__all__ = ["FirstThing", "OldThing", "Thing", "convert_thing", "initial_size"]


class FirstThing(Model, name="Thing"):
    """As it began."""

    id: Key[int]
    size: int
    qty: int = 0


class OldThing(Model, name="Thing"):
    """As programs know it that still run: two fields were added."""

    id: Key[int]
    size: int
    qty: int = 0
    hits: int = 0
    tag: str | None = None


def mark_item(item: dict[str, Any]) -> dict[str, Any]:
    """Shows how often it was called for an item."""
    return {**item, "marks": [*item.get("marks", []), "converted"], "size": item["size"] * 2}


class Thing(Model, name="Thing", migrations=[mark_item], indexes=[Index("by_tag", ["tag"], ["id"])]):
    """As it is now: a field was renamed, another one converted, and there is an index."""

    id: Key[int]
    size: int
    quantity: int = field(default=0, aliases=["qty"])
    hits: int = 0
    tag: str | None = None
    marks: list[str] = field(default_factory=list)


def initial_size(number: int) -> int:
    """The size that a thing is made with."""
    return number + 1


def convert_thing(number: int) -> Item:
    """A thing that only the migration has written, without its stamp."""
    key: ModelKey[Any] = Thing.key(number)
    pk, sk = key.encoded
    values = {"id": number, "size": initial_size(number) * 2, "quantity": number, "marks": ["converted"]}
    ours = {"pk": pk, "sk": sk, "_type": "Thing", "_v": 1}
    return encode_item({**ours, **values})
