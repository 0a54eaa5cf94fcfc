"""Files and directories that the process must not read or write."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_things import fill
from rig.torture import run_script

SCRIPT = "unprivileged_opener.py"


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that other users can enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory
        directory.chmod(0o755)


def test_a_new_store_in_a_read_only_directory_is_refused(directory: Path) -> None:
    directory.chmod(0o555)
    assert run_script(SCRIPT, directory / "store.db") == ["StoreNotWritableError"]
    assert not list(directory.iterdir())


def test_a_store_whose_directory_cannot_be_created_is_refused(directory: Path) -> None:
    directory.chmod(0o555)
    assert run_script(SCRIPT, directory / "data" / "store.db") == ["StoreNotWritableError"]
    assert not list(directory.iterdir())


def test_an_existing_store_in_a_read_only_directory_is_refused_and_not_changed(directory: Path) -> None:
    path = directory / "store.db"
    fill(path)
    path.chmod(0o444)
    directory.chmod(0o555)
    before = path.read_bytes()
    assert run_script(SCRIPT, path)[-1] == "StoreNotWritableError"
    assert path.read_bytes() == before


def test_a_read_only_file_is_refused_and_not_changed(directory: Path) -> None:
    path = directory / "store.db"
    fill(path)
    path.chmod(0o444)
    directory.chmod(0o777)
    before = path.read_bytes()
    assert run_script(SCRIPT, path)[-1] == "StoreNotWritableError"
    assert path.read_bytes() == before


def test_an_unreadable_file_is_refused(directory: Path) -> None:
    path = directory / "store.db"
    fill(path)
    path.chmod(0o000)
    directory.chmod(0o777)
    assert run_script(SCRIPT, path) == ["StoreNotWritableError"]


def test_with_permissions_the_same_process_works(directory: Path) -> None:
    path = directory / "store.db"
    fill(path)
    path.chmod(0o666)
    directory.chmod(0o777)
    assert run_script(SCRIPT, path) == ["opened", "read", "wrote"]
