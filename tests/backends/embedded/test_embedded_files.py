"""The file of an embedded store: how a new one looks, and which files are refused and not changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from embedded_things import THINGS, fill, get, names, put

from holdall import Database
from holdall.backends.embedded import layout
from holdall.core import CreateTable
from holdall.errors import StoreCorruptError, StoreNotWritableError, StoreVersionError


def pragma(path: Path, name: str) -> object:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]


def test_a_fresh_file_is_marked_as_ours_with_its_layout_version(tmp_path: Path) -> None:
    Database(f"embedded:{tmp_path}/store.db").close()
    assert pragma(tmp_path / "store.db", "application_id") == layout.APPLICATION_ID
    assert pragma(tmp_path / "store.db", "user_version") == layout.VERSION
    assert pragma(tmp_path / "store.db", "journal_mode") == "wal"


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "store.db").touch()
    fill(tmp_path / "store.db")


def test_a_closed_store_is_one_file(tmp_path: Path) -> None:
    fill(tmp_path / "store.db")
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]


def test_missing_directories_are_created(tmp_path: Path) -> None:
    fill(tmp_path / "a" / "b" / "store.db")
    with Database(f"embedded:{tmp_path}/a/b/store.db") as db:
        assert len(names(db)) == 3


def test_a_relative_path_does_not_follow_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Database("embedded:store.db") as db, Database("embedded:store.db") as other:
        db.send(CreateTable(THINGS))
        monkeypatch.chdir(tmp_path / "elsewhere")
        with db.aio.sync as twin:
            twin.send(put("a"))
            assert other.send(get("a")).item is not None
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_copy_made_by_vacuum_is_a_complete_store(tmp_path: Path) -> None:
    fill(tmp_path / "store.db")
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        connection.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    with Database(f"embedded:{tmp_path}/copy.db") as db:
        db.send(put("new"))
        assert len(names(db)) == 4
    assert pragma(tmp_path / "copy.db", "journal_mode") == "wal"  # readers and a writer at the same time


# --- files that are not stores --------------------------------------------------------------------------


def text_file(path: Path) -> None:
    path.write_text("Dear diary,\n" * 200)


def short_text_file(path: Path) -> None:
    path.write_text("hi")


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE customers (name); INSERT INTO customers VALUES ('ada');")


def foreign_database_in_wal_mode(path: Path) -> None:
    foreign_database(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def foreign_database_without_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")


def mark_foreign_database(path: Path) -> None:
    foreign_database(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 252006673")


def garbage(path: Path) -> None:
    path.write_bytes(bytes(number * 37 % 251 for number in range(8192)))


def garbage_after_the_right_words(path: Path) -> None:
    garbage(path)
    path.write_bytes(b"SQLite format 3\0" + path.read_bytes()[16:])


def half_a_header(path: Path) -> None:
    fill(path)
    path.write_bytes(path.read_bytes()[:50])


def cut_short(path: Path) -> None:
    fill(path, 100)
    path.write_bytes(path.read_bytes()[:8192])


def cut_within_a_page(path: Path) -> None:
    fill(path, 100)
    path.write_bytes(path.read_bytes()[:-5000])


@pytest.mark.parametrize(
    "make",
    [
        text_file,
        short_text_file,
        foreign_database,
        foreign_database_in_wal_mode,
        foreign_database_without_tables,
        mark_foreign_database,
        garbage,
        garbage_after_the_right_words,
        half_a_header,
        cut_short,
        cut_within_a_page,
    ],
)
def test_a_file_that_is_not_an_intact_store_is_refused_and_not_changed(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "store.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreCorruptError) as refusal:
        Database(f"embedded:{path}")
    assert refusal.value.hint
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]


def test_a_store_of_a_newer_holdall_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {layout.VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(StoreVersionError, match="upgrade"):
        Database(f"embedded:{path}")
    assert path.read_bytes() == before


def test_a_directory_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreNotWritableError):
        Database(f"embedded:{tmp_path}")


def test_a_path_through_a_file_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreNotWritableError):
        Database(f"embedded:{tmp_path}/file/store.db")


def test_a_refused_store_can_be_opened_once_it_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fill(path)
    sound = path.read_bytes()
    path.write_bytes(sound[:50])
    with pytest.raises(StoreCorruptError):
        Database(f"embedded:{path}")
    path.write_bytes(sound)
    with Database(f"embedded:{path}") as db:
        assert len(names(db)) == 3
