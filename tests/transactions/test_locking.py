"""Optimistic locking: a transaction commits only if everything it touched is still as it was.

What is checked: each field of a loaded item that was read or written, that the item is still there, and that what was
missing still is. What is not: fields and rows of a query that were not touched, and transactions without writes.
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
async def test_a_field_that_was_read_has_to_be_as_it_was(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    with expect_contention():
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            order.note = f"{order.quantity} left"
            await meanwhile(db, order.key, quantity=2)
    assert (await db.get_one(Order, "a")).note is None


@everywhere
async def test_a_field_that_was_only_written_has_to_be_as_it_was(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    with expect_contention():
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            order.quantity = 9
            await meanwhile(db, order.key, quantity=2)
    assert (await db.get_one(Order, "a")).quantity == 2


@everywhere
async def test_a_field_that_nobody_touched_may_change(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.note = "mine"
        await meanwhile(db, order.key, quantity=2, product="tea")
    order = await db.get_one(Order, "a")
    assert (order.note, order.quantity, order.product) == ("mine", 2, "tea")


@everywhere
async def test_a_field_that_was_read_as_absent_has_to_stay_absent(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with expect_contention():
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            if order.note is None:
                order.quantity = 2
            await meanwhile(db, order.key, note="wait")


@everywhere
async def test_a_loaded_item_has_to_be_there_still(db: Db) -> None:
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
async def test_a_changed_item_that_was_deleted_does_not_come_back(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(Order, "a")).note = "x"
            async with db.transaction() as other:
                other.delete(Order.key("a"))
    assert await db.get(Order, "a") is None


@everywhere
async def test_items_that_were_only_read_are_checked_in_the_same_write(db: Db) -> None:
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
async def test_two_items_cannot_be_skewed_against_each_other(db: Db) -> None:
    """Each of two transactions reads both items and changes one: one of them has to see the other's change."""
    await arrange(db, Order(id="a", quantity=1), Order(id="b", quantity=1))

    async def take(tx: AsyncTransaction, mine: str, interloper: Callable[[], Any] | None) -> bool:
        orders = {id: await tx.get_one(Order, id) for id in ("a", "b")}
        enough = sum(order.quantity for order in orders.values()) > 1
        if interloper is not None and enough:
            await interloper()
        if enough:
            orders[mine].quantity = 0
        return enough

    async def other() -> None:
        assert await db.run(take, "b", None)

    assert await db.run(take, "a", other) is False
    assert [item.quantity for item in await db.get_all([Order.key("a"), Order.key("b")]) if item] == [1, 0]


@everywhere
async def test_a_guestbook_loses_no_name(db: Db) -> None:
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
async def test_what_was_missing_has_to_be_missing_still(db: Db) -> None:
    await arrange(db, Order(id="a"))
    seen = []

    async def note_absence(tx: AsyncTransaction) -> None:
        found = await tx.get(Order, "b")
        seen.append(found is not None)
        order = await tx.get_one(Order, "a")
        order.note = "with b" if found else "without b"
        if len(seen) == 1:
            async with db.transaction() as other:
                other.create(Order, id="b")

    await db.run(note_absence)
    assert seen == [False, True]
    assert (await db.get_one(Order, "a")).note == "with b"


@everywhere
async def test_what_was_missing_and_stays_so_lets_the_transaction_commit(db: Db) -> None:
    async with db.transaction() as tx:
        assert await tx.get_all([Order.key("x"), Order.key("y")]) == [None, None]
        tx.create(Order, id="a")
    assert db.kinds() == ["TransactGet", "TransactWrite"]


# --- what is no read --------------------------------------------------------------------------------------


@in_memory
@pytest.mark.parametrize(
    "look",
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
async def test_looking_at_an_item_as_a_whole_locks_no_field(db: Db, look: Callable[[Order], Any]) -> None:
    await arrange(db, Order(id="a", quantity=1))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.note = "x"
        look(order)
        tx.changes()
        await meanwhile(db, order.key, quantity=2)
    assert (await db.get_one(Order, "a")).note == "x"


@in_memory
async def test_key_components_are_never_conditions(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        assert order.id == "a"
        order.note = "x"
    update = db.list_sent()[-1]
    assert isinstance(update, UpdateItem)
    assert "id" not in str(update.condition)


@in_memory
async def test_a_lock_on_a_value_says_that_the_item_is_there(db: Db) -> None:
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
async def test_a_condition_repeats_the_stored_attribute_as_it_arrived(db: Db) -> None:
    """A time that another program wrote in another form is not rewritten because it was read."""
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
async def test_equal_values_in_another_form_are_no_change(db: Db) -> None:
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
async def test_a_transaction_without_writes_sends_nothing_more_and_verifies_nothing(db: Db) -> None:
    """So what two gets saw may never have been true at one moment: use get_all, or read_only=True."""
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
async def test_items_of_one_get_all_are_of_one_moment(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1), Order(id="b", quantity=1))
    async with db.transaction() as tx:
        one, two = await tx.get_all([Order.key("a"), Order.key("b")])
        assert one is not None
        assert two is not None
        await meanwhile(db, Order.key("b"), quantity=2)
        assert (one.quantity, two.quantity) == (1, 1)


# --- rows of a query --------------------------------------------------------------------------------------


@everywhere
async def test_rows_that_nobody_touched_take_no_part(db: Db) -> None:
    await arrange(db, *(Line(order="a", number=n) for n in range(4)))
    async with db.transaction() as tx:
        rows = await tx.query(Line, order="a").all()
        rows[1].text = "changed"
        await meanwhile(db, rows[2].key, text="by others")
        db.forget()
    assert db.kinds() == ["UpdateItem"]
    assert [line.text for line in await db.query(Line, order="a").all()] == ["", "changed", "by others", ""]


@everywhere
async def test_a_row_that_was_read_is_checked(db: Db) -> None:
    await arrange(db, Line(order="a", number=1, text="x"), Line(order="a", number=2))
    with expect_contention():
        async with db.transaction() as tx:
            first, second = await tx.query(Line, order="a").all()
            second.text = first.text
            await meanwhile(db, first.key, text="y")


@in_memory
async def test_a_row_and_a_get_are_one_instance(db: Db) -> None:
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
async def test_a_phantom_is_not_seen_without_a_guard_and_is_with_one(db: Db) -> None:
    """A row that appears in a partition after it was queried changes nothing that was touched."""
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
async def test_a_row_that_had_been_missing_cannot_be_changed_unseen(db: Db) -> None:
    """It was read as missing, then others made it, then a query gave it: the transaction has seen both."""
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
async def test_another_attempt_begins_with_nothing_of_the_last(db: Db) -> None:
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
async def test_a_stale_read_wins_over_what_it_led_to(db: Db) -> None:
    """It wanted to create an item because of a value that is out of date: that is no reason to fail for good."""
    await arrange(db, Order(id="a", note="create b"), Order(id="b"))
    attempts = []

    async def create_if_told(tx: AsyncTransaction) -> None:
        order = await tx.get_one(Order, "a")
        attempts.append(order.note)
        if order.note is not None:
            tx.create(Order, id="b")
            await meanwhile(db, order.key, note=None)

    await db.run(create_if_told)
    assert attempts == ["create b", None]


@in_memory
async def test_contention_tells_what_differed(db: Db) -> None:
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
async def test_created_and_loaded_items_go_in_one_write(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.quantity += 1
        tx.create(Line, order="a", number=order.quantity)
        db.forget()
    (write,) = db.list_sent()
    assert [type(action) for action in write.actions] == [UpdateItem, PutItem]
