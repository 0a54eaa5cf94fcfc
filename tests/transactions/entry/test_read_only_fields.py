"""``field(read_only=True)``: set when the item is created; no write changes it afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import arrange, expect_failure, put_raw
from toy_hydrator import Squeezer, squeeze

from holdall import Database, Key, Model, SortKey, Template, col, field
from holdall.errors import HoldallError, InvalidFieldError, InvalidModelUpdateError

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Deed(Model):
    id: Key[str]
    owner: str = field(read_only=True, name="o")
    at: datetime = field(default=NOON, read_only=True)
    tags: list[str] = field(default_factory=list, read_only=True)
    seal: str | None = field(default=None, read_only=True, hidden=True)
    n: int = 0


class Plot(Deed):
    number: int | None = field(default=None, read_only=True)


class Lease(Deed):
    until: int | None = field(default=None, read_only=True)


class Expiring(Model, ttl="until"):
    id: Key[str]
    owner: str = field(read_only=True)
    until: datetime


class Will(Model, archive=Squeezer()):
    id: Key[str]
    owner: str = field(read_only=True)
    n: int = 0


class Renamed(Model):
    id: Key[str]
    owner: str | None = field(default=None, read_only=True, aliases=["holder"])


class Templated(Model, table="deeds", layout=Template(pk="D#{id}", sk="{part}")):
    id: Key[str]
    part: SortKey[str]
    owner: str = field(read_only=True)


Write = Callable[[Db, Any], Awaitable[Any]]


async def assign(db: Db, key: Any) -> None:
    await db.update(key, owner="bo")


async def change_in_place(db: Db, key: Any) -> None:
    async with db.transaction() as tx:
        (await tx.get_one(key)).tags.append("x")


async def update_unread(db: Db, key: Any) -> None:
    await db.update(key, col(Deed.owner).set("bo"))


async def update_expected(db: Db, key: Any) -> None:
    async with db.transaction() as tx:
        tx.update(Deed, {"id": "a", "owner": "ada"}, {"owner": "bo"})


async def put(db: Db, key: Any) -> None:
    await db.put(Deed(id="a", owner="bo"))


async def put_without(db: Db, key: Any) -> None:
    await db.put(Deed(id="a", owner="ada"))  # without the seal


async def put_expected(db: Db, key: Any) -> None:
    async with db.transaction() as tx:
        tx.create_or_put(Deed, {"id": "a", "n": 0}, {"owner": "bo", "seal": "x"})


async def update_or_create(db: Db, key: Any) -> None:
    async with db.transaction() as tx:
        tx.update(key, col(Deed.n).set(0), where=col(Deed.n) == 7, create_if_missing={"owner": "bo"})


async def update_many(db: Db, key: Any) -> None:
    await db.update_all(Deed, {"owner": "bo"}, id="a")


async def update_each(db: Db, key: Any) -> None:
    await db.update_all(Deed, lambda deed: deed.assign({"owner": "bo"}), id="a")


WRITES = (
    assign,
    change_in_place,
    update_unread,
    update_expected,
    put,
    put_without,
    put_expected,
    update_or_create,
    update_many,
    update_each,
)


@everywhere
async def test_no_kind_of_write_changes_a_read_only_field(db: Db) -> None:
    await arrange(db, Deed(id="a", owner="ada", seal="x"))
    before = await db.raw(Deed.key("a"))
    for write in WRITES:
        with pytest.raises(HoldallError):
            await write(db, Deed.key("a"))
        assert await db.raw(Deed.key("a")) == before


@everywhere
async def test_a_put_that_keeps_the_stored_values_is_allowed(db: Db) -> None:
    await db.put(Deed(id="a", owner="ada", seal="x", tags=["t"]))
    await db.put(Deed(id="a", owner="ada", seal="x", tags=["t"], n=1))
    deed = await db.get_one(Deed, "a")
    await db.put(deed)
    assert (await db.get_one(Deed, "a")).n == 1
    with pytest.raises(InvalidModelUpdateError) as caught:
        await db.put(Deed(id="a", owner="bo", seal="x", tags=["t"]))
    assert "owner is read-only: the put has another value than the stored one 'ada'" in str(caught.value)
    with pytest.raises(InvalidModelUpdateError) as caught:
        await db.put(Deed(id="a", owner="ada", seal="y", tags=["t"]))
    assert "seal is read-only: the put has another value than the stored one\n" in str(caught.value)
    async with db.transaction() as tx:  # after a deletion, the put creates a new item
        tx.delete(await tx.get_one(Deed, "a"))
    await db.put(Deed(id="a", owner="bo"))


@everywhere
async def test_a_put_can_set_a_read_only_field_that_was_never_stored(db: Db) -> None:
    await put_raw(db, Deed, {"pk": {"S": "Deed#a"}, "sk": {"S": "#"}, "id": {"S": "a"}, "o": {"S": "ada"}})
    await db.put(Deed(id="a", owner="ada", seal="x"))
    found = await db.get_one(Deed, "a")
    assert (found.at, found.seal) == (NOON, "x")


@everywhere
async def test_a_put_of_a_related_model_cannot_drop_a_read_only_value(db: Db) -> None:
    await arrange(db, Plot(id="a", owner="ada", number=7))
    for other in (Deed(id="a", owner="ada"), Lease(id="a", owner="ada", until=1)):
        with pytest.raises(InvalidModelUpdateError, match="number is read-only"):
            await db.put(other)
    await db.put(Plot(id="a", owner="ada", number=7, n=2))


@everywhere
async def test_a_put_can_replace_the_read_only_values_of_an_expired_item(db: Db) -> None:
    soon, later = db.clock.now().replace(year=2029), db.clock.now().replace(year=2031)
    await db.put(Expiring(id="a", owner="ada", until=soon))
    with pytest.raises(InvalidModelUpdateError, match="read-only"):
        await db.put(Expiring(id="a", owner="bo", until=later))
    db.clock.forward((soon - db.clock.now()).total_seconds() + 2)
    await db.put(Expiring(id="a", owner="bo", until=later))
    assert (await db.get_one(Expiring, "a")).owner == "bo"


@everywhere
async def test_read_only_fields_are_kept_in_templated_tables_and_under_aliases(db: Db) -> None:
    await db.put(Templated(id="a", part="b", owner="ada"))
    with pytest.raises(InvalidModelUpdateError, match="read-only"):
        await db.put(Templated(id="a", part="b", owner="bo"))
    key = {"pk": {"S": "Renamed#a"}, "sk": {"S": "#"}, "id": {"S": "a"}}
    await put_raw(db, Renamed, {**key, "holder": {"S": "ada"}})
    with pytest.raises(HoldallError):
        await db.put(Renamed(id="a", owner="bo"))
    assert (await db.get_one(Renamed, "a")).owner == "ada"


def test_an_archived_item_keeps_its_read_only_field() -> None:
    with Database("memory:") as db:
        key = Will.key("a")
        db.create(Will(id="a", owner="ada"))
        squeeze(db, key)
        with pytest.raises(InvalidModelUpdateError, match="read-only"):
            db.put(Will(id="a", owner="bo"))
        db.put(Will(id="a", owner="ada", n=1))
        assert db.get_one(key).n == 1


@in_memory
async def test_a_put_fails_if_another_process_stored_another_value_meanwhile(db: Db) -> None:
    """The condition is part of the commit, so it also sees a value stored after the transaction began."""
    with expect_failure(InvalidModelUpdateError, match="read-only"):
        async with db.transaction() as tx:
            tx.create_or_put(Deed, {"id": "a"}, {"owner": "bo"})
            await db.create(Deed(id="a", owner="ada"))
    assert (await db.get_one(Deed, "a")).owner == "ada"


def test_a_read_only_field_of_an_instance_cannot_be_assigned() -> None:
    deed: Any = Deed(id="a", owner="ada")
    with pytest.raises(InvalidFieldError, match="it is read-only"):
        deed.owner = "bo"
