"""Models whose items are packed, and helpers for the tests of packs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from archive_rig import Goods, Rig

from holdall import Index
from holdall.archive import Archive
from holdall.archive.pack.pack import PACK_SUFFIX
from holdall.errors import OutcomeUnknown

__all__ = [
    "WEEK",
    "Death",
    "Parcel",
    "Shipment",
    "die_after",
    "die_before",
    "check_nothing_left",
    "lose_reply",
    "pack_items",
    "packs_of",
    "revive",
    "sweep_later",
]

WEEK = timedelta(days=7).total_seconds()


class Parcel(
    Goods,
    archive=Archive(timestamp="placed_at", after_days=30, key="parcels/{partitionKey}/{sortKey}", pack=True),
    indexes=[Index("by_product", key=["product"], sort_key=["placed_at"])],
):
    """A packed item in the one table."""


class Shipment(
    Goods,
    table="sales",
    archive=Archive(timestamp="placed_at", after_days=30, key="parcels/{partitionKey}/{sortKey}", pack=True),
    indexes=[Index("by_product", key=["product"], sort_key=["placed_at"], sparse=True)],
):
    """A packed item in its own table."""


async def pack_items(db: Rig, count: int = 5, **options: Any) -> dict[str, Any]:
    """Create orders 000, 001 and so on, archive them in one pack, and return their values."""
    db.model = Parcel if db.way.home == "one table" else Shipment
    await db.create_many(count)
    known = await db.all()
    report = await db.run(**{"segments": 1, **options})
    assert report.archived == count
    return known


async def packs_of(db: Rig) -> list[str]:
    """The keys of all packs; checks that there are no other objects."""
    found = await db.objects()
    assert all(key.startswith("parcels/packs/") and key.endswith(PACK_SUFFIX) for key in found)
    return found


async def sweep_later(db: Rig) -> Any:
    """Sweep as if it were a week later."""
    db.clock.forward(WEEK + 1)
    try:
        return await db.archive.sweep(db.model, dry_run=False)
    finally:
        db.clock.forward(-WEEK - 1)


async def check_nothing_left(db: Rig) -> None:
    """Check that no object is left once everything is restored and a week has passed."""
    await db.archive.restore_all(db.model)
    await sweep_later(db)
    assert await db.objects() == []


class Death(BaseException):
    """The process died."""


def die_before(db: Rig, step: int) -> Callable[[], bool]:
    """Let the process die right before one of its next requests; the result returns whether it did."""
    return _inject_fault(db, step, Death, "before")


def die_after(db: Rig, step: int) -> Callable[[], bool]:
    """Let the process die right after one of its next requests; the result returns whether it did."""
    return _inject_fault(db, step, Death, "after")


def lose_reply(db: Rig, step: int) -> Callable[[], bool]:
    """Let the reply to one of the next requests get lost; the result returns whether it was."""
    return _inject_fault(db, step, OutcomeUnknown, "after")


def _inject_fault(db: Rig, step: int, error: type[BaseException], when: str) -> Callable[[], bool]:
    left = step

    def strike(request: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise error("on purpose")

    def refuse(request: Any) -> None:
        if left <= 0 and error is Death:
            raise Death  # a dead process sends nothing
        if when == "before":
            strike(request)

    db.recorder.before = refuse
    if when == "after":
        db.recorder.after = strike
    return lambda: left <= 0


def revive(db: Rig) -> None:
    """Start the next process."""
    db.recorder.before = db.recorder.after = lambda request: None
