"""Copies of a store: written to a file as of one moment, and read back into an empty store in one step."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from holdall.backends.durability import sync_path
from holdall.backends.embedded.catalog import Catalog
from holdall.backends.embedded.file import prepare
from holdall.errors import StoreCorruptError, StoreError


def write_copy(connection: sqlite3.Connection, path: Path) -> None:
    """Write a copy of the store to a new file, check it, and sync it.

    SQLite copies all pages in one read transaction, so the copy has exactly what was committed at one moment, and
    writers go on.
    """
    if path.exists():
        raise StoreError(f"{path} exists already", hint="choose a new file")
    with closing(sqlite3.connect(path)) as copy:
        connection.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
        _check(copy, path)
    sync_path(path)


def read_copy(connection: sqlite3.Connection, path: Path) -> None:
    """Fill an empty store with a copy. SQLite does this in one transaction: a crash leaves the store empty."""
    if Catalog.load(connection).tables:
        raise StoreError("the database has tables already", hint="restore a backup into a new database")
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as copy:
        _check(copy, path)
        copy.backup(connection)
    prepare(connection)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    found = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
    if found != ["ok"]:
        raise StoreCorruptError(f"{path} is damaged: {found[0]:.200}", hint="use another backup")
