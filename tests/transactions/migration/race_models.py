"""Three versions of one model, for programs that run side by side."""

from __future__ import annotations

from typing import Any

from holdall import Index, Key, Model, ModelKey, field
from holdall.core import Item, encode_item

__all__ = ["FirstThing", "OldThing", "Thing", "convert_thing", "initial_size"]


class FirstThing(Model, name="Thing"):
    """The first version."""

    id: Key[int]
    size: int
    qty: int = 0


class OldThing(Model, name="Thing"):
    """The second version, which some running programs still use: it added two fields."""

    id: Key[int]
    size: int
    qty: int = 0
    hits: int = 0
    tag: str | None = None


def mark_item(item: dict[str, Any]) -> dict[str, Any]:
    """Record in the item that the conversion was called."""
    return {**item, "marks": [*item.get("marks", []), "converted"], "size": item["size"] * 2}


class Thing(Model, name="Thing", migrations=[mark_item], indexes=[Index("by_tag", ["tag"], ["id"])]):
    """The current version: it renames a field, converts another one, and adds an index."""

    id: Key[int]
    size: int
    quantity: int = field(default=0, aliases=["qty"])
    hits: int = 0
    tag: str | None = None
    marks: list[str] = field(default_factory=list)


def initial_size(number: int) -> int:
    """Return the size with which a thing is created."""
    return number + 1


def convert_thing(number: int) -> Item:
    """Return the stored form of a thing that only the migration has changed, without its stamp."""
    key: ModelKey[Any] = Thing.key(number)
    pk, sk = key.encoded
    values = {"id": number, "size": initial_size(number) * 2, "quantity": number, "marks": ["converted"]}
    attributes = {"pk": pk, "sk": sk, "_type": "Thing", "_v": 1}
    return encode_item({**attributes, **values})
