"""What queries cost, according to the stores' replies: rows read, items transferred, and capacity billed.

ministack computes capacity differently, so the tests of capacity do not use it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from queries_rig import Db, Way, arrange, database, everywhere, finish, fresh, in_memory, watch_of

from holdall import Index, Key, Model, SortKey, col
from holdall.core import item_size
from holdall.core.measure import read_units


class Row(Model, indexes=[Index("by_group", ["group"], ["number"])]):
    part: Key[str]
    number: SortKey[int]
    group: str | None = None
    filler: str = ""


class OwnRow(Model, table="Row", indexes=[Index("by_group", ["group"], include=["tag"], sparse=True)]):
    part: Key[str]
    number: SortKey[int]
    group: str | None = None
    tag: str = ""
    filler: str = ""


class Fading(Model, ttl="until"):
    part: Key[str]
    number: SortKey[int]
    until: int | None = None


async def store_rows(db: Db, count: int, model: type[Any] = Row, **values: Any) -> str:
    name = fresh("part")
    await arrange(db, *(model(part=name, number=number, **values) for number in range(count)))
    watch_of(db).forget()
    return name


def list_scanned(db: Db) -> list[int]:
    return [page.scanned for _, page in watch_of(db).pages()]


# --- rows -------------------------------------------------------------------------------------------------


@everywhere
async def test_a_query_with_a_limit_reads_no_more_rows(db: Db) -> None:
    name = await store_rows(db, 50)
    assert len(await db.query(Row, part=name, limit=20).all()) == 20
    assert list_scanned(db) == [20]
    watch_of(db).forget()
    assert len([row async for row in db.query(Row, part=name, limit=20, reverse=True)]) == 20
    assert list_scanned(db) == [20]


@everywhere
async def test_first_exists_and_one_read_a_single_row(db: Db) -> None:
    name = await store_rows(db, 50)
    query = db.query(Row, part=name)
    for read, cost in ((query.first, 1), (query.exists, 1)):
        watch_of(db).forget()
        await read()
        assert list_scanned(db) == [cost]
    watch_of(db).forget()
    assert (await db.query(Row, part=name, sort=Row.number == 7).one()).number == 7
    assert list_scanned(db) == [1]


@everywhere
async def test_one_reads_two_rows_to_find_out_that_there_are_several(db: Db) -> None:
    from holdall.errors import InvalidOptionsError

    name = await store_rows(db, 50)
    with pytest.raises(InvalidOptionsError):
        await db.query(Row, part=name).one()
    assert list_scanned(db) == [2]


@everywhere
async def test_a_page_reads_only_the_rows_that_it_returns(db: Db) -> None:
    name = await store_rows(db, 25)
    query = db.query(Row, part=name)
    after = None
    for size in (10, 10, 5):
        page = await query.page(10, after=after)
        assert len(page.items) == size
        after = page.next
    assert list_scanned(db) == [10, 10, 5]


@everywhere
async def test_a_count_transfers_no_items(db: Db) -> None:
    name = await store_rows(db, 30)
    assert await db.query(Row, part=name).count() == 30
    assert await db.query(Row, part=name, where=col(Row.number) > 9).count() == 20
    assert [(page.items, page.scanned) for _, page in watch_of(db).pages()] == [((), 30), ((), 30)]


@everywhere
async def test_a_count_with_a_limit_reads_no_more_rows(db: Db) -> None:
    name = await store_rows(db, 30)
    assert await db.query(Row, part=name, limit=7).count() == 7
    assert list_scanned(db) == [7]


@everywhere
async def test_rows_are_counted_and_found_after_pages_without_matches(db: Db) -> None:
    name = await store_rows(db, 30, filler="x" * 60_000)  # 1.8 MB, two pages
    assert await db.query(Row, part=name).count() == 30
    assert await db.query(Row, part=name, limit=25).count() == 25
    late = db.query(Row, part=name, where=col(Row.number) >= 28)
    watch_of(db).forget()
    assert await late.count() == 2
    assert [row.number for row in await late.all()] == [28, 29]
    first = await late.first()
    assert first is not None
    assert first.number == 28
    assert await late.exists()


@everywhere
async def test_iteration_that_ends_early_reads_no_further_page(db: Db) -> None:
    name = await store_rows(db, 30, filler="x" * 60_000)  # 1.8 MB, two pages
    rows = []
    async for row in db.query(Row, part=name):
        rows.append(row.number)
        if len(rows) == 3:
            break
    assert len(watch_of(db).pages()) == 1
    assert list_scanned(db)[0] < 30


@in_memory
async def test_a_filtered_query_with_a_limit_reads_growing_pages_until_it_has_enough_rows(db: Db) -> None:
    name = await store_rows(db, 400)
    assert [
        row.number for row in await db.query(Row, part=name, where=col(Row.number) >= 398, limit=1).all()
    ] == [398]
    assert [query.limit for query, _ in watch_of(db).pages()] == [100, 200, 400]
    assert sum(list_scanned(db)) == 400


@in_memory
async def test_expired_rows_cost_few_additional_reads(db: Db) -> None:
    now = int(datetime.now(UTC).timestamp())
    name = await store_rows(db, 40, Fading, until=now + 1000)
    await arrange(db, *(Fading(part=name, number=number, until=now - 10) for number in range(-3, 0)))
    first = await db.query(Fading, part=name).first()
    assert first is not None
    assert first.number == 0
    assert sum(list_scanned(db)) <= 10
    watch_of(db).forget()
    assert len(await db.query(Fading, part=name, limit=20).all()) == 20
    assert sum(list_scanned(db)) <= 40


# --- capacity ---------------------------------------------------------------------------------------------

BILLED = [Way(store, colour) for store in ("memory", "DynamoDB Local") for colour in ("blocking", "awaiting")]


def with_billing(test: Any) -> Any:
    """Run a test on the stores that compute capacity as DynamoDB does."""

    def run_test(way: Way) -> None:
        finish(way, partial(test, database(way))())

    run_test.__name__ = test.__name__
    return pytest.mark.parametrize("way", BILLED, ids=str)(run_test)


def add_up_capacity(db: Db) -> float:
    return sum(page.capacity for _, page in watch_of(db).pages())


async def fetch_sizes(db: Db, name: str) -> list[int]:
    """Return the sizes of a partition's rows, computed from the raw items."""
    watch_of(db).forget()
    await db.query(Row, part=name).all()
    found = [item_size(item) for _, page in watch_of(db).pages() for item in page.items]
    watch_of(db).forget()
    return found


@with_billing
async def test_every_query_is_billed_by_the_bytes_that_it_reads(db: Db) -> None:
    name = await store_rows(db, 60, filler="x" * 900)
    weights = await fetch_sizes(db, name)
    query, filtered = db.query(Row, part=name), db.query(Row, part=name, where=col(Row.number) == 59)
    reads: list[tuple[Any, int]] = [
        (query.all, 60),
        (query.count, 60),
        (filtered.all, 60),
        (filtered.count, 60),
        (filtered.exists, 60),
        (query.first, 1),
        (query.exists, 1),
        (db.query(Row, part=name, limit=20).all, 20),
        (db.query(Row, part=name, limit=20).count, 20),
        (partial(query.page, 20), 20),
        (db.query(Row, part=name, sort=Row.number < 10).all, 10),
        (db.query(Row, part=name, sort=Row.number.between(5, 9)).count, 5),
        (db.query(Row, part=name, only=[Row.number]).all, 60),
    ]
    for read, rows in reads:
        watch_of(db).forget()
        await read()
        assert add_up_capacity(db) == read_units(sum(weights[:rows]), consistent=True), read
        watch_of(db).forget()


@with_billing
async def test_eventually_consistent_reads_cost_half(db: Db) -> None:
    name = await store_rows(db, 20, filler="x" * 900)
    weights = await fetch_sizes(db, name)
    await db.query(Row, part=name, consistent=False).all()
    assert add_up_capacity(db) == read_units(sum(weights), consistent=False) == 2.5


@with_billing
async def test_a_query_of_an_index_is_billed_by_the_attributes_that_the_index_contains(db: Db) -> None:
    group = fresh("group")
    await store_rows(db, 20, group=group, filler="x" * 900)
    await db.query(Row, index="by_group", group=group).all()
    whole = add_up_capacity(db)
    await store_rows(db, 20, OwnRow, group=group, filler="x" * 900)
    rows = await db.query(OwnRow, index="by_group", group=group).all()
    assert len(rows) == 20
    assert add_up_capacity(db) <= 0.5
    assert whole >= 2.5
