"""Listings of a disk: in the order of the keys' bytes, in pages of any size, whatever the directories of the keys."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from disk_rig import NAME, RAILS_KEY, Disk, is_allowed
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.disk import listing
from holdall.backends.disk.path import place_of
from holdall.core.objects import ListObjects

HEX = "0123456789abcdef" * 4


SEGMENTS = st.one_of(
    st.sampled_from(["", "a", "b", "A", "a!", "a0", "a.", "é", "\uffff", "😀", "variants", RAILS_KEY, HEX]),
    st.text("a!/~%é", max_size=5),
    st.text("ab", min_size=16, max_size=18),
    st.builds(lambda end: "x" * 199 + end, st.text("x!é", max_size=4)),
)
KEYS = st.one_of(
    st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join),
    st.text("a/", min_size=60, max_size=80),
    st.builds(lambda end: f"variants/{RAILS_KEY}/{HEX[:-1]}{end}", st.sampled_from("0123456789abcdefg")),
).filter(is_allowed)


def write_files(root: str, keys: set[str]) -> Disk:
    """Write the files of these objects directly, without the service."""
    disk = Disk(Path(root))
    for key in keys:
        directories, name = place_of(key)
        place = disk.root.joinpath(*directories)
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(key.encode())
        (place / f"{name}~1-1").touch()
    return disk


@given(st.sets(KEYS, max_size=15), st.data())
def test_keys_are_listed_in_the_order_of_their_bytes(keys: set[str], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as root:
        disk = write_files(root, keys)
        ordered = sorted(keys, key=str.encode)
        limit = data.draw(st.integers(1, 10))
        assert disk.keys(limit=limit) == ordered
        some = data.draw(st.sampled_from([*ordered, "a"]))
        prefix = some[: data.draw(st.integers(0, len(some)))]
        assert disk.keys(prefix, limit) == [key for key in ordered if key.startswith(prefix)]
        after = data.draw(st.sampled_from([*ordered, "a", "a/", "x" * 200, "\U0010ffff"]))
        page = disk.service.send_blocking(ListObjects(NAME, prefix, after))
        assert [found.key for found in page.objects] == [
            key for key in ordered if key.startswith(prefix) and key.encode() > after.encode()
        ]


def test_a_listing_has_the_size_etag_and_time_of_the_object(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    for key in ("a/b", RAILS_KEY):
        info = disk.put(key, b"words")
        (found,) = disk.service.send_blocking(ListObjects(NAME, key)).objects
        assert (found.key, found.size, found.etag, found.modified) == (key, 5, info.etag, info.modified)


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat directories with a few entries as large."""
    monkeypatch.setattr(listing, "_HELD", 3)
    monkeypatch.setattr(listing, "_KEPT", 10)


@pytest.mark.usefixtures("small_steps")
@given(st.sets(KEYS, max_size=20), st.integers(1, 10), st.booleans())
def test_a_directory_that_is_too_large_for_memory_is_read_in_steps(
    keys: set[str], limit: int, settled: bool
) -> None:
    with tempfile.TemporaryDirectory() as root:
        disk = write_files(root, keys)
        if settled:
            for place, _, _ in os.walk(root):
                os.utime(place, (0, 0))
        assert disk.keys(limit=limit) == sorted(keys, key=str.encode)


def reads_of(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by one with each directory that is read."""
    reads: list[int] = []
    scandir = os.scandir

    def count_reads(directory: int) -> object:
        reads.append(directory)
        return scandir(directory)

    monkeypatch.setattr(os, "scandir", count_reads)
    return reads


@pytest.mark.usefixtures("small_steps")
def test_a_large_directory_is_not_read_again_for_every_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {f"dir/{number:03}" for number in range(100)}
    disk = write_files(str(tmp_path), keys)
    os.utime(tmp_path / "_/objects/dir=", (0, 0))
    reads = reads_of(disk, monkeypatch)
    assert disk.keys("dir/", limit=2) == sorted(keys)
    # the root once for each of 50 pages, and the directory at most twice for each ten names that are kept
    assert len(reads) <= 50 + 20


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("age", [0, 60])
def test_changes_between_two_pages_are_seen_in_the_second(tmp_path: Path, age: int) -> None:
    disk = Disk(tmp_path)
    for number in range(0, 40, 2):
        disk.put(f"dir/{number:03}")
    directory = tmp_path / "_/objects/dir="
    before = directory.stat().st_mtime - age
    os.utime(directory, (before, before))
    first = disk.service.send_blocking(ListObjects(NAME, "dir/", None, 4))
    assert first.next == "dir/006"
    disk.put("dir/007")
    disk.delete("dir/008")
    disk.put("dir/010/below")
    second = disk.service.send_blocking(ListObjects(NAME, "dir/", first.next, 4))
    assert [found.key for found in second.objects] == ["dir/007", "dir/010", "dir/010/below", "dir/012"]


@pytest.mark.usefixtures("small_steps")
def test_a_change_at_the_same_instant_as_a_page_is_seen_in_the_next_page(tmp_path: Path) -> None:
    disk = write_files(str(tmp_path), {f"dir/{number:03}" for number in range(0, 40, 2)})
    directory = tmp_path / "_/objects/dir="
    instant = directory.stat().st_mtime_ns
    first = disk.service.send_blocking(ListObjects(NAME, "dir/", None, 2))
    disk.put("dir/003")
    os.utime(directory, ns=(instant, instant))  # the clock of some file systems only has seconds
    second = disk.service.send_blocking(ListObjects(NAME, "dir/", first.next, 2))
    assert [found.key for found in second.objects] == ["dir/003", "dir/004"]


def test_an_object_that_is_deleted_during_a_listing_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = write_files(str(tmp_path), {"a/1", "a/2", "b/1", "c"})
    stat = os.stat

    def late(path: Any, **options: Any) -> os.stat_result:
        if path == "1":
            for gone in ("a=/1", "b=/1"):
                (tmp_path / "_/objects" / gone).unlink(missing_ok=True)
            if (tmp_path / "_/objects/b=/1~1-1").exists():
                (tmp_path / "_/objects/b=/1~1-1").unlink()
                (tmp_path / "_/objects/b=").rmdir()
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", late)
    assert disk.keys() == ["a/2", "c"]
