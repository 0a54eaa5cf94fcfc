"""A root that was copied without modification times: its objects keep their headers, digests and etags."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from disk_rig import NAME, RAILS_KEY, Disk

from holdall.backends.disk import DiskService
from holdall.core.objects import DeleteObject, GetObject, HeadObject, ListObjects, ObjectHeaders, PutObject

HEADERS = ObjectHeaders("text/plain", "inline", "no-store", {"author": "Ada"})
KEYS = ("notes/one.txt", "notes/ünïcode %~", RAILS_KEY)


def copy_by_cp(root: Path, to: Path) -> None:
    subprocess.run(["cp", "-r", str(root), str(to)], check=True)


def copy_by_tar(root: Path, to: Path) -> None:
    archive = root.with_name("archive.tar")
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:  # whole seconds, as GNU tar does
        tar.add(root, to.name)
    with tarfile.open(archive) as tar:
        tar.extractall(to.parent, filter="data")


def copy_by_zip(root: Path, to: Path) -> None:
    archive = root.with_name("archive.zip")
    with zipfile.ZipFile(archive, "w") as packed:
        for file in root.rglob("*"):
            packed.write(file, file.relative_to(root))
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(to)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "files"


def fill(root: Path) -> None:
    service = DiskService(root)
    for key in KEYS:
        service.send_blocking(PutObject(NAME, key, key.encode() * 1000, HEADERS, tags={"kind": "test"}))


@pytest.mark.parametrize("copy", [copy_by_cp, copy_by_tar, copy_by_zip])
def test_a_copy_has_the_attributes_of_its_objects(
    root: Path, tmp_path: Path, copy: Callable[[Path, Path], None]
) -> None:
    fill(root)
    before = {key: Disk(root).head(key) for key in KEYS}
    copy(root, tmp_path / "copy")
    there = Disk(tmp_path / "copy")
    assert {key: there.head(key) for key in KEYS} == before
    assert all(info.sha256 and info.headers == HEADERS for info in before.values())
    assert there.tags(KEYS[0]) == {"kind": "test"}
    # after the first read, listings have the old etags too, and conditions on them hold
    page = there.service.send_blocking(ListObjects(NAME))
    assert {each.key: each.etag for each in page.objects} == {key: before[key].etag for key in KEYS}
    assert there.service.send_blocking(GetObject(NAME, KEYS[0], if_match=before[KEYS[0]].etag)).body
    there.service.send_blocking(DeleteObject(NAME, KEYS[0], before[KEYS[0]].etag))
    assert not list((tmp_path / "copy/_/objects").rglob("one*"))


def test_a_read_only_copy_has_all_attributes_but_the_etag(root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can create another user's files")
    fill(root)
    before = Disk(root).head(KEYS[0])
    with tempfile.TemporaryDirectory() as open_to_all:
        Path(open_to_all).chmod(0o755)
        copy_by_cp(root, Path(open_to_all, "copy"))
        os.seteuid(65534)
        try:
            there = Disk(Path(open_to_all, "copy"))
            found = [there.head(KEYS[0]) for _ in range(2)]
        finally:
            os.seteuid(0)
    assert [info.headers for info in found] == [HEADERS] * 2
    assert {info.sha256 for info in found} == {before.sha256}
    assert before.etag not in {info.etag for info in found}


def test_a_damaged_copy_of_an_object_loses_its_attributes_with_a_warning(
    root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(root)
    copy_by_cp(root, tmp_path / "copy")
    there = Disk(tmp_path / "copy")
    with there.bytes_of(KEYS[0]).open("r+b") as file:
        file.write(b"?")
    with caplog.at_level(logging.WARNING, "holdall.files"):
        info = there.head(KEYS[0])
        assert there.head(KEYS[0]) == info
    assert (info.headers, info.sha256) == (ObjectHeaders(), None)
    assert [KEYS[0] in record.getMessage() for record in caplog.records] == [True]


def test_attributes_of_earlier_bytes_are_ignored(root: Path, tmp_path: Path) -> None:
    """A process that dies before its last step leaves such attributes behind."""
    disk = Disk(root)
    disk.put("key", b"first", content_type="text/old")
    notes = root / "_/objects"
    (old,) = notes.glob("key~*")
    shutil.copy(old, tmp_path / "kept")
    disk.put("key", b"other", content_type="text/new")
    shutil.copy(tmp_path / "kept", old)
    copy_by_cp(root, tmp_path / "copy")
    assert Disk(tmp_path / "copy").head("key").headers.content_type == "text/new"


def test_attributes_of_an_unfinished_put_are_ignored(root: Path, tmp_path: Path) -> None:
    """A put links them before the bytes, and until it ends they have a second name."""
    disk = Disk(root)
    disk.put("key", b"words", content_type="text/plain")
    (note,) = (root / "_/objects").glob("key~*")
    os.link(note, tmp_path / "draft")
    os.utime(disk.bytes_of("key"), ns=(0, 0))
    assert disk.service.send_blocking(HeadObject(NAME, "key")).headers == ObjectHeaders()
    (tmp_path / "draft").unlink()
    assert disk.service.send_blocking(HeadObject(NAME, "key")).headers.content_type == "text/plain"
