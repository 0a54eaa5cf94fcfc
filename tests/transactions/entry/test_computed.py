"""``@computed``: stored fields match the fields that they are computed from after every kind of write."""

from __future__ import annotations

import json
import random
from copy import copy
from datetime import datetime, timedelta
from typing import Annotated, Any

import pytest
from annotated_types import Ge
from pydantic import TypeAdapter
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import arrange, expect_contention, put_raw

from holdall import Index, Key, Model, SortKey, Template, col, computed, field
from holdall.errors import (
    HoldallError,
    InvalidFieldError,
    InvalidModelUpdateError,
    InvalidRequestError,
    ModelDefinitionError,
)


class Line(
    Model,
    indexes=[
        Index("by_total", key=["shop"], sort_key=["total"], slot=1),
        Index("by_size", key=["size"], slot=2),
    ],
):
    shop: Key[str]
    number: SortKey[int]
    price: Annotated[int, Ge(0)] = 1
    quantity: int = 1
    note: str | None = None
    tags: list[str] = field(default_factory=list)

    @computed("price", "quantity", name="t")
    def total(self) -> int:
        return self.price * self.quantity

    @computed("total", "tags")
    def size(self) -> str | None:
        """Computed from another computed field; None leaves the item out of the index."""
        return None if not self.tags else "big" if self.total > 10 else "small"


class Offer(Line):
    discount: int = 0

    @computed("price", "quantity", "discount", name="t")
    def total(self) -> int:
        return self.price * self.quantity - self.discount


class Place(Model, table="places", layout="plain", indexes=[Index("by_city", key=["city_key"])]):
    id: Key[str]
    city: str
    n: int = 0

    @computed("city")
    def city_key(self) -> str:
        return self.city.lower()


class Entry(Model, table="entries", layout=Template(pk="E#{id}", sk="-", gsi1=("W#{week}", "{id}"))):
    id: Key[str]
    day: int
    n: int = 0

    @computed("day")
    def week(self) -> int:
        return self.day // 7


class Visit(Model, ttl="expires"):
    id: Key[str]
    n: int = 0
    days: int = 1
    at: datetime = field(now="create")

    @computed("at", "days")
    def expires(self) -> datetime:
        return self.at + timedelta(days=self.days)


async def check_item(db: Db, key: Any) -> Any:
    """Check that the stored item and its indexes have the values that its other fields compute to."""
    item = await db.get_one(key)
    raw = await db.raw(key)
    assert raw is not None
    fresh = type(item)(
        **{name: value for name, value in item.to_dict().items() if name not in ("total", "size")}
    )
    assert raw["t"] == {"N": str(fresh.total)}
    assert raw.get("size") == (None if fresh.size is None else {"S": fresh.size})
    assert (item.total, item.size) == (fresh.total, fresh.size)
    rows = await db.query(Line, index="by_total", shop=item.shop, sort=col(Line.total) == fresh.total).all()
    assert item.number in [row.number for row in rows]
    for size in ("big", "small"):
        found = [row.number for row in await db.query(Line, index="by_size", size=size).all()]
        assert (item.number in found) == (size == fresh.size)
    return item


def test_an_instance_computes_its_fields_when_they_are_read() -> None:
    line: Any = Line(shop="a", number=1, price=3, quantity=2)
    assert (line.total, line.size) == (6, None)
    line.quantity = 4
    line.tags.append("x")
    assert (line.total, line.size) == (12, "big")
    assert line.to_dict()["total"] == 12
    assert "total=12" in repr(line)
    assert copy(line).total == 12
    with pytest.raises(
        InvalidFieldError, match="Holdall computes it from other fields, so it cannot be changed"
    ):
        line.total = 3
    with pytest.raises(InvalidFieldError, match="cannot be changed"):
        line.assign({"total": 3})
    with pytest.raises(InvalidFieldError, match="gets another value"):
        Line(shop="a", number=1, price=3, total=7)  # type: ignore[call-arg]
    assert Line(**line.to_dict()).total == 12


def test_json_output_has_computed_fields_and_json_input_cannot_set_them() -> None:
    adapter = TypeAdapter(Line)
    line = adapter.validate_json('{"shop": "a", "number": 1, "price": 3, "total": 99}')
    assert json.loads(adapter.dump_json(line))["total"] == 3
    for mode in ("validation", "serialization"):
        assert adapter.json_schema(mode=mode)["properties"]["total"]["readOnly"] is True
    assert "total" not in adapter.json_schema().get("required", [])


@everywhere
async def test_every_kind_of_write_stores_the_right_value(db: Db) -> None:
    key = Line.key(shop="a", number=1)
    await db.create(Line(shop="a", number=1, price=3, quantity=2))
    await check_item(db, key)
    async with db.transaction() as tx:
        line = await tx.get_one(key)
        line.quantity = 5
        line.tags.append("x")
        assert (line.total, line.size) == (15, "big")
    assert (await check_item(db, key)).total == 15
    async with db.transaction() as tx:
        line = await tx.get_one(key)
        tx.increment(line, price=-1)
    assert (await check_item(db, key)).total == 10
    await db.update(key, note="x")
    await db.update_all(Line, {"price": 4}, shop="a")
    assert (await check_item(db, key)).total == 20
    await db.put(Line(shop="a", number=1, price=6))
    assert (await check_item(db, key)).total == 6
    async with db.bulk(Line) as bulk:
        await bulk.put(Line(shop="a", number=1, price=7, tags=["x"]))
    assert (await check_item(db, key)).size == "small"
    async with db.transaction() as tx:
        tx.create_or_put(Line, {"shop": "a", "number": 1, "total": 7}, {"price": 9})
    assert (await check_item(db, key)).total == 9


@everywhere
async def test_a_blind_write_needs_every_field_that_a_computed_one_is_computed_from(db: Db) -> None:
    key = Line.key(shop="a", number=1)
    await arrange(db, Line(shop="a", number=1, price=3, quantity=2))
    with pytest.raises(InvalidFieldError, match="quantity: a stored attribute is computed from it"):
        await db.update(key, col(Line.price).set(5))
    with pytest.raises(InvalidFieldError, match="a stored attribute is computed from it"):
        await db.update(key, col(Line.price).increment_by(1))
    with pytest.raises(InvalidFieldError, match="tags: a stored attribute is computed from it"):
        async with db.transaction() as tx:
            tx.update(Line, {"shop": "a", "number": 1, "price": 3, "quantity": 2}, {"price": 5})
    with pytest.raises(InvalidFieldError, match="Holdall computes it"):
        await db.update(key, col(Line.total).set(5))
    with pytest.raises(InvalidFieldError, match="Holdall computes it"):
        await db.update_all(Line, {"total": 5}, shop="a")
    assert [type(each).__name__ for each in db.list_sent() if "Write" in type(each).__name__] == []
    await db.update(key, col(Line.note).set("x"))
    known = (col(Line.quantity) == 2) & (col(Line.tags) == [])
    await db.update(key, col(Line.price).set(5), where=known)
    assert (await check_item(db, key)).total == 10
    with pytest.raises(InvalidModelUpdateError):
        await db.update(key, col(Line.price).set(6), where=(col(Line.quantity) == 3) & (col(Line.tags) == []))
    await db.update(key, col(Line.price).set(7), col(Line.quantity).set(3), col(Line.tags).set(["y"]))
    assert (await check_item(db, key)).total == 21
    async with db.transaction() as tx:
        tx.update(Line, {"shop": "a", "number": 1, "price": 7, "quantity": 3, "tags": ["y"]}, {"price": 1})
    assert (await check_item(db, key)).size == "small"
    new = Line.key(shop="a", number=2)
    values = {"price": 2, "quantity": 2, "tags": ["z"]}
    await db.update(new, col(Line.note).set("x"), create_if_missing=values)
    assert (await check_item(db, new)).total == 4


@everywhere
async def test_conditions_and_projections_use_the_stored_value(db: Db) -> None:
    await arrange(db, *(Line(shop="a", number=n, price=n) for n in range(1, 6)))
    rows = await db.query(Line, shop="a", where=col(Line.total) > 3).all()
    assert [row.number for row in rows] == [4, 5]
    (row,) = await db.query(Line, shop="a", where=col(Line.total) == 2, only=[Line.total]).all()
    assert row.total == 2
    with pytest.raises(InvalidFieldError, match="not fetched"):
        row.size  # noqa: B018
    (row,) = await db.query(Line, shop="a", where=col(Line.total) == 2, only=["price", "quantity"]).all()
    assert row.total == 2
    await db.delete(Line.key(shop="a", number=1), where=col(Line.total) == 1)
    with pytest.raises(InvalidModelUpdateError):
        await db.delete(Line.key(shop="a", number=2), where=col(Line.total) == 1)


@everywhere
async def test_two_writers_of_different_source_fields_conflict(db: Db) -> None:
    key = Line.key(shop="a", number=1)
    await arrange(db, Line(shop="a", number=1))
    with expect_contention():
        async with db.transaction() as tx:
            line = await tx.get_one(key)
            line.price = 5
            await db.update(key, quantity=7)
    await check_item(db, key)
    async with db.transaction() as tx:  # the transaction changes no source field
        line = await tx.get_one(key)
        line.note = "x"
        await db.update(key, quantity=8)
    assert (await check_item(db, key)).total == 8
    with expect_contention():  # reading a computed value locks its source fields
        async with db.transaction() as tx:
            line = await tx.get_one(key)
            tx.create(Line, shop="b", number=line.total)
            await db.update(key, quantity=9)


@everywhere
async def test_a_wrong_stored_value_is_computed_on_reading_and_a_migration_stores_it(db: Db) -> None:
    key = Line.key(shop="a", number=1)
    await put_raw(
        db,
        Line,
        {
            **{"pk": {"S": "Line#a"}, "sk": {"S": key.encoded[1]}, "shop": {"S": "a"}, "number": {"N": "1"}},
            **{"price": {"N": "3"}, "quantity": {"N": "4"}, "t": {"N": "99"}},
        },
    )
    assert (await db.get_one(key)).total == 12
    assert (await db.migrate(Line)).changed == 1
    await check_item(db, key)
    assert (await db.migrate(Line)).changed == 0


@everywhere
async def test_a_derived_model_can_compute_a_field_differently(db: Db) -> None:
    key = Offer.key(shop="a", number=1)
    await arrange(db, Offer(shop="a", number=1, price=3, discount=1))
    assert (await check_item(db, key)).total == 2
    with pytest.raises(InvalidModelUpdateError):  # Line cannot know how an Offer computes it
        await db.update(
            Line.key(shop="a", number=1),
            col(Line.price).set(5),
            col(Line.quantity).set(1),
            where=col(Line.tags) == [],
        )
    await db.update(key, price=7)
    assert (await check_item(db, key)).total == 6


@everywhere
async def test_plain_and_templated_tables_have_computed_fields_too(db: Db) -> None:
    await db.create(Place(id="a", city="Paris"))
    await db.update(Place.key("a"), col(Place.n).increment_by(1))
    await db.update(Place.key("a"), col(Place.city).set("ROME"))
    assert [place.id for place in await db.query(Place, index="by_city", city_key="rome").all()] == ["a"]
    await db.create(Entry(id="a", day=15))
    await db.update(Entry.key("a"), day=22)
    assert [entry.id for entry in await db.query(Entry, index="gsi1", week=3).all()] == ["a"]
    assert await db.query(Entry, index="gsi1", week=2).all() == []


@everywhere
async def test_the_expiry_can_be_computed(db: Db) -> None:
    visit = await db.create(Visit(id="a"))
    assert visit.expires == visit.at + timedelta(days=1)
    db.clock.forward(3600)
    await db.update(Visit.key("a"), n=1)
    assert (await db.get_one(Visit, "a")).expires == visit.expires
    await db.update(Visit.key("a"), days=3)
    raw = await db.raw(Visit.key("a"))
    assert raw is not None
    assert int(raw["_ttl"]["N"]) == -int(-(visit.at + timedelta(days=3)).timestamp() // 1)
    db.clock.forward(3 * 86400)
    assert await db.get(Visit, "a") is None


@in_memory
async def test_the_stored_value_is_right_after_any_sequence_of_writes(db: Db) -> None:
    choose = random.Random(7)
    key = Line.key(shop="a", number=1)
    await db.create(Line(shop="a", number=1))
    for _ in range(150):
        price, quantity, tags = choose.randrange(9), choose.randrange(9), ["x"] * choose.randrange(2)
        now = await db.get_one(key)
        same = (col(Line.quantity) == now.quantity) & (col(Line.tags) == now.tags)
        kind = choose.randrange(9)
        try:
            match kind:
                case 0:
                    await db.update(key, price=price)
                case 1:
                    await db.update(key, quantity=quantity, tags=tags)
                case 2:
                    await db.put(Line(shop="a", number=1, price=price, quantity=quantity, tags=tags))
                case 3:
                    await db.update(key, col(Line.price).set(price), where=same)
                case 4:
                    await db.update(key, col(Line.price).set(price))
                case 5:
                    await db.update_all(Line, {"quantity": quantity}, shop="a")
                case 6:
                    async with db.transaction() as tx:
                        line = await tx.get_one(key)
                        line.field("price").increment_by(choose.randrange(-2, 3))
                        line.field("tags").append("y")
                case 7:
                    async with db.bulk(Line) as bulk:
                        await bulk.put(Line(shop="a", number=1, price=price, tags=tags))
                case _:
                    async with db.transaction() as tx:
                        line = await tx.get_one(key)
                        line.tags.clear()
                        line.quantity = quantity
        except HoldallError:
            assert kind in (4, 6)
        await check_item(db, key)


@in_memory
async def test_a_method_may_read_only_the_fields_that_its_decorator_names(db: Db) -> None:
    class Sly(Model):
        id: Key[str]
        a: int = 1
        b: int = 2

        @computed("a")
        def c(self) -> int:
            return self.a + self.b

        @computed("a")
        def bad(self) -> int:
            return "x"  # type: ignore[return-value]

    sly = Sly(id="x")
    with pytest.raises(
        InvalidFieldError, match="its method reads b, which @computed does not name"
    ) as caught:
        sly.c  # noqa: B018
    assert "@computed('a', 'b')" in str(caught.value)
    with pytest.raises(InvalidFieldError, match="valid integer"):
        sly.bad  # noqa: B018
    with pytest.raises(InvalidRequestError):
        await db.create(sly)
    assert await db.get(Sly, "x") is None


def test_invalid_declarations_are_refused() -> None:
    with pytest.raises(ModelDefinitionError, match="names of the fields"):
        computed()
    with pytest.raises(ModelDefinitionError, match="no return type"):

        class NoType(Model):
            a: int

            @computed("a")
            def b(self):  # type: ignore[no-untyped-def]
                return self.a

    with pytest.raises(ModelDefinitionError, match="'aa', which is not a field\nhint: did you mean 'a'"):

        class Misspelt(Model):
            a: int

            @computed("aa")
            def b(self) -> int:
                return self.a

    with pytest.raises(ModelDefinitionError, match="computed from 'b', which is computed from it"):

        class Circle(Model):
            @computed("c")
            def b(self) -> int:
                return self.c

            @computed("b")
            def c(self) -> int:
                return self.b

    with pytest.raises(ModelDefinitionError, match="async"):

        class Waiting(Model):
            a: int

            @computed("a")
            async def b(self) -> int:
                return self.a

    with pytest.raises(ModelDefinitionError, match="counts the item's writes"):

        class Counting(Model):
            v: int = field(default=0, version=True)

            @computed("v")
            def b(self) -> int:
                return self.v

    with pytest.raises(ModelDefinitionError, match="same name as a field"):

        class Hiding(Place, abstract=True):
            @computed("id")  # type: ignore[misc]
            def city(self) -> str:
                return self.id

    with pytest.raises(ModelDefinitionError, match="it is computed from other fields"):

        class Fixed(Line):
            total = 7
