"""Damage inside a store's file: sync and async requests raise StoreCorruptError, and the file is not changed."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from embedded_things import THINGS, fill, get, names, put

from holdall import AsyncDatabase, Database
from holdall.core import DescribeTable, KeyCondition, Query
from holdall.errors import HoldallError, StoreCorruptError

PAGE = 4096
SEED = 20261115

RED = Query(THINGS.name, KeyCondition("colour", {"S": "red"}), index="by_colour")


def read_everything(path: Path) -> tuple[set[str], int, list[bool]]:
    """Read all items by scan, query and get."""
    with Database(f"embedded:{path}") as db:
        indexed = sum(page.count for page in db.pages(RED))
        found = [db.send(get(f"thing{number}")).item is not None for number in range(40)]
        db.send(DescribeTable(THINGS.name))
        return names(db), indexed, found


def read_awaiting(path: Path) -> list[bool]:
    async def read() -> list[bool]:
        async with AsyncDatabase(f"embedded:{path}") as db:
            replies = [await db.send(get(f"thing{number}")) for number in range(40)]
            await db.send(RED)
            return [reply.item is not None for reply in replies]

    return asyncio.run(read())


def zeros() -> bytes:
    return bytes(PAGE)


def ones() -> bytes:
    return b"\xff" * PAGE


def noise() -> bytes:
    return random.Random(SEED).randbytes(PAGE)


@pytest.mark.parametrize("damage", [zeros, ones, noise])
@pytest.mark.parametrize("read", [read_everything, read_awaiting])
def test_a_damaged_page_is_an_error_if_it_is_needed_and_the_file_is_not_changed(
    tmp_path: Path, read: Callable[[Path], object], damage: Callable[[], bytes]
) -> None:
    path = tmp_path / "store.db"
    fill(path, 40)
    sound, whole = path.read_bytes(), read(path)
    named = 0
    for page in range(1, len(sound) // PAGE):
        damaged = sound[: page * PAGE] + damage() + sound[(page + 1) * PAGE :]
        path.write_bytes(damaged)
        try:
            assert read(path) == whole, f"page {page}"
        except StoreCorruptError:
            named += 1
        assert path.read_bytes() == damaged, f"page {page}"
    assert named > len(sound) // PAGE // 2


def test_flipped_bytes_never_raise_anything_but_our_own_errors(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fill(path, 40)
    sound = path.read_bytes()
    choice = random.Random(SEED)
    for _ in range(150):
        place = choice.randrange(len(sound))
        path.write_bytes(sound[:place] + bytes([choice.randrange(256)]) + sound[place + 1 :])
        try:
            read_everything(path)
        except HoldallError:
            continue
        except Exception as error:
            raise AssertionError(f"byte {place} of page {place // PAGE}: {error!r}") from error


def damage_row(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


def test_a_write_that_needs_a_damaged_page_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fill(path, 40)
    sound = path.read_bytes()
    for page in range(2, len(sound) // PAGE):
        path.write_bytes(sound[: page * PAGE] + ones() + sound[(page + 1) * PAGE :])
        try:
            with Database(f"embedded:{path}") as db:
                for number in range(0, 40, 5):
                    db.send(put(f"thing{number}", colour="blue"))
        except StoreCorruptError:
            return
    raise AssertionError("no page was needed for the writes")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE catalog SET definitions = '{'",
        "UPDATE catalog SET definitions = '[]'",
        "UPDATE catalog SET definitions = '{\"next\": 1}'",
        "DELETE FROM catalog",
    ],
)
def test_a_damaged_catalog_is_an_error(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "store.db"
    fill(path)
    damage_row(path, statement)
    with pytest.raises(StoreCorruptError):
        Database(f"embedded:{path}")


@pytest.mark.parametrize("body", ["'{'", "''", "'not json'", "x'ff'"])
def test_a_damaged_item_is_an_error_for_gets_queries_and_scans(tmp_path: Path, body: str) -> None:
    path = tmp_path / "store.db"
    fill(path)
    damage_row(path, f"UPDATE items SET body = {body}")
    with Database(f"embedded:{path}") as db:
        with pytest.raises(StoreCorruptError):
            db.send(get("thing0"))
        with pytest.raises(StoreCorruptError):
            db.send(RED)
        with pytest.raises(StoreCorruptError):
            names(db)


def test_after_a_scan_of_a_damaged_item_later_reads_are_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fill(path)
    damage_row(path, "UPDATE items SET body = '{' WHERE id = 2")
    with Database(f"embedded:{path}") as db, Database(f"embedded:{path}") as other:
        with pytest.raises(StoreCorruptError) as met:
            names(db)
        other.send(put("new"))
        assert db.send(get("new")).item is not None
        db.send(put("newer"))
        assert other.send(get("newer")).item is not None
        assert met.value.hint  # keeps the error, and with it the frame of the failed read, alive until here
