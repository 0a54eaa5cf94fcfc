"""Housekeeping with a clock that the tests set: each write also removes expired items and old tokens."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from rig.clock import Clock

from holdall import Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import (
    AddIndex,
    BatchWrite,
    CreateTable,
    IndexSchema,
    KeyAttribute,
    KeyCondition,
    PutItem,
    Query,
    Scan,
    SetTtl,
    TableSchema,
    TransactWrite,
    encode_item,
)

START = 1_800_000_000
YEAR = 365 * 24 * 3600
SESSIONS = TableSchema(
    "Sessions", KeyAttribute("id"), indexes=(IndexSchema("by_user", KeyAttribute("user")),)
)
OTHERS = TableSchema("Others", KeyAttribute("id"))


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def db(file: Path, clock: Clock) -> Iterator[Database]:
    with Database(backend=EmbeddedBackend(file, durability="normal", clock=clock)) as db:
        db.send(CreateTable(SESSIONS))
        db.send(CreateTable(OTHERS))
        db.send(SetTtl("Sessions", "expires"))
        yield db


def session(id: str, expires: object) -> PutItem:
    return PutItem("Sessions", encode_item({"id": id, "user": "ada", "expires": expires}))


def ids(db: Database) -> set[str]:
    return {item["id"]["S"] for page in db.pages(Scan("Sessions")) for item in page.items}


def list_indexed(db: Database, index: str = "by_user") -> set[str]:
    query = Query("Sessions", KeyCondition("user", {"S": "ada"}), index=index)
    return {item["id"]["S"] for page in db.pages(query) for item in page.items}


def some_write(db: Database) -> None:
    """Write an item to another table; any write triggers the housekeeping."""
    db.send(PutItem("Others", encode_item({"id": "any"})))


def test_an_expired_item_is_removed_from_its_table_and_its_indexes(db: Database, clock: Clock) -> None:
    db.send(session("early", START + 100))
    db.send(session("late", START + 1000))
    clock.set(START + 500)
    some_write(db)
    assert ids(db) == list_indexed(db) == {"late"}


def test_an_item_stays_until_the_second_of_its_expiry_has_passed(db: Database, clock: Clock) -> None:
    db.send(session("a", START + 100))
    clock.set(START + 100)
    some_write(db)
    assert ids(db) == {"a"}
    clock.set(START + 161)  # the next housekeeping
    some_write(db)
    assert ids(db) == set()


def test_reading_removes_nothing(db: Database, clock: Clock) -> None:
    db.send(session("a", START + 100))
    clock.set(START + 500)
    assert ids(db) == list_indexed(db) == {"a"}


def test_an_item_that_expired_more_than_five_years_ago_stays(db: Database, clock: Clock) -> None:
    db.send(session("almost", START + 500 - 5 * YEAR + 1))
    db.send(session("just", START + 500 - 5 * YEAR))
    db.send(session("zero", 0))
    clock.set(START + 500)
    some_write(db)
    assert ids(db) == list_indexed(db) == {"just", "zero"}


def test_an_item_without_a_valid_number_of_seconds_never_expires(db: Database, clock: Clock) -> None:
    for name, expires in {
        "text": str(START),
        "list": [START],
        "null": None,
        "negative": -1,
        "huge": 10**30,
    }.items():
        db.send(session(name, expires))
    db.send(PutItem("Sessions", encode_item({"id": "without", "user": "ada"})))
    clock.set(START + 500)
    some_write(db)
    assert ids(db) == {"text", "list", "null", "negative", "huge", "without"}


def test_an_item_whose_expiry_was_postponed_stays(db: Database, clock: Clock) -> None:
    db.send(session("a", START + 100))
    db.send(session("a", START + 1000))
    clock.set(START + 500)
    some_write(db)
    assert ids(db) == {"a"}


def test_an_item_that_replaces_an_expired_one_stays(db: Database, clock: Clock) -> None:
    db.send(session("a", START + 100))
    clock.set(START + 500)
    db.send(session("a", START + 1000))
    assert ids(db) == list_indexed(db) == {"a"}


def test_many_expired_items_are_removed_over_several_writes(db: Database, clock: Clock) -> None:
    for first in range(0, 250, 25):
        db.send(BatchWrite(tuple(session(f"{number}", START + 100) for number in range(first, first + 25))))
    clock.set(START + 500)
    left = []
    for _ in range(4):
        some_write(db)
        assert ids(db) == list_indexed(db)
        left.append(len(ids(db)))
    assert left[0] < 250, "no item was removed"
    assert left[-1] == 0
    assert left == sorted(left, reverse=True)


def test_other_tables_keep_an_attribute_of_that_name(db: Database, clock: Clock) -> None:
    db.send(PutItem("Others", encode_item({"id": "a", "expires": START + 100})))
    clock.set(START + 500)
    some_write(db)
    assert db.send(Scan("Others")).count == 2


def test_without_a_ttl_attribute_nothing_expires(db: Database, clock: Clock) -> None:
    db.send(session("a", START + 100))
    db.send(SetTtl("Sessions", None))
    clock.set(START + 500)
    some_write(db)
    assert ids(db) == {"a"}


def test_a_new_ttl_attribute_applies_to_existing_items(db: Database, clock: Clock) -> None:
    db.send(SetTtl("Sessions", None))
    db.send(session("a", START + 100))
    db.send(session("b", START + 1000))
    db.send(SetTtl("Sessions", "expires"))
    clock.set(START + 500)
    some_write(db)
    assert ids(db) == list_indexed(db) == {"b"}


def test_a_failed_write_removes_no_expired_items_and_the_next_one_does(db: Database, clock: Clock) -> None:
    db.send(session("a", START + 100))
    clock.set(START + 500)
    with pytest.raises(ValueError):
        db.send(PutItem("Others", encode_item({"wrong": "key"})))
    assert ids(db) == {"a"}
    some_write(db)
    assert ids(db) == set()


def test_expired_items_are_removed_from_an_index_that_another_process_added(
    db: Database, file: Path, clock: Clock
) -> None:
    db.send(session("a", START + 100))
    db.send(session("b", START + 1000))
    with Database(backend=EmbeddedBackend(file, clock=clock)) as other:
        other.send(AddIndex("Sessions", IndexSchema("also_by_user", KeyAttribute("user"))))
        clock.set(START + 500)
        some_write(db)  # this database has not loaded the new index yet
        assert list_indexed(other, "also_by_user") == list_indexed(other) == ids(other) == {"b"}
    assert query_file(file, "SELECT count(*) FROM entries") == 2


def test_a_ttl_attribute_that_another_process_set_applies(db: Database, file: Path, clock: Clock) -> None:
    db.send(SetTtl("Sessions", None))
    with Database(backend=EmbeddedBackend(file, clock=clock)) as other:
        other.send(SetTtl("Sessions", "expires"))
    db.send(session("a", START + 100))
    clock.set(START + 500)
    some_write(db)
    assert ids(db) == set()


def test_old_tokens_are_removed_and_recent_ones_kept(db: Database, file: Path, clock: Clock) -> None:
    db.send(TransactWrite((session("a", None),), "old"))
    clock.set(START + 500)
    db.send(TransactWrite((session("b", None),), "young"))
    clock.set(START + 700)
    some_write(db)
    assert query_file(file, "SELECT group_concat(token) FROM tokens") == "young"


def test_housekeeping_continues_after_the_clock_is_set_back(db: Database, clock: Clock) -> None:
    clock.set(START + 10 * YEAR)
    some_write(db)
    clock.set(START)
    db.send(session("a", START + 100))
    clock.set(START + 500)
    some_write(db)
    assert ids(db) == set()


def query_file(file: Path, question: str) -> object:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(question).fetchone()[0]
