"""``before_commit`` and similar hooks: how an item can change itself and other items just before it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rig.behaviour import Db, awaiting, blocking, everywhere, in_memory
from rig.behaviour_models import arrange, expect_failure

from holdall import AsyncTransaction, Database, Key, Model, col, field
from holdall.errors import (
    AwaitableRefused,
    InvalidFieldError,
    InvalidModelUpdateError,
    InvalidRequestError,
    ModelDefinitionError,
    WriteAttemptedInReadOnlyTxError,
)

called: list[str] = []


class Page(Model):
    id: Key[str]
    text: str = ""
    words: int = 0
    tags: list[str] = field(default_factory=list)

    def before_commit(self, tx: Any) -> None:
        called.append(self.id)
        self.words = len(self.text.split())


class Logged(Model):
    id: Key[str]
    n: int = 0

    def before_commit(self, tx: Any) -> None:
        tx.create(Entry, id=f"log of {self.id}")


class Entry(Model):
    id: Key[str]
    stamped: bool = False

    def before_commit(self, tx: Any) -> None:
        self.stamped = True


class Strict(Model):
    id: Key[str]
    n: int = 0

    def before_commit(self, tx: Any) -> None:
        if self.n < 0:
            raise ValueError(f"{self.id} is below zero")


class Traced(Model):
    id: Key[str]
    n: int = 0
    trail: str = ""

    def before_create(self, tx: Any) -> None:
        called.append(f"create {self.id}")
        self.trail += "c"

    def before_update(self, tx: Any) -> None:
        called.append(f"update {self.id}")
        self.trail += "u"

    def before_delete(self, tx: Any) -> None:
        called.append(f"delete {self.id}")
        if self.n < 0:
            raise ValueError(f"{self.id} is below zero")

    def before_commit(self, tx: Any) -> None:
        called.append(f"commit {self.id}")
        self.trail += "."


class Parent(Model):
    """A parent deletes its child when it is deleted."""

    id: Key[str]

    def before_delete(self, tx: Any) -> Any:
        found = tx.get(Traced, self.id)

        async def follow() -> None:
            tx.delete(await found)

        return follow() if hasattr(found, "__await__") else tx.delete(found)


@pytest.fixture(autouse=True)
def _clear_calls() -> None:
    called.clear()


@everywhere
async def test_changes_by_a_hook_are_written_with_the_item(db: Db) -> None:
    await arrange(db, Page(id="a", text="one two"))
    assert (await db.get_one(Page, "a")).words == 2
    async with db.transaction() as tx:
        (await tx.get_one(Page, "a")).text = "one two three"
    assert (await db.get_one(Page, "a")).words == 3
    assert db.kinds() == ["GetItem", "GetItem", "UpdateItem", "GetItem"]


@everywhere
async def test_hooks_are_called_once_and_only_for_items_that_are_written(db: Db) -> None:
    await arrange(db, Page(id="a"), Page(id="b"), Page(id="c"), Page(id="d"))
    called.clear()
    async with db.transaction() as tx:
        a, b, c = [await tx.get_one(Page, id) for id in "abc"]
        a.text = "changed"
        assert b.text == ""
        c.tags.append("in place")
        tx.create(Page, id="e")
        tx.delete(await tx.get_one(Page, "d"))
    assert called == ["a", "c", "e", "d"]


@everywhere
async def test_a_hook_sees_increments(db: Db) -> None:
    await arrange(db, Strict(id="a", n=1))
    with expect_failure(ValueError, "a is below zero"):
        async with db.transaction() as tx:
            (await tx.get_one(Strict, "a")).field("n").increment_by(-5)
    assert (await db.get_one(Strict, "a")).n == 1


@everywhere
async def test_a_hook_can_create_other_items_whose_hooks_are_called_too(db: Db) -> None:
    await arrange(db, Logged(id="a"))
    assert (await db.get_one(Entry, "log of a")).stamped
    db.forget()
    async with db.transaction() as tx:
        tx.create(Logged, id="b")
    assert db.kinds() == ["TransactWrite"]


@everywhere
async def test_an_item_whose_hook_changes_it_can_be_deleted(db: Db) -> None:
    await arrange(db, Page(id="a"))
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(Page, "a"))
    assert await db.get(Page, "a") is None


@in_memory
async def test_the_hook_of_an_item_that_was_created_and_deleted_is_not_called(db: Db) -> None:
    async with db.transaction() as tx:
        tx.delete(tx.create(Page, id="a"))
    assert called == []
    assert await db.get(Page, "a") is None


@in_memory
async def test_an_error_of_a_hook_stops_the_commit(db: Db) -> None:
    received: list[Exception] = []
    with expect_failure(ValueError, "a is below zero") as caught:
        async with db.transaction() as tx:
            tx.create(Strict, id="a", n=-1)
            tx.after_failure(received.append)
            tx.after_commit(received.append, ValueError("never"))
    assert received == [caught.value]
    assert db.list_sent() == []


@in_memory
async def test_a_hook_runs_in_every_attempt(db: Db) -> None:
    class Again(Exception):
        retryable = True

    attempts = []

    class Shy(Model):
        id: Key[str]

        def before_commit(self, tx: Any) -> None:
            attempts.append(1)
            if len(attempts) == 1:
                raise Again

    async def create(tx: AsyncTransaction) -> None:
        tx.create(Shy, id="a")

    await db.run(create)
    assert len(attempts) == 2
    assert await db.get(Shy, "a") is not None


@in_memory
async def test_an_invalid_value_that_a_hook_sets_is_refused(db: Db) -> None:
    class Invalid(Model):
        id: Key[str]
        tags: list[str] = field(default_factory=list)

        def before_commit(self, tx: Any) -> None:
            self.tags.append(5)  # type: ignore[arg-type]

    with expect_failure(InvalidFieldError, r"Invalid\.tags"):
        async with db.transaction() as tx:
            tx.create(Invalid, id="a")
    assert db.list_sent() == []


@in_memory
@pytest.mark.parametrize(
    "write",
    [
        lambda tx: tx.update(Page, {"id": "a", "text": ""}, {"text": "x"}),
        lambda tx: tx.create_or_put(Page, {"id": "a"}, {}),
        lambda tx: tx.delete(Page.key("a")),
    ],
    ids=["update", "create_or_put", "delete"],
)
async def test_a_blind_write_that_would_skip_the_hook_is_refused(db: Db, write: Callable[[Any], Any]) -> None:
    with expect_failure(InvalidRequestError, "Page has a before_commit") as caught:
        async with db.transaction() as tx:
            write(tx)
    assert "read the item" in str(caught.value)
    assert db.list_sent() == []


class Shape(Model):
    id: Key[str]
    n: int = 0


class Counted(Shape):
    version: int = field(default=0, version=True)


class Watched(Shape):
    def before_update(self, tx: Any) -> None:
        called.append(f"update {self.id}")

    def before_delete(self, tx: Any) -> None:
        called.append(f"delete {self.id}")


@in_memory
@pytest.mark.parametrize(
    "write",
    [lambda tx: tx.create_or_put(Shape, {"id": "a"}, {}), lambda tx: tx.delete(Shape.key("a"))],
    ids=["create_or_put", "delete"],
)
async def test_a_blind_write_that_could_skip_the_hook_of_a_derived_model_is_refused(
    db: Db, write: Callable[[Any], Any]
) -> None:
    with expect_failure(
        InvalidRequestError, "Watched, which is derived from Shape, has a before_update hook"
    ):
        async with db.transaction() as tx:
            write(tx)
    assert db.list_sent() == []


@in_memory
@pytest.mark.parametrize("other", [Watched, Counted])
@pytest.mark.parametrize(
    "write",
    [
        lambda tx: tx.update(Shape.key("a"), col(Shape.n).increment_by(1)),
        lambda tx: tx.update(Shape, {"id": "a", "n": 0}, {"n": 1}),
    ],
    ids=["key", "expected"],
)
async def test_a_blind_update_of_an_item_of_a_derived_model_with_a_hook_or_a_version_is_refused(
    db: Db, other: Any, write: Callable[[Any], Any]
) -> None:
    await arrange(db, other(id="a"))
    called.clear()
    with expect_failure(
        InvalidModelUpdateError, f"is of the model {other.__name__}, which an update of Shape"
    ):
        async with db.transaction() as tx:
            write(tx)
    assert (await db.get_one(other, "a")).n == 0
    await db.delete(Shape.key("a"))
    assert called == (["delete a"] if other is Watched else [])
    await arrange(db, Shape(id="a"))
    async with db.transaction() as tx:
        write(tx)
    assert (await db.get_one(Shape, "a")).n == 1


@in_memory
async def test_a_put_of_a_base_model_does_not_replace_an_item_whose_model_has_a_hook(db: Db) -> None:
    await db.put(Shape(id="b", n=2))
    await arrange(db, Watched(id="a"))
    with expect_failure(InvalidModelUpdateError, "is stored as a Watched, so it cannot become a Shape"):
        await db.put(Shape(id="a"))


@in_memory
async def test_a_read_only_transaction_calls_no_hooks(db: Db) -> None:
    await arrange(db, Page(id="a"))
    called.clear()
    async with db.transaction(read_only=True) as tx:
        assert (await tx.get_one(Page, "a")).text == ""
    assert called == []
    with expect_failure(WriteAttemptedInReadOnlyTxError):
        async with db.transaction(read_only=True) as tx:
            (await tx.get_one(Page, "a")).tags.append("x")


@awaiting
async def test_a_hook_can_be_async_and_read(db: Db) -> None:
    class Child(Model):
        id: Key[str]
        parent: str

        async def before_commit(self, tx: AsyncTransaction) -> None:
            (await tx.get_one(Strict, self.parent)).n += 1

    await arrange(db, Strict(id="p"))
    async with db.transaction() as tx:
        tx.create(Child, id="a", parent="p")
    assert (await db.get_one(Strict, "p")).n == 1


@blocking
async def test_an_async_hook_is_refused_in_the_sync_api(db: Db) -> None:
    class Hasty(Model):
        id: Key[str]

        async def before_commit(self, tx: Any) -> None: ...

    with expect_failure(AwaitableRefused, "is async, but this is the sync API"):
        async with db.transaction() as tx:
            tx.create(Hasty, id="a")
    assert db.list_sent() == []


# --- hooks for single kinds of writes ---------------------------------------------------------------------


@everywhere
async def test_each_kind_of_write_has_its_hook_and_before_commit_follows(db: Db) -> None:
    await arrange(db, Traced(id="a"), Traced(id="b"), Traced(id="d"))
    assert called == ["create a", "create b", "create d", "commit a", "commit b", "commit d"]
    called.clear()
    async with db.transaction() as tx:
        a, b, d = [await tx.get_one(Traced, id) for id in "abd"]
        a.field("n").increment_by(1)
        assert b.n == 0
        tx.delete(d)
        tx.delete(tx.create(Traced, id="e"))
    assert called == ["update a", "delete d", "commit a", "commit d"]
    found = await db.get_one(Traced, "a")
    assert (found.n, found.trail) == (1, "c.u.")
    assert (await db.get_one(Traced, "b")).trail == "c."
    assert await db.get(Traced, "d") is None


@everywhere
async def test_a_hook_can_stop_a_deletion(db: Db) -> None:
    await arrange(db, Traced(id="a", n=-1))
    with expect_failure(ValueError, "a is below zero"):
        async with db.transaction() as tx:
            tx.delete(await tx.get_one(Traced, "a"))
    with expect_failure(ValueError, "a is below zero"):
        await db.delete(Traced.key("a"))
    assert (await db.get_one(Traced, "a")).n == -1


@everywhere
async def test_before_delete_is_called_for_an_item_that_another_hook_deletes(db: Db) -> None:
    await arrange(db, Parent(id="a"), Traced(id="a"))
    called.clear()
    async with db.transaction() as tx:
        (await tx.get_one(Traced, "a")).n = 1
        tx.delete(await tx.get_one(Parent, "a"))
    assert called == ["update a", "delete a", "commit a"]
    assert await db.get(Traced, "a") is None


@pytest.mark.parametrize("name", ["before_create", "before_update", "before_delete"])
def test_a_hook_cannot_be_a_generator_and_prevents_blind_writes(name: str) -> None:
    def lazy(self: Any, tx: Any) -> Any:
        yield

    with pytest.raises(ModelDefinitionError, match=rf"Lazy\.{name}: it is a generator function"):
        type("Lazy", (Model,), {name: lazy, "__annotations__": {"id": Key[str]}})
    hooked: Any = type("Hooked", (Model,), {name: lambda self, tx: None, "__annotations__": {"id": Key[str]}})
    refused = pytest.raises(InvalidRequestError, match=f"Hooked has a {name} hook")
    with Database("memory:") as db, refused, db.transaction() as tx:
        tx.delete(hooked.key("a"))
