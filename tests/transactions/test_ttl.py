"""Items with a time to live: expired items count as missing, whether or not the store has deleted them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import Order, arrange, expect_contention, expect_failure, meanwhile

from holdall import AsyncTransaction, Key, Model, SortKey
from holdall.core import DescribeTtl
from holdall.errors import InvalidModelUpdateError, ModelAlreadyExistsError, ModelDefinitionError


class Token(Model, ttl="until"):
    id: Key[str]
    until: int | None = None
    note: str | None = None
    uses: int = 0


class Visit(Model, ttl="until"):
    page: Key[str]
    number: SortKey[int]
    until: datetime


def soon(db: Db) -> int:
    return db.clock.epoch + 100


# --- expired items ----------------------------------------------------------------------------------------


@everywhere
async def test_an_expired_item_is_not_found_by_any_read(db: Db) -> None:
    await arrange(db, Token(id="a", until=soon(db)), Token(id="b", until=None))
    keys = [Token.key("a"), Token.key("b")]
    assert all(await db.get_all(keys))
    db.clock.forward(200)
    assert await db.get(Token, "a") is None
    assert [item is None for item in await db.get_all(keys)] == [True, False]
    assert [item is None for item in await db.get_all(keys, consistent=False)] == [True, False]
    assert await db.query(Token, id="a").all() == []
    async with db.transaction() as tx:
        assert await tx.get(Token, "a") is None
        assert await tx.query(Token, id="a").all() == []


@everywhere
async def test_a_query_does_not_return_expired_rows(db: Db) -> None:
    start = db.clock.now()
    await arrange(
        db, *(Visit(page="a", number=n, until=start + timedelta(seconds=100 * n)) for n in range(1, 5))
    )
    db.clock.forward(250)
    assert [visit.number for visit in await db.query(Visit, page="a").all()] == [3, 4]


@everywhere
async def test_the_expiry_is_stored_in_seconds_beside_the_field_and_follows_it(db: Db) -> None:
    await arrange(db, Token(id="a", until=soon(db)), Visit(page="a", number=1, until=db.clock.now()))
    for key, seconds in ((Token.key("a"), soon(db)), (Visit.key(page="a", number=1), db.clock.epoch)):
        stored = await db.raw(key)
        assert stored is not None
        assert stored["_ttl"] == {"N": str(seconds)}
    await meanwhile(db, Token.key("a"), until=soon(db) + 5)
    stored = await db.raw(Token.key("a"))
    assert stored is not None
    assert stored["_ttl"] == stored["until"] == {"N": str(soon(db) + 5)}
    async with db.transaction() as tx:
        tx.update(Token, {"id": "a", "until": soon(db) + 5}, {"until": soon(db) + 6})
    stored = await db.raw(Token.key("a"))
    assert stored is not None
    assert stored["_ttl"] == {"N": str(soon(db) + 6)}
    await meanwhile(db, Token.key("a"), until=None)
    stored = await db.raw(Token.key("a"))
    assert stored is not None
    assert "_ttl" not in stored
    assert (await db.send(DescribeTtl(db.table_of(Token)))).attribute == "_ttl"


@in_memory
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
async def test_items_expire_at_their_time_and_not_before(db: Db, late: bool) -> None:
    db.clock.forward(0.25)
    until = db.clock.now() + timedelta(seconds=10)
    await arrange(db, Visit(page="a", number=1, until=until), Token(id="a", until=db.clock.epoch + 10))
    db.clock.forward(12 if late else 9.5)
    assert (await db.get(Visit, page="a", number=1) is None) is late
    assert (await db.get(Token, "a") is None) is late


# --- transactions -----------------------------------------------------------------------------------------


@everywhere
async def test_a_transaction_that_found_an_item_expired_commits(db: Db) -> None:
    """The item is still stored until the store deletes it."""
    await arrange(db, Token(id="a", until=soon(db)), Order(id="a"))
    db.clock.forward(200)
    async with db.transaction() as tx:
        assert await tx.get(Token, "a") is None
        (await tx.get_one(Order, "a")).note = "no token"
    assert await db.raw(Token.key("a")) is not None
    assert (await db.get_one(Order, "a")).note == "no token"


@everywhere
async def test_a_new_item_under_the_key_of_an_expired_one_that_was_read_as_missing_is_contention(
    db: Db,
) -> None:
    await arrange(db, Token(id="a", until=soon(db)), Order(id="a"))
    db.clock.forward(200)
    with expect_contention():
        async with db.transaction() as tx:
            assert await tx.get(Token, "a") is None
            (await tx.get_one(Order, "a")).note = "no token"
            async with db.transaction() as other:
                other.create(Token, id="a", until=soon(db))


@everywhere
async def test_a_new_item_replaces_an_expired_one_completely(db: Db) -> None:
    await arrange(db, Token(id="a", until=soon(db), note="stale", uses=5))
    with expect_failure(ModelAlreadyExistsError):
        async with db.transaction() as tx:
            tx.create(Token, id="a")
    db.clock.forward(200)
    async with db.transaction() as tx:
        tx.create(Token, id="a", until=soon(db))
    token = await db.get_one(Token, "a")
    assert (token.note, token.uses) == (None, 0)
    stored = await db.raw(token.key)
    assert stored is not None
    assert "note" not in stored


@everywhere
async def test_create_if_missing_replaces_an_expired_item(db: Db) -> None:
    await arrange(db, Token(id="a", until=soon(db), note="stale", uses=5))
    db.clock.forward(200)

    async def use(tx: AsyncTransaction) -> bool:
        token = await tx.get(Token, "a", create_if_missing={"until": soon(db)})
        token.uses += 1
        return token.is_new

    assert await db.run(use)
    assert not await db.run(use)
    token = await db.get_one(Token, "a")
    assert (token.uses, token.note) == (2, None)


@everywhere
async def test_an_item_that_expires_before_the_commit_is_contention(db: Db) -> None:
    """Other transactions may have acted on the expiry."""
    await arrange(db, Token(id="a", until=soon(db)))
    found = []

    async def use(tx: AsyncTransaction) -> None:
        token = await tx.get(Token, "a")
        found.append(token is not None)
        if token is not None:
            token.uses += 1
            db.clock.forward(200)

    await db.run(use)
    assert found == [True, False]
    assert (await db.raw(Token.key("a")) or {})["uses"] == {"N": "0"}


@everywhere
async def test_a_new_item_with_the_same_fields_is_not_confused_with_the_expired_one_that_was_read(
    db: Db,
) -> None:
    """Only its expiry shows that it is another item."""
    await arrange(db, Token(id="a", until=soon(db), uses=0))
    with expect_contention():
        async with db.transaction() as tx:
            token = await tx.get_one(Token, "a")
            token.uses += 1
            db.clock.forward(200)
            async with db.transaction() as other:
                other.create(Token, id="a", until=soon(db), uses=0)
    assert (await db.get_one(Token, "a")).uses == 0


@everywhere
async def test_a_read_only_transaction_verifies_that_expired_items_stay_missing(db: Db) -> None:
    await arrange(db, Token(id="a", until=soon(db)), Order(id="a"))
    db.clock.forward(200)
    async with db.transaction(read_only=True) as tx:
        assert await tx.get(Token, "a") is None
        assert (await tx.get_one(Order, "a")).quantity == 1
    with expect_contention():
        async with db.transaction(read_only=True) as tx:
            assert await tx.get(Token, "a") is None
            async with db.transaction() as other:
                other.create(Token, id="a", until=soon(db))
            assert (await tx.get_one(Order, "a")).quantity == 1


@in_memory
async def test_incrementing_the_expiry_postpones_it(db: Db) -> None:
    await arrange(db, Token(id="a", until=soon(db)))
    async with db.transaction() as tx:
        (await tx.get_one(Token, "a")).field("until").increment_by(500)
    db.clock.forward(300)
    assert await db.get(Token, "a") is not None


@everywhere
async def test_a_blind_update_does_not_find_an_expired_item(db: Db) -> None:
    await arrange(db, Token(id="a", until=soon(db), uses=0), Token(id="b", until=None, uses=0))
    async with db.transaction() as tx:
        tx.update(Token, {"id": "a", "uses": 0}, {"uses": 1})
        tx.update(Token, {"id": "b", "uses": 0}, {"uses": 1})
    db.clock.forward(200)
    with expect_failure(InvalidModelUpdateError, r"Token\(id='a'\) does not exist"):
        async with db.transaction() as tx:
            tx.update(Token, {"id": "a", "uses": 1}, {"uses": 2})
    assert (await db.raw(Token.key("a")) or {})["uses"] == {"N": "1"}


# --- definitions ------------------------------------------------------------------------------------------


@in_memory
async def test_a_time_to_live_needs_a_field_that_contains_a_time(db: Db) -> None:
    with expect_failure(ModelDefinitionError, "ttl= names a field that does not exist"):

        class Nowhere(Model, ttl="until"):
            id: Key[str]

    with expect_failure(ModelDefinitionError, "must be a datetime, an int or a float"):

        class Wordy(Model, ttl="until"):
            id: Key[str]
            until: str


@in_memory
async def test_zero_and_times_long_ago_are_expired_in_the_shared_table(db: Db) -> None:
    """The exceptions for such values apply only to tables that the JavaScript library may have written."""
    await arrange(db, Token(id="zero", until=0), Token(id="old", until=1))
    assert await db.get_all([Token.key("zero"), Token.key("old")]) == [None, None]
