"""Sync code on one file: items can be read after the file is closed and opened again."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path

from holdall import Database
from holdall.core import (
    Add,
    CreateTable,
    GetItem,
    IndexSchema,
    KeyAttribute,
    KeyCondition,
    NotExists,
    PutItem,
    Query,
    TableSchema,
    TransactWrite,
    Update,
    UpdateItem,
    decode_item,
    encode_item,
    path,
    value,
)
from holdall.errors import ConditionFailedError, StoreClosedError

SCHEMA = TableSchema(
    "things",
    KeyAttribute("group"),
    KeyAttribute("number", "N"),
    (IndexSchema("by_colour", KeyAttribute("colour")),),
)
THING = {
    "group": "a",
    "number": 7,
    "colour": "red",
    "price": Decimal("0.10"),
    "raw": b"\x00\xff",
    "tags": {"x", "y"},
    "nested": {"list": [1, None, True, {"deep": "er"}]},
}
KEY = encode_item({"group": "a", "number": 7})


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "deeper", "smoke.db")
        write(f"embedded:{file}")
        assert [found.name for found in file.parent.iterdir()] == ["smoke.db"], "closing must leave one file"
        read(f"embedded:{file}")
    print("wrote an item, closed the file, opened it and read the item back")


def write(url: str) -> None:
    with Database(url) as db:
        db.send(CreateTable(SCHEMA))
        create = PutItem("things", encode_item(THING), condition=NotExists(path("group")))
        db.send(create)
        try:
            db.send(create)
        except ConditionFailedError:
            pass
        else:
            raise AssertionError("an item was created twice")
        count = UpdateItem("things", KEY, Update((Add(path("count"), value(1)),)))
        once = TransactWrite((count,), token=db.port.new_id())
        db.send(once)
        db.send(once)


def read(url: str) -> None:
    with Database(url) as db:
        item = db.send(GetItem("things", KEY, consistent=True)).item
        assert item is not None
        assert decode_item(item) == {**THING, "count": 1}
        reds = Query("things", KeyCondition("colour", {"S": "red"}), index="by_colour")
        assert [page.items for page in db.pages(reds)] == [(item,)]
    try:
        db.send(GetItem("things", KEY))
    except StoreClosedError:
        return
    raise AssertionError("a closed database answered a request")


if __name__ == "__main__":
    main()
