"""Puts and deletes in batches: the same stored items as from transactions, few pending writes, no lost writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from rig.behaviour import Db, Way, awaiting, blocking, everywhere, in_memory, open_database
from rig.behaviour_models import Line, Order, put_raw
from rig.colour import COLOURS

from holdall import Database, Index, Key, Model, SortKey, Template, field, has_one_attached
from holdall.archive import Archive
from holdall.core import BatchWrite
from holdall.core.port import run
from holdall.errors import (
    InvalidFieldError,
    InvalidOptionsError,
    InvalidRequestError,
    ItemTooLargeError,
    ThrottledError,
)
from holdall.transactions import BulkReport


class Visit(Model, ttl="until", indexes=[Index("by_day", key=["day"], sort_key=["minute"], slot=1)]):
    """A model with an index and an expiry, which need attributes of their own."""

    guest: Key[str]
    number: SortKey[int]
    day: str = "monday"
    minute: int | None = None
    until: datetime | None = None
    tags: list[str] = field(default_factory=list)


class Stay(Visit):
    """A derived model."""

    nights: int = 1


class Ticket(Model, table="Tickets"):
    """A model with its own table."""

    number: Key[int]
    seat: str = "any"


class Crate(
    Model, table="crates", layout=Template(pk="C#{id}", gsi1=("W#{weight:04d}", "{sent}"), type="entity")
):
    """A model in a table with another program's layout."""

    id: Key[str]
    weight: int
    sent: datetime = field(stored="epoch")
    added: datetime = field(now="create")


class Member(Model):
    name: Key[str]
    mail: str = field(unique=True)


class Noted(Model):
    name: Key[str]

    def before_commit(self, tx: Any) -> None:
        """A hook, which makes blind writes impossible."""


class Pictured(Model):
    name: Key[str]
    picture = has_one_attached()


class Stored(Model, archive=Archive(timestamp="placed_at", after_days=30)):
    name: Key[str]
    placed_at: datetime


class Parcel(Model):
    """Refused because of its derived model: a key does not show which of the two models an item has."""

    number: Key[int]


class Insured(Parcel):
    policy: str = field(unique=True)


def make_lines(count: int) -> list[Line]:
    return [Line(order="a", number=number, text=f"line {number}") for number in range(count)]


def list_batches(db: Db) -> list[int]:
    return [len(each.actions) for each in db.list_sent() if isinstance(each, BatchWrite)]


def remove_stamp(item: Any) -> Any:
    return {name: value for name, value in item.items() if name != "_w"}


@everywhere
async def test_items_are_written_and_deleted_in_batches_of_25(db: Db) -> None:
    async with db.bulk(Line) as bulk:
        for line in make_lines(60):
            await bulk.put(line)
    assert list_batches(db) == [25, 25, 10]
    assert bulk.report == BulkReport(60, 0)
    assert [line.text for line in await db.query(Line, order="a").all()] == [f"line {n}" for n in range(60)]
    async with db.bulk(Line) as bulk:
        for line in make_lines(30):
            await bulk.delete(line)
        await bulk.delete(Line.key(order="a", number=99))  # no such item exists
    assert bulk.report == BulkReport(0, 31)
    assert [line.number for line in await db.query(Line, order="a").all()] == list(range(30, 60))


@everywhere
async def test_batches_write_templated_items_exactly_as_transactions_do(db: Db) -> None:
    values: dict[str, Any] = {"weight": 7, "sent": datetime(2026, 1, 1, tzinfo=UTC)}
    await db.bulk(Crate).put_all([Crate(id="a", **values)])
    async with db.transaction() as tx:
        tx.create(Crate, id="b", **values)
    one, two = [await db.raw(Crate.key(id)) for id in ("a", "b")]
    assert one is not None
    assert two is not None
    assert {**one, "added": None} == {**two, "added": None, "pk": {"S": "C#a"}, "id": {"S": "a"}}
    assert one["added"].keys() == two["added"].keys()
    assert one["gsi1pk"] == {"S": "W#0007"}


@everywhere
async def test_batches_store_items_exactly_as_transactions_do(db: Db) -> None:
    until = datetime(2099, 1, 1, tzinfo=UTC)
    values: list[tuple[type[Visit], dict[str, Any]]] = [
        (Visit, {"guest": "Ädä", "number": 1, "minute": 5, "until": until, "tags": ["é", "b"]}),
        (Visit, {"guest": "ada", "number": -2}),
        (Stay, {"guest": "ada", "number": 3, "minute": 7, "nights": 2}),
    ]
    for model, each in values:
        item = model(**each)
        await db.bulk(Visit).put_all([item])
        bulk = await db.raw(item.key)
        async with db.transaction() as tx:
            (await tx.get_one(item.key)).is_new  # noqa: B018 - the item exists
            tx.delete(item.key)
        async with db.transaction() as tx:
            tx.create(model(**each))
        created = await db.raw(item.key)
        assert bulk is not None
        assert created is not None
        assert remove_stamp(bulk) == remove_stamp(created)
        assert bulk.keys() == created.keys()
    async with db.bulk(Ticket) as bulk_of_tickets:
        await bulk_of_tickets.put(Ticket(number=7))
    assert await db.raw(Ticket.key(7)) == {"_id": {"N": "7"}, "seat": {"S": "any"}}


@in_memory
async def test_the_last_of_several_writes_to_a_key_wins(db: Db) -> None:
    await put_raw(db, Order, {"pk": {"S": "Order#b"}, "sk": {"S": "#"}, "id": {"S": "b"}})
    async with db.bulk(Order) as bulk:
        await bulk.put(Order(id="a"))
        await bulk.delete(Order.key("a"))
        await bulk.delete(Order.key("b"))
        await bulk.put(Order(id="b", quantity=2))
        await bulk.put(Order(id="b", quantity=3))
    assert list_batches(db) == [2]
    assert await db.get(Order, "a") is None
    assert (await db.get_one(Order, "b")).quantity == 3


@in_memory
async def test_each_write_has_a_different_stamp(db: Db) -> None:
    """Otherwise a transaction whose reply was lost might not notice that its item was written again."""
    stamps = set()
    for _ in range(3):
        await db.bulk(Order).put_all([Order(id="a")])
        item = await db.raw(Order.key("a"))
        assert item is not None
        stamps.add(item["_w"]["S"])
    assert len(stamps) == 3


@in_memory
async def test_later_changes_to_an_instance_do_not_change_its_put(db: Db) -> None:
    order = Order(id="a", tags=["x"])
    async with db.bulk(Order) as bulk:
        await bulk.put(order)
        order.tags.append("y")
    assert (await db.get_one(Order, "a")).tags == ["x"]


@in_memory
async def test_only_few_items_are_pending_at_any_time(db: Db) -> None:
    pending: list[int] = []

    def generate_lines() -> Iterator[Line]:
        for line in make_lines(205):
            pending.append(len(pending) - sum(list_batches(db)))
            yield line

    reports: list[BulkReport] = []
    report = await db.bulk(Line, concurrency=2, progress=reports.append).put_all(generate_lines())
    assert report == BulkReport(205, 0)
    assert max(pending) < 50
    assert reports == [BulkReport(each, 0) for each in (50, 100, 150, 200, 205)]
    assert await db.query(Line, order="a").count() == 205


@awaiting
async def test_put_all_and_delete_all_accept_async_iterables(db: Db) -> None:
    async def generate_lines() -> AsyncIterator[Line]:
        for line in make_lines(30):
            yield line

    assert await db.bulk(Line).put_all(generate_lines()) == BulkReport(30, 0)
    assert await db.bulk(Line).delete_all(db.query(Line, order="a")) == BulkReport(0, 30)
    assert await db.query(Line, order="a").count() == 0


@in_memory
async def test_a_batch_is_retried_while_the_store_throttles(db: Db) -> None:
    await db.get(Order, "any key: the first use creates the table")
    db.recorder.refusals = [ThrottledError("too much"), ThrottledError("too much")]
    began = db.clock.now()
    assert await db.bulk(Order).put_all([Order(id="a")]) == BulkReport(1, 0)
    assert db.clock.now() > began
    assert await db.get(Order, "a") is not None


@in_memory
async def test_a_failed_batch_ends_the_bulk_even_if_the_caller_catches_the_error(db: Db) -> None:
    await db.get(Line, {"order": "a", "number": 0})
    db.recorder.refusals = [ThrottledError("too much")] * 4
    bulk = db.bulk(Line)

    async def ignore_the_error() -> None:
        async with bulk:
            with pytest.raises(ThrottledError):
                await bulk.put_all(make_lines(25))
            with pytest.raises(InvalidRequestError, match="an earlier batch of this bulk failed: too much"):
                await bulk.put(Line(order="a", number=99))

    with pytest.raises(ThrottledError):
        await ignore_the_error()
    assert bulk.report == BulkReport(0, 0)
    assert await db.query(Line, order="a").count() == 0


@in_memory
async def test_an_error_in_the_block_or_in_put_all_drops_pending_writes(db: Db) -> None:
    bulk = db.bulk(Line)

    async def fail() -> None:
        async with bulk:
            for line in make_lines(30):
                await bulk.put(line)
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    assert bulk.report == BulkReport(25, 0)
    assert await db.query(Line, order="a").count() == 25
    with pytest.raises(InvalidRequestError, match="does not belong in a bulk of Line"):
        await bulk.put_all([*make_lines(40)[30:], None])  # type: ignore[list-item]
    assert await bulk.put_all([]) == BulkReport(25, 0)


@in_memory
async def test_an_invalid_item_is_refused_when_it_is_put(db: Db) -> None:
    async with db.bulk(Order) as bulk:
        bad = Order(id="a")
        bad.tags.append(5)  # type: ignore[arg-type]
        with pytest.raises(InvalidFieldError, match=r"Order.tags: \[0\]"):
            await bulk.put(bad)
        await bulk.put(Order(id="b"))
    assert bulk.report == BulkReport(1, 0)
    with pytest.raises(ItemTooLargeError):
        await db.bulk(Order).put_all([Order(id="c"), Order(id="d", product="x" * 500_000)])
    assert await db.get(Order, "c") is None


@in_memory
async def test_only_new_items_of_the_model_are_accepted(db: Db) -> None:
    await db.bulk(Order).put_all([Order(id="a")])
    stored: Any = await db.get_one(Order, "a")
    async with db.bulk(Order) as bulk:
        with pytest.raises(InvalidRequestError, match="is not a new item"):
            await bulk.put(stored)
        for other in (Line(order="a", number=1), "a", Line.key(order="a", number=1)):
            with pytest.raises(InvalidRequestError, match="does not belong in a bulk of Order"):
                await bulk.put(other)  # type: ignore[arg-type]
            with pytest.raises(InvalidRequestError, match="does not belong in a bulk of Order"):
                await bulk.delete(other)  # type: ignore[arg-type]
        await bulk.put(Order(**{**stored.to_dict(), "quantity": 4}))
    assert (await db.get_one(Order, "a")).quantity == 4


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (Member, "its field 'mail' is unique"),
        (Noted, "before_commit"),
        (Pictured, "attachments"),
        (Stored, "archive"),
        (Parcel, "its field 'policy' is unique"),
    ],
)
def test_a_model_that_needs_transactions_is_refused(model: type[Model], why: str) -> None:
    with Database("memory:") as db:
        for each in (db, db.aio):
            with pytest.raises(InvalidRequestError, match=f"cannot be written in batches: .*{why}"):
                each.bulk(model)


@blocking
async def test_mistakes_are_refused_at_once(db: Db) -> None:
    bulk: Any = db.bulk(Line)
    with pytest.raises(
        InvalidRequestError, match=r"put was called outside a with block(?s:.)*or use put_all$"
    ):
        await bulk.put(make_lines(1)[0])
    with pytest.raises(
        InvalidRequestError, match=r"delete was called outside a with block(?s:.)*or use delete_all$"
    ):
        await bulk.delete(make_lines(1)[0])
    for concurrency in (0, 65, True, "4"):
        with pytest.raises(InvalidOptionsError, match="concurrency must be a whole number from 1 to 64"):
            db.bulk(Line, concurrency=concurrency)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionsError, match="progress must be callable"):
        db.bulk(Line, progress=5)  # type: ignore[arg-type]


_keys = st.integers(0, 7)
_writes = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"), _keys, st.sampled_from(["monday", "sunday"]), st.none() | st.integers(0, 9)
        ),
        st.tuples(st.just("delete"), _keys),
    ),
    max_size=60,
)


@hypothesis_given(_writes, st.sampled_from(COLOURS))
def test_random_writes_store_what_a_dict_would_contain(writes: list[Any], colour: Any) -> None:
    expected: dict[int, tuple[str, int | None]] = {}

    async def write(db: Db) -> None:
        async with db.bulk(Visit) as bulk:
            for each in writes:
                if each[0] == "put":
                    _, number, day, minute = each
                    await bulk.put(Visit(guest="a", number=number, day=day, minute=minute))
                    expected[number] = (day, minute)
                else:
                    await bulk.delete(Visit.key(guest="a", number=each[1]))
                    expected.pop(each[1], None)
        found = await db.query(Visit, guest="a").all()
        assert {each.number: (each.day, each.minute) for each in found} == expected
        indexed = await db.query(Visit, index="by_day", day="monday").all()
        assert sorted(each.number for each in indexed) == sorted(
            number for number, (day, minute) in expected.items() if day == "monday" and minute is not None
        )

    with open_database(Way("memory", colour)) as db:
        if colour == "blocking":
            run(write(db))
        else:
            import asyncio

            asyncio.run(write(db))
