"""Unique fields: no two items of a model have the same value, by a guard item in the same write."""

from __future__ import annotations

from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import arrange, expect_contention, expect_failure, meanwhile

from holdall import AsyncTransaction, Key, Model, field
from holdall.core import DeleteItem, PutItem, TransactWrite, UpdateItem
from holdall.errors import (
    InvalidRequestError,
    ModelAlreadyExistsError,
    ModelDefinitionError,
    TransactionErrors,
    UniqueViolationError,
)


class Member(Model):
    id: Key[str]
    email: str | None = field(default=None, unique=True)
    badge: int | None = field(default=None, unique=True)
    name: str = ""


class Guest(Model):
    """With a unique field of the same name, whose values are its own."""

    id: Key[str]
    email: str = field(unique=True)


async def emails(db: Db, *ids: str) -> list[str | None]:
    return [
        None if member is None else member.email
        for member in await db.get_all([Member.key(id) for id in ids])
    ]


@everywhere
async def test_an_item_and_its_guard_are_created_in_one_write(db: Db) -> None:
    await arrange(db)
    async with db.transaction() as tx:
        tx.create(Member, id="a", email="a@x")
    (write,) = db.list_sent()
    assert isinstance(write, TransactWrite)
    assert [type(action) for action in write.actions] == [PutItem, PutItem]


@everywhere
async def test_a_value_that_another_has_is_refused_for_good(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"))
    attempts = []

    async def create(tx: AsyncTransaction) -> None:
        attempts.append(1)
        tx.create(Member, id="b", email="a@x")

    with pytest.raises(
        UniqueViolationError, match=r"Member\.email: another item already has 'a@x'"
    ) as caught:
        await db.run(create)
    assert "Member#a" in str(caught.value)
    assert len(attempts) == 1
    assert await db.get(Member, "b") is None


@everywhere
async def test_a_value_is_free_again_when_its_item_lets_it_go(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x", badge=1), Member(id="b"))
    await meanwhile(db, Member.key("a"), email="b@x")
    await meanwhile(db, Member.key("b"), email="a@x")
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(Member, "a"))
    async with db.transaction() as tx:
        tx.create(Member, id="c", email="b@x", badge=1)
    assert await emails(db, "a", "b", "c") == [None, "a@x", "b@x"]


@everywhere
async def test_a_change_to_a_value_that_another_has_is_refused(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"), Member(id="b", email="b@x"))
    with expect_failure(UniqueViolationError):
        async with db.transaction() as tx:
            member = await tx.get_one(Member, "b")
            member.email, member.name = "a@x", "changed"
    assert (await db.get_one(Member, "b")).name == ""
    await meanwhile(db, Member.key("b"), email="c@x")


@everywhere
async def test_values_can_be_swapped_in_one_transaction(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"), Member(id="b", email="b@x"))
    async with db.transaction() as tx:
        one, two = await tx.get_one(Member, "a"), await tx.get_one(Member, "b")
        one.email, two.email = two.email, one.email
    assert await emails(db, "a", "b") == ["b@x", "a@x"]
    for taken in ("a@x", "b@x"):
        with expect_failure(UniqueViolationError):
            async with db.transaction() as tx:
                tx.create(Member, id="c", email=taken)


@everywhere
async def test_a_value_can_pass_from_a_deleted_item_to_a_new_one(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"))
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(Member, "a"))
        tx.create(Member, id="b", email="a@x")
    assert await emails(db, "a", "b") == [None, "a@x"]
    with expect_failure(UniqueViolationError):
        async with db.transaction() as tx:
            tx.create(Member, id="c", email="a@x")


@everywhere
async def test_none_is_nobodys(db: Db) -> None:
    await arrange(db, Member(id="a"), Member(id="b"), Member(id="c", email="c@x"))
    await meanwhile(db, Member.key("c"), email=None)
    async with db.transaction() as tx:
        tx.create(Member, id="d", email="c@x")
    assert await emails(db, "c", "d") == [None, "c@x"]


@everywhere
async def test_a_blind_update_keeps_values_unique_too(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"), Member(id="b", email="b@x"))
    with expect_failure(UniqueViolationError):
        async with db.transaction() as tx:
            tx.update(Member, {"id": "b", "email": "b@x"}, {"email": "a@x"})
    async with db.transaction() as tx:
        tx.update(Member, {"id": "b", "email": "b@x"}, {"email": "c@x"})
    async with db.transaction() as tx:
        tx.create(Member, id="c", email="b@x")
    assert await emails(db, "b", "c") == ["c@x", "b@x"]


@everywhere
async def test_another_field_is_changed_without_the_guard(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"))
    async with db.transaction() as tx:
        member = await tx.get_one(Member, "a")
        member.name = "Ada"
        db.forget()
    (update,) = db.list_sent()
    assert isinstance(update, UpdateItem)


@everywhere
async def test_a_change_is_one_write_of_three(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"))
    async with db.transaction() as tx:
        (await tx.get_one(Member, "a")).email = "b@x"
        db.forget()
    (write,) = db.list_sent()
    assert [type(action) for action in write.actions] == [UpdateItem, DeleteItem, PutItem]


@everywhere
async def test_a_deletion_that_did_not_read_the_value_lets_go_of_the_right_one(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"))
    with expect_contention():
        async with db.transaction() as tx:
            tx.delete(await tx.get_one(Member, "a"))
            await meanwhile(db, Member.key("a"), email="b@x")
    assert await emails(db, "a") == ["b@x"]


@in_memory
async def test_two_of_one_transaction_cannot_have_the_same(db: Db) -> None:
    with expect_failure(UniqueViolationError, "both have 'a@x'"):
        async with db.transaction() as tx:
            tx.create(Member, id="a", email="a@x")
            tx.create(Member, id="b", email="a@x")
    assert db.list_sent() == []


@everywhere
async def test_an_item_that_exists_and_a_value_that_is_taken_are_told_together(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"), Member(id="b", email="b@x"))
    with expect_failure(TransactionErrors) as caught:
        async with db.transaction() as tx:
            tx.create(Member, id="a", email="b@x")
    assert [type(error) for error in caught.value.exceptions] == [
        ModelAlreadyExistsError,
        UniqueViolationError,
    ]


@in_memory
async def test_models_and_fields_have_values_of_their_own(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"), Guest(id="a", email="a@x"), Member(id="5", badge=5))
    await arrange(db, Member(id="b", email="5"))


@in_memory
async def test_what_does_not_know_the_old_value_is_refused(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"))
    async with db.transaction() as tx:
        with pytest.raises(InvalidRequestError, match="has a unique field"):
            tx.create_or_put(Member, {"id": "a"}, {})
        with pytest.raises(InvalidRequestError, match="has a unique field"):
            tx.delete(Member.key("a"))
    assert db.list_sent() == []


@in_memory
@pytest.mark.parametrize(
    ("annotation", "keywords", "problem"),
    [
        (list[str], {}, "only a string, number, boolean or bytes field can be unique"),
        (Key[str], {}, "part of a key cannot be unique"),
        (str, {"table": "Own"}, "cannot have a unique field"),
        (str, {"ttl": "until"}, "a model whose items expire .* cannot have a unique field"),
    ],
    ids=repr,
)
async def test_what_cannot_be_unique_is_found_when_the_class_is_defined(
    db: Db, annotation: Any, keywords: dict[str, Any], problem: str
) -> None:
    body = {
        "__annotations__": {"id": Key[str], "x": annotation, "until": int},
        "__module__": __name__,
        "x": field(unique=True),
    }
    with pytest.raises(ModelDefinitionError, match=problem):
        type("Wrong", (Model,), body, **keywords)
