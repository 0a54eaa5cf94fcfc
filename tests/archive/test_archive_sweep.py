"""The sweep deletes objects without a pointer after a week, and nothing else, whatever happens meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from moves_rig import Died, Rig, everywhere, with_files

from holdall import Key, Model, col
from holdall.archive import Archive, ArchiveSweep
from holdall.archive.pointer import POINTER
from holdall.core.objects import DeleteObject, PutObject
from holdall.core.requests import DeleteItem, GetItem, UpdateItem
from holdall.errors import InvalidOptionsError, UnsupportedConditionError

FIRST, SECOND = "orders/ada/1.json.gz", "orders/ada/2.json.gz"


def refuse_deletions(request: Any) -> None:
    if isinstance(request, DeleteObject):
        raise UnsupportedConditionError("the server ignores conditions on deletions")


async def leave_orphan(db: Rig) -> None:
    """Leave two archived orders, and restore the second without deleting its object, as a process that died would."""
    await db.fill("1", "2")

    db.recorder.before = refuse_deletions
    await db.archive.restore(db.model.key(customer="ada", number="2"))
    db.recorder.before = lambda request: None
    assert await db.objects() == [FIRST, SECOND]


@everywhere
async def test_an_object_without_a_pointer_is_deleted_after_a_week(db: Rig) -> None:
    await leave_orphan(db)
    assert (await db.archive.sweep(db.model, dry_run=False)).examined == 0
    db.clock.forward(8 * 86400)
    seen: list[ArchiveSweep] = []
    assert await db.archive.sweep(db.model, progress=seen.append) == ArchiveSweep(2, 1, 0, 0, 0) == seen[-1]
    assert await db.objects() == [FIRST, SECOND]
    assert await db.archive.sweep(db.model, dry_run=False) == ArchiveSweep(2, 1, 1, 0, 0)
    assert await db.objects() == [FIRST]
    assert [await db.note(number) for number in "12"] == ["note 1", "note 2"]


@with_files
async def test_the_object_of_a_deleted_item_is_deleted_and_foreign_objects_are_kept(db: Rig) -> None:
    await db.fill("1")
    await db.files.put("orders/ada/9.json.gz", b"not ours")
    db.send(DeleteItem(db.binding.table, db.row_key("1")))
    db.clock.forward(8 * 86400)
    assert await db.archive.sweep(db.model, dry_run=False) == ArchiveSweep(2, 1, 1, 0, 1)
    assert await db.objects() == ["orders/ada/9.json.gz"]


@with_files
async def test_without_conditional_deletions_nothing_is_deleted_unless_exclusive(db: Rig) -> None:
    await leave_orphan(db)
    db.clock.forward(8 * 86400)

    def refuse(request: Any) -> None:
        if isinstance(request, DeleteObject) and request.if_match is not None:
            raise UnsupportedConditionError("the server ignores conditions on deletions")

    db.recorder.before = refuse
    assert await db.archive.restore(db.model.key(customer="ada", number="1")) == 1
    assert await db.archive.sweep(db.model, dry_run=False) == ArchiveSweep(2, 2, 0, 2, 0)
    assert await db.objects() == [FIRST, SECOND]
    assert await db.archive.sweep(db.model, dry_run=False, exclusive=True) == ArchiveSweep(2, 2, 2, 0, 0)
    assert await db.objects() == []
    assert [await db.note(number) for number in "12"] == ["note 1", "note 2"]


@everywhere
async def test_an_item_archived_again_before_the_deletion_keeps_its_object(db: Rig) -> None:
    await leave_orphan(db)
    db.clock.forward(8 * 86400)

    async def archive_again() -> None:
        assert (await db.run()).archived == 1

    db.in_between(archive_again, DeleteObject)
    assert (await db.archive.sweep(db.model, dry_run=False)).deleted == 0
    assert await db.objects() == [FIRST, SECOND]
    assert await db.note("2") == "note 2"


@with_files
async def test_an_item_archived_again_during_the_check_keeps_its_object(db: Rig) -> None:
    await leave_orphan(db)
    db.clock.forward(8 * 86400)

    async def archive_again() -> None:
        assert (await db.run()).archived == 1

    db.in_between(archive_again, GetItem)
    await db.archive.sweep(db.model, dry_run=False)
    assert POINTER in db.row("2")
    assert [await db.note(number) for number in "12"] == ["note 1", "note 2"]


@with_files
async def test_a_damaged_or_lost_pointer_keeps_its_object(db: Rig) -> None:
    await db.fill("1", "2")
    first, second = db.row("1"), db.row("2")
    db.put_row({**first, POINTER: {"S": "damaged"}})
    db.put_row({name: value for name, value in second.items() if name != POINTER})
    db.clock.forward(8 * 86400)
    assert await db.archive.sweep(db.model, dry_run=False) == ArchiveSweep(2, 0, 0, 0, 0)


@with_files
async def test_another_model_s_objects_are_foreign_even_with_the_same_prefix(db: Rig) -> None:
    class Parcel(
        Model, table="parcels" if db.way.own else None, archive=Archive(key="orders/{partitionKey}")
    ):
        id: Key[str]
        text: str | None = None

    await db.fill("1")
    async with db.db.transaction() as tx:
        tx.create(Parcel, id="p", text="wrapped")
    await db.archive.run(Parcel, where=col(Parcel.text) == "wrapped")
    async with db.db.transaction() as tx:
        db.recorder.before = refuse_deletions
        tx.delete(Parcel.key("p"))
    db.recorder.before = lambda request: None
    db.clock.forward(8 * 86400)
    assert await db.archive.sweep(db.model, dry_run=False) == ArchiveSweep(2, 0, 0, 0, 1)
    assert await db.archive.sweep(Parcel, dry_run=False) == ArchiveSweep(2, 1, 1, 0, 1)
    assert await db.objects() == [FIRST]


@with_files
async def test_after_a_death_the_next_sweep_finishes(db: Rig) -> None:
    await leave_orphan(db)
    db.clock.forward(8 * 86400)
    with db.die_after(0), pytest.raises(Died):
        await db.archive.sweep(db.model, dry_run=False)
    await db.archive.sweep(db.model, dry_run=False)
    assert await db.objects() == [FIRST]
    assert [await db.note(number) for number in "12"] == ["note 1", "note 2"]


@with_files
async def test_a_shorter_grace_period_needs_exclusive(db: Rig) -> None:
    await leave_orphan(db)
    with pytest.raises(InvalidOptionsError, match="at least 7 days"):
        await db.archive.sweep(db.model, older_than=timedelta(), dry_run=False)
    db.clock.forward(60)
    swept = await db.archive.sweep(db.model, older_than=timedelta(), dry_run=False, exclusive=True)
    assert swept.deleted == 1


# --- archivers that put the same content ----------------------------------------------------------------------


@with_files
async def test_two_archivers_with_the_same_snapshot_keep_the_item_s_object(db: Rig) -> None:
    """The second archiver puts the same content before the first swaps; the first one's swap then fails."""
    async with db.db.transaction() as tx:
        db.add(tx, "1")

    async def overtake() -> None:
        assert (await db.run(restart=True)).archived == 1

    db.in_between(
        overtake, UpdateItem
    )  # it replaces the first one's object and swaps; then the first one's swap fails
    await db.run()
    assert await db.note("1") == "note 1"
    db.clock.forward(8 * 86400)
    assert (await db.archive.sweep(db.model, dry_run=False)).unreferenced == 0
    assert await db.note("1") == "note 1"


@everywhere
async def test_an_archiver_overtaken_by_another_and_a_restore_loses_nothing(db: Rig) -> None:
    """Another archiver took over its object, and the item was restored; the object must still exist."""
    async with db.db.transaction() as tx:
        db.add(tx, "1")

    async def overtake() -> None:
        assert (await db.run(restart=True)).archived == 1
        assert await db.archive.restore(db.model.key(customer="ada", number="1")) == 1

    db.in_between(overtake, UpdateItem)
    assert (await db.run()).archived == 1
    assert POINTER in db.row("1")
    assert await db.note("1") == "note 1"


@with_files
async def test_a_server_without_conditional_puts_gets_a_new_object(db: Rig) -> None:
    await leave_orphan(db)

    def refuse(request: Any) -> None:
        if isinstance(request, PutObject) and request.if_match is not None:
            raise UnsupportedConditionError("the server ignores conditions on puts")

    db.recorder.before = refuse
    assert (await db.run()).archived == 1
    assert len(await db.objects()) == 3
    assert await db.note("2") == "note 2"
