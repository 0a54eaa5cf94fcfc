"""Getting items: how they are addressed, what is sent, and that a transaction has one instance of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory, in_memory_with_stale_reads
from rig.behaviour_models import Line, Order, arrange, meanwhile

from holdall import AsyncTransaction, Key, Model
from holdall.core import BatchGet, GetItem, TransactGet
from holdall.errors import (
    DuplicateItemError,
    FrozenItemError,
    InvalidFieldError,
    InvalidKeyError,
    InvalidOptionsError,
    ModelTrackedTwiceError,
    RecordNotFound,
)
from holdall.testing import Fault


class Pair(Model):
    a: Key[str]
    b: Key[str]
    n: int = 0


class Switch(Model):
    on: Key[bool]


class Number(Model):
    n: Key[int]


# --- one item ---------------------------------------------------------------------------------------------


@everywhere
async def test_an_item_can_be_addressed_by_value_by_components_by_a_mapping_or_by_key(db: Db) -> None:
    await arrange(db, Order(id="a"), Line(order="a", number=1, text="one"))
    async with db.transaction() as tx:
        assert (await tx.get_one(Order, "a")).id == "a"
    for line in (
        await db.get(Line, order="a", number=1),
        await db.get(Line, {"order": "a", "number": 1}),
        await db.get(Line.key(order="a", number=1)),
    ):
        assert line is not None
        assert (line.order, line.number, line.text) == ("a", 1, "one")
    assert db.kinds() == ["GetItem"] * 4
    assert all(request.consistent for request in db.list_sent())


@everywhere
async def test_get_returns_none_for_a_missing_item_and_get_one_raises_an_error(db: Db) -> None:
    assert await db.get(Order, "a") is None
    with pytest.raises(RecordNotFound, match=r"there is no Order\(id='a'\)"):
        await db.get_one(Order, "a")
    async with db.transaction() as tx:
        assert await tx.get(Order, "a") is None
        with pytest.raises(LookupError):
            await tx.get_one(Order, "a")


@in_memory
async def test_a_read_can_be_eventually_consistent(db: Db) -> None:
    await db.get(Order, "a", consistent=False)
    async with db.transaction() as tx:
        await tx.get(Order.key("b"), consistent=False)
    assert [request.consistent for request in db.list_sent()] == [False, False]


@in_memory_with_stale_reads
async def test_after_contention_reads_are_consistent_even_with_consistent_false(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    await meanwhile(db, Order.key("a"), quantity=5)
    db.forget()
    db.faults.inject(Fault.STALE)

    async def count(tx: AsyncTransaction) -> int:
        order = await tx.get(Order, "a", consistent=False)
        assert order is not None
        seen = order.quantity
        order.quantity += 1
        return seen

    assert await db.run(count) == 5
    assert db.faults.injected[Fault.STALE] == 1
    assert [request.consistent for request in db.list_sent() if isinstance(request, GetItem)] == [False, True]


@in_memory
async def test_falsy_keys_are_keys(db: Db) -> None:
    await arrange(db, Number(n=0), Switch(on=False), Order(id=""))
    assert await db.get(Number, 0) is not None
    assert await db.get(Number.key(n=0)) is not None
    assert await db.get(Switch, False) is not None
    assert await db.get(Order, "") is not None


@everywhere
async def test_keys_with_similar_encodings_are_not_confused(db: Db) -> None:
    await arrange(db, Pair(a="x", b="yz", n=1), Pair(a="xy", b="z", n=2), Pair(a="x#y", b="z", n=3))
    async with db.transaction() as tx:
        first = await tx.get_one(Pair, a="x", b="yz")
        second = await tx.get_one(Pair, a="xy", b="z")
        third = await tx.get_one(Pair, a="x#y", b="z")
        assert [first.n, second.n, third.n] == [1, 2, 3]
        first.n, second.n, third.n = 10, 20, 30
    assert [item.n for item in await db.get_all([first.key, second.key, third.key]) if item] == [10, 20, 30]


@in_memory
@pytest.mark.parametrize(
    ("get", "error"),
    [
        (lambda tx: tx.get(Order), InvalidFieldError),
        (lambda tx: tx.get(Order, 5), InvalidFieldError),
        (lambda tx: tx.get(Order, None), InvalidFieldError),
        (lambda tx: tx.get(Order, "a", "b"), InvalidKeyError),
        (lambda tx: tx.get(Order, id="a", product="tea"), InvalidFieldError),
        (lambda tx: tx.get(Order, id="a", colour="red"), InvalidFieldError),
        (lambda tx: tx.get(Line, "a"), InvalidKeyError),
        (lambda tx: tx.get(Line, order="a"), InvalidFieldError),
        (lambda tx: tx.get(Line, {"order": "a"}), InvalidFieldError),
        (lambda tx: tx.get(Line, {"order": "a", "number": 1, "text": ""}), InvalidFieldError),
        (lambda tx: tx.get(Order.key("a"), "b"), InvalidOptionsError),
        (lambda tx: tx.get(Order.key("a"), inconsistent=True), InvalidOptionsError),
        (lambda tx: tx.get(Order.key("a"), consistent=1), InvalidOptionsError),
        (lambda tx: tx.get(Order.key("a"), create_if_missing="yes"), InvalidOptionsError),
        (lambda tx: tx.get("Order", "a"), InvalidOptionsError),
        (lambda tx: tx.get(Model, "a"), InvalidOptionsError),
        (lambda tx: tx.get([Order.key("a")]), InvalidOptionsError),
        (lambda tx: tx.get_all([Order]), InvalidOptionsError),
        (lambda tx: tx.get_all(["a"]), InvalidOptionsError),
    ],
)
async def test_an_invalid_address_is_refused_before_anything_is_sent(
    db: Db, get: Callable[[Any], Any], error: type[Exception]
) -> None:
    async with db.transaction() as tx:
        with pytest.raises(error):
            await get(tx)
    assert db.list_sent() == []


# --- several items ----------------------------------------------------------------------------------------


@everywhere
async def test_get_all_sends_one_transact_get_and_keeps_the_order(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"), Line(order="a", number=1))
    keys = [Order.key("b"), Line.key(order="a", number=1), Order.key("x"), Order.key("a")]
    for reader in (db, db.transaction()):
        db.forget()
        found = await reader.get_all(keys)
        assert [None if item is None else item.key for item in found] == [keys[0], keys[1], None, keys[3]]
        assert db.kinds() == ["TransactGet"]


@everywhere
async def test_get_all_sends_one_batch_if_it_need_not_be_consistent(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    found = await db.get_all([Order.key("b"), Order.key("x"), Order.key("a")], consistent=False)
    assert [item and item.id for item in found] == ["b", None, "a"]
    assert db.kinds() == ["BatchGet"]
    assert not any(read.consistent for read in db.list_sent()[0].reads)


@in_memory
async def test_get_all_refuses_duplicates_before_anything_is_sent(db: Db) -> None:
    with pytest.raises(DuplicateItemError, match=r"Order\(id='a'\) is requested twice"):
        await db.get_all([Order.key("a"), Order.key("b"), Order.key("a")])
    assert db.list_sent() == []


@in_memory
async def test_get_all_of_no_keys_sends_nothing(db: Db) -> None:
    assert await db.get_all([]) == []
    assert db.list_sent() == []


@in_memory
async def test_get_all_requests_only_items_that_the_transaction_does_not_have(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    async with db.transaction() as tx:
        first = await tx.get(Order, "a")
        missing = await tx.get(Order, "x")
        db.forget()
        again, none, second = await tx.get_all([Order.key("a"), Order.key("x"), Order.key("b")])
        assert again is first
        assert missing is none is None
        assert second is not None
        (request,) = db.list_sent()
        assert isinstance(request, TransactGet)
        assert len(request.reads) == 1


@in_memory
async def test_many_eventually_consistent_reads_are_batches_of_a_hundred(db: Db) -> None:
    await arrange(db, Order(id="249"))
    found = await db.get_all([Order.key(str(n)) for n in range(250)], consistent=False)
    assert [item.id for item in found if item] == ["249"]
    assert sorted(len(batch.reads) for batch in db.list_sent() if isinstance(batch, BatchGet)) == [
        50,
        100,
        100,
    ]


# --- one instance -----------------------------------------------------------------------------------------


@everywhere
async def test_a_second_get_returns_the_same_instance_and_sends_nothing(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.quantity = 9
        again = await tx.get_one(Order.key("a"))
        assert again is order
        assert again.quantity == 9
        assert db.kinds() == ["GetItem"]


@in_memory
async def test_a_missing_item_stays_missing_for_the_transaction(db: Db) -> None:
    async with db.transaction() as tx:
        assert await tx.get(Order, "a") is None
        await arrange(db, Order(id="a"))
        assert await tx.get(Order, "a") is None
    assert db.list_sent() == []


@everywhere
async def test_an_item_that_was_missing_and_then_created_is_returned_by_later_gets(db: Db) -> None:
    async with db.transaction() as tx:
        assert await tx.get(Order, "a") is None
        order = tx.create(Order, id="a")
        assert await tx.get(Order, "a") is order
        assert await tx.get_all([Order.key("b"), Order.key("a")]) == [None, order]
    assert db.kinds() == ["GetItem", "TransactGet", "TransactWrite"]


@in_memory
async def test_a_strict_transaction_refuses_a_second_get(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction(strict=True) as tx:
        await tx.get(Order, "a")
        with pytest.raises(ModelTrackedTwiceError, match="already read"):
            await tx.get(Order, "a")
        tx.create(Order, id="b")
        with pytest.raises(ModelTrackedTwiceError, match="already created"):
            await tx.get(Order, "b")

    async def twice(tx: AsyncTransaction) -> None:
        await tx.get(Order, "a")
        await tx.get_all([Order.key("a")])

    with pytest.raises(ModelTrackedTwiceError):
        await db.run(twice, strict=True)


@in_memory
async def test_a_strict_transaction_can_create_a_missing_item(db: Db) -> None:
    async with db.transaction(strict=True) as tx:
        assert await tx.get(Order, "a") is None
        order = await tx.get(Order, "a", create_if_missing=True)
        assert order.is_new
        assert await tx.get(Order, "b") is None
        tx.create(Order, id="b")
    assert await db.get(Order, "a") is not None
    assert await db.get(Order, "b") is not None


@in_memory
async def test_an_item_that_was_written_blindly_cannot_be_read(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        tx.update(Order, {"id": "a", "quantity": 1}, {"quantity": 2})
        tx.create_or_put(Order, {"id": "b"}, {})
        tx.delete(Order.key("c"))
        for id in ("a", "b", "c"):
            with pytest.raises(ModelTrackedTwiceError, match="without being read"):
                await tx.get(Order, id)


# --- outside a transaction --------------------------------------------------------------------------------


@in_memory
async def test_an_item_that_was_read_outside_a_transaction_is_frozen(db: Db) -> None:
    await arrange(db, Order(id="a"))
    order = await db.get_one(Order, "a")
    (row,) = await db.query(Order, id="a").all()
    for item in (order, row):
        with pytest.raises(FrozenItemError, match="outside a transaction"):
            item.quantity = 2
        assert item.quantity == 1
    assert order == row
    assert order is not row


@everywhere
async def test_a_query_returns_a_partition_in_the_order_of_its_sort_key(db: Db) -> None:
    await arrange(db, *(Line(order="a", number=n) for n in (10, 9, -1, 100, 0)), Line(order="b", number=5))
    assert [line.number async for line in db.query(Line, order="a")] == [-1, 0, 9, 10, 100]
    assert [line.number async for line in db.query(Line, order="a", reverse=True, limit=2)] == [100, 10]
    assert await db.query(Line, order="x").all() == []
