"""Rekey: objects move to the keys of the present template, and items can be read all the time."""

from __future__ import annotations

import pytest
from moves_rig import NEW, Died, Rig, everywhere

from holdall.archive import ArchiveRekey
from holdall.archive.pointer import POINTER
from holdall.core.requests import UpdateItem


async def read_all(db: Rig) -> list[str]:
    return [await db.note(number) for number in "12"]


NOTES = ["note 1", "note 2"]


@everywhere
async def test_objects_move_to_the_keys_of_the_present_template(db: Rig) -> None:
    await db.fill("1", "2")
    before = db.row("1")[POINTER]["M"]
    db.declare(key=NEW)
    seen: list[ArchiveRekey] = []
    assert await db.archive.rekey(db.model, dry_run=True) == ArchiveRekey(2, 2, 0, 0, 0, ())
    assert await db.keys() == ["orders/ada/1.json.gz", "orders/ada/2.json.gz"]
    assert await read_all(db) == NOTES
    assert await db.archive.rekey(db.model, progress=seen.append) == ArchiveRekey(2, 2, 0, 0, 0, ())
    assert seen[-1].moved == 2
    assert await db.keys() == ["new/ada/1.json.gz", "new/ada/2.json.gz"]
    assert await read_all(db) == NOTES
    after = db.row("1")[POINTER]["M"]
    assert (after["t"], after["h"]) == (before["t"], before["h"])
    assert await db.archive.rekey(db.model) == ArchiveRekey(2, 0, 2, 0, 0, ())


@everywhere
async def test_another_style_moves_them_too_and_never_over_another_items_object(db: Rig) -> None:
    db.declare(key_style="hashed")
    await db.fill("a:b", "a_b")
    db.declare()
    assert (await db.archive.rekey(db.model)).moved == 2
    found = await db.keys()
    assert len(found) == 2
    assert "orders/ada/a_b.json.gz" in found
    assert [await db.note(number) for number in ("a:b", "a_b")] == ["note a:b", "note a_b"]
    assert (await db.archive.rekey(db.model)).current == 2


@pytest.mark.parametrize("write", range(6))
@everywhere
async def test_a_death_after_any_write_loses_nothing_and_the_next_run_goes_on(db: Rig, write: int) -> None:
    await db.fill("1", "2")
    db.declare(key=NEW)
    with db.dying_after(write), pytest.raises(Died):
        await db.archive.rekey(db.model)
    assert await read_all(db) == NOTES
    await db.archive.rekey(db.model)
    assert await read_all(db) == NOTES
    db.clock.forward(8 * 86400)
    await db.archive.sweep(db.model, dry_run=False)
    await db.archive.sweep(db.model, dry_run=False, prefix="orders/")
    assert await db.keys() == ["new/ada/1.json.gz", "new/ada/2.json.gz"]
    assert await read_all(db) == NOTES


@everywhere
async def test_an_item_that_is_written_meanwhile_stays_as_it_was_written(db: Rig) -> None:
    await db.fill("1")
    db.declare(key=NEW)

    async def write() -> None:
        async with db.db.transaction() as tx:
            found = await tx.get_one(db.model, customer="ada", number="1")
            found.note = "changed"

    db.in_between(UpdateItem, act=write)
    assert await db.archive.rekey(db.model) == ArchiveRekey(1, 0, 0, 1, 0, ())
    assert await db.note("1") == "changed"
    assert await db.keys() == []


@everywhere
async def test_of_two_rekeys_neither_deletes_the_others_object(db: Rig) -> None:
    await db.fill("1")
    db.declare(key=NEW)

    async def overtake() -> None:
        assert (await db.archive.rekey(db.model)).moved == 1

    db.in_between(UpdateItem, act=overtake)
    assert (await db.archive.rekey(db.model)).changed == 1
    assert await db.keys() == ["new/ada/1.json.gz"]
    assert await db.note("1") == "note 1"


@everywhere
async def test_an_item_that_is_deleted_meanwhile_is_not_made_again(db: Rig) -> None:
    await db.fill("1")
    db.declare(key=NEW)

    async def delete() -> None:
        async with db.db.transaction() as tx:
            tx.delete(db.model.key(customer="ada", number="1"))

    db.in_between(UpdateItem, act=delete)
    assert (await db.archive.rekey(db.model)).changed == 1
    assert db.row("1") == {}
    assert await db.keys() == []


@everywhere
async def test_what_cannot_be_read_is_counted_and_the_rest_goes_on(db: Rig) -> None:
    await db.fill("1", "2")
    await db.files.delete("orders/ada/1.json.gz")
    db.declare(key=NEW)
    report = await db.archive.rekey(db.model)
    assert (report.moved, report.failed) == (1, 1)
    assert "orders/ada/1.json.gz is gone" in report.problems[0]
    assert await db.note("2") == "note 2"


@everywhere
async def test_a_copy_of_a_table_leaves_the_objects_to_the_original(db: Rig) -> None:
    """A table that was restored from a backup under another name points to objects of the original."""
    await db.fill("1")
    kept, row = await db.files.get("orders/ada/1.json.gz"), db.row("1")
    from holdall.archive.envelope import Envelope, open_envelope

    contents = open_envelope(bytes(kept), "it")
    other = Envelope.of("original", contents.key, contents.item)
    await db.files.put("orders/ada/1.json.gz", other.compress("an-id"))
    pointer = {**row[POINTER]["M"], "h": {"S": other.digest}}
    db.put_row({**row, POINTER: {"M": pointer}})
    db.declare(key=NEW)
    assert (await db.archive.rekey(db.model)).moved == 1
    assert await db.note("1") == "note 1"
    assert await db.keys() == ["new/ada/1.json.gz", "orders/ada/1.json.gz"]
