"""Rows in transactions: only rows whose fields were read are checked, and a retry reads consistently.

Also rows of which only some fields were fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from queries_rig import Db, arrange, everywhere, expect_failure, fresh, in_memory, raw_key, table_of, watch_of

from holdall import AsyncDatabase, Database, Index, Key, Model, SortKey, col, field
from holdall.core import BatchGet, ConditionCheck, DeleteItem, PutItem, Query, TransactWrite, UpdateItem
from holdall.errors import (
    ContentionError,
    FrozenItemError,
    InvalidFieldError,
    InvalidOptionsError,
    TransactionClosedError,
    TransactionFailedError,
    TransactionTooLarge,
)


class Seat(Model, indexes=[Index("by_guest", ["guest"], ["number"])]):
    room: Key[str]
    number: SortKey[int]
    guest: str | None = None
    price: int = 10
    note: str | None = None


class OwnSeat(Model, table="Seat", indexes=[Index("by_guest", ["guest"], ["number"], sparse=True)]):
    room: Key[str]
    number: SortKey[int]
    guest: str | None = None
    price: int = 10
    note: str | None = None


both_layouts = pytest.mark.parametrize("seat", [Seat, OwnSeat], ids=["one table", "own table"])


async def create_room(db: Db, seat: type[Any], count: int, **values: Any) -> str:
    name = fresh("room")
    await arrange(db, *(seat(room=name, number=number, **values) for number in range(count)))
    return name


async def change(db: Db, seat: type[Any], name: str, number: int, **values: Any) -> None:
    """Change a seat in another transaction."""
    async with db.transaction() as tx:
        item = await tx.get_one(seat, room=name, number=number)
        for field_name, value in values.items():
            setattr(item, field_name, value)


def list_writes(db: Db) -> list[Any]:
    """Return the actions of the writes since the requests were last forgotten."""
    found: list[Any] = []
    for request, _ in watch_of(db).exchanges:
        if isinstance(request, TransactWrite):
            found += request.actions
        elif isinstance(request, PutItem | UpdateItem | DeleteItem):
            found.append(request)
    return found


# --- locks ------------------------------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_of_many_rows_only_those_whose_fields_were_read_take_part(db: Db, seat: type[Any]) -> None:
    name = await create_room(db, seat, 130)
    async with db.transaction() as tx:
        async for row in tx.query(seat, room=name):
            if row.number == 77:
                row.note = "reserved"
    assert len(list_writes(db)) == 1
    assert (await db.get_one(seat, room=name, number=77)).note == "reserved"


@in_memory
@both_layouts
async def test_reading_fields_of_more_rows_than_a_transaction_can_check_is_refused(
    db: Db, seat: type[Any]
) -> None:
    name = await create_room(db, seat, 101)
    with expect_failure(TransactionTooLarge):
        async with db.transaction() as tx:
            rows = await tx.query(seat, room=name).all()
            rows[0].price = sum(row.price for row in rows)
    async with db.transaction() as tx:
        total = sum([row.price async for row in tx.query(seat, room=name, lock=False)])
        (await tx.get_one(seat, room=name, number=0)).price = total
    assert (await db.get_one(seat, room=name, number=0)).price == 1010


@in_memory
@both_layouts
async def test_a_read_only_transaction_refuses_more_rows_than_it_can_read_at_one_moment(
    db: Db, seat: type[Any]
) -> None:
    name = await create_room(db, seat, 120)
    pages: list[Any] = []
    with expect_failure(TransactionTooLarge) as caught:
        async with db.transaction(read_only=True) as tx:
            while not pages or pages[-1].next is not None:
                pages.append(
                    await tx.query(seat, room=name).page(30, after=pages[-1].next if pages else None)
                )
    assert "lock=False" in str(caught.value)
    assert len(pages) == 3  # the fourth exceeds the limit and is refused at once
    async with db.transaction(read_only=True) as tx:
        assert sum([row.price async for row in tx.query(seat, room=name, lock=False)]) == 1200


@in_memory
@both_layouts
async def test_a_row_whose_field_was_read_must_not_change(db: Db, seat: type[Any]) -> None:
    name = await create_room(db, seat, 3)
    with expect_failure(TransactionFailedError) as caught:
        async with db.transaction() as tx:
            first, second, _ = await tx.query(seat, room=name).all()
            first.price = second.price + 1
            await change(db, seat, name, 1, price=99)
    assert isinstance(caught.value.__cause__, ContentionError)
    assert (await db.get_one(seat, room=name, number=0)).price == 10


@in_memory
@both_layouts
async def test_a_row_of_which_only_the_key_was_read_can_change(db: Db, seat: type[Any]) -> None:
    name = await create_room(db, seat, 3)
    watch_of(db).forget()
    async with db.transaction() as tx:
        first, *others = await tx.query(seat, room=name).all()
        first.price = 11
        await change(db, seat, name, 1, price=99)
        assert [(other.room, other.number) for other in others] == [(name, 1), (name, 2)]  # key fields
    assert not any(isinstance(action, ConditionCheck) for action in list_writes(db))


@everywhere
@both_layouts
async def test_rows_without_a_lock_are_frozen_and_not_checked(db: Db, seat: type[Any]) -> None:
    name = await create_room(db, seat, 3)
    async with db.transaction() as tx:
        rows = await tx.query(seat, room=name, lock=False).all()
        assert [row.price for row in rows] == [10, 10, 10]
        await change(db, seat, name, 1, price=99)
        with pytest.raises(FrozenItemError):
            rows[0].price = 5
        (await tx.get_one(seat, room=name, number=2)).price = 6
    prices = [row.price for row in await db.query(seat, room=name).all()]
    assert prices == [10, 99, 6]


@everywhere
@both_layouts
async def test_a_query_returns_the_instances_that_the_transaction_already_has(
    db: Db, seat: type[Any]
) -> None:
    name = await create_room(db, seat, 2)
    async with db.transaction() as tx:
        got = await tx.get_one(seat, room=name, number=0)
        got.price = 50
        first, second = await tx.query(seat, room=name).all()
        assert first is got
        assert first.price == 50
        assert await tx.get_one(seat, room=name, number=1) is second
        assert [row async for row in tx.query(seat, room=name, reverse=True)] == [second, first]
        page = await tx.query(seat, room=name).page(1)
        assert page.items[0] is got
        assert await tx.query(seat, room=name).first() is got


@everywhere
@both_layouts
async def test_a_row_that_was_deleted_in_the_transaction_is_not_returned(db: Db, seat: type[Any]) -> None:
    name = await create_room(db, seat, 1)
    async with db.transaction() as tx:
        query = tx.query(seat, room=name)
        tx.delete(await query.one())
        assert await query.all() == []
        assert await query.first() is None
        assert await query.exists() is False
        assert (await query.page(3)).items == []
        assert await query.count() == 1  # the store counts the rows
    assert await db.query(seat, room=name).exists() is False


@in_memory
async def test_a_query_does_not_find_items_that_its_transaction_created(db: Db) -> None:
    name = await create_room(db, Seat, 1)
    async with db.transaction() as tx:
        tx.create(Seat, room=name, number=5)
        assert [row.number for row in await tx.query(Seat, room=name).all()] == [0]


@in_memory
async def test_queries_of_a_transaction_end_with_it(db: Db) -> None:
    name = await create_room(db, Seat, 2)
    async with db.transaction() as tx:
        query = tx.query(Seat, room=name)
        rows = query.__aiter__()
        await rows.__anext__()
    uses: list[Any] = [query.all, query.first, query.one, query.count, query.exists, lambda: query.page(1)]
    for use in uses:
        with pytest.raises(TransactionClosedError):
            await use()
    with pytest.raises(TransactionClosedError):
        [row async for row in query]


@in_memory
async def test_a_query_can_be_read_again_from_the_start(db: Db) -> None:
    name = await create_room(db, Seat, 2)
    query = db.query(Seat, room=name)
    assert [row.number async for row in query] == [0, 1]
    await arrange(db, Seat(room=name, number=2))
    assert [row.number async for row in query] == [0, 1, 2]
    async for row in query:
        assert row.number == 0
        break
    assert [row.number for row in await query.all()] == [0, 1, 2]


# --- retries ----------------------------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_a_retry_reads_rows_of_an_index_from_the_table(db: Db, seat: type[Any]) -> None:
    guest = fresh("guest")
    name = await create_room(db, seat, 3, guest=guest)
    attempts: list[list[int]] = []

    async def body(tx: Any) -> None:
        rows = await tx.query(seat, index="by_guest", guest=guest).all()
        attempts.append([row.price for row in rows])
        if len(attempts) == 1:
            await change(db, seat, name, 1, price=20)
        for row in rows:
            row.price += 1

    await db.run(body, initial_backoff=0)
    assert attempts == [[10, 10, 10], [10, 20, 10]]
    assert [row.price for row in await db.query(seat, room=name).all()] == [11, 21, 11]
    reads = [request for request, _ in watch_of(db).exchanges if isinstance(request, BatchGet)]
    assert len(reads) == 1
    assert all(read.consistent for read in reads[0].reads)


class LaggingIndex:
    """Change the table after an index replied, as if the index lagged behind its table."""

    def __init__(self, db: Db, change_table: Any) -> None:
        self.watch, self.change_table = watch_of(db), change_table

    def __enter__(self) -> None:
        self._before, self.watch.after = self.watch.after, self._lag

    def _lag(self, request: Any) -> None:
        if isinstance(request, Query) and request.index is not None:
            self.watch.after = self._before
            self.change_table()

    def __exit__(self, *error: object) -> None:
        self.watch.after = self._before


STALE: Sequence[tuple[str, dict[str, Any]]] = [
    ("no longer meets the condition", {"price": 99}),
    ("has another guest", {"guest": "another guest"}),
    ("no longer has a guest", {"guest": None}),
]


@in_memory
@both_layouts
@pytest.mark.parametrize("change_to", [values for _, values in STALE], ids=[name for name, _ in STALE])
async def test_a_retry_does_not_return_a_row_that_only_a_lagging_index_still_contains(
    db: Db, seat: type[Any], change_to: dict[str, Any]
) -> None:
    guest = fresh("guest")
    name = await create_room(db, seat, 2, guest=guest)
    attempts: list[list[int]] = []

    def meanwhile() -> None:
        either: Any = db
        backing: Database = either.sync if isinstance(db, AsyncDatabase) else either._inner
        with backing.transaction() as tx:
            item = tx.get_one(seat, room=name, number=1)
            for field_name, value in change_to.items():
                setattr(item, field_name, value)

    async def body(tx: Any) -> None:
        query = tx.query(seat, index="by_guest", guest=guest, where=col(seat.price) < 50)
        if attempts:
            with LaggingIndex(db, meanwhile):
                rows = await query.all()
        else:
            rows = await query.all()
            await change(db, seat, name, 0, note="so that the first attempt fails")
        attempts.append([row.number for row in rows])
        rows[0].note = f"{rows[0].note} attempt {len(attempts)}"

    await db.run(body, initial_backoff=0)
    assert attempts == [[0, 1], [0]]


@in_memory
async def test_a_retry_reads_the_table_consistently_even_with_consistent_false(db: Db) -> None:
    name = await create_room(db, Seat, 2)
    attempts: list[int] = []

    async def body(tx: Any) -> None:
        watch_of(db).forget()
        query = tx.query(Seat, room=name, consistent=False)
        first = await query.first()
        await query.count()
        await query.exists()
        await query.page(1)
        if not attempts:
            await change(db, Seat, name, 0, price=33)
        first.price += 1
        attempts.append(1)

    await db.run(body, initial_backoff=0)
    assert [query.consistent for query, _ in watch_of(db).pages()] == [True] * 4


# --- partial rows -----------------------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_only_the_requested_fields_are_fetched(db: Db, seat: type[Any]) -> None:
    name = await create_room(db, seat, 2, note="x" * 100, guest="g")
    for only in ([seat.price], ["price"], (seat.price, seat.number)):
        row = await db.query(seat, room=name, only=only).first()
        assert row is not None
        assert row.to_dict() == {"room": name, "number": 0, "price": 10}
        assert row.key == seat.key(room=name, number=0)
        with pytest.raises(InvalidFieldError, match=r"note: it was not fetched"):
            row.note  # noqa: B018
    (_, page) = watch_of(db).pages()[0]
    assert not any("note" in item or "guest" in item for item in page.items)


@in_memory
@both_layouts
async def test_a_partial_row_cannot_be_changed_but_its_key_can_be_deleted(db: Db, seat: type[Any]) -> None:
    name = await create_room(db, seat, 1)
    async with db.transaction() as tx:
        (row,) = await tx.query(seat, room=name, only=[seat.price]).all()
        with pytest.raises(FrozenItemError, match="only some fields"):
            row.price = 5
        with pytest.raises(FrozenItemError, match="only some fields"):
            row.field("price").increment_by(1)
        tx.delete(row.key)
    assert await db.query(seat, room=name).count() == 0


@in_memory
@both_layouts
async def test_a_requested_field_that_is_not_stored_shows_its_default(db: Db, seat: type[Any]) -> None:
    name = fresh("room")
    key = seat.key(room=name, number=1)
    await db.get(key)
    own = {} if seat is OwnSeat else {"_type": {"S": "Seat"}, "room": {"S": name}, "number": {"N": "1"}}
    await db.send(PutItem(table_of(db, seat), {**raw_key(key), **own}))
    row = await db.query(seat, room=name, only=[seat.price, seat.guest]).one()
    assert row.to_dict() == {"room": name, "number": 1, "price": 10, "guest": None}


@everywhere
@both_layouts
async def test_a_query_of_an_index_can_fetch_some_fields(db: Db, seat: type[Any]) -> None:
    guest = fresh("guest")
    name = await create_room(db, seat, 3, guest=guest)
    query = db.query(seat, index="by_guest", guest=guest, only=[seat.price], where=col(seat.note) == None)  # noqa: E711
    rows = await query.all()
    assert [(row.number, row.price) for row in rows] == [(0, 10), (1, 10), (2, 10)]
    page = await query.page(2)
    assert [row.number for row in (await query.page(2, after=page.next)).items] == [2]
    assert rows[0].room == name


@in_memory
async def test_only_must_name_fields_of_the_model(db: Db) -> None:
    odd: list[Any] = [["nothing"], [5], [None], [Other.text], [col(Seat.price)]]
    for only in odd:
        with pytest.raises(InvalidOptionsError, match="only= names"):
            db.query(Seat, room="a", only=only)


class Other(Model):
    id: Key[str]
    text: str = ""


class Renamed(Model):
    shelf: Key[str]
    number: SortKey[int]
    cost: int = field(default=0, aliases=["price"])


@in_memory
async def test_a_partial_old_row_has_the_value_of_a_renamed_field(db: Db) -> None:
    shelf = fresh("shelf")
    key = Renamed.key(shelf=shelf, number=1)
    await db.get(key)
    old = {"_type": {"S": "Renamed"}, "shelf": {"S": shelf}, "number": {"N": "1"}, "price": {"N": "7"}}
    await db.send(PutItem(table_of(db, Renamed), {**raw_key(key), **old}))
    row = await db.query(Renamed, shelf=shelf, only=[Renamed.cost]).one()
    assert row.cost == 7
