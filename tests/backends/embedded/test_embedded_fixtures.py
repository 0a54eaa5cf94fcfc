"""Stores in every released layout: their items can be read and changed."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rig.clock import Clock

from holdall import Database
from holdall.backends.embedded import EmbeddedBackend, layout
from holdall.core import (
    AddIndex,
    CreateTable,
    DeleteItem,
    DescribeTable,
    DescribeTtl,
    GetItem,
    IndexSchema,
    Item,
    KeyAttribute,
    KeyCondition,
    PutItem,
    Query,
    Scan,
    Set,
    TableSchema,
    TransactWrite,
    Update,
    UpdateItem,
    path,
    value,
)
from holdall.errors import TokenReusedError

FIXTURES = Path(__file__).parents[2] / "fixtures" / "embedded"
FILES = sorted(FIXTURES.glob("v*.db"))


@dataclass
class Old:
    """A copy of an old store, opened, and its expected contents."""

    db: Database
    clock: Clock
    known: dict[str, Any]

    def key(self, table: str, item: Item) -> Item:
        return {part.name: item[part.name] for part in self.db.send(DescribeTable(table)).schema.keys}

    def all(self, table: str, index: str | None = None) -> list[Item]:
        return [item for page in self.db.pages(Scan(table, index=index)) for item in page.items]


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Old]:
    source: Path = request.param
    copy = shutil.copy(source, tmp_path / "store.db")
    known = json.loads(source.with_suffix(".json").read_text(encoding="utf-8"))
    clock = Clock(known["now"])
    with Database(backend=EmbeddedBackend(copy, clock=clock)) as db:
        yield Old(db, clock, known)


def text(items: list[Any]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)


def test_there_is_a_fixture_of_every_layout() -> None:
    assert [file.name for file in FILES] == [f"v{number}.db" for number in range(1, layout.VERSION + 1)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_fixture_has_the_layout_of_its_name_in_a_single_intact_file(file: Path) -> None:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (int(file.stem[1:]),)
        assert connection.execute("PRAGMA application_id").fetchone() == (layout.APPLICATION_ID,)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert not file.with_name(f"{file.name}-wal").exists()


def test_an_old_store_is_upgraded_to_the_current_layout(old: Old, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (layout.VERSION,)


def test_the_items_of_an_old_store_can_be_read(old: Old) -> None:
    for table, items in old.known["items"].items():
        assert text(old.all(table)) == text(items)
        for item in items:
            assert old.db.send(GetItem(table, old.key(table, item))).item == item


def test_the_items_of_an_old_store_have_all_ten_types(old: Old) -> None:
    kinds = {
        kind for items in old.known["items"].values() for item in items for v in item.values() for kind in v
    }
    assert kinds == {"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"}


def test_the_indexes_of_an_old_store_can_be_queried_in_order(old: Old) -> None:
    for table, indexes in old.known["indexes"].items():
        schema = old.db.send(DescribeTable(table)).schema
        assert {index.name for index in schema.indexes} == indexes.keys()
        for name, items in indexes.items():
            assert text(old.all(table, name)) == text(items)
            partition = schema.index(name).partition.name
            for wanted in items:
                query = Query(table, KeyCondition(partition, wanted[partition]), index=name)
                expected = [item for item in items if item[partition] == wanted[partition]]
                assert [*old.db.send(query).items] == expected


def test_the_ttl_attributes_of_an_old_store_apply(old: Old) -> None:
    for table, attribute in old.known["ttl"].items():
        assert old.db.send(DescribeTtl(table)).attribute == attribute
    old.clock.forward(365 * 24 * 3600)
    old.db.send(
        CreateTable(TableSchema("Another", KeyAttribute("id")))
    )  # any write brings the housekeeping along
    for table, items in old.known["items"].items():
        assert text(old.all(table)) == text([i for i in items if i not in old.known["expiring"]])


def test_the_client_tokens_of_an_old_store_are_recognized(old: Old) -> None:
    table, items = next(iter(old.known["items"].items()))
    other = TransactWrite((DeleteItem(table, old.key(table, items[0])),), old.known["token"])
    with pytest.raises(TokenReusedError):
        old.db.send(other)
    old.clock.forward(600)
    old.db.send(other)


def test_an_old_store_can_be_changed(old: Old) -> None:
    for table, items in old.known["items"].items():
        first, *rest = items
        key = old.key(table, first)
        changed = {**first, "new": {"S": "here"}}
        old.db.send(UpdateItem(table, key, Update((Set(path("new"), value("here")),))))
        assert old.db.send(GetItem(table, key, consistent=True)).item == changed
        old.db.send(AddIndex(table, IndexSchema("by_new", KeyAttribute("new"))))
        assert old.all(table, "by_new") == [changed]
        old.db.send(DeleteItem(table, key))
        assert old.all(table, "by_new") == []
        assert text(old.all(table)) == text(rest)
        old.db.send(PutItem(table, first))
        for name, entries in old.known["indexes"][table].items():
            assert text(old.all(table, name)) == text(entries)
