"""Optimistic locking: a transaction commits only if nothing that it used has changed.

The commit checks each field of a loaded item that was read or written, that the item still exists, and that missing
items are still missing. It does not check fields and rows that were not used, nor transactions without writes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory, raw_key
from rig.behaviour_models import Line, Order, arrange, expect_contention, meanwhile, put_raw

from holdall import AsyncTransaction, Key, Model, field
from holdall.core import (
    Compare,
    ConditionCheck,
    Exists,
    NotExists,
    PutItem,
    UpdateItem,
    encode_item,
    path,
    value,
)
from holdall.errors import ContentionError, FrozenItemError


class Event(Model):
    id: Key[str]
    at: datetime
    more: list[datetime] = field(default_factory=list)
    n: int = 0


# --- loaded items -----------------------------------------------------------------------------------------


@everywhere
async def test_a_field_that_was_read_must_not_change(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    with expect_contention():
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            order.note = f"{order.quantity} left"
            await meanwhile(db, order.key, quantity=2)
    assert (await db.get_one(Order, "a")).note is None


@everywhere
async def test_a_field_that_was_only_written_must_not_change(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    with expect_contention():
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            order.quantity = 9
            await meanwhile(db, order.key, quantity=2)
    assert (await db.get_one(Order, "a")).quantity == 2


@everywhere
async def test_a_field_that_was_not_used_can_change(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.note = "mine"
        await meanwhile(db, order.key, quantity=2, product="tea")
    order = await db.get_one(Order, "a")
    assert (order.note, order.quantity, order.product) == ("mine", 2, "tea")


@everywhere
async def test_a_field_that_was_read_as_absent_must_stay_absent(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with expect_contention():
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            if order.note is None:
                order.quantity = 2
            await meanwhile(db, order.key, note="wait")


@everywhere
async def test_a_loaded_item_must_still_exist(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    with expect_contention() as caught:
        async with db.transaction() as tx:
            await tx.get_one(Order, "a")
            (await tx.get_one(Order, "b")).quantity = 2
            async with db.transaction() as other:
                other.delete(Order.key("a"))
    assert "Order(id='a') does not exist" in str(caught.value.__cause__)
    assert (await db.get_one(Order, "b")).quantity == 1


@everywhere
async def test_a_change_does_not_restore_an_item_that_was_deleted_meanwhile(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(Order, "a")).note = "x"
            async with db.transaction() as other:
                other.delete(Order.key("a"))
    assert await db.get(Order, "a") is None


@everywhere
async def test_items_that_were_only_read_are_checked_in_the_write_of_the_others(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"), Order(id="c"))
    async with db.transaction() as tx:
        first, second = await tx.get_one(Order, "a"), await tx.get_one(Order, "b")
        assert await tx.get(Order, "x") is None
        assert first.quantity == 1
        second.quantity = 2
        tx.delete(await tx.get_one(Order, "c"))
        db.forget()
    (write,) = db.list_sent()
    kinds = [type(action).__name__ for action in write.actions]
    assert kinds == ["UpdateItem", "DeleteItem", "ConditionCheck", "ConditionCheck"]
    conditions = {
        action.key["pk"]["S"]: action.condition
        for action in write.actions
        if isinstance(action, ConditionCheck)
    }
    assert conditions == {
        "Order#a": Compare("=", path("quantity"), value(1)),
        "Order#x": NotExists(path("pk")),
    }


@everywhere
async def test_reads_of_two_items_prevent_write_skew(db: Db) -> None:
    """Two transactions each read both items and change one of them; the later one must see the other's change."""
    await arrange(db, Order(id="a", quantity=1), Order(id="b", quantity=1))

    async def take(tx: AsyncTransaction, own: str, meanwhile: Callable[[], Any] | None) -> bool:
        orders = {id: await tx.get_one(Order, id) for id in ("a", "b")}
        enough = sum(order.quantity for order in orders.values()) > 1
        if meanwhile is not None and enough:
            await meanwhile()
        if enough:
            orders[own].quantity = 0
        return enough

    async def other() -> None:
        assert await db.run(take, "b", None)

    assert await db.run(take, "a", other) is False
    assert [item.quantity for item in await db.get_all([Order.key("a"), Order.key("b")]) if item] == [1, 0]


@everywhere
async def test_concurrent_appends_to_a_list_lose_nothing(db: Db) -> None:
    await arrange(db, Order(id="guests"))
    attempts = []

    async def sign(tx: AsyncTransaction, name: str, then: str | None) -> None:
        book = await tx.get_one(Order, "guests")
        attempts.append(name)
        if then is not None and attempts == ["Alice"]:
            await db.run(sign, then, None)
        book.tags.append(name)

    await db.run(sign, "Alice", "Bob")
    assert attempts == ["Alice", "Bob", "Alice"]
    assert (await db.get_one(Order, "guests")).tags == ["Bob", "Alice"]


# --- missing items ----------------------------------------------------------------------------------------


@everywhere
async def test_a_missing_item_must_still_be_missing(db: Db) -> None:
    await arrange(db, Order(id="a"))
    seen = []

    async def record_absence(tx: AsyncTransaction) -> None:
        found = await tx.get(Order, "b")
        seen.append(found is not None)
        order = await tx.get_one(Order, "a")
        order.note = "with b" if found else "without b"
        if len(seen) == 1:
            async with db.transaction() as other:
                other.create(Order, id="b")

    await db.run(record_absence)
    assert seen == [False, True]
    assert (await db.get_one(Order, "a")).note == "with b"


@everywhere
async def test_items_that_stay_missing_do_not_prevent_the_commit(db: Db) -> None:
    async with db.transaction() as tx:
        assert await tx.get_all([Order.key("x"), Order.key("y")]) == [None, None]
        tx.create(Order, id="a")
    assert db.kinds() == ["TransactGet", "TransactWrite"]


# --- uses that are not reads ------------------------------------------------------------------------------


@in_memory
@pytest.mark.parametrize(
    "use",
    [
        lambda order: order.to_dict(),
        lambda order: order.to_dict(initial=True),
        repr,
        hash,
        lambda order: (order.key, order.id, order.is_new),
        lambda order: order == Order(id="a"),
        lambda order: order.field("quantity").validate(),
        lambda order: order.field("quantity").accessed,
        lambda order: order.field("quantity").changed,
    ],
)
async def test_using_an_item_as_a_whole_locks_no_field(db: Db, use: Callable[[Order], Any]) -> None:
    await arrange(db, Order(id="a", quantity=1))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.note = "x"
        use(order)
        tx.changes()
        await meanwhile(db, order.key, quantity=2)
    assert (await db.get_one(Order, "a")).note == "x"


@in_memory
async def test_key_components_are_not_part_of_the_condition(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        assert order.id == "a"
        order.note = "x"
    update = db.list_sent()[-1]
    assert isinstance(update, UpdateItem)
    assert "id" not in str(update.condition)


@in_memory
async def test_a_lock_on_a_value_needs_no_condition_that_the_item_exists(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        (await tx.get_one(Order, "a")).quantity = 2
    async with db.transaction() as tx:
        (await tx.get_one(Order, "a")).note = "x"
    conditions = [request.condition for request in db.list_sent() if isinstance(request, UpdateItem)]
    assert conditions[0] == Compare("=", path("quantity"), value(1))
    assert conditions[1] == Exists(path("pk")) & NotExists(path("note"))


# --- the stored form --------------------------------------------------------------------------------------


@everywhere
async def test_a_lock_compares_the_stored_form_of_an_attribute(db: Db) -> None:
    """Reading a time that another program wrote in another form does not rewrite it."""
    key, moment = Event.key("a"), "2026-01-31T10:30:00+01:00"
    event = {"id": "a", "at": moment, "more": [moment], "n": 1}
    await put_raw(db, Event, {**raw_key(key), **encode_item(event)})
    async with db.transaction() as tx:
        loaded = await tx.get_one(key)
        assert loaded.at == loaded.more[0] == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
        loaded.n += 1
    stored = await db.raw(key)
    assert stored is not None
    assert (stored["at"], stored["more"], stored["n"]) == ({"S": moment}, {"L": [{"S": moment}]}, {"N": "2"})


@everywhere
async def test_a_value_that_ends_up_unchanged_is_not_rewritten_in_another_form(db: Db) -> None:
    key, moment = Event.key("a"), "2026-01-31T10:30:00+01:00"
    event = {"id": "a", "at": moment, "more": [moment], "n": 1}
    await put_raw(db, Event, {**raw_key(key), **encode_item(event)})
    async with db.transaction() as tx:
        loaded = await tx.get_one(key)
        loaded.more.append(loaded.at)
        loaded.more.pop()
    assert db.kinds() == ["GetItem"]


# --- without writes ---------------------------------------------------------------------------------------


@everywhere
async def test_a_transaction_without_writes_verifies_nothing(db: Db) -> None:
    """Two gets may return values that never existed at the same moment: use get_all, or read_only=True."""
    await arrange(db, Order(id="a", quantity=0), Order(id="b", quantity=0))
    async with db.transaction() as tx:
        first = (await tx.get_one(Order, "a")).quantity
        async with db.transaction() as other:
            one, two = await other.get_one(Order, "a"), await other.get_one(Order, "b")
            one.quantity = two.quantity = 1
        db.forget()
        second = (await tx.get_one(Order, "b")).quantity
    assert (first, second) == (0, 1)
    assert db.kinds() == ["GetItem"]


@everywhere
async def test_get_all_reads_items_at_one_moment(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1), Order(id="b", quantity=1))
    async with db.transaction() as tx:
        one, two = await tx.get_all([Order.key("a"), Order.key("b")])
        assert one is not None
        assert two is not None
        await meanwhile(db, Order.key("b"), quantity=2)
        assert (one.quantity, two.quantity) == (1, 1)


# --- rows of a query --------------------------------------------------------------------------------------


@everywhere
async def test_rows_that_were_not_used_are_not_checked(db: Db) -> None:
    await arrange(db, *(Line(order="a", number=n) for n in range(4)))
    async with db.transaction() as tx:
        rows = await tx.query(Line, order="a").all()
        rows[1].text = "changed"
        await meanwhile(db, rows[2].key, text="elsewhere")
        db.forget()
    assert db.kinds() == ["UpdateItem"]
    assert [line.text for line in await db.query(Line, order="a").all()] == ["", "changed", "elsewhere", ""]


@everywhere
async def test_a_row_that_was_read_is_checked(db: Db) -> None:
    await arrange(db, Line(order="a", number=1, text="x"), Line(order="a", number=2))
    with expect_contention():
        async with db.transaction() as tx:
            first, second = await tx.query(Line, order="a").all()
            second.text = first.text
            await meanwhile(db, first.key, text="y")


@in_memory
async def test_a_row_and_a_get_return_the_same_instance(db: Db) -> None:
    await arrange(db, Line(order="a", number=1))
    async with db.transaction() as tx:
        (row,) = await tx.query(Line, order="a").all()
        assert await tx.get(Line, order="a", number=1) is row
        assert (await tx.query(Line, order="a").all())[0] is row
    assert db.kinds() == ["Query", "Query"]


@in_memory
async def test_rows_without_a_lock_are_frozen(db: Db) -> None:
    await arrange(db, Line(order="a", number=1, text="x"), Order(id="a"))
    async with db.transaction() as tx:
        (row,) = await tx.query(Line, order="a", lock=False).all()
        with pytest.raises(FrozenItemError):
            row.text = "y"
        (await tx.get_one(Order, "a")).note = row.text
        await meanwhile(db, row.key, text="z")
    assert (await db.get_one(Order, "a")).note == "x"


@everywhere
async def test_a_guard_item_detects_phantoms_which_are_not_detected_without_one(db: Db) -> None:
    """A row that appears in a partition after the query changes nothing that the transaction used."""
    await arrange(db, Line(order="a", number=1), Order(id="sum"), Order(id="guard"))

    async def add(number: int) -> None:
        async with db.transaction() as tx:
            tx.create(Line, order="a", number=number)
            (await tx.get_one(Order, "guard")).quantity += 1

    async with db.transaction() as tx:
        rows = await tx.query(Line, order="a").all()
        (await tx.get_one(Order, "sum")).quantity = len(rows)
        await add(2)
    assert (await db.get_one(Order, "sum")).quantity == 1
    with expect_contention():
        async with db.transaction() as tx:
            assert (await tx.get_one(Order, "guard")).quantity
            rows = await tx.query(Line, order="a").all()
            (await tx.get_one(Order, "sum")).quantity = len(rows)
            await add(3)


@in_memory
async def test_a_row_that_the_transaction_read_as_missing_is_contention(db: Db) -> None:
    """The transaction read the item as missing; another one created it; then a query returned it."""
    attempts = []

    async def mark(tx: AsyncTransaction) -> None:
        found = await tx.get(Line, order="a", number=1)
        attempts.append(found is not None)
        if len(attempts) == 1:
            async with db.transaction() as other:
                other.create(Line, order="a", number=1)
        for row in await tx.query(Line, order="a").all():
            row.text = "seen"

    await db.run(mark)
    assert attempts == [False, True]
    assert (await db.get_one(Line, order="a", number=1)).text == "seen"


# --- attempts ---------------------------------------------------------------------------------------------


@everywhere
async def test_a_new_attempt_starts_from_scratch(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    seen: list[tuple[AsyncTransaction, Order]] = []

    async def increase(tx: AsyncTransaction) -> Order:
        order = await tx.get_one(Order, "a")
        seen.append((tx, order))
        if len(seen) == 1:
            tx.create(Order, id="of the first attempt")
            await meanwhile(db, order.key, quantity=10)
        order.quantity += 1
        return order

    order = await db.run(increase)
    assert order is seen[1][1]
    assert seen[0][0] is not seen[1][0]
    assert seen[0][1] is not seen[1][1]
    assert (await db.get_one(Order, "a")).quantity == 11
    assert await db.get(Order, "of the first attempt") is None
    with pytest.raises(FrozenItemError):
        seen[0][1].quantity = 5


@everywhere
async def test_a_stale_read_takes_precedence_over_the_error_that_it_caused(db: Db) -> None:
    """The transaction creates an existing item only because of a stale value, so it is retried."""
    await arrange(db, Order(id="a", note="create b"), Order(id="b"))
    attempts = []

    async def create_if_noted(tx: AsyncTransaction) -> None:
        order = await tx.get_one(Order, "a")
        attempts.append(order.note)
        if order.note is not None:
            tx.create(Order, id="b")
            await meanwhile(db, order.key, note=None)

    await db.run(create_if_noted)
    assert attempts == ["create b", None]


@in_memory
async def test_the_contention_error_contains_the_differences(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    with expect_contention() as caught:
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            order.quantity += 1
            await meanwhile(db, order.key, quantity=5)
    cause = caught.value.__cause__
    assert isinstance(cause, ContentionError)
    (difference,) = cause.differences
    assert difference == ("Order(id='a')", "quantity", {"N": "1"}, {"N": "5"})


@everywhere
async def test_created_and_loaded_items_are_written_in_one_request(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.quantity += 1
        tx.create(Line, order="a", number=order.quantity)
        db.forget()
    (write,) = db.list_sent()
    assert [type(action) for action in write.actions] == [UpdateItem, PutItem]
