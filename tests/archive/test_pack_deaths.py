"""A process dies, or a reply is lost, at any request of a pack's life: all items stay, and no byte is left over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from archive_rig import Rig, in_memory
from pack_rig import (
    Death,
    Parcel,
    Shipment,
    die_after,
    die_before,
    leave_nothing,
    lose_reply,
    pack_items,
    revive,
    sweep_later,
)
from rig.torture import TORTURE

from holdall.errors import OutcomeUnknown

AT_ONCE = timedelta(0)


async def run_packs(db: Rig) -> None:
    await db.run(segments=1)


async def compact(db: Rig) -> None:
    await db.archive.compact(db.model, older_than=AT_ONCE, live_share=1)


async def prepare_run(db: Rig) -> None:
    db.model = Parcel if db.way.home == "one table" else Shipment
    await db.create_many(4)


async def prepare_compaction(db: Rig) -> None:
    await pack_items(db, 4)
    async with db.db.transaction() as tx:
        tx.delete(db.key("000"))


async def prepare_sweep(db: Rig) -> None:
    await prepare_compaction(db)
    await compact(db)


@in_memory
@pytest.mark.parametrize(
    ("prepare", "act"),
    [(prepare_run, run_packs), (prepare_compaction, compact), (prepare_sweep, sweep_later)],
    ids=["run", "compaction", "sweep"],
)
@pytest.mark.parametrize("harm", [die_before, die_after, lose_reply] if TORTURE else [die_after, lose_reply])
async def test_items_are_the_same_after_a_death_or_a_fault_and_a_rerun(
    db: Rig,
    prepare: Callable[[Rig], Awaitable[Any]],
    act: Callable[[Rig], Awaitable[Any]],
    harm: Callable[[Rig, int], Callable[[], bool]],
) -> None:
    step, harmed = 0, True
    while harmed:
        step += 1
        await prepare(db)
        known = await db.all()
        happened = harm(db, step)
        try:
            await act(db)
        except (Death, OutcomeUnknown):
            assert happened()
        finally:
            harmed = happened()
            revive(db)
        assert await db.all() == known
        await act(db)
        assert await db.all() == known
        assert [number for number in known if not await db.is_cold(number)] == []
        await leave_nothing(db)
        assert await db.all() == known
        async with db.db.transaction() as tx:
            for number in known:
                tx.delete(db.key(number))
    assert step > 7
