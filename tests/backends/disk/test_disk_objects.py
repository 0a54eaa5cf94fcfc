"""Objects on disk: their paths, the files beside them, and the files that a failure leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from disk_rig import NAME, RAILS_KEY, Disk, no_file_above
from rig.torture import start_source

from holdall.backends.disk import DiskService
from holdall.core.objects import CopyObject, DeleteObjects, GetObject, ObjectHeaders, PutObject
from holdall.errors import (
    IntegrityError,
    ObjectNotFoundError,
    PreconditionFailedError,
    StoreError,
    StoreFullError,
    StoreNotWritableError,
)

HEX = "0123456789abcdef" * 4
NOBODY = 65534


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "files")


@contextmanager
def as_nobody() -> Iterator[None]:
    """Become an unprivileged user if this is a superuser, to whom permissions do not apply."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


# --- paths ---


def test_the_root_is_created_by_the_first_put(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "a" / "b")
    assert disk.keys() == []
    with pytest.raises(ObjectNotFoundError):
        disk.get("missing")
    disk.delete("missing")
    assert not (tmp_path / "a").exists()
    disk.put("key")
    assert disk.get("key").body == b"words"


def test_a_relative_root_does_not_follow_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    service = DiskService("files")
    monkeypatch.chdir("/")
    service.send_blocking(PutObject(NAME, "key", b"words"))
    assert (tmp_path / "files" / "_" / "objects" / "key").read_bytes() == b"words"


def test_an_object_has_a_file_with_its_bytes_and_one_with_its_attributes(disk: Disk) -> None:
    info = disk.put("photos/ada.png", b"bytes", content_type="image/png")
    assert disk.files() == {
        "_/objects/photos=/ada.png",
        f"_/objects/photos=/ada.png~{info.etag}",
    }
    assert (disk.root / "_/objects/photos=/ada.png").read_bytes() == b"bytes"


def test_a_replaced_object_leaves_no_files(disk: Disk) -> None:
    disk.put("key", b"old", content_type="text/plain")
    info = disk.put("key", b"new")
    assert disk.files() == {"_/objects/key", f"_/objects/key~{info.etag}"}
    assert disk.get("key").info == info
    assert info.headers == ObjectHeaders()


def test_deleted_objects_leave_no_empty_directories(disk: Disk) -> None:
    for key in ("a/b/c/d", "a/b/e", RAILS_KEY, f"variants/{RAILS_KEY}/{HEX}", "x" * 250 + "/y"):
        disk.put(key)
    disk.delete("a/b/c/d")
    assert "_/objects/a=/b=" in disk.directories()
    assert "_/objects/a=/b=/c=" not in disk.directories()
    disk.delete(RAILS_KEY)
    disk.service.send_blocking(
        DeleteObjects(NAME, (f"variants/{RAILS_KEY}/{HEX}", "a/b/e", "x" * 250 + "/y", "missing/too"))
    )
    assert disk.files() == set()
    assert disk.directories() == {"_", "_/objects", "_/temporary"}


def test_files_have_the_modes_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        disk = Disk(tmp_path / "files")
        info = disk.put("dir/key")
    finally:
        os.umask(before)
    modes = {
        path: (disk.root / path).stat().st_mode & 0o777
        for path in ("_/objects/dir=", "_/objects/dir=/key", f"_/objects/dir=/key~{info.etag}")
    }
    assert list(modes.values()) == [0o750, 0o640, 0o640]


# --- files of other programs ---


def test_a_file_of_active_storage_is_an_object(disk: Disk) -> None:
    path = disk.root / "xt" / "ap" / RAILS_KEY
    path.parent.mkdir(parents=True)
    path.write_bytes(b"from Rails")
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    found = disk.get(RAILS_KEY)
    assert found.body == b"from Rails"
    assert found.info.headers == ObjectHeaders()
    assert (found.info.md5, found.info.sha256, found.info.put_id) == (None, None, None)
    assert found.info.modified == datetime(2023, 11, 14, 22, 13, 20, 123457, tzinfo=UTC)
    assert disk.keys() == [RAILS_KEY]
    disk.put("copy source", b"x")
    copy = disk.service.send_blocking(CopyObject(NAME, RAILS_KEY, "copy"))
    assert (copy.size, copy.headers) == (10, ObjectHeaders())
    disk.delete(RAILS_KEY)
    assert not path.exists()


def test_an_object_that_another_program_rewrote_has_another_etag_and_no_attributes(disk: Disk) -> None:
    info = disk.put(RAILS_KEY, b"ours", content_type="text/plain")
    disk.bytes_of(RAILS_KEY).write_bytes(b"them")
    found = disk.get(RAILS_KEY).info
    assert found.etag != info.etag
    assert (found.headers, found.sha256) == (ObjectHeaders(), None)
    with pytest.raises(PreconditionFailedError):
        disk.service.send_blocking(GetObject(NAME, RAILS_KEY, if_match=info.etag))


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"key":7}', b'{"key":"k","metadata":[]}', b"\xff"])
def test_malformed_attributes_are_ignored(disk: Disk, text: bytes) -> None:
    info = disk.put("key", b"words", content_type="text/plain")
    (disk.root / f"_/objects/key~{info.etag}").write_bytes(text)
    found = disk.get("key")
    assert (found.body, found.info.headers) == (b"words", ObjectHeaders())


def test_a_root_that_was_copied_with_modification_times_keeps_its_attributes(
    disk: Disk, tmp_path: Path
) -> None:
    info = disk.put("dir/key", b"words", content_type="text/plain", if_absent="id")
    subprocess.run(["cp", "-a", disk.root, tmp_path / "copy"], check=True)
    assert Disk(tmp_path / "copy").get("dir/key").info == info


def test_files_that_are_not_objects_are_not_listed_and_not_found(disk: Disk) -> None:
    disk.put("real")
    objects = disk.root / "_" / "objects"
    (objects / "UPPER").write_bytes(b"x")
    (objects / "%41%").write_bytes(b"x")
    (objects / "plain directory").mkdir()
    (objects / "directory").mkdir()
    os.mkfifo(objects / "pipe")
    (disk.root / "notes.txt").write_bytes(b"x")
    assert disk.keys() == ["real"]
    for key in ("directory", "pipe"):
        with pytest.raises(ObjectNotFoundError):
            disk.get(key)


# --- links ---


def test_links_are_not_followed(disk: Disk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    disk.put("dir/key")
    objects = disk.root / "_" / "objects"
    (objects / "link").symlink_to(outside / "secret")
    (objects / "out=").symlink_to(outside)
    (disk.root / "xt").symlink_to(outside)
    assert disk.keys() == ["dir/key"]
    for key in ("link", "out/secret"):
        with pytest.raises(ObjectNotFoundError):
            disk.get(key)
        disk.delete(key)
    for key in ("out/new", RAILS_KEY):
        with pytest.raises(StoreNotWritableError, match="links"):
            disk.put(key)
    disk.put("link", b"an object of its own")
    assert disk.get("link").body == b"an object of its own"
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"secret": b"secret"}


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    disk = Disk(tmp_path / "root")
    disk.put("key")
    assert (tmp_path / "real" / "_" / "objects" / "key").read_bytes() == b"words"


# --- failures ---


def test_bytes_with_another_digest_are_not_stored(disk: Disk) -> None:
    disk.put("key", b"old")
    before = disk.files()
    for digest in ({"md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}, {"sha256": "A" * 43 + "="}):
        for key in ("key", "new"):
            with pytest.raises(IntegrityError):
                disk.put(key, b"new", **digest)
    assert disk.files() == before
    assert disk.get("key").body == b"old"


def test_a_put_that_an_existing_object_refuses_changes_nothing(disk: Disk) -> None:
    disk.put("key", b"first", if_absent="one")
    before = disk.files()
    with pytest.raises(PreconditionFailedError):
        disk.put("key", b"second", if_absent="two")
    assert disk.files() == before
    assert disk.head("key").put_id == "one"


def test_a_root_that_is_a_file_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        disk = Disk(root)
        with pytest.raises(StoreNotWritableError, match=r"file.*cannot be written"):
            disk.put("key")
        with pytest.raises(StoreNotWritableError):
            disk.begin()
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_a_read_only_root_can_be_read(disk: Disk) -> None:
    disk.put("key")
    before = disk.files()
    with open_to_all(disk.root.parent), as_nobody():
        for request in (
            PutObject(NAME, "key", b"new"),
            PutObject(NAME, "other/key", b"new"),
            CopyObject(NAME, "key", "copy"),
        ):
            with pytest.raises(StoreNotWritableError):
                disk.service.send_blocking(request)
        with pytest.raises(StoreNotWritableError):
            disk.delete("key")
        report = disk.service.send_blocking(DeleteObjects(NAME, ("key", "missing")))
        assert list(report.failures) == ["key"]
        assert "cannot be written" in report.failures["key"]
        assert disk.get("key").body == b"words"
    assert disk.files() == before


@contextmanager
def open_to_all(path: Path) -> Iterator[None]:
    """Let all users enter a directory and its parents."""
    closed = [parent for parent in (path, *path.parents) if not parent.stat().st_mode & 0o005]
    modes = {parent: parent.stat().st_mode & 0o7777 for parent in closed}
    for parent, mode in modes.items():
        parent.chmod(mode | 0o055)
    try:
        yield
    finally:
        for parent, mode in modes.items():
            parent.chmod(mode)


def test_unreadable_bytes_are_a_store_error(disk: Disk) -> None:
    disk.put("key")
    disk.bytes_of("key").chmod(0)
    with open_to_all(disk.root.parent), as_nobody(), pytest.raises(StoreError, match="cannot be read"):
        disk.get("key")


@pytest.mark.parametrize("limit", [0, 1, 4096, 99_999])
def test_a_put_or_copy_to_a_full_disk_changes_nothing(disk: Disk, limit: int) -> None:
    disk.put("key", b"old")
    disk.put("large", b"x" * 100_000)
    before = disk.files()
    with no_file_above(limit):
        for request in (
            PutObject(NAME, "key", b"new" * 50_000),
            PutObject(NAME, "other", b"new" * 50_000),
            PutObject(NAME, "a/b/c", b"new" * 50_000, if_absent="id"),
            CopyObject(NAME, "large", "copy"),
        ):
            with pytest.raises(StoreFullError, match="no space"):
                disk.service.send_blocking(request)
    assert disk.files() == before
    assert disk.get("key").body == b"old"


def test_bytes_are_not_visible_if_their_attributes_cannot_be_written(disk: Disk) -> None:
    disk.put("key", b"old")
    before = disk.files()
    with no_file_above(100), pytest.raises(StoreFullError):
        disk.put("key", b"new", content_type="x" * 200)
    assert disk.files() == before
    assert disk.get("key").body == b"old"


# --- identity ---


def test_bytes_that_are_replaced_at_once_by_as_many_others_get_another_etag(disk: Disk) -> None:
    etags = {disk.put("key", b"%03d" % number).etag for number in range(200)}
    assert len(etags) == 200
    assert disk.files() == {"_/objects/key", f"_/objects/key~{disk.head('key').etag}"}


def test_two_puts_in_the_same_instant_do_not_share_attributes(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_000_000_000)
    first = disk.put("key", b"one", content_type="text/one")
    second = disk.put("key", b"two", content_type="text/two")
    assert first.etag != second.etag
    assert disk.get("key").info == second
    assert disk.get("key").info.headers.content_type == "text/two"


# --- leftover files ---


HOUR_LATER = 3601.0


def crash_put(root: Path, call: str) -> None:
    """Let a process die during a put, before its first use of this system call."""
    script = f"""
import os, signal, sys
from holdall.backends.disk import DiskService
from holdall.core.objects import PutObject
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
os.{call} = die
DiskService(sys.argv[1]).send_blocking(PutObject("disk", "dir/key", b"words"))
"""
    with start_source(script, root) as process:
        process.end()
        assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("call", ["pwrite", "utime", "link", "rename"])
def test_the_leftover_files_of_a_dead_process_are_swept_after_an_hour(disk: Disk, call: str) -> None:
    disk.put("other")
    before = disk.files()
    crash_put(disk.root, call)
    assert disk.files() > before
    assert disk.keys() == ["other"]
    now = time.time()
    DiskService(disk.root, clock=lambda: now).send_blocking(PutObject(NAME, "x", b""))
    disk.delete("x")
    assert disk.files() > before
    DiskService(disk.root, clock=lambda: now + HOUR_LATER).send_blocking(PutObject(NAME, "x", b""))
    disk.delete("x")
    assert disk.files() == before


def test_the_files_of_an_unfinished_put_are_never_swept(disk: Disk) -> None:
    # the process waits after it has linked the attributes and before it links the bytes
    script = """
import os, sys
from holdall.backends.disk import DiskService
from holdall.core.objects import PutObject
link = os.link
def wait(*arguments, **named):
    link(*arguments, **named)
    print("ready", flush=True)
    sys.stdin.readline()
os.link = wait
DiskService(sys.argv[1]).send_blocking(PutObject("disk", "slow", b"words"))
"""
    disk.put("other")
    with start_source(script, disk.root) as slow:
        assert slow.line() == "ready"
        later = DiskService(disk.root, clock=lambda: time.time() + HOUR_LATER)
        later.send_blocking(PutObject(NAME, "other", b"new"))
        slow.write_line("continue")
        slow.finish()
    assert disk.get("slow").body == b"words"
    assert disk.get("slow").info.md5 is not None
