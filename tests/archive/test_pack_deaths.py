"""A process dies, or a reply is lost, at any request on a pack: all items stay intact, and no bytes are left over."""

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
    check_nothing_left,
    die_after,
    die_before,
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
@pytest.mark.parametrize(
    "inject", [die_before, die_after, lose_reply] if TORTURE else [die_after, lose_reply]
)
async def test_items_are_unchanged_after_a_death_or_fault_and_a_second_run(
    db: Rig,
    prepare: Callable[[Rig], Awaitable[Any]],
    act: Callable[[Rig], Awaitable[Any]],
    inject: Callable[[Rig, int], Callable[[], bool]],
) -> None:
    step, struck = 0, True
    while struck:
        step += 1
        await prepare(db)
        known = await db.all()
        happened = inject(db, step)
        try:
            await act(db)
        except (Death, OutcomeUnknown):
            assert happened()
        finally:
            struck = happened()
            revive(db)
        assert await db.all() == known
        await act(db)
        assert await db.all() == known
        assert [number for number in known if not await db.is_cold(number)] == []
        await check_nothing_left(db)
        assert await db.all() == known
        async with db.db.transaction() as tx:
            for number in known:
                tx.delete(db.key(number))
    assert step > 7
