"""``get`` with ``only=``: some fields of an item, by its key."""

from __future__ import annotations

import pickle
from copy import copy
from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import Line, Order, arrange, expect_contention, meanwhile, put_raw

from holdall import Key, Model, Template, col, computed, field
from holdall.core import BatchGet, GetItem, TransactGet
from holdall.errors import (
    ContentionError,
    FrozenItemError,
    InvalidFieldError,
    InvalidOptionsError,
    ModelMismatchError,
    ModelTrackedTwiceError,
    RecordNotFound,
)


class Wide(Model):
    id: Key[str]
    text: str = field(default="", name="t")
    note: str | None = None
    n: int = 0

    @computed("n")
    def twice(self) -> int:
        return 2 * self.n


class Wider(Wide):
    more: int = 1


class Own(Model, table="OwnParts"):
    id: Key[str]
    text: str = ""
    n: int = 0


class Templated(Model, table="template_parts", layout=Template(pk="T#{id}", sk="-", type="entity")):
    id: Key[str]
    text: str = ""
    n: int = 0


def double(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "n": values["n"] * 2}


class Converted(Model, migrations=[double]):
    id: Key[str]
    n: int = 0
    m: int = 0


def list_projected(read: GetItem) -> set[Any]:
    return {path.parts[0] for path in read.projection}


@everywhere
async def test_get_with_only_fetches_only_these_fields(db: Db) -> None:
    await arrange(db, Wide(id="a", text="x" * 500, n=3), Own(id="a", n=3), Templated(id="a", n=3))
    for wide in (
        await db.get(Wide, "a", only=["n"]),
        await db.get_one(Wide.key("a"), only=[Wide.n], consistent=False),
        (await db.get_all([Wide.key("a")], only=["n"]))[0],
        (await db.get_all([Wide.key("a")], only=["n"], consistent=False))[0],
    ):
        assert wide is not None
        assert (wide.id, wide.n) == ("a", 3)
        assert wide.key == Wide.key("a")
        assert wide.to_dict() == {"id": "a", "n": 3, "twice": 6}
        for twin in (wide, copy(wide), pickle.loads(pickle.dumps(wide))):
            assert twin.n == 3
            with pytest.raises(InvalidFieldError, match="text: it was not fetched"):
                twin.text  # noqa: B018
            with pytest.raises(FrozenItemError):
                twin.n = 4
            with pytest.raises(FrozenItemError):  # a put would remove the text
                await db.put(twin)
    single, again, together, batch = db.list_sent()
    assert list_projected(single) == list_projected(again) == {"n", "pk", "sk", "_type", "id"}
    assert isinstance(together, TransactGet)
    assert isinstance(batch, BatchGet)
    assert list_projected(together.reads[0]) == list_projected(batch.reads[0]) == list_projected(single)
    for model in (Own, Templated):
        found: Any = await db.get_one(model.key("a"), only=["n"])
        assert (found.id, found.n) == ("a", 3)
        with pytest.raises(InvalidFieldError, match="not fetched"):
            found.text  # noqa: B018
    nothing = await db.get_one(Wide, "a", only=[])
    assert nothing.to_dict() == {"id": "a"}


@everywhere
async def test_a_missing_attribute_shows_its_default_and_a_missing_item_is_none(db: Db) -> None:
    await put_raw(db, Wide, {"pk": {"S": "Wide#a"}, "sk": {"S": "#"}, "id": {"S": "a"}})
    part = await db.get_one(Wide, "a", only=["note", "n"])
    assert (part.note, part.n) == (None, 0)
    assert await db.get(Wide, "b", only=["n"]) is None
    assert await db.get_all([Wide.key("b")], only=["n"]) == [None]
    with pytest.raises(RecordNotFound):
        await db.get_one(Wide, "b", only=["n"])


@everywhere
async def test_a_computed_field_can_be_fetched_alone(db: Db) -> None:
    await arrange(db, Wide(id="a", n=3))
    part = await db.get_one(Wide, "a", only=["twice"])
    assert part.twice == 6
    with pytest.raises(InvalidFieldError, match="n: it was not fetched"):
        part.n  # noqa: B018
    with expect_contention():
        async with db.transaction() as tx:
            part = await tx.get_one(Wide, "a", only=["twice"])
            tx.create(Order, id=str(part.twice))
            await meanwhile(db, Wide.key("a"), n=4)


@everywhere
async def test_models_of_one_table_are_fetched_together(db: Db) -> None:
    await arrange(db, Order(id="a", note="x"), Wide(id="a", note="y", text="z"), Wider(id="b", note="w"))
    for consistent in (True, False):
        keys: list[Any] = [Order.key("a"), Wide.key("a"), Wide.key("b")]
        parts: list[Any] = await db.get_all(keys, only=["note"], consistent=consistent)
        order, wide, wider = parts
        assert (order.note, wide.note, wider.note) == ("x", "y", "w")
        assert type(wider) is Wider
        with pytest.raises(InvalidFieldError, match="not fetched"):
            wide.text  # noqa: B018
    part = await db.get_one(Wide, "b", only=["more"])
    assert part.more == 1  # type: ignore[attr-defined]
    with pytest.raises(ModelMismatchError):
        await db.get(Wider, "a", only=["n"])


@everywhere
async def test_only_fields_that_were_read_are_locked(db: Db) -> None:
    await arrange(db, Wide(id="a", n=3))
    async with db.transaction() as tx:
        part = await tx.get_one(Wide, "a", only=["n", "note"])
        tx.create(Order, id=str(part.n))
        await meanwhile(db, Wide.key("a"), text="other", note="other")
    with expect_contention():
        async with db.transaction() as tx:
            part = await tx.get_one(Wide, "a", only=["n", "note"])
            tx.create(Order, id=f"{part.n}{part.note}")
            await meanwhile(db, Wide.key("a"), note="another")
    with expect_contention():  # the existence of the item is locked even if no field was read
        async with db.transaction() as tx:
            await tx.get_one(Wide, "a", only=["n"])
            tx.create(Order, id="b")
            await db.delete(Wide.key("a"))
    with expect_contention():
        async with db.transaction() as tx:
            assert await tx.get(Wide, "a", only=["n"]) is None
            tx.create(Order, id="b")
            await db.create(Wide(id="a"))
    assert await db.get(Order, "b") is None


@everywhere
async def test_partial_and_whole_reads_of_an_item_must_agree(db: Db) -> None:
    await arrange(db, Wide(id="a", n=3), Wide(id="b", n=3))
    async with db.transaction() as tx:
        part = await tx.get_one(Wide, "a", only=["n"])
        other = await tx.get_one(Wide, "a", only=["note"])
        assert (part.n, other.note) == (3, None)
        whole = await tx.get_one(Wide, "a")
        whole.text = "x"
        assert await tx.get_one(Wide, "a", only=["n"]) is whole
    assert (await db.get_one(Wide, "a")).text == "x"
    async with db.transaction() as tx:  # the whole item is newer than the partial one
        part = await tx.get_one(Wide, "a", only=["n"])
        await meanwhile(db, Wide.key("a"), n=4)
        with pytest.raises(ContentionError):
            await tx.get_one(Wide, "a")
    with expect_contention():
        async with db.transaction() as tx:
            part = await tx.get_one(Wide, "a", only=["n"])
            whole = await tx.get_one(Wide, "a")
            await meanwhile(db, Wide.key("a"), n=5)
            whole.text = str(part.n)
    with expect_contention():  # the two partial reads contradict each other
        async with db.transaction() as tx:
            part = await tx.get_one(Wide, "b", only=["n"])
            await meanwhile(db, Wide.key("b"), n=5)
            later = await tx.get_one(Wide, "b", only=["n"])
            tx.create(Order, id=f"{part.n}{later.n}")
    async with db.transaction() as tx:
        await tx.get_one(Wide, "b", only=["n"])
        with pytest.raises(ModelTrackedTwiceError):
            tx.update(Wide.key("b"), col(Wide.note).set("x"))


@everywhere
async def test_a_read_only_transaction_verifies_partial_items(db: Db) -> None:
    await arrange(db, Wide(id="a", n=3), Wide(id="b"))
    with expect_contention():
        async with db.transaction(read_only=True) as tx:
            assert (await tx.get_one(Wide, "a", only=["n"])).n == 3
            await meanwhile(db, Wide.key("a"), n=4)
            await tx.get_one(Wide, "b", only=["n"])
    async with db.transaction(read_only=True) as tx:
        assert (await tx.get_one(Wide, "a", only=["n"])).n == 4
        await meanwhile(db, Wide.key("a"), note="x")
        await tx.get_one(Wide, "b", only=["n"])


@everywhere
async def test_items_with_conversions_are_read_whole(db: Db) -> None:
    key = {"pk": {"S": "Converted#a"}, "sk": {"S": "#"}, "id": {"S": "a"}}
    await put_raw(db, Converted, {**key, "n": {"N": "4"}, "m": {"N": "1"}})
    part = await db.get_one(Converted, "a", only=["n"])
    assert part.n == 8
    with pytest.raises(InvalidFieldError, match="not fetched"):
        part.m  # noqa: B018
    with expect_contention():  # the conversion of n could depend on m
        async with db.transaction() as tx:
            part = await tx.get_one(Converted, "a", only=["n"])
            tx.create(Order, id=str(part.n))
            await meanwhile(db, Converted.key("a"), m=2)


@in_memory
async def test_invalid_combinations_of_options_are_refused(db: Db) -> None:
    with pytest.raises(InvalidOptionsError, match="only= names 'nn', which is not a field of Wide"):
        await db.get(Wide, "a", only=["nn"])
    keys: list[Any] = [Wide.key("a"), Line.key(order="a", number=1)]
    with pytest.raises(InvalidOptionsError, match="not a field of Wide or Line"):
        await db.get_all(keys, only=["m"])
    assert await db.get_all(keys, only=["n"]) == [None, None]
    assert await db.get_all([], only=[]) == []
    async with db.transaction() as tx:
        with pytest.raises(InvalidOptionsError, match="together with create_if_missing"):
            await tx.get(Wide, "a", only=["n"], create_if_missing=True)  # type: ignore[call-overload]
    with pytest.raises(InvalidOptionsError, match="together with include"):
        await db.get(Wide, "a", only=["n"], include=["x"])
