"""Versions: a field that counts writes, as PynamoDB's VersionAttribute does."""

from __future__ import annotations

from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import arrange, expect_contention, meanwhile, put_raw

from holdall import Key, Model, col, field
from holdall.core import UpdateItem, encode_item
from holdall.core.expressions import Add, Path, Set, Update, Value
from holdall.errors import (
    InvalidFieldError,
    InvalidRequestError,
    ModelDefinitionError,
    TransactionFailedError,
)


class Account(Model, table="accounts", layout="plain"):
    id: Key[str]
    cents: int = 0
    note: str | None = None
    tags: set[str] = field(default_factory=set)
    version: int = field(default=0, name="ver", version=True)


KEY = Account.key("a")


async def read_stored(db: Db) -> dict[str, Any]:
    raw = await db.raw(KEY)
    assert raw is not None
    return {name: next(iter(value.values())) for name, value in raw.items()}


@everywhere
async def test_every_write_of_a_loaded_item_increments_the_version(db: Db) -> None:
    await arrange(db, Account(id="a"))
    assert (await read_stored(db))["ver"] == "1"
    for cents in (5, 6):
        async with db.transaction() as tx:
            (await tx.get_one(KEY)).cents = cents
    assert await read_stored(db) == {"id": "a", "cents": "6", "ver": "3"}
    async with db.transaction() as tx:
        assert (await tx.get_one(KEY)).version == 3
    assert (await read_stored(db))["ver"] == "3"


@everywhere
async def test_a_write_requires_the_version_that_was_read_even_if_the_fields_it_used_are_unchanged(
    db: Db,
) -> None:
    await arrange(db, Account(id="a"))
    with expect_contention() as caught:
        async with db.transaction() as tx:
            (await tx.get_one(KEY)).cents = 1
            await meanwhile(db, KEY, note="changed")
    assert str(caught.value.__cause__) == "Account(id='a').version is 2, expected 1"
    with expect_contention():
        async with db.transaction() as tx:
            tx.delete(await tx.get_one(KEY))
            await meanwhile(db, KEY, note="again")
    assert (await read_stored(db))["ver"] == "3"


@everywhere
async def test_a_write_that_only_adds_increments_the_version_without_checking_it(db: Db) -> None:
    await arrange(db, Account(id="a"))
    async with db.transaction() as tx:
        account = await tx.get_one(KEY)
        account.field("cents").increment_by(2)
        await meanwhile(db, KEY, note="changed")
    assert (await read_stored(db))["ver"] == "3"
    async with db.transaction() as tx:
        tx.update(KEY, col(Account.tags).add("x"), col(Account.cents).increment_by(1))
    async with db.transaction() as tx:
        tx.update(Account, {"id": "a", "cents": 3}, {"cents": 4})
    found = await read_stored(db)
    assert (found["cents"], found["tags"], found["ver"]) == ("4", ["x"], "5")


@everywhere
async def test_an_item_without_a_version_gets_one(db: Db) -> None:
    await db.get(KEY)
    await put_raw(db, Account, encode_item({"id": "a", "cents": 1}))
    with expect_contention():
        async with db.transaction() as tx:
            account = await tx.get_one(KEY)
            assert account.version == 0
            account.cents = 2
            other_write = Update(
                (Set(Path(("cents",)), Value({"N": "9"})), Add(Path(("ver",)), Value({"N": "1"})))
            )
            await db.send(UpdateItem(db.table_of(Account), encode_item({"id": "a"}), other_write))
    async with db.transaction() as tx:
        (await tx.get_one(KEY)).cents += 1
    found = await read_stored(db)
    assert (found["cents"], found["ver"]) == ("10", "2")


@everywhere
async def test_a_stored_null_is_version_0(db: Db) -> None:
    await db.get(KEY)
    await put_raw(db, Account, encode_item({"id": "a", "cents": 1, "ver": None}))
    async with db.transaction() as tx:
        account = await tx.get_one(KEY)
        assert account.version == 0
        account.cents = 2
    assert (await read_stored(db))["ver"] == "1"
    await put_raw(db, Account, encode_item({"id": "a", "cents": 1, "ver": None}))
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(KEY))
    assert await db.get(KEY) is None


@everywhere
async def test_a_blind_put_must_state_the_version(db: Db) -> None:
    await arrange(db, Account(id="a"))
    with pytest.raises(InvalidRequestError, match="could undo another program's write"):
        async with db.transaction() as tx:
            tx.create_or_put(Account, {"id": "a"}, {"cents": 3})
    async with db.transaction() as tx:
        tx.create_or_put(Account, {"id": "a", "version": 1}, {"cents": 3})
    assert (await read_stored(db))["ver"] == "2"
    with pytest.raises(TransactionFailedError):
        async with db.transaction() as tx:
            tx.create_or_put(Account, {"id": "a", "version": 1}, {"cents": 4})
    async with db.transaction() as tx:
        tx.update(Account.key("b"), col(Account.cents).increment_by(1), create_if_missing=True)
        tx.delete(KEY)
    assert (await db.get_one(Account, "b")).version == 1
    assert await db.get(KEY) is None


@in_memory
async def test_only_holdall_sets_the_version(db: Db) -> None:
    await arrange(db, Account(id="a"))
    async with db.transaction() as tx:
        account = await tx.get_one(KEY)
        with pytest.raises(InvalidFieldError, match="read-only"):
            account.version = 9
    with pytest.raises(InvalidFieldError, match="read-only"):
        col(Account.version).set(9)
    with pytest.raises(InvalidFieldError, match="counts the item's writes"):
        await arrange(db, Account(id="b", version=4))
    with pytest.raises(InvalidRequestError, match="counts writes"):
        async with db.bulk(Account):
            pass


def test_a_version_is_a_whole_number_from_0() -> None:
    with pytest.raises(ModelDefinitionError, match="begins with 0"):

        class Late(Model):
            version: int = field(default=1, version=True)

    with pytest.raises(ModelDefinitionError, match="begins with 0"):

        class Text(Model):
            version: str = field(default="0", version=True)

    with pytest.raises(ModelDefinitionError, match="already counts"):

        class Two(Model):
            one: int = field(default=0, version=True)
            two: int = field(default=0, version=True)
