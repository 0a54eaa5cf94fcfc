"""A toy hydrator: an item can be stored squeezed, with all its fields in one attribute, and is still read whole.

`squeeze` rewrites an item in this form, as another process would, on the condition that it is not squeezed yet.
"""

from __future__ import annotations

import json
from typing import Any

from holdall import Database, Key, Model, ModelKey, SortKey, field
from holdall.core.context import Context
from holdall.core.expressions import Compare, Condition, Exists, NotExists, Path, Value
from holdall.core.port import Port
from holdall.core.requests import DeleteItem, GetItem, PutItem
from holdall.core.values import Item
from holdall.models.schema import ModelSchema
from holdall.tables.commit.change import Participant

__all__ = [
    "BROKEN",
    "SQUEEZED",
    "VANISHING",
    "Letter",
    "Squeezer",
    "UnreadableError",
    "is_squeezed",
    "squeeze",
    "fetch_stored",
]

SQUEEZED = "_squeezed"
BROKEN = "broken"
VANISHING = "vanishing"
KEPT = ("pk", "sk", "_type")


class UnreadableError(Exception):
    """The squeezed content of an item cannot be read."""


class Follower(Participant):
    """Records, after the commit, that a squeezed item was rewritten or deleted."""

    def __init__(self, notes: list[str], note: str) -> None:
        self._notes = notes
        self._note = note
        self._is_prepared = False

    async def prepare(self, port: Port) -> None:
        self._is_prepared = True

    async def settle(self, port: Port) -> None:
        assert self._is_prepared
        self._notes.append(self._note)


class Squeezer:
    """Reads both forms, and makes every write conditional on the form that was read."""

    def __init__(self) -> None:
        self.hydrated = 0
        self.followed: list[str] = []
        self.reads: list[GetItem] = []

    def adopt(self, schema: ModelSchema) -> None:
        pass

    @property
    def pointer(self) -> Condition:
        return Exists(Path((SQUEEZED,)))

    def is_pointer(self, item: Item) -> bool:
        return SQUEEZED in item

    async def hydrate(self, context: Context, read: GetItem, item: Item) -> Item | None:
        squeezed = item[SQUEEZED]
        self.hydrated += 1
        self.reads.append(read)
        if squeezed["S"] == VANISHING:
            await context.port.send(DeleteItem(read.table, read.key))  # as if another process deleted it
        if squeezed["S"] in (BROKEN, VANISHING):
            again = (await context.port.send(read)).item
            if again is None:
                return None
            raise UnreadableError(read.key["sk"]["S"])
        kept = {name: attribute for name, attribute in item.items() if name != SQUEEZED}
        return {**kept, **json.loads(squeezed["S"])}

    def follow(self, context: Context, read: GetItem, pointer: Item, *, deleted: bool) -> Follower:
        self.reads.append(read)
        return Follower(self.followed, "deleted" if deleted else "rewritten")

    def guard(self, stored: Item | None) -> Condition | None:
        path = Path((SQUEEZED,))
        squeezed = None if stored is None else stored.get(SQUEEZED)
        return NotExists(path) if squeezed is None else Compare("=", path, Value(squeezed))


class Letter(Model, archive=Squeezer()):
    """An item that can be squeezed."""

    writer: Key[str]
    number: SortKey[int]
    text: str
    copies: int = 1
    readers: list[str] = field(default_factory=list)


def fetch_stored(db: Database, key: ModelKey[Any]) -> Item | None:
    """Fetch the item as it is stored."""
    pk, sk = key.encoded
    return db.send(GetItem("holdall", {"pk": {"S": str(pk)}, "sk": {"S": str(sk)}}, True)).item


def is_squeezed(db: Database, key: ModelKey[Any]) -> bool:
    item = fetch_stored(db, key)
    return item is not None and SQUEEZED in item


def squeeze(db: Database, key: ModelKey[Any]) -> None:
    """Put the fields of an item into one attribute."""
    item = fetch_stored(db, key)
    assert item is not None
    assert SQUEEZED not in item
    rest = {name: attribute for name, attribute in item.items() if name not in KEPT}
    small = {name: item[name] for name in KEPT} | {SQUEEZED: {"S": json.dumps(rest, sort_keys=True)}}
    db.send(PutItem("holdall", small, NotExists(Path((SQUEEZED,)))))
