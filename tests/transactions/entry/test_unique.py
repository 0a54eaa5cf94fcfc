"""Unique fields: a guard item in the same write keeps two items of a model from having the same value."""

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
    """A second model with a unique field of the same name: its values do not conflict with those of Member."""

    id: Key[str]
    email: str = field(unique=True)


async def read_emails(db: Db, *ids: str) -> list[str | None]:
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
async def test_a_taken_value_is_refused_without_a_retry(db: Db) -> None:
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
async def test_a_value_is_free_again_after_its_item_changes_or_is_deleted(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x", badge=1), Member(id="b"))
    await meanwhile(db, Member.key("a"), email="b@x")
    await meanwhile(db, Member.key("b"), email="a@x")
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(Member, "a"))
    async with db.transaction() as tx:
        tx.create(Member, id="c", email="b@x", badge=1)
    assert await read_emails(db, "a", "b", "c") == [None, "a@x", "b@x"]


@everywhere
async def test_a_change_to_a_taken_value_is_refused(db: Db) -> None:
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
    assert await read_emails(db, "a", "b") == ["b@x", "a@x"]
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
    assert await read_emails(db, "a", "b") == [None, "a@x"]
    with expect_failure(UniqueViolationError):
        async with db.transaction() as tx:
            tx.create(Member, id="c", email="a@x")


@everywhere
async def test_several_items_can_have_none(db: Db) -> None:
    await arrange(db, Member(id="a"), Member(id="b"), Member(id="c", email="c@x"))
    await meanwhile(db, Member.key("c"), email=None)
    async with db.transaction() as tx:
        tx.create(Member, id="d", email="c@x")
    assert await read_emails(db, "c", "d") == [None, "c@x"]


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
    assert await read_emails(db, "b", "c") == ["c@x", "b@x"]


@everywhere
async def test_a_change_of_another_field_does_not_write_the_guard(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"))
    async with db.transaction() as tx:
        member = await tx.get_one(Member, "a")
        member.name = "Ada"
        db.forget()
    (update,) = db.list_sent()
    assert isinstance(update, UpdateItem)


@everywhere
async def test_a_change_writes_the_item_and_both_guards_at_once(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"))
    async with db.transaction() as tx:
        (await tx.get_one(Member, "a")).email = "b@x"
        db.forget()
    (write,) = db.list_sent()
    assert [type(action) for action in write.actions] == [UpdateItem, DeleteItem, PutItem]


@everywhere
async def test_a_deletion_is_contention_if_the_value_changed_meanwhile(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"))
    with expect_contention():
        async with db.transaction() as tx:
            tx.delete(await tx.get_one(Member, "a"))
            await meanwhile(db, Member.key("a"), email="b@x")
    assert await read_emails(db, "a") == ["b@x"]


@in_memory
async def test_two_new_items_of_a_transaction_cannot_have_the_same_value(db: Db) -> None:
    with expect_failure(UniqueViolationError, "both have 'a@x'"):
        async with db.transaction() as tx:
            tx.create(Member, id="a", email="a@x")
            tx.create(Member, id="b", email="a@x")
    assert db.list_sent() == []


@everywhere
async def test_an_existing_item_and_a_taken_value_are_reported_together(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"), Member(id="b", email="b@x"))
    with expect_failure(TransactionErrors) as caught:
        async with db.transaction() as tx:
            tx.create(Member, id="a", email="b@x")
    assert [type(error) for error in caught.value.exceptions] == [
        ModelAlreadyExistsError,
        UniqueViolationError,
    ]


@in_memory
async def test_values_of_different_models_and_fields_do_not_conflict(db: Db) -> None:
    await arrange(db, Member(id="a", email="a@x"), Guest(id="a", email="a@x"), Member(id="5", badge=5))
    await arrange(db, Member(id="b", email="5"))


@in_memory
async def test_blind_puts_and_deletions_are_refused_because_they_do_not_know_the_old_value(db: Db) -> None:
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
async def test_a_field_that_cannot_be_unique_is_refused_when_the_class_is_defined(
    db: Db, annotation: Any, keywords: dict[str, Any], problem: str
) -> None:
    body = {
        "__annotations__": {"id": Key[str], "x": annotation, "until": int},
        "__module__": __name__,
        "x": field(unique=True),
    }
    with pytest.raises(ModelDefinitionError, match=problem):
        type("Wrong", (Model,), body, **keywords)
