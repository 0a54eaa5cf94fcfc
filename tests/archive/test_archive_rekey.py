"""Rekey moves objects to the keys of the current template, while items stay readable."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from moves_rig import NEW, OLD, Died, Rig, everywhere, with_files

from holdall import Database, Key, Model, SortKey
from holdall.archive import Archive, ArchiveRekey
from holdall.archive.pointer import POINTER
from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.memory import MemoryService
from holdall.core.requests import PutItem, Scan, UpdateItem
from holdall.errors import OutcomeUnknown


async def read_all(db: Rig) -> list[str]:
    return [await db.note(number) for number in "12"]


NOTES = ["note 1", "note 2"]


@everywhere
async def test_objects_move_to_the_keys_of_the_current_template(db: Rig) -> None:
    await db.fill("1", "2")
    before = db.row("1")[POINTER]["M"]
    db.declare(key=NEW)
    seen: list[ArchiveRekey] = []
    assert await db.archive.rekey(db.model, dry_run=True) == ArchiveRekey(2, 2, 0, 0, 0, ())
    assert await db.objects() == ["orders/ada/1.json.gz", "orders/ada/2.json.gz"]
    assert await read_all(db) == NOTES
    assert await db.archive.rekey(db.model, progress=seen.append) == ArchiveRekey(2, 2, 0, 0, 0, ())
    assert seen[-1].moved == 2
    assert await db.objects() == ["new/ada/1.json.gz", "new/ada/2.json.gz"]
    assert await read_all(db) == NOTES
    after = db.row("1")[POINTER]["M"]
    assert (after["t"], after["h"]) == (before["t"], before["h"])
    assert await db.archive.rekey(db.model) == ArchiveRekey(2, 0, 2, 0, 0, ())


@with_files
async def test_a_new_key_style_moves_objects_and_overwrites_none(db: Rig) -> None:
    db.declare(key_style="hashed")
    await db.fill("a:b", "a_b")
    db.declare()
    assert (await db.archive.rekey(db.model)).moved == 2
    found = await db.objects()
    assert len(found) == 2
    assert "orders/ada/a_b.json.gz" in found
    assert [await db.note(number) for number in ("a:b", "a_b")] == ["note a:b", "note a_b"]
    assert (await db.archive.rekey(db.model)).current == 2


@pytest.mark.parametrize("write", range(6))
@with_files
async def test_after_a_death_at_any_write_nothing_is_lost_and_the_next_run_continues(
    db: Rig, write: int
) -> None:
    await db.fill("1", "2")
    db.declare(key=NEW)
    with db.die_after(write), pytest.raises(Died):
        await db.archive.rekey(db.model)
    assert await read_all(db) == NOTES
    await db.archive.rekey(db.model)
    assert await read_all(db) == NOTES
    db.clock.forward(8 * 86400)
    await db.archive.sweep(db.model, dry_run=False)
    await db.archive.sweep(db.model, dry_run=False, prefix="orders/")
    assert await db.objects() == ["new/ada/1.json.gz", "new/ada/2.json.gz"]
    assert await read_all(db) == NOTES


@pytest.mark.parametrize("arrives", [True, False])
@with_files
async def test_after_a_lost_reply_rekey_reads_the_item_to_learn_the_outcome(db: Rig, arrives: bool) -> None:
    await db.fill("1")
    db.declare(key=NEW)

    def lose(request: Any) -> None:
        if isinstance(request, UpdateItem):
            raise OutcomeUnknown("the reply was lost")

    setattr(db.recorder, "after" if arrives else "before", lose)
    report = await db.archive.rekey(db.model)
    db.recorder.before = db.recorder.after = lambda request: None
    assert (report.moved, report.failed) == ((1, 0) if arrives else (0, 1))
    assert await db.note("1") == "note 1"
    await db.archive.rekey(db.model)
    assert await db.note("1") == "note 1"
    assert await db.objects() == ["new/ada/1.json.gz"]


@with_files
async def test_an_item_written_meanwhile_keeps_the_write(db: Rig) -> None:
    await db.fill("1")
    db.declare(key=NEW)

    async def write() -> None:
        async with db.db.transaction() as tx:
            found = await tx.get_one(db.model, customer="ada", number="1")
            found.note = "changed"

    db.in_between(write, UpdateItem)
    assert await db.archive.rekey(db.model) == ArchiveRekey(1, 0, 0, 1, 0, ())
    assert await db.note("1") == "changed"
    assert await db.objects() == []


@everywhere
async def test_two_concurrent_rekeys_keep_the_item_s_object(db: Rig) -> None:
    await db.fill("1")
    db.declare(key=NEW)

    async def overtake() -> None:
        assert (await db.archive.rekey(db.model)).moved == 1

    db.in_between(overtake, UpdateItem)
    assert (await db.archive.rekey(db.model)).changed == 1
    assert await db.objects() == ["new/ada/1.json.gz"]
    assert await db.note("1") == "note 1"


@with_files
async def test_an_item_deleted_meanwhile_is_not_created_again(db: Rig) -> None:
    await db.fill("1")
    db.declare(key=NEW)

    async def delete() -> None:
        async with db.db.transaction() as tx:
            tx.delete(db.model.key(customer="ada", number="1"))

    db.in_between(delete, UpdateItem)
    assert (await db.archive.rekey(db.model)).changed == 1
    assert db.row("1") == {}
    assert await db.objects() == []


@with_files
async def test_an_unreadable_object_is_counted_and_the_others_move(db: Rig) -> None:
    await db.fill("1", "2")
    await db.files.delete("orders/ada/1.json.gz")
    db.declare(key=NEW)
    report = await db.archive.rekey(db.model)
    assert (report.moved, report.failed) == (1, 1)
    assert "orders/ada/1.json.gz is missing" in report.problems[0]
    assert await db.note("2") == "note 2"


def test_a_copied_table_does_not_delete_the_original_s_objects_and_can_get_its_own() -> None:
    """A backup restored under another name has pointers to the objects of the original."""

    class Order(Model, table="orders", archive=Archive(timestamp="placed_at", key=OLD)):
        customer: Key[str]
        number: SortKey[str]
        note: str
        placed_at: datetime

    backend, service = EmbeddedBackend(None), MemoryService()
    original = Database("memory:", backend=backend, files=service, manage_table=True)
    copy = Database("memory:", backend=backend, files=service, manage_table=True, table_prefix="copy-")
    with original.transaction() as tx:
        for number in "123":
            placed = datetime(2020, 1, 1, tzinfo=UTC)
            tx.create(Order, customer="ada", number=number, note=f"note {number}", placed_at=placed)
    original.archive.run(Order)
    copy.scan(Order).all()
    for row in original.send(Scan("orders")).items:
        copy.send(PutItem("copy-orders", row))

    def notes(db: Database) -> list[str]:
        return [each.note for each in db.query(Order, customer="ada")]

    expected = ["note 1", "note 2", "note 3"]
    assert notes(original) == notes(copy) == expected
    copy.archive.restore(Order.key(customer="ada", number="1"))
    with copy.transaction() as tx:
        tx.delete(Order.key(customer="ada", number="2"))
    assert notes(original) == expected
    assert copy.archive.rekey(Order).moved == 1
    original.archive.restore_all(Order)
    assert notes(original) == expected
    assert notes(copy) == ["note 1", "note 3"]
    assert len(list(copy.files.list())) == 1
