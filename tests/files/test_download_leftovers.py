"""Downloads remove the leftovers of killed downloads beside their targets."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any

import pytest

from holdall import Database

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")

HOUR = 3600.0
Download = Callable[..., Any]


def open_db(tmp_path: Path) -> Database:
    return Database(f"embedded:{tmp_path / 'app.db'}", files=f"file:{tmp_path / 'files'}")


def file(db: Database, to: Path, **options: Any) -> None:
    db.files.download("a", to, **options)


def artifact(db: Database, to: Path, **options: Any) -> None:
    db.artifacts.download("one", to=to, **options)


def directory(db: Database, to: Path, **options: Any) -> None:
    db.artifacts.download("tree", to=to, **options)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory to download to, beside a database with something to download."""
    for name in ("tree/a", "tree/b/c"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())
    with open_db(tmp_path) as db:
        db.files.put("a", b"alpha")
        db.artifacts.put("one", b"one")
        db.artifacts.put("tree", tmp_path / "tree")
    found = tmp_path / "downloads"
    found.mkdir()
    return found


def kill_during(download: Download, place: Path, **options: Any) -> Path:
    """Download in a process that is killed before the end; return the path that it left."""
    before = set(place.iterdir())

    def die(done: int, total: int | None) -> None:
        if done:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            with open_db(place.parent) as db:
                download(db, place / "killed", progress=die, **options)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    (left,) = set(place.iterdir()) - before
    return left


def age(path: Path, seconds: float) -> None:
    """Set the modification time of everything below a path to so many seconds ago."""
    for each in (*path.rglob("*"), path):
        os.utime(each, (time() - seconds,) * 2)


@pytest.mark.parametrize("download", [file, artifact, directory], ids=lambda each: each.__name__)
def test_a_later_download_removes_the_leftovers_of_a_killed_one(place: Path, download: Download) -> None:
    left = kill_during(download, place)
    with open_db(place.parent) as db:
        file(db, place / "young")
    assert left.exists()  # its process may still be alive
    age(left, 2 * HOUR)
    (place / ".mine.part").touch()
    with open_db(place.parent) as db:
        download(db, place / "next")
    assert {each.name for each in place.iterdir()} == {"young", "next", ".mine.part"}


@pytest.mark.parametrize("download", [file, artifact, directory], ids=lambda each: each.__name__)
def test_leftovers_that_can_be_resumed_are_kept_for_a_week(place: Path, download: Download) -> None:
    left = kill_during(download, place, resume=True)
    for days, is_kept in ((6, True), (8, False)):
        age(left, days * 24 * HOUR)
        with open_db(place.parent) as db:
            file(db, place / "another")
        assert left.exists() is is_kept


def test_a_directory_with_recent_writes_in_a_subdirectory_is_left_alone(place: Path) -> None:
    left = kill_during(directory, place)
    inner = next(each for each in left.rglob("*") if each.is_dir())
    age(left, 2 * HOUR)
    os.utime(inner)
    with open_db(place.parent) as db:
        file(db, place / "next")
    assert left.exists()
