"""Conditional replacements and deletions on disk: by many processes, and without leftover files."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from disk_rig import NAME, Disk
from rig.torture import start_source

from holdall.backends.disk import directory
from holdall.core.objects import CompleteUpload
from holdall.errors import ConfigurationError, PreconditionFailedError, StoreBusyError

PROCESSES = 4
ROUNDS = 25

COUNTING = """
import sys
from holdall.backends.disk import DiskService
from holdall.core.objects import GetObject, PutObject
from holdall.errors import PreconditionFailedError

service = DiskService(sys.argv[1])
for _ in range(int(sys.argv[2])):
    while True:
        found = service.send_blocking(GetObject("disk", "dir/count"))
        body = b"%d" % (int(found.body) + 1)
        try:
            service.send_blocking(PutObject("disk", "dir/count", body, if_match=found.info.etag))
            break
        except PreconditionFailedError:
            continue
"""


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "files")


def test_no_update_is_lost_between_processes_that_replace_what_they_read(disk: Disk) -> None:
    disk.put("dir/count", b"0")
    with ExitStack() as stack:
        processes = [stack.enter_context(start_source(COUNTING, disk.root, ROUNDS)) for _ in range(PROCESSES)]
        for process in processes:
            process.finish()
    assert disk.get("dir/count").body == b"%d" % (PROCESSES * ROUNDS)
    assert len([name for name in disk.files() if "~" in name]) == 1, "attributes of replaced bytes are left"


def test_a_refused_condition_changes_nothing(disk: Disk) -> None:
    etag = disk.put("a/b", b"first").etag
    disk.put("a/b", b"second", content_type="text/plain", tags={"colour": "red"})
    before = disk.files(), disk.directories()
    with pytest.raises(PreconditionFailedError):
        disk.put("a/b", b"third", if_match=etag)
    with pytest.raises(PreconditionFailedError):
        disk.delete("a/b", etag)
    with pytest.raises(PreconditionFailedError):
        disk.put("new/place/c", b"third", if_match=etag)
    assert (disk.files(), disk.directories()) == before
    assert disk.tags("a/b") == {"colour": "red"}


def test_a_refused_upload_can_still_be_completed(disk: Disk) -> None:
    etag = disk.put("big", b"first").etag
    upload = disk.begin()
    part = disk.part(upload, 1, b"whole")
    with pytest.raises(PreconditionFailedError):
        disk.complete(upload, part, if_match="another")
    done = disk.complete(upload, part, if_match=etag)
    assert disk.head("big") == done
    again = CompleteUpload(NAME, upload, (part,), if_match=etag)
    assert disk.service.send_blocking(again) == done, "a repeated completion returns the same object"


def test_a_conditional_deletion_leaves_no_files_or_directories(disk: Disk) -> None:
    etag = disk.put("deep/down/a").etag
    disk.put("b")
    before = disk.files(), disk.directories()
    other = disk.put("deep/down/c").etag
    disk.delete("deep/down/c", other)
    assert (disk.files(), disk.directories()) == before
    disk.delete("deep/down/a", etag)
    assert disk.keys() == ["b"]
    assert not [name for name in disk.files() if "deep" in name]


def test_a_conditional_change_fails_while_another_holds_the_lock(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    etag = disk.put("a", b"first").etag
    monkeypatch.setattr(directory, "_PATIENCE", (0.0,) * 3)
    held = os.open(disk.bytes_of("a").parent, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreBusyError):
            disk.put("a", b"second", if_match=etag)
        with pytest.raises(StoreBusyError):
            disk.delete("a", etag)
    finally:
        os.close(held)
    assert disk.get("a").body == b"first"
    disk.put("a", b"second", if_match=etag)
    assert len([name for name in disk.files() if "~" in name]) == 1


def test_without_support_for_locks_only_conditional_changes_are_refused(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    etag = disk.put("a", b"first").etag
    real = fcntl.flock

    def refuse_for_directories(file: int, how: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{file}"):  # noqa: PTH112 - the path of an open file
            raise OSError(errno.ENOLCK, "no locks")
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", refuse_for_directories)
    with pytest.raises(ConfigurationError, match="needs locks"):
        disk.put("a", b"second", if_match=etag)
    with pytest.raises(ConfigurationError, match="needs locks"):
        disk.delete("a", etag)
    disk.put("a", b"second")
    assert disk.get("a").body == b"second"


# --- tags ---


def test_tags_are_stored_on_disk(disk: Disk) -> None:
    disk.put("a", tags={"colour": "Grün", "empty": ""})
    assert Disk(disk.root).tags("a") == {"colour": "Grün", "empty": ""}


def test_bytes_written_by_hand_have_no_tags(disk: Disk) -> None:
    disk.put("a", tags={"colour": "red"})
    disk.bytes_of("a").write_bytes(b"by hand")
    assert disk.tags("a") == {}


def test_attributes_without_tags_are_read(disk: Disk) -> None:
    disk.put("a", content_type="text/plain")
    (note,) = [disk.root / name for name in disk.files() if "~" in name]
    assert b"tags" not in note.read_bytes()
    assert (disk.tags("a"), disk.head("a").headers.content_type) == ({}, "text/plain")
