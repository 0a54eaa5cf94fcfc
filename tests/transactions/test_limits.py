"""DynamoDB's limits: Holdall checks them before it sends anything, and the error says what to do."""

from __future__ import annotations

from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import Line, Mark, Order, arrange, expect_failure

from holdall import Key, Model
from holdall.core import TransactWrite
from holdall.errors import (
    HoldallError,
    InvalidExpressionError,
    InvalidKeyError,
    InvalidRequestError,
    ItemTooLargeError,
    TransactionTooLarge,
)

KB = 1024


class Blob(Model):
    id: Key[str]
    text: str = ""


def define_wide_model(count: int) -> type[Any]:
    """Define a model with this many fields."""
    names = [f"f{n}" for n in range(count)]
    body: dict[str, Any] = {
        "__annotations__": {"id": Key[str], **dict.fromkeys(names, int)},
        "__module__": __name__,
        **dict.fromkeys(names, 0),
    }
    return type("Wide", (Model,), body)


def is_refused_by_holdall(error: HoldallError) -> bool:
    return isinstance(error, InvalidRequestError) and error.service_code is None and error.request_id is None


# --- a hundred items --------------------------------------------------------------------------------------


@everywhere
async def test_a_hundred_items_are_one_transaction(db: Db) -> None:
    async with db.transaction() as tx:
        for n in range(100):
            tx.create(Mark, id=str(n))
    (write,) = db.list_sent()
    assert isinstance(write, TransactWrite)
    assert all(await db.get_all([Mark.key(str(n)) for n in range(100)]))


@everywhere
async def test_a_hundred_and_one_items_are_refused_before_anything_is_sent(db: Db) -> None:
    with expect_failure(TransactionTooLarge, "101 actions; DynamoDB allows 100") as caught:
        async with db.transaction() as tx:
            for n in range(101):
                tx.create(Mark, id=str(n))
    assert "split the work" in str(caught.value)
    assert db.list_sent() == []


@in_memory
async def test_items_that_were_read_or_missing_count_too(db: Db) -> None:
    await arrange(db, *(Order(id=str(n)) for n in range(50)))
    with expect_failure(TransactionTooLarge, "101 actions"):
        async with db.transaction() as tx:
            await tx.get_all([Order.key(str(n)) for n in range(100)])
            tx.create(Mark, id="a")
            db.forget()
    assert db.list_sent() == []
    async with db.transaction() as tx:
        await tx.get_all([Order.key(str(n)) for n in range(99)])
        tx.create(Mark, id="a")


@in_memory
async def test_a_transaction_that_writes_nothing_has_no_limit(db: Db) -> None:
    async with db.transaction() as tx:
        assert not any(await tx.get_all([Mark.key(str(n)) for n in range(101)], consistent=False))
    assert db.kinds() == ["BatchGet", "BatchGet"]


@everywhere
async def test_rows_that_were_not_used_do_not_count(db: Db) -> None:
    for start in (0, 75):
        await arrange(db, *(Line(order="a", number=n) for n in range(start, start + 75)))
    async with db.transaction() as tx:
        rows = await tx.query(Line, order="a").all()
        assert len(rows) == 150
        rows[149].text = "last"
    assert (await db.get_one(Line, order="a", number=149)).text == "last"


@everywhere
async def test_more_than_a_hundred_items_can_be_read_only_in_batches(db: Db) -> None:
    await arrange(db, Mark(id="100"))
    keys = [Mark.key(str(n)) for n in range(101)]
    with pytest.raises(TransactionTooLarge, match="consistent=False"):
        await db.get_all(keys)
    assert db.list_sent() == []
    found = await db.get_all(keys, consistent=False)
    assert [mark.id for mark in found if mark] == ["100"]
    assert db.kinds() == ["BatchGet", "BatchGet"]


@in_memory
async def test_a_read_only_transaction_cannot_verify_more_than_a_hundred_items(db: Db) -> None:
    with expect_failure(TransactionTooLarge):
        async with db.transaction(read_only=True) as tx:
            for start in (0, 60):
                await tx.get_all([Mark.key(str(n)) for n in range(start, start + 60)])


# --- sizes ------------------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another write"])
async def test_an_item_over_400_kb_is_refused_by_holdall(db: Db, beside: bool) -> None:
    with expect_failure(ItemTooLargeError, "409,600") as caught:
        async with db.transaction() as tx:
            tx.create(Blob, id="a", text="x" * 400 * KB)
            if beside:
                tx.create(Mark, id="a")
    assert is_refused_by_holdall(caught.value)
    assert await db.get_all([Blob.key("a"), Mark.key("a")]) == [None, None]


@everywhere
async def test_an_item_just_below_the_limit_is_stored(db: Db) -> None:
    await arrange(db, Blob(id="a", text="x" * (399 * KB)))
    assert len((await db.get_one(Blob, "a")).text) == 399 * KB


@everywhere
async def test_a_transaction_over_4_mb_is_refused_by_holdall(db: Db) -> None:
    with expect_failure(TransactionTooLarge, "bytes of items") as caught:
        async with db.transaction() as tx:
            for n in range(11):
                tx.create(Blob, id=str(n), text="x" * 390 * KB)
    assert is_refused_by_holdall(caught.value)
    assert await db.get_all([Blob.key(str(n)) for n in range(11)]) == [None] * 11


@in_memory
@pytest.mark.parametrize(
    "create_mark",
    [lambda: Mark(id="x" * 2049), lambda: Mark(id="é" * 1025)],
    ids=["of characters", "of bytes"],
)
async def test_a_key_that_is_too_long_is_refused(db: Db, create_mark: Any) -> None:
    with expect_failure(InvalidKeyError, "2,?048"):
        async with db.transaction() as tx:
            tx.create(create_mark())


# --- expressions ------------------------------------------------------------------------------------------


@everywhere
async def test_more_than_300_operators_are_refused_by_holdall(db: Db) -> None:
    wide = define_wide_model(160)
    await arrange(db, wide(id="a"))
    with expect_failure(InvalidExpressionError, "300") as caught:
        async with db.transaction() as tx:
            item = await tx.get_one(wide, "a")
            for n in range(160):
                assert getattr(item, f"f{n}") == 0
            item.f0 = 1
    assert is_refused_by_holdall(caught.value)
    assert (await db.get_one(wide, "a")).f0 == 0


@everywhere
async def test_to_dict_of_an_item_with_many_fields_needs_no_condition(db: Db) -> None:
    """``to_dict`` locks no fields."""
    wide = define_wide_model(160)
    await arrange(db, wide(id="a"))
    async with db.transaction() as tx:
        item = await tx.get_one(wide, "a")
        assert sum(value for name, value in item.to_dict().items() if name != "id") == 0
        item.f0 = 1
    assert (await db.get_one(wide, "a")).f0 == 1
