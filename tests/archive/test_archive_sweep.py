"""The sweep: what no pointer names goes, after a week, and nothing else, whatever happens meanwhile."""

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


async def leave_behind(db: Rig) -> None:
    """Two archived orders, and an object of the second, which is hot: the process died before it was deleted."""
    await db.fill("1", "2")

    db.recorder.before = refuse_deletions
    await db.archive.restore(db.model.key(customer="ada", number="2"))
    db.recorder.before = lambda request: None
    assert await db.objects() == [FIRST, SECOND]


@everywhere
async def test_what_no_pointer_names_goes_after_a_week(db: Rig) -> None:
    await leave_behind(db)
    assert (await db.archive.sweep(db.model, dry_run=False)).examined == 0
    db.clock.forward(8 * 86400)
    seen: list[ArchiveSweep] = []
    assert await db.archive.sweep(db.model, progress=seen.append) == ArchiveSweep(2, 1, 0, 0, 0) == seen[-1]
    assert await db.objects() == [FIRST, SECOND]
    assert await db.archive.sweep(db.model, dry_run=False) == ArchiveSweep(2, 1, 1, 0, 0)
    assert await db.objects() == [FIRST]
    assert [await db.note(number) for number in "12"] == ["note 1", "note 2"]


@with_files
async def test_the_object_of_a_deleted_item_goes_and_what_others_put_there_stays(db: Rig) -> None:
    await db.fill("1")
    await db.files.put("orders/ada/9.json.gz", b"not ours")
    db.send(DeleteItem(db.binding.table, db.row_key("1")))
    db.clock.forward(8 * 86400)
    assert await db.archive.sweep(db.model, dry_run=False) == ArchiveSweep(2, 1, 1, 0, 1)
    assert await db.objects() == ["orders/ada/9.json.gz"]


@with_files
async def test_where_deletions_know_no_conditions_nothing_goes_unless_the_caller_vouches(db: Rig) -> None:
    await leave_behind(db)
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
async def test_an_item_that_is_archived_again_meanwhile_keeps_its_object(db: Rig) -> None:
    await leave_behind(db)
    db.clock.forward(8 * 86400)

    async def archive_again() -> None:
        assert (await db.run()).archived == 1

    db.in_between(archive_again, DeleteObject)
    assert (await db.archive.sweep(db.model, dry_run=False)).deleted == 0
    assert await db.objects() == [FIRST, SECOND]
    assert await db.note("2") == "note 2"


@with_files
async def test_an_item_that_is_archived_again_after_it_was_looked_at_keeps_its_object(db: Rig) -> None:
    await leave_behind(db)
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
async def test_another_models_objects_are_foreign_even_with_the_same_prefix(db: Rig) -> None:
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
async def test_a_death_leaves_the_rest_to_the_next(db: Rig) -> None:
    await leave_behind(db)
    db.clock.forward(8 * 86400)
    with db.die_after(0), pytest.raises(Died):
        await db.archive.sweep(db.model, dry_run=False)
    await db.archive.sweep(db.model, dry_run=False)
    assert await db.objects() == [FIRST]
    assert [await db.note(number) for number in "12"] == ["note 1", "note 2"]


@with_files
async def test_a_shorter_grace_needs_the_caller_to_vouch(db: Rig) -> None:
    await leave_behind(db)
    with pytest.raises(InvalidOptionsError, match="at least 7 days"):
        await db.archive.sweep(db.model, older_than=timedelta(), dry_run=False)
    db.clock.forward(60)
    swept = await db.archive.sweep(db.model, older_than=timedelta(), dry_run=False, exclusive=True)
    assert swept.deleted == 1


# --- archivers that put the same content ----------------------------------------------------------------------


@with_files
async def test_of_two_archivers_with_the_same_snapshot_neither_deletes_the_others_object(db: Rig) -> None:
    """The second puts the same content before the first has swapped; its own swap then fails."""
    async with db.db.transaction() as tx:
        db.add(tx, "1")

    async def overtake() -> None:
        assert (await db.run(restart=True)).archived == 1

    db.in_between(overtake, UpdateItem)  # it puts over the first's object, and swaps; the first's swap fails
    await db.run()
    assert await db.note("1") == "note 1"
    db.clock.forward(8 * 86400)
    assert (await db.archive.sweep(db.model, dry_run=False)).unreferenced == 0
    assert await db.note("1") == "note 1"


@everywhere
async def test_an_archiver_that_was_overtaken_by_an_archiver_and_a_restore_loses_nothing(db: Rig) -> None:
    """Its object was taken over by another archiver's, whose item then came back: it has to be there still."""
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
async def test_a_server_that_cannot_replace_a_certain_object_gets_another_one(db: Rig) -> None:
    await leave_behind(db)

    def refuse(request: Any) -> None:
        if isinstance(request, PutObject) and request.if_match is not None:
            raise UnsupportedConditionError("the server ignores conditions on puts")

    db.recorder.before = refuse
    assert (await db.run()).archived == 1
    assert len(await db.objects()) == 3
    assert await db.note("2") == "note 2"
