"""Older layouts are upgraded to the current one step by step, in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from embedded_things import fill, names

from holdall import Database
from holdall.backends.embedded import layout
from holdall.backends.embedded.layout import Migration


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "store.db")
    return tmp_path / "store.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def upgrade(connection: sqlite3.Connection, migrations: Mapping[int, Migration], target: int) -> None:
    """Upgrade the file as the engine does on opening."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        layout.make_current(connection, migrations=migrations, target=target)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def add_table(table: str) -> Migration:
    def migrate(connection: sqlite3.Connection) -> None:
        connection.execute(f"CREATE TABLE {table} (a)")

    return migrate


def test_every_step_from_the_files_version_on_runs_in_order(connection: sqlite3.Connection) -> None:
    done: list[int] = []

    def record(number: int) -> Migration:
        return lambda connection: done.append(number)

    steps = {number: record(number) for number in range(6)}
    upgrade(connection, steps, target=4)
    assert done == [1, 2, 3]
    assert version(connection) == 4


def test_a_step_sees_the_changes_of_the_previous_step(path: Path, connection: sqlite3.Connection) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO extra SELECT name FROM (SELECT json_extract(body, '$.name.S') AS name FROM items)"
        )

    upgrade(connection, {1: add_table("extra"), 2: fill}, target=3)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM extra").fetchone() == (3,)
        assert version(other) == 3


def test_all_steps_happen_in_the_callers_transaction(path: Path, connection: sqlite3.Connection) -> None:
    def check_from_outside(inside: sqlite3.Connection) -> None:
        assert inside.in_transaction
        with closing(sqlite3.connect(path)) as outside:
            assert version(outside) == 1
            assert "extra" not in tables(outside)

    upgrade(connection, {1: add_table("extra"), 2: check_from_outside}, target=3)


def test_a_step_that_fails_leaves_the_file_at_its_old_version(
    path: Path, connection: sqlite3.Connection
) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        raise RuntimeError("no")

    before = tables(connection)
    with pytest.raises(RuntimeError):
        upgrade(connection, {1: add_table("extra"), 2: fail}, target=3)
    assert version(connection) == 1
    assert tables(connection) == before
    with Database(f"embedded:{path}") as db:
        assert len(names(db)) == 3


def test_a_failed_upgrade_can_be_repeated(connection: sqlite3.Connection) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE items (a)")

    with pytest.raises(sqlite3.OperationalError):
        upgrade(connection, {1: add_table("extra"), 2: fail}, target=3)
    upgrade(connection, {1: add_table("extra"), 2: add_table("more")}, target=3)
    assert version(connection) == 3
    assert {"extra", "more"} <= tables(connection)


def test_a_current_file_needs_no_step(connection: sqlite3.Connection) -> None:
    assert layout.file_version(connection) == layout.VERSION
    upgrade(connection, {}, target=layout.VERSION)
    assert version(connection) == layout.VERSION


def test_there_is_a_step_from_every_older_version() -> None:
    assert sorted(layout.MIGRATIONS) == [*range(1, layout.VERSION)]


def test_a_failed_creation_leaves_an_empty_file(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "fresh.db", isolation_level=None)) as connection:
        with pytest.raises(KeyError):
            upgrade(connection, {}, target=layout.VERSION + 1)
        assert tables(connection) == set()
        assert version(connection) == 0
        assert layout.file_version(connection) == 0
    Database(f"embedded:{tmp_path}/fresh.db").close()
