"""A store whose file is deleted, moved or replaced while it is open: writes are refused, so that none is lost."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from embedded_things import fill, get, names, put

from holdall import Database
from holdall.core import TransactWrite
from holdall.errors import StoreMovedError


def delete(path: Path) -> None:
    path.unlink()


def move_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def remove_directory(path: Path) -> None:
    shutil.rmtree(path.parent)


def replace_with_backup(path: Path) -> None:
    fill(path.with_name("backup.db"), count=1)
    path.with_name("backup.db").replace(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "data" / "store.db")
    return tmp_path / "data" / "store.db"


@pytest.mark.parametrize("move", [delete, move_away, remove_directory, replace_with_backup])
def test_writes_to_a_file_that_is_gone_are_refused(path: Path, move: Callable[[Path], None]) -> None:
    with Database(f"embedded:{path}") as db:
        db.send(put("before"))
        move(path)
        with pytest.raises(StoreMovedError, match="nothing was written") as moved:
            db.send(put("lost"))
        assert not moved.value.retryable
        with pytest.raises(StoreMovedError):
            db.send(TransactWrite((put("lost"),), "token"))
        with pytest.raises(StoreMovedError):
            asyncio.run(_send(db))
        assert path.exists() == (move is replace_with_backup)  # the engine has not created an empty file


async def _send(db: Database) -> None:
    await db.aio.send(put("lost"))


def test_writes_succeed_again_once_the_file_is_back(path: Path) -> None:
    with Database(f"embedded:{path}") as db:
        db.send(put("before"))
        move_away(path)
        with pytest.raises(StoreMovedError):
            db.send(put("lost"))
        path.with_name("elsewhere.db").rename(path)
        db.send(put("after"))
        assert names(db) == {"thing0", "thing1", "thing2", "before", "after"}


def test_a_database_that_is_opened_again_uses_the_new_file(path: Path) -> None:
    with Database(f"embedded:{path}") as db:
        replace_with_backup(path)
        with pytest.raises(StoreMovedError):
            db.send(put("lost"))
    with Database(f"embedded:{path}") as db:
        assert names(db) == {"thing0"}
        db.send(put("new"))
        assert db.send(get("new")).item is not None


def test_a_later_connection_does_not_create_an_empty_file(path: Path) -> None:
    with Database(f"embedded:{path}") as db:
        path.unlink()
        if child := os.fork():  # before a fork, the store closes its connections
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        else:
            os._exit(0)
        with pytest.raises(StoreMovedError):
            db.send(get("thing0"))
    assert not path.exists()
