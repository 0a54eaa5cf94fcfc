"""Pointers are rebuilt from existing objects, after verification; a missing item is never created."""

from __future__ import annotations

from typing import Any

import pytest
from moves_rig import Died, Rig, everywhere, with_files

from holdall.archive import ArchiveRebuild
from holdall.archive.pointer import POINTER
from holdall.core.objects import GetObject
from holdall.core.requests import DeleteItem, UpdateItem
from holdall.errors import CorruptArchiveError, DanglingPointerError

FIRST = "orders/ada/1.json.gz"
DAMAGED: Any = {"M": {"f": {"N": "1"}}}


def damage(db: Rig, number: str = "1") -> None:
    db.put_row({**db.row(number), POINTER: DAMAGED})


@everywhere
async def test_damaged_and_lost_pointers_are_rebuilt(db: Rig) -> None:
    await db.fill("1", "2", "3")
    damage(db)
    lost = db.row("2")
    del lost[POINTER]
    db.put_row(lost)
    with pytest.raises(CorruptArchiveError):
        await db.note("1")
    seen: list[ArchiveRebuild] = []
    expected = ArchiveRebuild(3, 1, 2, 0, 0, 0, ())
    assert await db.archive.rebuild_pointers(db.model, dry_run=True, progress=seen.append) == expected
    assert db.row("1")[POINTER] == DAMAGED
    assert seen[-1] == expected
    assert await db.archive.rebuild_pointers(db.model) == expected
    assert [await db.note(number) for number in "123"] == ["note 1", "note 2", "note 3"]
    assert await db.archive.rebuild_pointers(db.model) == ArchiveRebuild(3, 3, 0, 0, 0, 0, ())


@with_files
async def test_the_newest_valid_object_is_used(db: Rig) -> None:
    """The item was archived three times, and all three objects still exist; the newest is damaged."""
    async with db.db.transaction() as tx:
        db.add(tx, "1")

    async def keep(note: str) -> None:
        db.clock.forward(60)
        row = db.row("1")
        if POINTER in row:
            await db.archive.restore(db.model.key(customer="ada", number="1"))
        async with db.db.transaction() as tx:
            (await tx.get_one(db.model, customer="ada", number="1")).note = note
        await db.run()
        held[note] = db.row("1")

    held: dict[str, Any] = {}
    db.recorder.before = _refuse_deletions
    for note in ("a", "b", "c"):
        await keep(note)
    db.recorder.before = lambda request: None
    assert len(await db.objects()) == 3
    newest = held["c"][POINTER]["M"]["k"]["S"]
    await db.files.put(newest, b"damaged")
    db.clock.forward(60)
    with pytest.raises(CorruptArchiveError):
        await db.note("1")
    assert await db.archive.rebuild_pointers(db.model) == ArchiveRebuild(1, 0, 1, 1, 0, 0, ())
    assert await db.note("1") == "b"
    assert db.row("1")[POINTER]["M"]["t"] == held["b"][POINTER]["M"]["t"]
    db.put_row(held["a"])  # the pointer's object takes precedence over newer ones
    assert (await db.archive.rebuild_pointers(db.model)).sound == 1
    assert await db.note("1") == "a"


def _refuse_deletions(request: Any) -> None:
    from holdall.core.objects import DeleteObject
    from holdall.errors import UnsupportedConditionError

    if isinstance(request, DeleteObject):
        raise UnsupportedConditionError("the server ignores conditions on deletions")


@with_files
async def test_an_object_without_an_item_creates_none(db: Rig) -> None:
    await db.fill("1")
    db.send(DeleteItem(db.binding.table, db.row_key("1")))
    assert await db.archive.rebuild_pointers(db.model) == ArchiveRebuild(0, 0, 0, 0, 0, 0, ())
    await db.fill("1")
    damage(db)

    async def delete() -> None:
        db.send(DeleteItem(db.binding.table, db.row_key("1")))

    db.in_between(delete, UpdateItem)
    assert (await db.archive.rebuild_pointers(db.model)).changed == 1
    assert db.row("1") == {}


@with_files
async def test_an_item_written_meanwhile_is_not_changed(db: Rig) -> None:
    await db.fill("1")
    sound = db.row("1")
    damage(db)

    async def repair() -> None:
        db.put_row(sound)

    db.in_between(repair, UpdateItem)
    assert (await db.archive.rebuild_pointers(db.model)).changed == 1
    assert await db.note("1") == "note 1"


@with_files
async def test_an_item_that_is_restored_meanwhile_is_not_lost(db: Rig) -> None:
    await db.fill("1")

    async def restore() -> None:
        await db.archive.restore(db.model.key(customer="ada", number="1"))

    db.in_between(restore, GetObject)
    assert await db.archive.rebuild_pointers(db.model) == ArchiveRebuild(1, 0, 0, 0, 1, 0, ())
    assert await db.note("1") == "note 1"


@with_files
async def test_a_pointer_of_a_newer_format_is_not_changed(db: Rig) -> None:
    await db.fill("1")
    row = db.row("1")
    row[POINTER] = {"M": {**row[POINTER]["M"], "f": {"N": "2"}, "k": {"S": "elsewhere"}}}
    db.put_row(row)
    with pytest.raises(CorruptArchiveError, match="has format 2"):
        await db.archive.rebuild_pointers(db.model)
    assert db.row("1") == row


@with_files
async def test_another_item_s_object_is_never_used(db: Rig) -> None:
    await db.fill("1")
    await db.files.delete(FIRST)
    with pytest.raises(DanglingPointerError):
        await db.note("1")
    await db.fill("2")
    theirs = await db.files.get("orders/ada/2.json.gz")
    await db.files.put(FIRST, bytes(theirs), metadata=await _metadata(db, "orders/ada/2.json.gz"))
    report = await db.archive.rebuild_pointers(db.model)
    assert (report.examined, report.sound, report.lost) == (2, 1, 1)
    assert FIRST in report.problems[0]


async def _metadata(db: Rig, key: str) -> dict[str, str]:
    return dict((await db.files.head(key)).headers.metadata)


@with_files
async def test_a_hot_item_with_a_leftover_object_is_not_changed(db: Rig) -> None:
    await db.fill("1")
    db.recorder.before = _refuse_deletions
    await db.archive.restore(db.model.key(customer="ada", number="1"))
    db.recorder.before = lambda request: None
    before = db.row("1")
    assert await db.archive.rebuild_pointers(db.model) == ArchiveRebuild(0, 0, 0, 0, 0, 0, ())
    assert db.row("1") == before


@pytest.mark.parametrize("write", [0, 1])
@with_files
async def test_a_death_after_any_write_leaves_an_item_that_can_be_rebuilt(db: Rig, write: int) -> None:
    await db.fill("1")
    damage(db)
    with db.die_after(write), pytest.raises(Died):
        await db.archive.rebuild_pointers(db.model)
    await db.archive.rebuild_pointers(db.model)
    assert await db.note("1") == "note 1"
    assert await db.objects() == [FIRST]
