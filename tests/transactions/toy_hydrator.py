"""A toy hydrator: an item can be stored squeezed, all of its fields in one attribute, and is read as if it were not.

`squeeze` does that to an item, as another process would, under a condition: not in the middle of somebody's write.
"""

from __future__ import annotations

import json

from holdall import Database, Key, Model, ModelKey, SortKey, field
from holdall.core.expressions import Compare, Condition, NotExists, Path, Value
from holdall.core.port import Port
from holdall.core.requests import GetItem, PutItem
from holdall.core.values import Item

__all__ = ["SQUEEZED", "Letter", "Squeezer", "is_squeezed", "squeeze", "stored"]

SQUEEZED = "_squeezed"
KEPT = ("pk", "sk", "_type")


class Squeezer:
    """Reads both forms; demands of every write that the form is still the one that was read."""

    def __init__(self) -> None:
        self.hydrated = 0

    async def hydrate(self, port: Port, item: Item) -> Item:
        squeezed = item.get(SQUEEZED)
        if squeezed is None:
            return item
        self.hydrated += 1
        kept = {name: attribute for name, attribute in item.items() if name != SQUEEZED}
        return {**kept, **json.loads(squeezed["S"])}

    def guard(self, stored: Item | None) -> Condition | None:
        path = Path((SQUEEZED,))
        squeezed = None if stored is None else stored.get(SQUEEZED)
        return NotExists(path) if squeezed is None else Compare("=", path, Value(squeezed))


class Letter(Model, archive=Squeezer()):
    """Something that is seldom read."""

    writer: Key[str]
    number: SortKey[int]
    text: str
    copies: int = 1
    readers: list[str] = field(default_factory=list)


def stored(db: Database, key: ModelKey[Letter]) -> Item | None:
    """The item as it is stored."""
    pk, sk = key.encoded
    return db.send(GetItem("holdall", {"pk": {"S": str(pk)}, "sk": {"S": str(sk)}}, True)).item


def is_squeezed(db: Database, key: ModelKey[Letter]) -> bool:
    item = stored(db, key)
    return item is not None and SQUEEZED in item


def squeeze(db: Database, key: ModelKey[Letter]) -> None:
    """Put the fields of an item into one attribute."""
    item = stored(db, key)
    assert item is not None
    assert SQUEEZED not in item
    rest = {name: attribute for name, attribute in item.items() if name not in KEPT}
    small = {name: item[name] for name in KEPT} | {SQUEEZED: {"S": json.dumps(rest, sort_keys=True)}}
    db.send(PutItem("holdall", small, NotExists(Path((SQUEEZED,)))))
