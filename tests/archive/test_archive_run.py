"""Runs: which items they archive, how many, how fast, at what cost; interrupted, resumed, dry and refused runs."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil, inf
from types import FrameType
from typing import Any

import pytest
from archive_rig import NOW, Rig, everywhere, in_memory

from holdall import Archive, AsyncDatabase, Key, Model, col
from holdall.archive.envelope import compress
from holdall.archive.item import archive_item, find_place
from holdall.archive.pointer import POINTER
from holdall.core.frozen import replace
from holdall.core.measure import item_size
from holdall.core.objects import GetObject, HeadObject, PutObject
from holdall.core.port import run
from holdall.core.requests import Scan, UpdateItem
from holdall.errors import ArchiveLossError, InvalidOptionsError, InvalidRequestError, ServiceUnavailableError

BIG = "x" * 300_000
"""Three items with such a note fill a page of a scan."""


# --- which items ----------------------------------------------------------------------------------------------


class Event(Model, archive=Archive(timestamp="at", after_days=10)):
    name: Key[str]
    at: Any
    text: str = "x"


class Tick(Model, archive=Archive(timestamp="at", after_days=10, unit="s")):
    name: Key[str]
    at: Any
    text: str = "x"


class Blink(Model, archive=Archive(timestamp="at", after_days=10, unit="ms")):
    name: Key[str]
    at: Any
    text: str = "x"


JUST, NOT_YET = NOW - timedelta(days=10, minutes=1), NOW - timedelta(days=9, hours=23)
AGES: list[tuple[type[Model], Any, str]] = [
    (Event, JUST.isoformat(), "archived"),
    (Event, JUST.replace(tzinfo=None).isoformat(), "archived"),
    (Event, JUST.isoformat().replace("+00:00", "Z"), "archived"),
    (Event, "2020-02-01", "archived"),
    (Event, NOT_YET.isoformat(), "too young"),
    (Event, "soon", "no timestamp"),
    (Event, "", "no timestamp"),
    (Event, None, "no timestamp"),
    (Event, [1], "no timestamp"),
    (Event, int(JUST.timestamp()), "no timestamp"),
    (Tick, int(JUST.timestamp()), "archived"),
    (Tick, Decimal(str(JUST.timestamp())), "archived"),
    (Tick, int(NOT_YET.timestamp()), "too young"),
    (Tick, int(JUST.timestamp() * 1000), "no timestamp"),
    (Tick, True, "no timestamp"),
    (Blink, int(JUST.timestamp() * 1000), "archived"),
    (Blink, int(NOT_YET.timestamp() * 1000), "too young"),
]


@pytest.mark.parametrize(
    ("model", "at", "expected"), AGES, ids=[f"{place} {each[0].__name__}" for place, each in enumerate(AGES)]
)
@in_memory
async def test_the_timestamp_determines_the_age_of_an_item(
    db: Rig, model: Any, at: Any, expected: str
) -> None:
    async with db.db.transaction() as tx:
        tx.create(model, name="a", at=at)
    report = await db.archive.run(model, segments=1)
    assert {"archived": report.archived, **report.skipped} == (
        {"archived": 1} if expected == "archived" else {"archived": 0, expected: 1}
    )
    assert (await db.db.get_one(model, "a")).text == "x"


@in_memory
async def test_an_item_without_a_timestamp_is_skipped(db: Rig) -> None:
    await db.create()
    stored = dict(await db.fetch_stored())
    del stored["placed_at"]
    await db.put_raw(stored)
    report = await db.run()
    assert (report.archived, dict(report.skipped)) == (0, {"no timestamp": 1})


class Session(Model, ttl="ends", archive=Archive(key="sessions/{partitionKey}")):
    name: Key[str]
    text: str = "x"
    ends: datetime | None = None


@in_memory
async def test_expired_items_are_not_archived_and_archived_items_expire(db: Rig) -> None:
    async with db.db.transaction() as tx:
        tx.create(Session, name="a", ends=db.clock.now() + timedelta(days=1))
        tx.create(Session, name="b", ends=db.clock.now() + timedelta(days=3))
    db.clock.forward(2 * 86400)
    where = col(Session.text) == "x"
    report = await db.archive.run(Session, where=where)
    assert (report.archived, dict(report.skipped)) == (1, {"expired": 1})
    assert (await db.db.get_one(Session, "b")).text == "x"
    db.clock.forward(2 * 86400)
    assert await db.db.get(Session, "b") is None
    assert [each async for each in db.db.scan(Session, where=where)] == []
    async with db.db.transaction() as tx:
        tx.create(Session, name="b", text="anew")
    assert (await db.db.get_one(Session, "b")).text == "anew"


@in_memory
async def test_a_blind_put_replaces_an_expired_archived_item(db: Rig) -> None:
    async with db.db.transaction() as tx:
        tx.create(Session, name="a", ends=db.clock.now() + timedelta(days=1))
    await db.archive.run(Session, where=col(Session.text) == "x")
    db.clock.forward(2 * 86400)
    async with db.db.transaction() as tx:
        tx.create_or_put(Session, {"name": "a", "text": "expected if it is there"}, {"text": "anew"})
    assert (await db.db.get_one(Session, "a")).text == "anew"


@in_memory
async def test_a_pointer_is_never_archived(db: Rig) -> None:
    await db.create()
    await db.run()
    pointer = await db.fetch_stored()
    assert (await db.run()).archived == 0
    context = db.database._context
    place = find_place(context, db.model)
    found = run(place) if db.way.colour == "blocking" else await place
    again = archive_item(context, found, pointer, NOW)
    assert (run(again) if db.way.colour == "blocking" else await again) is None
    assert await db.fetch_stored() == pointer
    assert len(await db.objects()) == 1


@in_memory
async def test_an_item_with_too_many_attributes_for_a_condition_is_skipped(
    db: Rig,
) -> None:
    await db.create()
    await db.put_raw(
        {**await db.fetch_stored(), **{f"attribute {number}": {"N": "1"} for number in range(160)}}
    )
    dry = await db.run(dry_run=True)
    db.recorder.forget()
    real = await db.run()
    assert (real.archived, dict(real.skipped)) == (0, {"too many attributes": 1})
    assert dry.skipped == real.skipped
    assert db.recorder.list_sent(PutObject) == []


@everywhere
async def test_an_item_with_a_hundred_attributes_is_archived(db: Rig) -> None:
    await db.create()
    await db.put_raw(
        {**await db.fetch_stored(), **{f"attribute {number}": {"N": str(number)} for number in range(100)}}
    )
    before = await db.fetch_stored()
    assert (await db.run()).archived == 1
    await db.archive.restore(db.key())
    after = await db.fetch_stored()
    assert {name: after.get(name) for name in before if name != "_w"} == {
        name: value for name, value in before.items() if name != "_w"
    }


class Heavy(Model, archive=Archive(min_item_bytes=1000, key="heavy/{partitionKey}", keep=["kept"])):
    name: Key[str]
    text: str
    kept: str = "here"


@in_memory
async def test_small_items_and_kept_fields_stay_in_the_table(db: Rig) -> None:
    async with db.db.transaction() as tx:
        tx.create(Heavy, name="small", text="x")
        tx.create(Heavy, name="large", text="x" * 1000)
    report = await db.archive.run(Heavy, where=col(Heavy.kept) == "here")
    assert (report.archived, dict(report.skipped)) == (1, {"too small": 1})
    assert await db.objects() == ["heavy/large.json.gz"]
    cold = await db.db.query(Heavy, name="large").all()
    assert cold[0].text == "x" * 1000
    with pytest.raises(InvalidOptionsError, match="does not declare a timestamp"):
        await db.archive.run(Heavy)


# --- how many, how fast ---------------------------------------------------------------------------------------


@in_memory
async def test_a_run_stops_at_max_items_and_the_next_run_continues(db: Rig) -> None:
    await db.create_many(11)
    before = await db.all()
    counts = [(await db.run(max_items=4)).archived for _ in range(4)]
    assert counts == [4, 4, 3, 0]
    assert len(await db.objects()) == 11
    assert await db.all() == before
    await db.create("later")
    assert (await db.run()).archived == 1, "a finished run is not resumed"


@in_memory
async def test_an_interrupted_run_is_resumed_where_it_stopped(db: Rig) -> None:
    await db.create_many(9, note=BIG)
    swaps = 0

    def stop(request: Any) -> None:
        nonlocal swaps
        swaps += isinstance(request, UpdateItem)
        if swaps == 5:
            raise ServiceUnavailableError("stopped on purpose")

    db.recorder.after = stop
    with pytest.raises(ServiceUnavailableError):
        await db.run(segments=1)
    db.recorder.after = lambda request: None
    db.recorder.forget()
    report = await db.run(segments=1)
    assert report.archived == 9 - 5
    (first, *_) = db.recorder.list_sent(Scan)
    assert first.start_after is not None
    assert {each["note"] for each in (await db.all()).values()} == {BIG}
    db.recorder.forget()
    await db.run(segments=1)
    assert db.recorder.list_sent(Scan)[0].start_after is None


@in_memory
async def test_a_run_with_another_predicate_or_a_restart_begins_at_the_start(db: Rig) -> None:
    await db.create_many(9, note=BIG)

    async def scan_from(**options: Any) -> Any:
        db.recorder.forget()
        await db.run(segments=1, max_items=4, dry_run=False, **options)
        return db.recorder.list_sent(Scan)[0].start_after

    assert await scan_from() is None
    assert await scan_from(where=col(db.model.quantity) > 100) is None
    await db.archive.restore_all(db.model)
    assert await scan_from() is None
    assert await scan_from() is not None
    assert await scan_from(restart=True) is None


@pytest.mark.parametrize("segments", [1, 4])
@in_memory
async def test_a_rate_limits_the_capacity_used_without_needless_waits(db: Rig, segments: int) -> None:
    await db.create_many(24, note="x" * 3000)
    await db.run(dry_run=True)  # reads the descriptions of the tables
    db.recorder.forget()
    began = db.clock.now()
    await db.run(rate=10, segments=segments)
    seconds = (db.clock.now() - began).total_seconds()
    used = sum(
        reply.capacity for request, reply in db.recorder.exchanges if isinstance(request, Scan | UpdateItem)
    )
    assert used > 24 * 3
    assert used / 10 <= seconds + 0.1
    assert seconds <= used / 10 * (1.1 if segments == 1 else 2.5)


@in_memory
async def test_an_item_that_fails_does_not_stop_the_others(db: Rig) -> None:
    await db.create_many(5)

    def refuse(request: Any) -> None:
        if isinstance(request, PutObject) and request.key.endswith("002.json.gz"):
            raise InvalidRequestError("refused on purpose")

    db.recorder.before = refuse
    report = await db.run()
    db.recorder.before = lambda request: None
    assert (report.archived, report.failed) == (4, 1)
    (problem,) = report.problems
    assert "002" in problem
    assert "refused on purpose" in problem
    assert not await db.is_cold("002")
    assert (await db.run()).archived == 1


@in_memory
async def test_an_unavailable_service_ends_the_run(db: Rig) -> None:
    await db.create_many(5)

    def fail(request: Any) -> None:
        if isinstance(request, PutObject):
            raise ServiceUnavailableError("down on purpose")

    db.recorder.before = fail
    with pytest.raises(ServiceUnavailableError):
        await db.run()
    db.recorder.before = lambda request: None
    assert (await db.run()).archived == 5


@in_memory
async def test_progress_only_grows_and_ends_with_the_report(db: Rig) -> None:
    await db.create_many(9, note=BIG)
    seen: list[Any] = []
    report = await db.run(segments=1, progress=seen.append)
    counts = [each.archived for each in seen]
    assert counts == sorted(counts)
    assert len(counts) >= 3
    assert seen[-1] == report


@in_memory
async def test_a_run_sends_two_requests_for_an_item_and_two_for_a_page(db: Rig) -> None:
    await db.run()  # reads the descriptions of the tables
    await db.create_many(20)
    db.recorder.forget()
    report = await db.run(segments=2)
    kinds = [type(each) for each in db.recorder.requests]
    assert report.archived == 20
    assert kinds.count(PutObject) == kinds.count(UpdateItem) == 20
    assert not {GetObject, HeadObject} & set(kinds)
    pages = kinds.count(Scan)
    others = len(kinds) - 2 * 20 - pages
    assert others <= 1 + 2 + pages + 3, (
        "the table's description, and the run's position read, written and deleted"
    )


@pytest.mark.parametrize(
    "options",
    [{"segments": 0}, {"segments": 1.5}, {"rate": 0}, {"rate": "1"}, {"max_items": 0}, {"max_items": True}],
    ids=str,
)
@in_memory
async def test_invalid_options_of_a_run_are_refused(db: Rig, options: Any) -> None:
    (name,) = options
    with pytest.raises(InvalidOptionsError, match=name):
        await db.run(**options)


# --- what it costs --------------------------------------------------------------------------------------------


@everywhere
async def test_a_dry_run_predicts_the_run_and_its_figures_follow_the_formulas(db: Rig) -> None:
    """All items but the first are in the index by product, which holds whole items."""
    await db.db.query(db.model, index="by_product", product="tea").all()  # creates the index
    for number, size in enumerate((10, 900, 5000, 40_000)):
        await db.create(str(number), note="note " * (size // 5), product="tea" if number else None)
    await db.create("young", placed_at=NOW)
    items = [await db.fetch_stored(str(number)) for number in range(4)]
    dry = await db.run(dry_run=True)
    assert await db.objects() == []
    real = await db.run()
    assert replace(dry, scanned=real.scanned) == real, "the run's own records are in the one table, too"
    pages = await db.list_files()
    objects = {each.key: each.size for each in pages}
    prices, once, monthly, classes = real.prices, 0.0, 0.0, [0] * 6
    for number, item in enumerate(items):
        copies = 1 if number else 0
        size, compressed = item_size(item), objects[f"orders/ada/{number}.json.gz"]
        left = {
            name: value for name, value in (await db.fetch_stored(str(number))).items() if name != POINTER
        }
        pointer = item_size(left) + 250
        cost = prices.object_put + prices.table_write * ceil(size / 1024) * (1 + copies)
        cost += 0.5 * prices.table_read * ceil(size / 4096)
        saving = (size - pointer) * (1 + copies) * prices.table_storage / 1e9
        saving -= compressed * prices.object_storage / 1e9
        once, monthly = once + cost, monthly + saving
        months = cost / saving if saving > 0 else inf
        classes[[months <= bound for bound in (3, 6, 12, 24, 36, inf)].index(True)] += 1
    assert real.scanned >= 5
    assert real.item_bytes == sum(map(item_size, items))
    assert real.object_bytes == sum(objects.values())
    assert real.estimate.once == pytest.approx(once)
    assert real.estimate.monthly == pytest.approx(monthly)
    assert real.paybacks == tuple(classes)
    assert real.losing == classes[-1]


@in_memory
async def test_on_dynamodb_a_run_that_loses_money_is_refused_unless_it_is_forced(db: Rig) -> None:
    await db.create_many(3)
    assert (await db.run(force=False, dry_run=True)).archived == 3
    settings = replace(db.database._context.settings, scheme="dynamodb")
    db.database._context = replace(db.database._context, settings=settings)
    with pytest.raises(ArchiveLossError, match="3 items") as refused:
        await db.archive.run(db.model)
    assert "min_item_bytes" in str(refused.value)
    assert await db.objects() == []
    await db.create("large", note="x" * 100_000)
    assert (await db.archive.run(db.model, keep_months=6)).archived == 4, "together, the items are worth it"
    await db.archive.restore_all(db.model)
    with pytest.raises(ArchiveLossError, match="months"):
        await db.archive.run(db.model, keep_months=2)
    assert (await db.archive.run(db.model, force=True, keep_months=2)).archived == 4


@in_memory
async def test_an_embedded_run_only_reports_items_that_lose_money(db: Rig) -> None:
    await db.create()
    report = await db.archive.run(db.model)
    assert (report.archived, report.losing) == (1, 1)


@pytest.mark.parametrize("pack", [False, True], ids=["one by one", "in packs"])
def test_large_items_are_not_compressed_by_the_event_loops_thread(pack: bool) -> None:
    class Report(Model, archive=Archive(pack=pack)):
        id: Key[str]
        text: str

    compressed_here = False

    def note_compression(frame: FrameType, event: str, argument: object) -> None:
        nonlocal compressed_here
        compressed_here |= event == "call" and frame.f_code is compress.__code__

    async def archive() -> int:
        async with AsyncDatabase("memory:", files="memory:") as db:
            await db.create(Report, id="a", text="long " * 40_000)
            sys.setprofile(note_compression)  # for this thread only
            try:
                return (await db.archive.run(Report, where=col(Report.id) == "a", force=True)).archived
            finally:
                sys.setprofile(None)

    assert asyncio.run(archive()) == 1
    assert not compressed_here
