"""Generators instead of functions: everything that calls the application's code refuses them and writes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest
from rig.behaviour import Db, awaiting, in_memory
from rig.behaviour_models import Order, arrange, expect_failure

from holdall import AsyncTransaction, Key, Model
from holdall.artifacts import on
from holdall.errors import AfterCommitError, GeneratorRefused, JobDefinitionError, ModelDefinitionError
from holdall.jobs.declaration import declared_jobs


def yield_plainly(tx: Any, *args: Any) -> Iterator[Any]:
    tx.create(Order, id="a")
    yield tx


async def yield_asynchronously(tx: Any, *args: Any) -> AsyncIterator[Any]:
    tx.create(Order, id="a")
    yield tx


class Yielding:
    def method(self, tx: Any, *args: Any) -> Iterator[Any]:
        yield tx

    __call__ = method


GENERATORS = {
    "plain": yield_plainly,
    "async": yield_asynchronously,
    "partial": partial(yield_plainly, tx=None),
    "method": Yielding().method,
    "object": Yielding(),
    "partial of a method": partial(Yielding().method),
}
each_generator = pytest.mark.parametrize("function", GENERATORS.values(), ids=list(GENERATORS))


# --- generator functions as arguments ---------------------------------------------------------------------


@each_generator
@awaiting
async def test_a_generator_function_cannot_be_run_in_a_transaction(db: Db, function: Any) -> None:
    for refuse in (db.transactional, db.transactional(retries=1), db.sync.transactional, db.sync.run):
        with pytest.raises(GeneratorRefused, match="would run none of its code") as caught:
            refuse(function)
        assert "plain function" in str(caught.value.hint)
    with pytest.raises(GeneratorRefused):
        await db.run(function)
    assert db.recorder.requests == []


@each_generator
@in_memory
async def test_a_generator_function_cannot_be_a_handler(db: Db, function: Any) -> None:
    with expect_failure(GeneratorRefused, "a handler"):
        async with db.transaction() as tx:
            tx.create(Order, id="a")
            tx.after_commit(function, 1)
    with expect_failure(GeneratorRefused, "a handler"):
        async with db.transaction() as tx:
            tx.create(Order, id="a")
            tx.after_failure(function)
    assert db.list_sent() == []


def test_a_generator_function_cannot_be_a_hook_of_a_model() -> None:
    with pytest.raises(ModelDefinitionError, match=r"Lazy\.before_commit: it is a generator function"):

        class Lazy(Model):
            id: Key[str]

            def before_commit(self, tx: Any) -> Any:
                yield tx


@each_generator
def test_a_generator_function_cannot_be_an_event_handler(function: Any) -> None:
    before = dict(declared_jobs())
    with pytest.raises(JobDefinitionError, match="is a generator function"):
        on("published", name="never-called")(function)
    assert declared_jobs() == before


# --- generators as results --------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [yield_plainly, yield_asynchronously], ids=["plain", "async"])
@in_memory
async def test_a_generator_that_a_function_returns_is_refused_before_the_commit(
    db: Db, function: Any
) -> None:
    calls = []

    async def body(tx: AsyncTransaction) -> Any:
        calls.append(1)
        tx.create(Order, id="b")
        return function(tx)

    with pytest.raises(GeneratorRefused, match="body returned a generator"):
        await db.run(body)
    assert calls == [1]
    assert db.list_sent() == []


@in_memory
async def test_a_hook_that_returns_a_generator_is_refused_before_the_commit(db: Db) -> None:
    class Late(Model):
        id: Key[str]

        def before_commit(self, tx: Any) -> Any:
            return (each for each in [tx])

    with expect_failure(GeneratorRefused, "before_commit returned a generator"):
        async with db.transaction() as tx:
            tx.create(Late, id="a")
    assert db.list_sent() == []


@in_memory
async def test_a_handler_that_returns_a_generator_is_reported_as_failed(db: Db) -> None:
    with expect_failure(AfterCommitError) as caught:
        async with db.transaction() as tx:
            tx.create(Order, id="a")
            tx.after_commit(lambda: (each for each in "abc"))
    assert [type(error) for error in caught.value.errors] == [GeneratorRefused]
    assert await db.get(Order, "a") is not None


@in_memory
async def test_run_returns_other_iterators_unchanged(db: Db) -> None:
    await arrange(db, Order(id="a"))

    async def body(tx: AsyncTransaction) -> Any:
        return iter([await tx.get_one(Order, "a")])

    assert [order.id for order in await db.run(body)] == ["a"]
