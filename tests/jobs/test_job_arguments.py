"""The arguments that a job receives: JSON unchanged, keys as keys, items in their state when the job runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID, uuid4

import pytest
from rig.jobs import Rig, everywhere, in_memory, on_servers

from holdall import Key, Model, ModelKey, SortKey, job
from holdall.errors import FrozenItemError, InvalidJobArgumentsError
from holdall.models.schema import ModelSchema

received: list[Any] = []


class Order(Model):
    customer: Key[str]
    number: SortKey[int]
    quantity: int = 1


class Parcel(Model):
    weight: int = 0


class Colour(Enum):
    RED = "red"


class Odd(Model):
    """A model whose key has every possible type."""

    text: Key[str]
    whole: Key[int]
    decimal: Key[Decimal]
    moment: Key[datetime]
    token: Key[UUID]
    raw: Key[bytes]
    flag: Key[bool]


class Owned(Model, table="OwnedThings"):
    name: Key[str]
    n: int = 0


class Animal(Model):
    name: Key[str]


class Dog(Animal):
    tricks: int = 0


@job("arguments-keep", retries=0)
def keep(*arguments: Any) -> None:
    received.extend(arguments)


@job("arguments-keep-async", retries=0)
async def keep_async(*arguments: Any) -> None:
    received.extend(arguments)


@job("arguments-keep-transactional", retries=0, transactional=True)
def keep_transactional(tx: Any, *arguments: Any) -> None:
    received[:] = [arguments, [tx.get(Order, customer="ada", number=n) for n in (1, 2)]]


@job("arguments-change", retries=0)
def change(order: Order) -> None:
    received.append(order)
    order.quantity = 7


@pytest.fixture(autouse=True)
def _start_afresh() -> Iterator[None]:
    received.clear()
    yield
    received.clear()


JSON: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    10**300,
    1.5,
    -0.0,
    1e300,
    5e-324,
    "",
    "text",
    "é🗝\u0000\u2028\\\"'",
    "$holdall",
    [],
    {},
    [1, [2, [3, {"four": [5]}]]],
    {"": 1, "a b": {"$": 1, "holdall": 2, "$Holdall": 3}},
]


@on_servers
async def test_json_arrives_unchanged(db: Rig) -> None:
    await db.enqueue(keep, *JSON)
    await db.drain()
    assert repr(received) == repr(JSON)


@in_memory
async def test_a_tuple_arrives_as_a_list(db: Rig) -> None:
    await db.enqueue(keep, (1, (2, 3)), {"a": (4,)})
    await db.drain()
    assert received == [[1, [2, 3]], {"a": [4]}]


@in_memory
async def test_later_changes_of_an_argument_do_not_reach_the_job(db: Rig) -> None:
    words = ["before"]

    def body(tx: Any) -> None:
        tx.enqueue(keep, words)
        words.append("after")

    await db.commit(body)
    await db.drain()
    assert received == [["before"]]


# --- keys and items -------------------------------------------------------------------------------------


@on_servers
async def test_an_item_arrives_in_its_state_when_the_job_runs(db: Rig) -> None:
    order = await db.create(Order(customer="ada", number=1))
    await db.enqueue(keep_async, order)

    async def body(tx: Any) -> None:
        (await tx.get_one(order.key)).quantity = 5

    await db.run(body)
    await db.drain()
    (arrived,) = received
    assert isinstance(arrived, Order)
    assert (arrived.customer, arrived.number, arrived.quantity) == ("ada", 1, 5)


@everywhere
async def test_an_item_that_the_same_transaction_creates_can_be_an_argument(db: Rig) -> None:
    def body(tx: Any) -> Any:
        parcel = tx.create(Parcel, weight=3)
        tx.enqueue(keep, parcel, parcel.key)
        return parcel.key

    key = await db.commit(body)
    await db.drain()
    assert [type(argument) for argument in received] == [Parcel, ModelKey]
    assert received[0].weight == 3
    assert received[0].key == received[1] == key


@in_memory
async def test_a_key_arrives_as_a_key_even_if_there_is_no_item(db: Rig) -> None:
    key = Order.key(customer="missing", number=7)
    await db.enqueue(keep, key)
    await db.drain()
    assert received == [key]


@everywhere
async def test_keys_and_items_can_be_anywhere_in_lists_and_dicts(db: Rig) -> None:
    order = await db.create(Order(customer="ada", number=1))
    await db.enqueue(keep, [order, {"of": [order.key, 1]}], {"order": order, "plain": "$holdall"})
    await db.drain()
    listed, mapped = received
    assert [type(listed[0]), listed[1], type(mapped["order"]), mapped["plain"]] == [
        Order,
        {"of": [order.key, 1]},
        Order,
        "$holdall",
    ]


@everywhere
async def test_keys_of_every_type_arrive_unchanged(db: Rig) -> None:
    odd = Odd(
        text='#:%"\u0001é',
        whole=-(10**20),
        decimal=Decimal("1.10"),
        moment=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        token=uuid4(),
        raw=b"\x00\xff#",
        flag=True,
    )
    await db.create(odd)
    await db.enqueue(keep, odd, odd.key)
    await db.drain()
    assert received[0].key == received[1] == odd.key
    assert received[0].to_dict() == odd.to_dict()


@in_memory
async def test_an_item_of_a_model_with_its_own_table_can_be_an_argument(db: Rig) -> None:
    owned = await db.create(Owned(name="a", n=3))
    await db.enqueue(keep, owned)
    await db.drain()
    assert [type(received[0]), received[0].n] == [Owned, 3]


@in_memory
async def test_an_item_of_a_derived_model_arrives_as_its_own_class(db: Rig) -> None:
    dog = await db.create(Dog(name="rex", tricks=2))
    await db.enqueue(keep, dog, dog.key)
    await db.drain()
    assert [type(received[0]), received[0].tricks] == [Dog, 2]
    assert received[1] == dog.key


@everywhere
async def test_an_item_is_frozen_in_a_job_without_a_transaction(db: Rig) -> None:
    order = await db.create(Order(customer="ada", number=1))
    await db.enqueue(change, order)
    await db.drain()
    (event,) = [event for event in db.events if event.kind == "dead"]
    assert isinstance(event.error, FrozenItemError)
    assert (await db.get(order.key)).quantity == 1


@everywhere
async def test_an_item_passed_to_a_transactional_job_belongs_to_its_transaction(db: Rig) -> None:
    order = await db.create(Order(customer="ada", number=1))
    await db.enqueue(keep_transactional, order, [order])
    await db.drain()
    arguments, (same, missing) = received
    assert arguments[0] is same
    assert arguments[1][0] is same
    assert missing is None


# --- deleted items and unknown models -------------------------------------------------------------------


@pytest.mark.parametrize(
    "which", [keep, keep_async, keep_transactional], ids=["sync", "async", "transactional"]
)
@everywhere
async def test_a_job_whose_item_was_deleted_is_dropped_and_reported(db: Rig, which: Any) -> None:
    orders = [Order(customer="ada", number=1), Order(customer="ada", number=2)]
    await db.create(*orders)
    await db.enqueue(which, orders[0], {"deep": [orders[1]]}, key="k")
    await db.commit(lambda tx: tx.delete(orders[1].key))
    metrics = await db.drain()
    assert (metrics.dropped, metrics.failed, metrics.dead) == (1, 0, 0)
    assert db.kinds() == ["started", "dropped"]
    assert received == []
    assert await db.jobs.list() == []
    assert (await db.enqueue(which, key="k")).added


@in_memory
async def test_a_job_with_an_item_of_an_unknown_model_fails_and_is_kept(
    db: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await db.create(Order(customer="ada", number=1))
    await db.enqueue(keep, order)
    _forget(monkeypatch, "Order")
    db.context.state.forget_tables()  # as in a worker that never used the model
    await db.drain()
    record = await db.get_only()
    assert record.state == "dead"
    assert "the model Order" in str(record.error)
    monkeypatch.undo()
    await db.jobs.retry(record.id)
    await db.drain()
    assert [type(argument) for argument in received] == [Order]


def _forget(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Hide a model, as in a worker that did not import it."""
    known = ModelSchema.family

    def family(schema: ModelSchema) -> Any:
        return [member for member in known(schema) if member.name != name]

    monkeypatch.setattr(ModelSchema, "family", family)


# --- arguments that cannot be stored --------------------------------------------------------------------


def _make_loop() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


UNFIT: list[tuple[str, Any, str]] = [
    ("nan", float("nan"), "argument 2 is nan"),
    ("infinity", float("-inf"), "argument 2 is -inf"),
    ("bytes", b"raw", "argument 2 is of type bytes"),
    ("a date", date(2026, 1, 1), "argument 2 is of type date"),
    ("a moment", datetime(2026, 1, 1, tzinfo=UTC), "argument 2 is of type datetime"),
    ("a decimal", Decimal(1), "argument 2 is of type Decimal"),
    ("a set", {1}, "argument 2 is of type set"),
    ("an enum", Colour.RED, "argument 2 is of type Colour"),
    ("a class", Order, "argument 2 is of type"),
    ("a lambda", lambda: None, "argument 2 is of type function"),
    ("deep", [1, {"a": [object()]}], r"argument 2\[1\]\['a'\]\[0\] is of type object"),
    ("a number as a key", {1: 2}, "argument 2 has the key 1"),
    ("our reserved name", {"$holdall": "key:Order:{}"}, "argument 2 has the key '\\$holdall'"),
    ("a lone surrogate", "\ud800", "surrogate"),
    ("a lone surrogate as a key", {"\ud800": 1}, "surrogate"),
    ("too large", "x" * 300_001, "300,0"),
    ("too large in UTF-8", "é" * 150_001, "300,0"),
    ("a huge number", 10**5000, "digits"),
    ("a list in itself", _make_loop(), "contains itself"),
]


@pytest.mark.parametrize(
    ("argument", "message"), [each[1:] for each in UNFIT], ids=[each[0] for each in UNFIT]
)
@in_memory
async def test_arguments_that_cannot_be_stored_are_refused_before_anything_is_sent(
    db: Rig, argument: Any, message: str
) -> None:
    def body(tx: Any) -> None:
        tx.create(Parcel)
        tx.enqueue(keep, "first", argument)

    with pytest.raises(InvalidJobArgumentsError, match=message):
        await db.commit(body)
    with pytest.raises(InvalidJobArgumentsError, match=message):
        await db.enqueue("declared-elsewhere", "first", argument)
    assert not [request for request in db.recorder.requests if request.writes]


@everywhere
async def test_the_largest_arguments_can_be_stored(db: Rig) -> None:
    longest = "x" * (300_000 - len('["",[]]'))
    await db.enqueue(keep, longest, [])
    await db.drain()
    assert received == [longest, []]
