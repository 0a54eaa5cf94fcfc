"""A process dies right before or right after any of its requests: counts stay right, no file is lost or left over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest
from attachments_rig import SECRET, User, file
from PIL import Image
from rig.clock import TimedPort
from rig.database import die, open_directory
from rig.recorder import Recorder
from rig.torture import TORTURE

from holdall import Attachable, Database, Model, Variant, has_many_attached, has_one_attached
from holdall.attachments import Filename
from holdall.attachments.picture.derived import variant_owner
from holdall.attachments.picture.variant import complete_variant
from holdall.attachments.upload.upload import GRACE
from holdall.core.frozen import replace
from holdall.core.requests import Scan
from holdall.errors import HoldallError, OutcomeUnknown, ServiceUnavailableError
from holdall.worker import Worker

WHENS = ("before", "after") if TORTURE else ("after",)
"""A death right before a request leaves the same state as a death right after the previous one."""


class Note(Attachable):
    """An owner stored as a file."""

    cover = has_one_attached()
    directory: Path

    def __init__(self, id: str) -> None:
        self.id = id  # type: ignore[misc]

    @property
    def path(self) -> Path:
        return Path(self.directory, str(self.id))

    @classmethod
    def find(cls, id: str) -> Note | None:
        note = cls(id)
        return note if note.is_persisted() else None

    def is_persisted(self) -> bool:
        return self.path.exists()


def open_db(directory: Path, days: float = 0) -> AbstractContextManager[tuple[Database, Recorder]]:
    """Open the database of a directory, some days later."""
    return open_directory(directory, days, secret=SECRET)


def attach(db: Database, user: str) -> None:
    with db.transaction() as tx:
        tx.get_one(User, user).avatar.attach(b"first", filename="first.txt")


def change(db: Database, user: str) -> None:
    with db.transaction() as tx:
        found = tx.get_one(User, user)
        found.portrait = file(b"new", "new.txt")
        found.documents = [file(b"only", "only.txt")]


def clear(db: Database, user: str) -> None:
    with db.transaction() as tx:
        found = tx.get_one(User, user)
        found.documents = []
        found.portrait.purge()


def destroy(db: Database, user: str) -> None:
    with db.transaction() as tx:
        tx.delete(User.key(user))


def compose(db: Database, user: str) -> None:
    found = db.get_one(User, user, include=["documents"])
    db.blobs.compose(found.documents.blobs, filename="all.txt")


def purge(db: Database, user: str) -> None:
    blob = db.blobs.create_and_upload(b"alone", filename="alone.txt")
    assert db.blobs.purge(blob)


def save(db: Database, user: str) -> None:
    note = Note("saved")
    note.cover.attach(b"cover", filename="cover.txt")
    with db.saving(note):
        note.path.touch()


def remove(db: Database, user: str) -> None:
    note = Note("old")
    with db.destroying(note):
        note.path.unlink()


def shrink(db: Database, user: str) -> None:
    """Make a variant of a picture."""
    db.blobs.variant(db.get_one(User, user, include=["documents"]).documents.blobs[2], SMALL)


SMALL = Variant(resize_to_limit=(2, 2))
CHANGES: list[Callable[[Database, str], None]] = [
    attach,
    change,
    clear,
    destroy,
    compose,
    purge,
    save,
    remove,
    shrink,
]
OWN_STEPS = [save, remove]
"""The changes with a step of the caller between two requests: it writes or deletes its file."""


def picture() -> bytes:
    data = BytesIO()
    Image.new("L", (4, 4)).save(data, "GIF")
    return data.getvalue()


def prepare(directory: Path) -> str:
    """Create the items that the changes start from."""
    Note.directory = directory
    with open_db(directory) as (db, _):
        with db.transaction() as tx:
            user = tx.create(User, name="Ada")
            user.portrait = file(b"portrait")
            user.documents = [file(b"one", "1.txt"), file(b"two", "2.txt"), file(picture(), "3.gif")]
        note = Note("old")
        note.cover.attach(b"old cover", filename="old.txt")
        with db.saving(note):
            note.path.touch()
        return str(user.id)


def check_recovery(directory: Path) -> None:
    """Check that the audit finds nothing, and nothing is left over once the jobs ran and the grace period ended."""
    with open_db(directory) as (db, _):
        assert db.blobs.check().findings == ()
    with open_db(directory, days=GRACE / timedelta(days=1) + 1) as (db, _):
        drain(db)
        db.blobs.sweep()
        drain(db)
        report = db.blobs.check()
        assert report.findings == ()
        assert len(list(db.files.list())) == report.blobs
        assert report.blobs == len({each.id for each in blobs_in_use(db)})


def blobs_in_use(db: Database) -> list[Any]:
    names = ["avatar", "portrait", "documents"]
    loaded = [db.get_one(User, user.id, include=names) for user in db.scan(User)]
    found = [
        blob for user in loaded for blob in (user.avatar.blob, user.portrait.blob, *user.documents.blobs)
    ]
    notes = [each.blob for id in ("old", "saved") for each in db.blobs.list("Note", id)]
    stored = [blob for blob in (*found, *notes) if blob is not None]
    digest = complete_variant(SMALL, "image/gif", Filename("3.gif")).digest()
    owners = [variant_owner(blob.id, digest) for blob in stored]
    return stored + [
        each.blob for owner in owners for each in db.blobs.list(owner.record_type, owner.record_id)
    ]


def drain(db: Database) -> None:
    twin = db.aio
    twin._context = replace(twin._context, port=TimedPort(twin._context.port, db._context.port.clock))  # type: ignore[attr-defined]
    asyncio.run(Worker(twin).drain())


@pytest.mark.torture
@pytest.mark.parametrize(
    ("change", "when"),
    [
        pytest.param(change, when, id=f"{change.__name__}-{when}")
        for change in CHANGES
        for when in ("before", "after")
        if when in WHENS or change in OWN_STEPS
    ],
)
def test_a_death_at_any_step_loses_nothing_and_leaves_nothing_over(
    tmp_path: Path, change: Callable[[Database, str], None], when: str
) -> None:
    before = tmp_path / "before"
    before.mkdir()
    user = prepare(before)
    for step in range(1, 100):
        directory = Note.directory = tmp_path / str(step)
        copytree(before, directory)
        # a process that draws is slow to start, and the table is written only after drawing
        only_writes = change is shrink or (when == "after" and not TORTURE)
        died = die(open_db(directory), lambda db: change(db, user), step, when, only_writes=only_writes)
        check_recovery(directory)
        if not died:
            assert step > 1
            return
    raise AssertionError("the change never ended")


FAULTS = {"before": ServiceUnavailableError("on purpose"), "after": OutcomeUnknown("lost on purpose")}


@pytest.mark.torture
@pytest.mark.parametrize("when", FAULTS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_fault_at_any_step_loses_nothing_and_leaves_nothing_over(
    tmp_path: Path, change: Callable[[Database, str], None], when: str
) -> None:
    before = tmp_path / "before"
    before.mkdir()
    user = prepare(before)
    # of the requests that are refused, most are reads: normally every third is enough, and changes alternate
    first, stride = (1, 1) if TORTURE or when == "after" else (1 + CHANGES.index(change) % 3, 3)
    for step in range(first, 100, stride):
        directory = Note.directory = tmp_path / str(step)
        copytree(before, directory)
        with open_db(directory) as (db, recorder):
            left = step

            def fail(request: Any) -> None:
                nonlocal left
                left -= when == "before" or request.writes
                if left == 0:
                    raise FAULTS[when]

            setattr(recorder, when, fail)
            with suppress(HoldallError):
                change(db, user)
        check_recovery(directory)
        if left > 0:
            assert step > first
            return
    raise AssertionError("the change never ended")


class Crate(Model):
    """An owner that may have more files than fit in a transaction."""

    letters = has_many_attached(in_batches=True)


def fill_crate(directory: Path) -> str:
    with open_db(directory) as (db, _), db.transaction() as tx:
        crate = tx.create(Crate)
        crate.letters = [file(b"letter", f"{n}.txt") for n in range(34)]
    return str(crate.id)


def empty(db: Database, crate: str) -> None:
    with db.transaction() as tx:
        tx.get_one(Crate, crate).letters.detach()


def work(db: Database, crate: str) -> None:
    drain(db)


def check_crate(directory: Path, crate: str, *, emptied: bool) -> None:
    """Check that all letters are visible, or none; and nothing is left over after the jobs ran."""
    with open_db(directory) as (db, _):
        seen = len(db.get_one(Crate, crate, include=["letters"]).letters)
        assert seen in ((0,) if emptied else (0, 34))
        assert db.blobs.check().findings == ()
    with open_db(directory, days=1) as (db, backend):
        drain(db)
        assert len(db.get_one(Crate, crate, include=["letters"]).letters) == seen
        report = db.blobs.check()
        assert (report.findings, report.attachments, report.blobs) == ((), seen, 34)
        items = backend.send_blocking(Scan(db._context.settings.table_name, consistent=True)).items
        kinds = {item["_type"]["S"] for item in items if "_type" in item}
        assert not kinds & {"holdall.AttachmentIntent", "holdall.AttachmentSlot"}


@pytest.mark.torture
@pytest.mark.parametrize("change", [empty, work], ids=["the transaction", "the job"])
def test_after_a_death_during_a_large_removal_another_worker_finishes_it(
    tmp_path: Path, change: Callable[[Database, str], None]
) -> None:
    before = tmp_path / "before"
    before.mkdir()
    crate = fill_crate(before)
    if change is work:
        with open_db(before) as (db, _):
            empty(db, crate)
    for step in range(1, 1000):
        directory = tmp_path / str(step)
        copytree(before, directory)
        died = die(open_db(directory), lambda db: change(db, crate), step, "after")
        check_crate(directory, crate, emptied=change is work)
        rmtree(directory)
        if not died:
            assert step > 4
            return
    raise AssertionError("the change never ended")
