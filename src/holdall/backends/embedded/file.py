"""Opening a store's file: connections, creating and upgrading the file, and SQLite's errors as ours."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from holdall.backends.durability import make_directory
from holdall.backends.embedded import layout
from holdall.core.settings import Durability
from holdall.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreMovedError,
    StoreNotWritableError,
)


def open_file(path: Path | None, durability: Durability, *, make: bool = True) -> sqlite3.Connection:
    """A connection to the file, or to a new store in memory; raises SQLite's errors unchanged.

    With ``make``, a missing file is created.
    """
    try:
        if path is not None and make:
            make_directory(path.parent)
        connection = sqlite3.connect(
            ":memory:" if path is None else f"{path.as_uri()}?mode={'rwc' if make else 'rw'}",
            uri=path is not None,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
    except OSError as error:
        raise translate_error(error, path) from error
    try:
        connection.execute(f"PRAGMA synchronous = {durability.upper()}")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        return connection
    except BaseException:
        connection.close()
        raise


def prepare(connection: sqlite3.Connection) -> None:
    """Create or upgrade the file. Safe to repeat, and to do in several processes at once."""
    version = layout.file_version(connection)
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete":  # fresh, or a vacuumed copy
        connection.execute("PRAGMA journal_mode = WAL")
    if version == layout.VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        layout.make_current(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def identify(path: Path) -> tuple[int, int]:
    """What distinguishes the file at a path from every other; `StoreMovedError` if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - before every write, and Path.stat takes longer
    except (FileNotFoundError, NotADirectoryError):
        raise StoreMovedError(
            f"{path} was deleted or moved while it was open; nothing was written",
            hint="put the file back, or open the database again to start with an empty one",
        ) from None
    except OSError as error:
        raise translate_error(error, path) from error
    return found.st_dev, found.st_ino


def check_same_file(path: Path, known: tuple[int, int]) -> None:
    """Raise `StoreMovedError` if the file at a path is not the one that was opened."""
    if identify(path) != known:
        raise StoreMovedError(
            f"{path} was replaced by another file while it was open; nothing was written",
            hint="close the database in every process that had the old file, then open it again",
        )


def is_busy(error: sqlite3.Error) -> bool:
    """Whether the error only means that another process holds a lock."""
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary error code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def translate_error(error: sqlite3.Error | OSError, path: Path | None) -> StoreError:
    """Translate an error of SQLite's into one of ours."""
    where = path or "the database in memory"
    if isinstance(error, OSError):
        return StoreNotWritableError(
            f"{where} cannot be opened: {error.strerror}", hint="check the path and its permissions"
        )
    code = primary_code(error)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorruptError(
            f"{where} is damaged, or not a Holdall database ({error})",
            hint="restore it from a backup, or check the path; the file was not changed",
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreFullError(
            f"no space is left for {where}", hint="free some space and try again; nothing was written"
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreNotWritableError(
            f"{where} cannot be opened for writing ({error})",
            hint="check that its directory exists, and that this process may write to both",
        )
    return StoreError(f"{where}: {error}")
