"""Scans: they find every item of a model by reading its whole table, page by page, in parallel segments."""

from __future__ import annotations

import asyncio
import logging
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given as for_any
from hypothesis import strategies as st
from rig.behaviour import Db, everywhere, in_memory, raw_key
from rig.behaviour_models import Mark, arrange, expect_contention, meanwhile
from rig.colour import AsyncView
from rig.torture import TORTURE

from holdall import AsyncDatabase, AsyncTransaction, Database, Key, Model, SortKey, col, field
from holdall.core import BatchWrite, Exists, GetItem, NotExists, PutItem, Scan, encode_item
from holdall.core.context import Context
from holdall.core.expressions import Condition, Path
from holdall.core.values import Item
from holdall.errors import (
    FrozenItemError,
    InvalidFieldError,
    InvalidOptionsError,
    TransactionClosedError,
)
from holdall.models import Clause
from holdall.transactions import AsyncScanRows, ScanProgress

ROWS, LENGTH = (100_000, 1_000) if TORTURE else (4_000, 5_000)


class Plant(Model):
    id: Key[int]
    name: str = "fern"
    height: int = 0
    note: str | None = None


class Tree(Plant):
    rings: int = 1


class Stone(Model):
    """Another model in the same table."""

    id: Key[int]
    serial: str = field(unique=True)


class OwnPlant(Model, table="Plant"):
    id: Key[int]
    kind: SortKey[str] = field(default="plant")
    name: str = "fern"
    height: int = 0
    note: str | None = None


class OwnTree(OwnPlant):
    kind = field(default="tree")
    rings: int = 1


class Leaf(Model):
    """A model whose items are so large that a few of them fill several pages."""

    id: Key[int]
    text: str


class OwnLeaf(Model, table="Leaf"):
    id: Key[int]
    text: str = ""


Kinds = tuple[type[Any], type[Any]]
both_layouts = pytest.mark.parametrize(
    "kinds", [(Plant, Tree), (OwnPlant, OwnTree)], ids=["one table", "own table"]
)


# --- helpers for both colours -----------------------------------------------------------------------------


def scan(source: Any, model: type[Any], **options: Any) -> Any:
    """Scan with a database or transaction of either colour."""
    rows = source.scan(model, **options)
    return rows if isinstance(rows, AsyncScanRows | AsyncView) else AsyncView(rows)


async def list_ids(source: Any, model: type[Any], **options: Any) -> list[int]:
    return sorted(row.id for row in await scan(source, model, **options).all())


def encode_stored(item: Model) -> dict[str, Any]:
    """Return a new item as it would be stored."""
    schema, values = item._schema, item.to_dict()
    if schema.table is None:
        values["_type"] = schema.name
    else:
        values = {name: value for name, value in values.items() if name not in item.key.components}
    present = {name: value for name, value in values.items() if value is not None}
    return {**encode_item(present), **raw_key(item.key)}


async def fill(db: Db, *items: Model) -> None:
    """Store many items, and forget the requests so far."""
    await db.get(items[0].key)  # the first use creates the table
    table = db.table_of(type(items[0]))
    for at in range(0, len(items), 25):
        await db.send(BatchWrite(tuple(PutItem(table, encode_stored(item)) for item in items[at : at + 25])))
    db.forget()


def list_scans(db: Db) -> list[Scan]:
    return [request for request in db.list_sent() if isinstance(request, Scan)]


def make_leaves(kind: type[Any], count: int) -> list[Model]:
    """Return items of a tenth of a page each."""
    return [kind(id=number, text="x" * 104_858) for number in range(count)]


# --- results ----------------------------------------------------------------------------------------------


@everywhere
@both_layouts
@pytest.mark.parametrize("segments", [1, 2, 7, 40])
async def test_every_item_of_the_model_is_found_once(db: Db, kinds: Kinds, segments: int) -> None:
    plant, tree = kinds
    await fill(
        db, *((tree if number % 3 else plant)(id=number, name=f"no. {number}") for number in range(60))
    )
    await arrange(db, Stone(id=1, serial="a"), Mark(id="a"))
    rows = await scan(db, plant, segments=segments).all()
    assert sorted((row.id, row.name, type(row)) for row in rows) == [
        (number, f"no. {number}", tree if number % 3 else plant) for number in range(60)
    ]
    assert {(request.segment, request.segments) for request in list_scans(db)} == {
        (segment, segments) for segment in range(segments)
    }


@everywhere
@both_layouts
async def test_a_scan_of_a_derived_model_finds_only_its_own_items(db: Db, kinds: Kinds) -> None:
    plant, tree = kinds
    await arrange(db, plant(id=1), tree(id=2, rings=5), tree(id=3), plant(id=4))
    rows = sorted(await scan(db, tree).all(), key=lambda row: row.id)
    assert [(type(row), row.id, row.rings) for row in rows] == [(tree, 2, 5), (tree, 3, 1)]
    assert await scan(db, tree).count() == 2
    assert await scan(db, plant).count() == 4


@everywhere
@both_layouts
async def test_an_empty_table_has_no_rows(db: Db, kinds: Kinds) -> None:
    rows = scan(db, kinds[0])
    assert await rows.all() == []
    assert await rows.first() is None
    assert await rows.count() == 0
    assert not await rows.exists()


@everywhere
async def test_guards_and_items_of_other_models_are_not_found(db: Db) -> None:
    await arrange(db, Stone(id=1, serial="a"), Plant(id=1), Mark(id="a"))
    assert [type(row) for row in await scan(db, Stone).all()] == [Stone]
    assert await scan(db, Plant).count() == 1


@everywhere
@both_layouts
async def test_a_condition_filters_the_rows(db: Db, kinds: Kinds) -> None:
    plant, tree = kinds
    await arrange(db, *(plant(id=number, height=number) for number in range(10)), tree(id=99, height=7))
    where = (col(plant.height) > 5) & (col(plant.height) != 8)
    assert await list_ids(db, plant, where=where) == [6, 7, 9, 99]
    assert await list_ids(db, plant, where=col(tree.rings).exists()) == [99]
    assert await scan(db, plant, where=col(plant.height) < 3).count() == 3
    assert not await scan(db, plant, where=col(plant.note).exists()).exists()


@everywhere
async def test_in_the_shared_table_a_condition_can_use_the_key(db: Db) -> None:
    await arrange(db, *(Plant(id=number) for number in range(10)))
    assert await list_ids(db, Plant, where=Plant.id >= 7) == [7, 8, 9]


@everywhere
@both_layouts
@pytest.mark.parametrize("segments", [1, 4])
async def test_every_kind_of_read_respects_the_limit(db: Db, kinds: Kinds, segments: int) -> None:
    plant, _ = kinds
    await fill(db, *(plant(id=number, height=number) for number in range(30)))
    for limit in (1, 7, 30, 2**40):
        rows = scan(db, plant, segments=segments, limit=limit)
        assert len({row.id for row in await rows.all()}) == min(limit, 30)
        assert len([row async for row in rows]) == min(limit, 30)
        assert await rows.count() == min(limit, 30)
        assert await rows.exists()
        tall = scan(db, plant, segments=segments, limit=limit, where=col(plant.height) >= 20)
        assert {row.height >= 20 for row in await tall.all()} == {True}
        assert await tall.count() == min(limit, 10)


@everywhere
@both_layouts
async def test_only_the_requested_fields_are_fetched(db: Db, kinds: Kinds) -> None:
    plant, _ = kinds
    await arrange(db, plant(id=1, height=3, note="dry"))
    row = await scan(db, plant, only=[plant.height]).first()
    assert (row.id, row.height) == (1, 3)
    with pytest.raises(InvalidFieldError, match="was not fetched"):
        _ = row.note
    with pytest.raises(FrozenItemError):
        row.height = 4
    assert all(request.projection for request in list_scans(db))
    assert (await scan(db, plant).first()).note == "dry"


@everywhere
async def test_first_returns_one_row_and_exists_and_count_fetch_no_items(db: Db) -> None:
    await arrange(db, Plant(id=1), Plant(id=2))
    rows = scan(db, Plant)
    assert (await rows.first()).id in (1, 2)
    db.forget()
    assert await rows.exists()
    assert await rows.count() == 2
    assert [request.count_only for request in list_scans(db)] == [True] * len(list_scans(db))


# --- expiry -----------------------------------------------------------------------------------------------


@everywhere
async def test_expired_rows_are_not_found(db: Db) -> None:
    class Bloom(Model, ttl="until"):
        id: Key[int]
        until: int | None = None

    class OwnBloom(Model, table="Bloom", ttl="until"):
        id: Key[int]
        until: int | None = None

    for bloom in (Bloom, OwnBloom):
        late, early = db.clock.epoch + 100, db.clock.epoch + 50
        await arrange(db, bloom(id=1, until=early), bloom(id=2, until=late), bloom(id=3))
        assert await list_ids(db, bloom) == [1, 2, 3]
        db.clock.forward(75)
        assert await list_ids(db, bloom) == [2, 3]
        assert await scan(db, bloom).count() == 2
        assert await list_ids(db, bloom, only=[]) == [2, 3]
        async with db.transaction() as tx:
            assert await list_ids(tx, bloom) == [2, 3]


# --- pages ------------------------------------------------------------------------------------------------


@everywhere
async def test_one_segment_is_read_page_by_page(db: Db) -> None:
    await fill(db, *make_leaves(Leaf, 25))
    seen, scans_so_far = [], []
    async for row in scan(db, Leaf, segments=1):
        seen.append(row.id)
        scans_so_far.append(len(list_scans(db)))
    assert sorted(seen) == list(range(25))
    assert scans_so_far[0] == 1
    assert scans_so_far[-1] == 3
    assert scans_so_far == sorted(scans_so_far)


@everywhere
async def test_segments_are_read_in_rounds_of_a_page_each(db: Db) -> None:
    await fill(db, *make_leaves(Leaf, 40))
    rows = scan(db, Leaf, segments=2)
    async with aclosing(aiter(rows)) as reading:
        await anext(reading)
        assert sorted(request.segment for request in list_scans(db)) == [0, 1]
        assert all(request.start_after is None for request in list_scans(db))
    assert await list_ids(db, Leaf, segments=2) == list(range(40))
    assert any(request.start_after is not None for request in list_scans(db))


@in_memory
async def test_many_segments_are_started_a_few_at_a_time(db: Db) -> None:
    await fill(db, *(Plant(id=number) for number in range(50)))
    counted: list[int] = []
    rows = scan(db, Plant, segments=1000, progress=lambda progress: counted.append(len(list_scans(db))))
    assert await rows.count() == 50
    assert counted[0] == 32
    assert counted[-1] == 1000


@everywhere
@pytest.mark.parametrize("segments", [1, 4])
async def test_without_a_filter_only_as_many_rows_are_read_as_requested(db: Db, segments: int) -> None:
    await fill(db, *(OwnLeaf(id=number) for number in range(50)))
    progress: list[ScanProgress] = []
    rows = scan(db, OwnLeaf, segments=segments, limit=6, progress=progress.append)
    assert len(await rows.all()) == 6
    assert progress[-1].scanned == 6
    assert await rows.count() == 6
    assert progress[-1].scanned == 6
    assert await rows.first() is not None
    assert progress[-1].scanned == 1


@everywhere
async def test_pages_grow_until_a_filtered_scan_reaches_its_limit(db: Db) -> None:
    await fill(db, *(Plant(id=number, height=int(number == 599)) for number in range(600)))
    for segments in (1, 4):
        db.forget()
        assert [row.id for row in await scan(db, Plant, segments=segments, limit=1).all()] != []
        assert len(list_scans(db)) == segments
        rows = scan(db, Plant, segments=segments, limit=1, where=col(Plant.height) == 1)
        assert [row.id for row in await rows.all()] == [599]
        limits = [request.limit for request in list_scans(db)]
        assert max(limit for limit in limits if limit) > min(limit for limit in limits if limit)


@everywhere
async def test_a_scan_is_eventually_consistent_by_default(db: Db) -> None:
    await arrange(db, Plant(id=1))
    assert await list_ids(db, Plant) == [1]
    assert not any(request.consistent for request in list_scans(db))
    db.forget()
    assert await list_ids(db, Plant, consistent=True) == [1]
    assert all(request.consistent for request in list_scans(db))


# --- progress ---------------------------------------------------------------------------------------------


@everywhere
async def test_progress_is_reported_after_each_page(db: Db) -> None:
    await fill(db, *make_leaves(Leaf, 25))
    reports: list[ScanProgress] = []
    rows = scan(db, Leaf, segments=1, where=Leaf.id < 20, progress=reports.append)
    assert len(await rows.all()) == 20
    assert len(reports) == len(list_scans(db)) == 3
    assert reports == sorted(reports)
    assert reports[-1] == ScanProgress(scanned=25, found=20, segments_done=1)
    reports.clear()
    assert await scan(db, Leaf, segments=3, progress=reports.append).count() == 25
    assert reports[-1] == ScanProgress(scanned=25, found=25, segments_done=3)


@in_memory
async def test_a_failing_progress_function_ends_the_scan(db: Db) -> None:
    await fill(db, *make_leaves(Leaf, 25))

    def stop(progress: ScanProgress) -> None:
        if progress.found > 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await scan(db, Leaf, segments=1, progress=stop).all()
    assert len(list_scans(db)) == 2


def test_progress_can_be_async_in_an_async_database() -> None:
    reports: list[int] = []

    async def record_progress(progress: ScanProgress) -> None:
        await asyncio.sleep(0)
        reports.append(progress.found)

    async def run() -> None:
        async with AsyncDatabase("memory:") as db:
            async with db.transaction() as tx:
                tx.create(Plant, id=1)
            assert await db.scan(Plant, segments=1, progress=record_progress).count() == 1

    asyncio.run(run())
    assert reports == [1]


# --- the log ----------------------------------------------------------------------------------------------


def list_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "holdall"]


@everywhere
async def test_a_scan_of_a_shared_table_logs_once_how_much_it_read(
    db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    await arrange(db, Plant(id=1, name="secret"), Plant(id=2), Mark(id="a"))
    rows = scan(db, Plant, segments=3)
    for read in (rows.all, rows.count):
        caplog.clear()
        await read()
        (message,) = list_warnings(caplog)
        assert message.startswith(f"a scan for Plant read 3 items of table {db.table_of(Plant)}, ")
        assert "to find 2" in message
        assert "secret" not in message
    assert {record.levelno for record in caplog.records if record.name == "holdall"} == {logging.WARNING}


@in_memory
async def test_a_scan_that_ends_early_is_logged_too(db: Db, caplog: pytest.LogCaptureFixture) -> None:
    await fill(db, *make_leaves(Leaf, 25))
    caplog.clear()
    async with aclosing(aiter(scan(db, Leaf, segments=1))) as reading:
        await anext(reading)
        assert list_warnings(caplog) == []
    (message,) = list_warnings(caplog)
    assert "read 10 items" in message


@in_memory
async def test_a_scan_of_a_models_own_table_is_not_logged(db: Db, caplog: pytest.LogCaptureFixture) -> None:
    await arrange(db, OwnPlant(id=1))
    assert await list_ids(db, OwnPlant) == [1]
    assert list_warnings(caplog) == []


# --- transactions -----------------------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_rows_of_a_transaction_can_be_changed_and_deleted(db: Db, kinds: Kinds) -> None:
    plant, _ = kinds
    await arrange(db, *(plant(id=number) for number in range(4)))
    async with db.transaction() as tx:
        async for row in scan(tx, plant):
            if row.id == 3:
                tx.delete(row)
            else:
                row.height = row.id + 1
    rows = await scan(db, plant).all()
    assert sorted((row.id, row.height) for row in rows) == [(0, 1), (1, 2), (2, 3)]


@everywhere
async def test_a_row_is_locked_once_a_field_is_read(db: Db) -> None:
    await arrange(db, Plant(id=1), Plant(id=2))
    async with db.transaction() as tx:
        rows = await scan(tx, Plant).all()
        await meanwhile(db, Plant.key(1), height=5)
        tx.create(Mark, id="no field was read")
        del rows
    with expect_contention():
        async with db.transaction() as tx:
            rows = await scan(tx, Plant).all()
            assert sorted(row.height for row in rows) == [0, 5]
            await meanwhile(db, Plant.key(1), height=6)
            tx.create(Mark, id="a field was read")


@everywhere
async def test_a_scan_returns_the_instances_that_the_transaction_has(db: Db) -> None:
    await arrange(db, Plant(id=1), Plant(id=2), Plant(id=3))
    async with db.transaction() as tx:
        first = await tx.get_one(Plant, 1)
        first.height = 9
        tx.delete(await tx.get_one(Plant, 2))
        rows = sorted(await scan(tx, Plant).all(), key=lambda row: row.id)
        assert [row.id for row in rows] == [1, 3]
        assert rows[0] is first
        assert (await scan(tx, Plant, where=Plant.id == 2).first()) is None


@everywhere
async def test_without_a_lock_rows_are_frozen_and_not_checked(db: Db) -> None:
    await arrange(db, Plant(id=1))
    async with db.transaction() as tx:
        (row,) = await scan(tx, Plant, lock=False).all()
        assert row.height == 0
        with pytest.raises(FrozenItemError):
            row.height = 1
        await meanwhile(db, Plant.key(1), height=5)
        tx.create(Mark, id="a")
    assert await db.get(Mark, "a") is not None


@everywhere
async def test_outside_a_transaction_rows_are_frozen(db: Db) -> None:
    await arrange(db, Plant(id=1))
    row = await scan(db, Plant).first()
    with pytest.raises(FrozenItemError):
        row.height = 1


@everywhere
async def test_after_contention_a_scan_is_strongly_consistent(db: Db) -> None:
    await arrange(db, Plant(id=1))
    attempts = 0

    async def grow(tx: AsyncTransaction) -> None:
        nonlocal attempts
        attempts += 1
        (row,) = await scan(tx, Plant, segments=1).all()
        row.height += 1
        if attempts == 1:
            await meanwhile(db, Plant.key(1), height=10)

    await db.run(grow)
    assert [request.consistent for request in list_scans(db)] == [False, True]
    assert (await db.get_one(Plant, 1)).height == 11


@in_memory
async def test_a_read_only_transaction_reads_several_scanned_rows_again_at_one_moment(db: Db) -> None:
    await arrange(db, Plant(id=1), Plant(id=2))
    async with db.transaction(read_only=True) as tx:
        assert [row.height for row in await scan(tx, Plant, segments=1).all()] == [0, 0]
    assert db.kinds() == ["Scan", "TransactGet"]


@in_memory
async def test_a_scan_ends_with_its_transaction(db: Db) -> None:
    await arrange(db, Plant(id=1))
    async with db.transaction() as tx:
        rows = scan(tx, Plant)
    with pytest.raises(TransactionClosedError):
        await rows.all()


# --- conversions and hydrators ----------------------------------------------------------------------------


def convert_to_centimetres(values: dict[str, Any]) -> dict[str, Any]:
    """A conversion: heights were in metres."""
    return {**values, "height": values["height"] * 100}


class Moss(Model, migrations=[convert_to_centimetres]):
    id: Key[int]
    height: int
    shade: str = field(default="dark", aliases=["colour"])


@everywhere
async def test_rows_of_an_older_version_are_converted(db: Db) -> None:
    old = encode_item({"_type": "Moss", "id": 1, "height": 3, "colour": "green"})
    await arrange(db, Moss(id=2, height=7))
    await db.send(PutItem(db.table_of(Moss), {**old, **raw_key(Moss.key(1))}))
    rows = sorted(await scan(db, Moss).all(), key=lambda row: row.id)
    assert [(row.height, row.shade) for row in rows] == [(300, "green"), (7, "dark")]
    (row,) = await scan(db, Moss, only=[Moss.shade], where=Moss.id == 1).all()
    assert row.shade == "green"
    with pytest.raises(InvalidFieldError, match="was not fetched"):
        _ = row.height


class ToyHydrator:
    """A hydrator for items whose text is stored elsewhere."""

    pointer = Exists(Path(("frozen",)))

    def adopt(self, schema: object) -> None:
        pass

    def is_pointer(self, item: Item) -> bool:
        return "frozen" in item

    async def hydrate(self, context: Context, read: GetItem, item: Item) -> Item:
        return {**item, "text": {"S": "thawed"}}

    def follow(self, context: Context, read: GetItem, pointer: Item, *, deleted: bool) -> None:
        return None

    def guard(self, stored: Item | None) -> Condition | None:
        return NotExists(Path(("frozen",)))


class Seed(Model, archive=ToyHydrator()):
    id: Key[int]
    text: str = ""


@in_memory
async def test_rows_that_are_stored_elsewhere_are_hydrated(db: Db) -> None:
    await arrange(db, Seed(id=1, text="here"))
    cold = encode_item({"_type": "Seed", "id": 2, "frozen": True})
    await db.send(PutItem(db.table_of(Seed), {**cold, **raw_key(Seed.key(2))}))
    for only in (None, [Seed.text]):
        rows = sorted(await scan(db, Seed, only=only).all(), key=lambda row: row.id)
        assert [row.text for row in rows] == ["here", "thawed"]


# --- mistakes ----------------------------------------------------------------------------------------------


@in_memory
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segments": 0}, "segments must be a whole number from 1 to 1,000,000, not 0"),
        ({"segments": 1_000_001}, "from 1 to 1,000,000, not 1000001"),
        ({"segments": True}, "from 1 to 1,000,000, not True"),
        ({"segments": "4"}, "from 1 to 1,000,000, not '4'"),
        ({"segments": 2.0}, "from 1 to 1,000,000, not 2.0"),
        ({"limit": 0}, "limit must be a whole number from 1 up, not 0"),
        ({"limit": True}, "from 1 up, not True"),
        ({"consistent": None}, "consistent must be True or False, not None"),
        ({"where": "height > 1"}, "where must be a condition, not 'height > 1'"),
        ({"only": ["colour"]}, "only= names 'colour', which is not a field of Plant"),
        ({"progress": 5}, "progress must be callable, not 5"),
    ],
    ids=str,
)
async def test_an_invalid_option_is_refused_at_once(db: Db, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionsError) as caught:
        scan(db, Plant, **options)
    assert message in str(caught.value)
    assert db.list_sent() == []


@in_memory
async def test_only_models_with_items_can_be_scanned(db: Db) -> None:
    class Shape(Model, abstract=True):
        id: Key[int]

    for target in (Shape, Model, "Plant", Plant.key(1)):
        with pytest.raises(InvalidOptionsError):
            scan(db, target)  # type: ignore[arg-type]


@in_memory
async def test_a_condition_on_a_field_of_another_model_is_refused(db: Db) -> None:
    with pytest.raises(InvalidFieldError, match="a field of another model"):
        scan(db, Plant, where=col(Stone.serial) == "a")
    with pytest.raises(InvalidFieldError, match="in the key alone"):
        scan(db, OwnPlant, where=OwnPlant.id == 1)


# --- random data and conditions ---------------------------------------------------------------------------

Row = tuple[int, int, str | None]
Test = Callable[[Row], bool]

heights = st.integers(-3, 3)
notes = st.sampled_from(["", "a", "ab", "b"])
terms: st.SearchStrategy[tuple[Clause, Test]] = st.one_of(
    heights.map(lambda h: (col(Plant.height) > h, lambda row: row[1] > h)),
    heights.map(lambda h: (col(Plant.height) == h, lambda row: row[1] == h)),
    notes.map(
        lambda n: (col(Plant.note).begins_with(n), lambda row: row[2] is not None and row[2].startswith(n))
    ),
    notes.map(lambda n: (col(Plant.note) <= n, lambda row: row[2] is not None and row[2] <= n)),
    st.just((col(Plant.note).exists(), lambda row: row[2] is not None)),
    heights.map(lambda h: (Plant.id >= h, lambda row: row[0] >= h)),
)


def join_with_or(pair: tuple[tuple[Clause, Test], tuple[Clause, Test]]) -> tuple[Clause, Test]:
    (left, meets_left), (right, meets_right) = pair
    return left | ~right, lambda row: meets_left(row) or not meets_right(row)


conditions = st.one_of(terms, st.tuples(terms, terms).map(join_with_or))


@pytest.fixture(scope="module")
def quiet() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@for_any(
    rows=st.lists(st.tuples(st.integers(-5, 20), heights, st.none() | notes), unique_by=lambda row: row[0]),
    condition=conditions,
    segments=st.integers(1, 9),
    limit=st.none() | st.integers(1, 12),
)
@pytest.mark.usefixtures("quiet")
def test_a_scan_finds_the_same_rows_as_a_filtered_list(
    rows: list[Row], condition: tuple[Clause, Test], segments: int, limit: int | None
) -> None:
    where, meets = condition
    expected = {row for row in rows if meets(row)}
    with Database("memory:") as db:
        with db.transaction() as tx:
            for number, height, note in rows:
                tx.create(Plant, id=number, height=height, note=note)
        found = db.scan(Plant, where=where, segments=segments, limit=limit)
        shown = [(row.id, row.height, row.note) for row in found]
        assert len(shown) == len({*shown}) == found.count()
        assert {*shown} <= expected
        assert len(shown) == (len(expected) if limit is None else min(limit, len(expected)))
        assert found.exists() == (found.first() is not None) == bool(expected)


# --- memory -----------------------------------------------------------------------------------------------


class Grain(Model):
    heap: Key[str]
    number: SortKey[int]
    text: str


def generate_grains() -> Iterator[Grain]:
    return (Grain(heap="a", number=number, text="x" * LENGTH) for number in range(ROWS))


def measure_peak(rows: Iterator[Grain]) -> float:
    """Return the peak memory, in MB, of reading all rows."""
    tracemalloc.start()
    try:
        assert sum(row.number >= 0 for row in rows) == ROWS
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def store_grains(db: Database) -> None:
    db.get(Grain, heap="a", number=0)
    batch: list[PutItem] = []
    for grain in generate_grains():
        batch.append(PutItem("holdall", encode_stored(grain)))
        if len(batch) == 25:
            db.send(BatchWrite(tuple(batch)))
            batch.clear()


@pytest.mark.usefixtures("quiet")
def test_memory_does_not_grow_with_the_number_of_rows() -> None:
    """A page of these rows takes about 3 MB; all rows together take at least 20 MB."""
    with Database("memory:") as db:
        store_grains(db)
        assert measure_peak(iter(db.scan(Grain, segments=1))) < 5
        assert measure_peak(iter(db.scan(Grain, segments=4))) < 18
        assert measure_peak(iter(db.query(Grain, heap="a"))) < 9
        with db.transaction() as tx:  # it releases rows whose fields were not read
            assert measure_peak(iter(tx.scan(Grain, segments=1))) < 6
            assert measure_peak(iter(tx.query(Grain, heap="a"))) < 10
