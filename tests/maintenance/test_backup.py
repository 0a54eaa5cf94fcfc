"""Backups of embedded databases: of one moment, complete, verified, and safe to interrupt after every step."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL
from threading import Event, Thread
from typing import Any

import pytest
from rig.torture import Child

from holdall import AsyncDatabase, Database, Key, Model, field, has_one_attached
from holdall.backends.disk import DiskService
from holdall.core import Scan
from holdall.core.objects import DeleteObject, DescribeService, HeadObject, PutObject
from holdall.core.snapshots import BeginSnapshot, EndSnapshot, LinkSnapshot
from holdall.errors import (
    ConfigurationError,
    IntegrityError,
    InvalidOptionsError,
    ObjectNotFoundError,
    StoreNotWritableError,
)


class Photo(Model):
    name: Key[str]
    code: str | None = field(default=None, unique=True)
    picture = has_one_attached()


def fill(db: Database, *names: str) -> None:
    if not db.table.exists():
        db.table.create()
    for name in names:
        with db.transaction() as tx:
            photo = tx.create(Photo, name=name, code=f"{name}!")
            photo.picture.attach(name.encode() * 1000, filename=f"{name}.bin")


def contents(db: Database) -> tuple[list[Any], dict[str, bytes]]:
    """All items and objects of a database."""
    items = [item for page in db.pages(Scan(db.table.name)) for item in page.items]
    return items, {each.key: db.files.get(each.key) for each in db.files.list()}


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Database]:
    with Database(f"embedded:{tmp_path / 'a.db'}") as db:
        fill(db, "ada", "bob")
        db.files.put("notes/today", b"tea")
        yield db


def restore(tmp_path: Path, backup: Path, name: str = "b") -> tuple[list[Any], dict[str, bytes]]:
    """Restore a backup into a new database, read every picture, and return all items and objects."""
    with Database(f"embedded:{tmp_path / name}.db") as db:
        db.restore(backup)
        photos = db.scan(Photo).all()
        db.load(photos, "picture")
        blobs = [blob for photo in photos if (blob := photo.picture.blob) is not None]
        assert len(blobs) == len(photos)
        assert all(len(b"".join(db.blobs.stream(blob))) == blob.byte_size for blob in blobs)
        return contents(db)


def test_a_restored_backup_is_complete(source: Database, tmp_path: Path) -> None:
    before = contents(source)
    reported: list[Any] = []
    report = source.backup(tmp_path / "backup", progress=reported.append)
    assert reported[-1] == report
    assert report.files == 6  # bytes and attributes of three objects
    fill(source, "eve")
    source.files.delete("notes/today")
    assert restore(tmp_path, tmp_path / "backup") == before


def test_async_programs_can_make_and_restore_backups(source: Database, tmp_path: Path) -> None:
    before = contents(source)

    async def main() -> None:
        await source.aio.backup(tmp_path / "backup")
        async with AsyncDatabase(f"embedded:{tmp_path / 'b.db'}") as db:
            await db.restore(tmp_path / "backup")

    asyncio.run(main())
    with Database(f"embedded:{tmp_path / 'b.db'}") as db:
        assert contents(db) == before


def test_a_backup_of_a_database_in_use_contains_the_bytes_of_every_row(
    source: Database, tmp_path: Path
) -> None:
    enough, busy = Event(), Event()

    def use() -> None:
        with Database(f"embedded:{tmp_path / 'a.db'}", durability="normal") as db:
            for number in range(10_000):
                fill(db, f"n{number}")
                with db.transaction() as tx:
                    photo = tx.get_one(Photo, f"n{number - number % 3}")
                    photo.picture.attach(b"other", filename="other.bin")
                db.blobs.sweep()
                busy.set()
                if enough.is_set():
                    return

    user = Thread(target=use)
    user.start()
    try:
        busy.wait()
        for number in range(3):
            source.backup(tmp_path / f"backup{number}")
    finally:
        enough.set()
        user.join()
    for number in range(3):
        items, _ = restore(tmp_path, tmp_path / f"backup{number}", f"b{number}")
        assert items


def test_deletions_and_replacements_wait_until_the_objects_are_linked(tmp_path: Path) -> None:
    service = DiskService(tmp_path / "files")
    for key in ("gone", "new"):
        service.send_blocking(PutObject("", key, b"old"))
    snapshot = service.send_blocking(BeginSnapshot(""))
    changes = [DeleteObject("", "gone"), PutObject("", "new", b"changed")]
    threads = [Thread(target=service.send_blocking, args=(change,)) for change in changes]
    for thread in threads:
        thread.start()
    service.send_blocking(PutObject("", "another", b"x", if_absent="id"))  # a new object replaces none
    for thread in threads:
        thread.join(0.05)
        assert thread.is_alive()
    service.send_blocking(LinkSnapshot("", snapshot.id))
    for thread in threads:
        thread.join()
    with pytest.raises(ObjectNotFoundError):
        service.send_blocking(HeadObject("", "gone"))
    kept = sorted(
        path.read_bytes()
        for path in Path(snapshot.directory).rglob("*")
        if "~" not in path.name and path.is_file()
    )
    assert kept == [b"old", b"old", b"x"]
    service.send_blocking(EndSnapshot("", snapshot.id))
    assert not Path(snapshot.directory).exists()


def run_to_death(*arguments: object) -> bool:
    """Run the program; return whether it ended by itself and was not killed."""
    with Child("dying_backup.py", *arguments) as child:
        child.end()
        assert child.returncode in (0, -SIGKILL), child.account()
        return child.returncode == 0


@pytest.mark.torture
def test_a_backup_killed_after_any_step_leaves_a_healthy_database(source: Database, tmp_path: Path) -> None:
    before = contents(source)
    for step in range(1, 100):
        target = tmp_path / f"backup{step}"
        finished = run_to_death("backup", tmp_path / "a.db", target, step)
        if target.exists():
            assert restore(tmp_path, target, f"r{step}") == before
        for rest in tmp_path.glob(f"backup{step}.partial-*"):
            with Database(f"embedded:{tmp_path / 'c.db'}") as other, pytest.raises(InvalidOptionsError):
                other.restore(rest)
            shutil.rmtree(rest)
        source.files.put("notes/more", b"x")  # these calls must not wait for the dead process
        source.files.delete("notes/more")
        assert contents(source) == before
        if finished:
            break
    assert finished
    assert step > 5
    source.backup(tmp_path / "last")
    assert not [*(tmp_path / "a-files" / "_" / "snapshots").iterdir()]


@pytest.mark.torture
def test_a_restore_killed_after_any_step_can_be_repeated(source: Database, tmp_path: Path) -> None:
    before = contents(source)
    source.backup(tmp_path / "backup")
    for step in range(1, 100):
        target = tmp_path / f"r{step}.db"
        finished = run_to_death("restore", target, tmp_path / "backup", step)
        with Database(f"embedded:{target}") as db:
            if not db.table.exists():
                db.restore(tmp_path / "backup")
            assert contents(db) == before
        if finished:
            break
    assert finished
    assert step > 3


def test_a_damaged_or_incomplete_backup_is_refused(source: Database, tmp_path: Path) -> None:
    source.backup(tmp_path / "backup")

    def refuse(kind: type[Exception], problem: str) -> None:
        with Database(f"embedded:{tmp_path / 'b.db'}") as db, pytest.raises(kind, match=problem):
            db.restore(tmp_path / "backup")
        assert not (tmp_path / "b-files").exists()

    (note,) = [path for path in (tmp_path / "backup").rglob("today") if path.is_file()]
    note.write_bytes(b"TEA")
    refuse(IntegrityError, "today is missing or damaged")
    note.write_bytes(b"tea")  # with another modification time, as after copying the directory
    database = tmp_path / "backup" / "database.sqlite"
    content = database.read_bytes()
    database.write_bytes(content[:-1] + b"?")
    refuse(IntegrityError, "database.sqlite is missing or damaged")
    database.write_bytes(content)
    manifest = tmp_path / "backup" / "backup.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"format": 1', '"format": 2'))
    refuse(IntegrityError, "has the format 2")
    for other in ("[]", '{"format": 1}'):
        manifest.write_text(other)
        refuse(IntegrityError, "it is not the manifest of a backup")
    manifest.unlink()
    refuse(InvalidOptionsError, "not a complete backup")
    manifest.write_text(text)
    (tmp_path / "backup" / "files" / "default" / "more").touch()
    refuse(IntegrityError, "more is not part of the backup")
    (tmp_path / "backup" / "files" / "default" / "more").unlink()
    assert restore(tmp_path, tmp_path / "backup") == contents(source)


def test_backups_and_restores_overwrite_nothing(source: Database, tmp_path: Path) -> None:
    source.backup(tmp_path / "backup")
    with pytest.raises(InvalidOptionsError, match="exists already"):
        source.backup(tmp_path / "backup")
    with pytest.raises(InvalidOptionsError, match="there is no directory"):
        source.backup(tmp_path / "no" / "backup")
    with pytest.raises(InvalidOptionsError, match="whose files are backed up"):
        source.backup(Path(source.send(DescribeService("default")).place) / "backup")
    with pytest.raises(InvalidOptionsError, match="has the table holdall already"):
        source.restore(tmp_path / "backup")
    with Database(f"embedded:{tmp_path / 'b.db'}") as db:
        db.files.put("mine", b"x")
        with pytest.raises(StoreNotWritableError, match="not part of the backup"):
            db.restore(tmp_path / "backup")


def test_only_data_on_this_machine_can_be_backed_up(tmp_path: Path) -> None:
    for settings, problem in (
        ({"url": "memory:"}, "not an embedded database"),
        ({"url": f"embedded:{tmp_path / 'a.db'}", "files": "memory:"}, "only files on this machine"),
    ):
        with Database(**settings) as db, pytest.raises(ConfigurationError, match=problem):  # type: ignore[arg-type]
            db.backup(tmp_path / "backup")
    with (
        Database(f"embedded:{tmp_path / 'a.db'}", files={"one": f"file:{tmp_path / 'one'}"}) as db,
        Database(f"embedded:{tmp_path / 'b.db'}") as other,
    ):
        db.backup(tmp_path / "backup")
        with pytest.raises(InvalidOptionsError, match="files of the service 'one'"):
            other.restore(tmp_path / "backup")
    assert not [*tmp_path.glob("*.partial-*")]


def test_a_restore_that_died_while_copying_files_can_be_repeated(source: Database, tmp_path: Path) -> None:
    before = contents(source)
    source.backup(tmp_path / "backup")
    assert restore(tmp_path, tmp_path / "backup") == before
    for path in tmp_path.glob("b.db*"):
        path.unlink()
    (note,) = [path for path in (tmp_path / "b-files").rglob("today") if path.is_file()]
    note.unlink()
    note.with_name("today~restoring").write_bytes(b"te")  # left by a killed process
    assert restore(tmp_path, tmp_path / "backup") == before
    assert not note.with_name("today~restoring").exists()
