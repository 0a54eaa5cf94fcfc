"""A model's own table: we read what the JavaScript library wrote, and it can read what we write.

Keys are ``_id`` and ``_sk``, items have no hidden attributes, and every write uses a token, because a stamp would be a
hidden attribute. ``test_foreign_keys`` tests the encoding of keys.
"""

from __future__ import annotations

from typing import Any

import pytest
from rig.behaviour import Db, awaiting, everywhere, in_memory
from rig.behaviour_models import arrange, expect_contention, expect_failure, meanwhile, put_raw

from holdall import AsyncDatabase, AsyncTransaction, Key, Model, SortKey, field
from holdall.core import (
    CreateTable,
    DescribeTable,
    DescribeTtl,
    GetItem,
    KeyAttribute,
    PutItem,
    TableSchema,
    UpdateItem,
    encode_item,
)
from holdall.errors import (
    ConfigurationError,
    InvalidFieldError,
    InvalidModelUpdateError,
    ModelAlreadyExistsError,
)


class Guest(Model, table="Guest"):
    email: Key[str]
    visits: int = 0
    note: str | None = None
    more: dict[str, Any] = field(default_factory=dict)


class RaceResult(Model, table="RaceResult"):
    race_id: Key[int] = field(name="raceID")
    runner_name: Key[str] = field(name="runnerName")
    seconds: float | None = None


class Ticket(Model, table="Ticket"):
    number: Key[int]
    seat: SortKey[int]
    price: int = 0


class Wrapped(Model, table="Wrapped"):
    id: Key[dict[str, str]]
    n: int = 0


class Session(Model, table="Session", ttl="until"):
    id: Key[str]
    until: int | None = None
    note: str | None = None
    n: int = 0


DAY = 24 * 3600
YEAR = 365 * DAY


# --- what is stored ---------------------------------------------------------------------------------------


@everywhere
async def test_an_item_has_its_key_its_fields_and_nothing_hidden(db: Db) -> None:
    await arrange(db, Guest(email="a@x", visits=2), RaceResult(race_id=99, runner_name="Bo", seconds=1.5))
    assert await db.raw(Guest.key("a@x")) == encode_item({"_id": "a@x", "visits": 2, "more": {}})
    result = await db.raw(RaceResult.key(race_id=99, runner_name="Bo"))
    assert result == encode_item({"_id": "99\x00Bo", "seconds": 1.5})


@everywhere
async def test_changes_leave_nothing_hidden_either(db: Db) -> None:
    await arrange(db, Guest(email="a@x"))
    await meanwhile(db, Guest.key("a@x"), visits=3, note="x")
    async with db.transaction() as tx:
        (await tx.get_one(Guest, "a@x")).field("visits").increment_by(1)
    async with db.transaction() as tx:
        tx.update(Guest, {"email": "a@x", "note": "x"}, {"note": None})
    assert await db.raw(Guest.key("a@x")) == encode_item({"_id": "a@x", "visits": 4, "more": {}})


@everywhere
async def test_every_write_uses_a_token(db: Db) -> None:
    async with db.transaction() as tx:
        tx.create(Guest, email="a@x")
    await meanwhile(db, Guest.key("a@x"), visits=1)
    assert db.kinds() == ["TransactWrite", "GetItem", "TransactWrite"]
    (put,), (update,) = (request.actions for request in db.list_sent() if request.writes)
    assert isinstance(put, PutItem)
    assert isinstance(update, UpdateItem)
    assert put.stamp is update.stamp is None


@everywhere
async def test_one_number_is_a_number_in_the_key(db: Db) -> None:
    await arrange(db, Ticket(number=5, seat=-7), Ticket(number=5, seat=10), Ticket(number=5, seat=9))
    assert await db.raw(Ticket.key(number=5, seat=-7)) == encode_item({"_id": 5, "_sk": -7, "price": 0})
    assert [ticket.seat for ticket in await db.query(Ticket, number=5).all()] == [-7, 9, 10]
    schema = (await db.send(DescribeTable(db.table_of(Ticket)))).schema
    assert schema.keys == (KeyAttribute("_id", "N"), KeyAttribute("_sk", "N"))


@everywhere
async def test_key_components_come_back_from_the_key(db: Db) -> None:
    await arrange(db, RaceResult(race_id=99, runner_name="Bo"), Wrapped(id={"b": "\x00", "a": "x"}))
    result = await db.get_one(RaceResult, race_id=99, runner_name="Bo")
    assert (result.race_id, result.runner_name) == (99, "Bo")
    wrapped = await db.get_one(Wrapped, {"a": "x", "b": "\x00"})
    assert wrapped.id == {"a": "x", "b": "\x00"}
    assert wrapped.key.encoded == ('{"a":"x","b":"\\u0000"}', None)


@in_memory
async def test_a_string_with_a_nul_cannot_be_part_of_a_key(db: Db) -> None:
    for make in (
        lambda: Guest.key("a\x00b"),
        lambda: RaceResult.key(race_id=1, runner_name="\x00"),
    ):
        with pytest.raises(InvalidFieldError, match=r"U\+0000"):
            make()


# --- what works as in the shared table ----------------------------------------------------------------------


@everywhere
async def test_items_are_locked_created_and_counted_as_in_the_shared_table(db: Db) -> None:
    await arrange(db, Guest(email="a@x", visits=1))
    with expect_failure(ModelAlreadyExistsError):
        async with db.transaction() as tx:
            tx.create(Guest, email="a@x")
    with expect_contention():
        async with db.transaction() as tx:
            guest = await tx.get_one(Guest, "a@x")
            guest.note = str(guest.visits)
            await meanwhile(db, guest.key, visits=5)

    async def visit(tx: AsyncTransaction) -> None:
        guest = await tx.get(Guest, "b@x", create_if_missing=True)
        guest.visits += 1

    await db.run(visit)
    await db.run(visit)
    assert (await db.get_one(Guest, "b@x")).visits == 2


@everywhere
async def test_models_of_both_layouts_can_share_a_transaction(db: Db) -> None:
    class Here(Model):
        id: Key[str]

    async with db.transaction() as tx:
        tx.create(Here, id="a")
        tx.create(Guest, email="a@x")
    found = await db.get_all([Guest.key("a@x"), Here.key("a")])
    assert [type(item) for item in found] == [Guest, Here]


@everywhere
async def test_unknown_attributes_are_left_alone(db: Db) -> None:
    await db.get(Guest, "creates the table")
    await put_raw(db, Guest, encode_item({"_id": "a@x", "visits": 1, "_c_visits": "1"}))
    await meanwhile(db, Guest.key("a@x"), note="x")
    stored = await db.raw(Guest.key("a@x"))
    assert stored == encode_item({"_id": "a@x", "visits": 1, "_c_visits": "1", "note": "x"})


# --- numbers that JavaScript reads --------------------------------------------------------------------------


@in_memory
@pytest.mark.parametrize("number", [2**53, -(2**53), 10**20])
async def test_whole_numbers_beyond_the_safe_ones_are_refused(db: Db, number: int) -> None:
    for values in ({"visits": number}, {"more": {"deep": [number]}}):
        with expect_failure(InvalidFieldError, r"2\^53 - 1"):
            async with db.transaction() as tx:
                tx.create(Guest, email="a@x", **values)
    await arrange(db, Guest(email="a@x"))
    with expect_failure(InvalidFieldError, r"2\^53 - 1"):
        async with db.transaction() as tx:
            (await tx.get_one(Guest, "a@x")).visits = number
    with expect_failure(InvalidFieldError, r"2\^53 - 1"):
        async with db.transaction() as tx:
            tx.update(Guest, {"email": "a@x", "visits": 0}, {"visits": number})
    with expect_failure(InvalidFieldError, r"2\^53 - 1"):
        async with db.transaction() as tx:
            (await tx.get_one(Guest, "a@x")).field("visits").increment_by(number)
    assert (await db.get_one(Guest, "a@x")).visits == 0


@everywhere
async def test_the_largest_safe_numbers_are_stored_unchanged(db: Db) -> None:
    largest = 2**53 - 1
    await arrange(db, Guest(email="a@x", visits=largest, more={"least": -largest}))
    guest = await db.get_one(Guest, "a@x")
    assert (guest.visits, guest.more) == (largest, {"least": -largest})


@everywhere
async def test_a_number_stored_with_a_zero_fraction_is_whole(db: Db) -> None:
    await db.get(Guest, "creates the table")
    await put_raw(db, Guest, {"_id": {"S": "a@x"}, "visits": {"N": "5.0"}, "more": {"M": {}}})
    await meanwhile(db, Guest.key("a@x"), note="x")
    assert (await db.get_one(Guest, "a@x")).visits == 5


# --- old tables ---------------------------------------------------------------------------------------------


@everywhere
async def test_a_number_is_text_in_a_table_that_was_made_when_keys_were_text(db: Db) -> None:
    table = db.table_of(Ticket)
    await db.send(CreateTable(TableSchema(table, KeyAttribute("_id"), KeyAttribute("_sk"))))
    await db.send(PutItem(table, encode_item({"_id": "5", "_sk": "1", "price": 10})))
    async with db.transaction() as tx:
        old = await tx.get_one(Ticket, number=5, seat=1)
        assert (old.number, old.seat, old.price) == (5, 1, 10)
        old.price += 1
        tx.create(Ticket, number=5, seat=2)
        assert await tx.get(Ticket, number=5, seat=1) is old
    assert [(row.number, row.seat, row.price) for row in await db.query(Ticket, number=5).all()] == [
        (5, 1, 11),
        (5, 2, 0),
    ]
    key = encode_item({"_id": "5", "_sk": "2"})
    assert (await db.send(GetItem(table, key, consistent=True))).item == {**key, "price": {"N": "0"}}


@everywhere
async def test_a_row_of_an_old_table_and_a_get_are_one_instance(db: Db) -> None:
    table = db.table_of(Ticket)
    await db.send(CreateTable(TableSchema(table, KeyAttribute("_id"), KeyAttribute("_sk", "N"))))
    await arrange(db, Ticket(number=5, seat=1))
    async with db.transaction() as tx:
        (row,) = await tx.query(Ticket, number=5).all()
        assert await tx.get(Ticket, number=5, seat=1) is row
        row.price = 7
    assert (await db.get_one(Ticket, number=5, seat=1)).price == 7


@in_memory
@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ((KeyAttribute("pk"),), "its key is pk"),
        ((KeyAttribute("_id"), KeyAttribute("_sk")), r"its key is _id \(S\) and _sk \(S\)"),
        ((KeyAttribute("_id", "N"),), "its key attribute _id is of type N, not S"),
    ],
    ids=repr,
)
async def test_a_table_that_cannot_hold_the_model_is_refused_with_the_definition_of_one_that_can(
    db: Db, keys: tuple[KeyAttribute, ...], problem: str
) -> None:
    await db.send(CreateTable(TableSchema(db.table_of(Guest), keys[0], keys[1] if keys[1:] else None)))
    with pytest.raises(ConfigurationError, match=problem) as caught:
        await db.get(Guest, "a@x")
    assert '"AttributeName": "_id"' in str(caught.value)


@awaiting
async def test_a_missing_table_is_reported(db: Db) -> None:
    async with AsyncDatabase("memory:", manage_table=False) as other:
        with pytest.raises(ConfigurationError, match="there is no table Guest"):
            await other.get(Guest, "a@x")


@awaiting
async def test_the_next_process_sets_the_expiry_of_a_table_whose_creator_died_first(db: Db) -> None:
    async with AsyncDatabase("memory:") as other:
        await other.send(CreateTable(TableSchema("Session", KeyAttribute("_id"))))
        assert await other.get(Session, "s") is None
        assert (await other.send(DescribeTtl("Session"))).attribute == "until"


@awaiting
async def test_databases_in_one_process_are_independent(db: Db) -> None:
    """Each database has its own tables, prefix and store for the same model."""
    async with AsyncDatabase("memory:", table_prefix="test-") as other:
        for each, visits in ((db, 1), (other, 2)):
            async with each.transaction() as tx:
                tx.create(Guest, email="a@x", visits=visits)
        assert [(await each.get_one(Guest, "a@x")).visits for each in (db, other)] == [1, 2]
        assert (await other.send(DescribeTable("test-Guest"))).schema.name == "test-Guest"
    assert (await db.get_one(Guest, "a@x")).visits == 1


# --- expiry, by the JavaScript library's rules --------------------------------------------------------------


@everywhere
async def test_an_item_expires_at_the_time_in_its_own_field(db: Db) -> None:
    now = db.clock.epoch
    await arrange(db, Session(id="a", until=now + 100))
    assert await db.raw(Session.key("a")) == encode_item({"_id": "a", "until": now + 100, "n": 0})
    assert await db.get(Session, "a") is not None
    db.clock.forward(101)
    assert await db.get(Session, "a") is None
    assert await db.get_all([Session.key("a")]) == [None]
    assert await db.get_all([Session.key("a")], consistent=False) == [None]
    assert await db.query(Session, id="a").all() == []


@everywhere
async def test_zero_and_times_more_than_five_years_ago_never_expire(db: Db) -> None:
    now = db.clock.epoch
    old = now - 5 * YEAR - 3 * DAY  # DynamoDB Local counts leap days, and would soon delete a younger one
    await arrange(db, Session(id="zero", until=0), Session(id="none"), Session(id="soon", until=now + 10))
    await db.send(PutItem(db.table_of(Session), encode_item({"_id": "old", "until": old, "n": 0})))
    db.clock.forward(20)
    found = await db.get_all([Session.key(id) for id in ("zero", "none", "old", "soon")])
    assert [item and item.id for item in found] == ["zero", "none", "old", None]
    for id in ("zero", "old"):
        with expect_failure(ModelAlreadyExistsError):
            async with db.transaction() as tx:
                tx.create(Session, id=id)
        async with db.transaction() as tx:
            tx.update(Session, {"id": id, "n": 0}, {"n": 1})
    with expect_failure(InvalidModelUpdateError):
        async with db.transaction() as tx:
            tx.update(Session, {"id": "soon", "n": 0}, {"n": 1})


@everywhere
async def test_a_new_item_completely_replaces_an_expired_one(db: Db) -> None:
    await arrange(db, Session(id="a", until=db.clock.epoch + 100, note="stale", n=5))
    db.clock.forward(200)
    async with db.transaction() as tx:
        tx.create(Session, id="a", until=db.clock.epoch + 100)
    assert await db.raw(Session.key("a")) == encode_item({"_id": "a", "until": db.clock.epoch + 100, "n": 0})


@everywhere
async def test_a_table_that_we_create_has_expiry(db: Db) -> None:
    await db.get(Session, "a")
    assert (await db.send(DescribeTtl(db.table_of(Session)))).attribute == "until"
