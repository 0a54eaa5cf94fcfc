"""Concurrent writers, readers, archivers and restorers: nothing is lost, and no pointer dangles."""

from __future__ import annotations

from typing import Any

import pytest
from archive_rig import BEFORE, OLD, Rig, assign, every_write, in_memory, write_once

from holdall import col
from holdall.archive.pointer import POINTER, read_pointer
from holdall.core.expressions import Set, Update, Value, path
from holdall.core.objects import DeleteObject, GetObject, PutObject
from holdall.core.requests import DeleteItem, PutItem, TransactWrite, UpdateItem
from holdall.errors import ContentionError, TransactionFailedError

WRITING = (UpdateItem, PutItem, DeleteItem, TransactWrite)


async def check(db: Rig, expected: dict[str, Any] | None, *, orphans: int = 0) -> None:
    """Check the item, that its pointer, if any, has its object, and the number of objects without a pointer."""
    assert await db.get() == expected
    stored = await db.fetch_stored()
    named = [read_pointer(stored).key] if stored is not None and POINTER in stored else []
    objects = await db.objects()
    assert set(named) <= set(objects)
    assert len(objects) - len(named) == orphans, objects


# --- writers and the archiver ---------------------------------------------------------------------------------


@every_write
@pytest.mark.parametrize("moment", [PutObject, UpdateItem], ids=["before the object", "before the swap"])
@in_memory
async def test_a_write_during_archiving_is_not_lost(
    db: Rig, write: Any, changes: dict[str, Any] | None, moment: type[Any]
) -> None:
    await db.create()
    db.in_between(lambda: write_once(db, write), moment)
    report = await db.run()
    assert report.archived == (changes is not None), "it is read again, and archived in its new state"
    await check(db, None if changes is None else {**BEFORE, **changes})


@in_memory
async def test_an_attribute_added_before_the_swap_is_kept(db: Rig) -> None:
    await db.create(note=None)
    added = UpdateItem(db.table, db.key_of(), Update((Set(path("note"), Value({"S": "added"})),)))
    db.in_between(lambda: db.db.send(added))
    assert (await db.run()).archived == 1
    assert (await db.fetch_stored())["note"] == {"S": "added"}
    await check(db, {**BEFORE, "note": "added"})
    await db.archive.restore(db.key())
    await check(db, {**BEFORE, "note": "added"})


@in_memory
async def test_an_item_that_keeps_changing_is_skipped(db: Rig) -> None:
    await db.create()

    async def hurry() -> None:
        async with db.db.transaction() as tx:
            (await tx.get_one(db.key())).quantity += 1
        db.in_between(hurry)

    db.in_between(hurry)
    report = await db.run()
    db.recorder.before = lambda request: None
    assert (report.archived, dict(report.skipped)) == (0, {"changing": 1})
    quantity = (await db.get())["quantity"]
    assert quantity > 2
    await check(db, {**BEFORE, "quantity": quantity})


@in_memory
async def test_an_item_whose_timestamp_is_renewed_meanwhile_is_too_young(db: Rig) -> None:
    await db.create()

    async def renew() -> None:
        async with db.db.transaction() as tx:
            (await tx.get_one(db.key())).placed_at = db.clock.now().replace(microsecond=0)

    db.in_between(renew)
    report = await db.run()
    assert (report.archived, dict(report.skipped)) == (0, {"too young": 1})
    assert not await db.is_cold()
    assert await db.objects() == []


@in_memory
async def test_an_item_that_no_longer_matches_the_predicate_is_not_archived(db: Rig) -> None:
    await db.create()
    db.in_between(lambda: write_once(db, assign))
    report = await db.run(where=col(db.model.quantity) == 1)
    assert (report.archived, report.failed) == (0, 0)
    assert not await db.is_cold()
    assert await db.objects() == []


@in_memory
async def test_an_archiver_with_an_outdated_snapshot_changes_nothing(db: Rig) -> None:
    for moment in (PutObject, UpdateItem):
        await db.create()

        async def overtake() -> None:
            await write_once(db, assign)
            assert (await db.run()).archived == 1

        db.in_between(overtake, moment)
        assert (await db.run()).archived == 0
        await check(db, {**BEFORE, "quantity": 5})
        async with db.db.transaction() as tx:
            tx.delete(db.key())
        assert await db.objects() == []


# --- restoring ------------------------------------------------------------------------------------------------


@in_memory
async def test_an_item_archived_again_before_its_old_object_is_deleted_keeps_its_new_object(db: Rig) -> None:
    """Here the old object, which has other content, is left to the sweep."""
    await db.create()
    await db.run()
    db.in_between(db.run, DeleteObject)
    await db.archive.restore(db.key())
    assert await db.is_cold()
    await check(db, BEFORE)
    async with db.db.transaction() as tx:
        tx.delete(db.key())
    await db.create("2", customer="bob")
    await db.run()
    db.in_between(db.run, DeleteObject)
    async with db.db.transaction() as tx:
        (await tx.get_one(db.key("2", "bob"))).quantity = 5
    assert (await db.get("2", "bob"))["quantity"] == 5
    assert await db.is_cold("2", "bob")


@every_write
@in_memory
async def test_a_write_during_a_restore_is_not_lost(
    db: Rig, write: Any, changes: dict[str, Any] | None
) -> None:
    await db.create()
    await db.run()
    db.in_between(lambda: write_once(db, write), *WRITING)
    assert await db.archive.restore(db.key()) == 0
    await check(db, None if changes is None else {**BEFORE, **changes})


@in_memory
async def test_of_two_concurrent_restores_only_one_restores_the_item(db: Rig) -> None:
    await db.create()
    await db.run()
    db.in_between(lambda: db.archive.restore(db.key()), *WRITING)
    assert await db.archive.restore_all(db.model) == 0
    await check(db, BEFORE)


# --- readers --------------------------------------------------------------------------------------------------


@in_memory
async def test_a_reader_whose_object_was_deleted_meanwhile_reads_the_item_again(db: Rig) -> None:
    async def archive_anew() -> None:
        await write_once(db, assign)
        await db.run()

    async def delete() -> None:
        async with db.db.transaction() as tx:
            tx.delete(db.key())

    await db.create()
    await db.run()
    db.in_between(archive_anew, GetObject)
    assert await db.get() == {**BEFORE, "quantity": 5}
    db.in_between(lambda: db.archive.restore(db.key()), GetObject)
    assert await db.get() == {**BEFORE, "quantity": 5}
    await db.run()
    db.in_between(delete, GetObject)
    assert await db.db.query(db.model, customer="ada").all() == []
    await check(db, None)


# --- transactions ---------------------------------------------------------------------------------------------


@every_write
@in_memory
async def test_an_item_archived_between_the_read_and_the_commit_is_still_written(
    db: Rig, write: Any, changes: dict[str, Any] | None
) -> None:
    await db.create()
    attempts = 0

    async def body(tx: Any) -> None:
        nonlocal attempts
        attempts += 1
        await write(db, tx)

    db.in_between(db.run, *WRITING)
    await db.db.run(body)
    assert attempts == (1 if "blindly" in write.__name__ else 2)
    await check(db, None if changes is None else {**BEFORE, **changes})


@every_write
@in_memory
async def test_an_item_restored_between_the_read_and_the_commit_is_contention(
    db: Rig, write: Any, changes: dict[str, Any] | None
) -> None:
    await db.create()
    await db.run()

    db.in_between(lambda: db.archive.restore(db.key()), *WRITING)
    if "blindly" not in write.__name__:
        with pytest.raises(TransactionFailedError) as failed:
            await write_once(db, write)
        assert isinstance(failed.value.__cause__, ContentionError)
    await write_once(db, write)
    await check(db, None if changes is None else {**BEFORE, **changes})


@in_memory
async def test_a_transaction_reads_an_item_again_if_it_was_archived_meanwhile(
    db: Rig,
) -> None:
    """The transaction's locks are on attributes that the pointer lacks."""
    await db.create()
    await db.create("2", placed_at=db.clock.now())
    seen: list[int] = []

    async def body(tx: Any) -> None:
        seen.append((await tx.get_one(db.key())).quantity)
        (await tx.get_one(db.key("2"))).quantity = 10 + len(seen)

    db.in_between(db.run, *WRITING)
    await db.db.run(body)
    assert (await db.get("2"))["quantity"] == 12
    assert seen == [1, 1]
    assert await db.is_cold()
    assert (await db.get())["placed_at"] == OLD
