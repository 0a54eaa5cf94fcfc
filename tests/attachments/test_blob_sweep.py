"""The sweep deletes unattached blobs and bytes after the grace period, and keeps young and attached ones."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from attachments_rig import Rig, file, in_memory
from gem import Gem

from holdall.attachments.home import Owner
from holdall.attachments.upkeep.sweep import SweepReport
from holdall.attachments.upload.upload import GRACE
from holdall.core.objects import DeleteObject, PutObject
from holdall.core.requests import Scan, TransactWrite
from holdall.errors import ContentionError, InvalidOptionsError, RecordNotFound

NOTHING = SweepReport(0, 0, 0)


class Death(BaseException):
    """The process died."""


async def create_leftovers(db: Rig) -> list[Any]:
    """Create an attached blob, an unattached one, and the bytes of an interrupted upload."""
    held = (await db.create(avatar=file(b"held"))).avatar.blob
    loose = await db.blobs.create_and_upload(b"loose", filename="a.txt")

    def refuse(request: Any) -> None:
        if isinstance(request, PutObject):
            raise ContentionError("cut off on purpose")

    db.recorder.after = refuse
    with pytest.raises(ContentionError):
        await db.blobs.create_and_upload(b"broken", filename="a.txt")
    db.recorder.after = lambda request: None
    return [held, loose, db.recorder.list_sent(PutObject)[-1]]


async def count_markers(db: Rig) -> int:
    found = await Gem(db).send(Scan(db.database._context.settings.table_name))
    return sum(item.get("_type", {}).get("S", "").startswith("holdall.Unattached") for item in found.items)


@in_memory
async def test_unattached_blobs_and_bytes_are_deleted_after_two_days(db: Rig) -> None:
    held, loose, broken = await create_leftovers(db)
    assert await count_markers(db) == 4  # three blobs, and their hour
    assert await db.blobs.sweep() == NOTHING
    db.clock.forward((GRACE - timedelta(hours=1)).total_seconds())
    young = await db.blobs.create_and_upload(b"young", filename="a.txt")
    assert await db.blobs.sweep() == NOTHING
    assert await db.blobs.sweep(older_than=timedelta(days=1), dry_run=True) == SweepReport(1, 1, 1)
    db.clock.forward(timedelta(hours=2).total_seconds())
    assert await db.blobs.sweep(dry_run=True) == SweepReport(1, 1, 1)
    assert await db.blobs.download(loose) == b"loose"
    assert await db.blobs.sweep(older_than=timedelta(days=3)) == NOTHING
    db.recorder.forget()
    assert await db.blobs.sweep() == SweepReport(1, 1, 1)
    assert db.recorder.list_sent(Scan) == []
    assert {request.key for request in db.recorder.list_sent(DeleteObject)} == {loose.key, broken.key}
    assert await db.find(loose) is None
    assert [await db.blobs.download(each) for each in (held, young)] == [b"held", b"young"]
    assert await db.blobs.sweep() == NOTHING
    assert await count_markers(db) == 2  # the young blob's, and its hour
    await db.check()


@in_memory
async def test_a_grace_period_shorter_than_two_days_is_refused(db: Rig) -> None:
    loose = await db.blobs.create_and_upload(b"loose", filename="a.txt")
    with pytest.raises(InvalidOptionsError, match="at least 2 days"):
        await db.blobs.sweep(older_than=timedelta(days=1, hours=23))
    assert await db.find(loose) == loose


@in_memory
async def test_a_blob_that_is_attached_while_it_is_swept_stays(db: Rig) -> None:
    loose = await db.blobs.create_and_upload(b"loose", filename="a.txt")
    db.clock.forward(2 * GRACE.total_seconds())

    async def attach() -> None:
        await db.create(avatar=loose)

    db.in_between(attach)
    assert await db.blobs.sweep() == SweepReport(0, 0, 1)
    assert await db.blobs.download(loose) == b"loose"
    assert await count_markers(db) == 0
    await db.check()


@in_memory
async def test_after_a_death_at_any_deletion_the_next_sweep_continues(db: Rig) -> None:
    held, loose, broken = await create_leftovers(db)
    db.clock.forward(2 * GRACE.total_seconds())
    deaths: set[str] = set()

    def die(request: Any) -> None:
        """Let the sweep die after each deletion that no earlier sweep sent."""
        kind = type(request).__name__
        place = kind if isinstance(request, TransactWrite) else str(request)
        if kind in ("TransactWrite", "BatchWrite", "DeleteObject") and place not in deaths:
            deaths.add(place)
            raise Death

    db.recorder.after = die
    swept = False
    while not swept:
        with suppress(Death):
            await db.blobs.sweep()
            swept = True
    db.recorder.after = lambda request: None
    assert len(deaths) == 7  # a row, two objects, three markers, the hour
    assert await count_markers(db) == 0
    assert [await db.files.exists(each.key) for each in (held, loose, broken)] == [True, False, False]
    await db.check()


# --- owners given by type and id ----------------------------------------------------------------------------


@in_memory
async def test_tools_attach_list_and_detach_by_type_and_id(db: Rig) -> None:
    person = await db.create(avatar=file(b"old"))
    place = {"record_type": db.model.__name__, "record_id": person.id}
    old, new = person.avatar.blob, await db.blobs.create_and_upload(b"new", filename="new.txt")
    await db.blobs.attach(new, **place, name="avatar", one=True)
    await db.blobs.attach(new.id, **place, name="documents")
    with pytest.raises(RecordNotFound):
        await db.blobs.attach("unknown", **place, name="avatar")
    loaded = await db.load(person)
    assert (loaded.avatar.blob, loaded.documents.blobs) == (new, [new])
    found = await list_blobs(db, *place.values())
    assert [(each.name, each.blob, each.owner_key) for each in found] == [
        (name, new, Owner(*place.values())) for name in ("avatar", "documents")
    ]
    assert len(await list_blobs(db, *place.values(), "avatar")) == 1
    await db.drain()
    assert await db.find(old) is None
    for each in found:
        gone = [await db.blobs.detach(each.id, **place, name=each.name, dependent="purge") for _ in range(2)]
        assert gone == [True, False]
    assert await db.find(new) is None
    assert await list_blobs(db, *place.values()) == []
    await db.drain()
    await db.check()


async def list_blobs(db: Rig, *place: str) -> list[Any]:
    found = db.database.blobs.list(*place)
    return [each async for each in found] if db.way.colour == "awaiting" else list(found)
