"""A database that does not manage its table creates its file only with the first write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.colour import COLOURS, Colour, finish

from holdall import Database
from holdall.core.requests import GetItem, PutItem
from holdall.core.values import encode_item
from holdall.errors import StoreClosedError, StoreNotWritableError, TableNotFoundError

KEY = encode_item({"pk": "a", "sk": "b"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new" / "app.db"


@pytest.fixture
def db(file: Path) -> Iterator[Database]:
    with Database(f"embedded:{file}", manage_table=False) as db:
        yield db


def send(colour: Colour, db: Database, request: object) -> object:
    async def flow() -> object:
        return await db.aio.send(request)  # type: ignore[arg-type]

    return db.send(request) if colour == "blocking" else finish(colour, flow())  # type: ignore[arg-type]


@pytest.mark.parametrize("colour", COLOURS)
def test_reading_creates_no_file(colour: Colour, db: Database, file: Path) -> None:
    with pytest.raises(TableNotFoundError):
        send(colour, db, GetItem("holdall", KEY))
    assert not db.table.exists()
    assert not file.parent.exists()


@pytest.mark.parametrize("colour", COLOURS)
def test_the_first_write_creates_the_file(colour: Colour, db: Database, file: Path) -> None:
    db.table.create()
    send(colour, db, PutItem("holdall", KEY))
    with Database(f"embedded:{file}", manage_table=False) as other:
        assert other.send(GetItem("holdall", KEY)).item == KEY


def test_a_file_that_another_program_creates_after_the_first_read_is_read(db: Database, file: Path) -> None:
    assert not db.table.exists()
    with Database(f"embedded:{file}") as other:
        other.table.create()
        other.send(PutItem("holdall", KEY))
    assert db.send(GetItem("holdall", KEY)).item == KEY


def test_a_closed_database_creates_no_file(db: Database, file: Path) -> None:
    db.close()
    with pytest.raises(StoreClosedError):
        db.send(PutItem("holdall", KEY))
    assert not file.exists()


def test_an_impossible_path_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StoreNotWritableError):
        Database(f"embedded:{tmp_path}/file/app.db", manage_table=False)


def test_a_database_that_manages_its_table_creates_its_file_at_once(file: Path) -> None:
    with Database(f"embedded:{file}"):
        assert file.exists()
