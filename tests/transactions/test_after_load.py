"""``after_load``: a hook that an item runs after it was read."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from rig.behaviour import Db, everywhere
from rig.behaviour_models import arrange, expect_contention, meanwhile, put_raw

from holdall import Index, Key, Model, SortKey
from holdall.errors import FrozenItemError, InvalidFieldError, ModelDefinitionError
from holdall.models import stream_change

loaded: list[str] = []


class Seat(Model, indexes=[Index("by_row", key=["row"])]):
    room: Key[str]
    number: SortKey[int]
    row: str = "a"
    taken: bool = False

    def after_load(self) -> None:
        loaded.append(type(self).__name__)
        self._label = f"{self.room}-{self.number}"

    @property
    def label(self) -> str:
        return self._label


class Sofa(Seat):
    width: int = 2

    def after_load(self) -> None:
        super().after_load()
        self._double = 2 * self.width


class Plain(Model, table="plain_seats", layout="plain"):
    id: Key[str]
    n: int = 0

    def after_load(self) -> None:
        self._twice = 2 * self.n


def double(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "n": values["n"] * 2}


class Converted(Model, migrations=[double]):
    id: Key[str]
    n: int = 0

    def after_load(self) -> None:
        self._seen = self.n


class SelfIncrementing(Model):
    id: Key[str]
    n: int = 0

    def after_load(self) -> None:
        self.n += 1


def take_loaded() -> list[str]:
    found = loaded.copy()
    loaded.clear()
    return found


@everywhere
async def test_after_load_is_called_once_for_each_kind_of_read(db: Db) -> None:
    loaded.clear()
    await arrange(db, Seat(room="x", number=1), Sofa(room="x", number=2), Plain(id="a", n=4))
    assert take_loaded() == []
    seat = await db.get_one(Seat, room="x", number=1)
    assert (seat.label, take_loaded()) == ("x-1", ["Seat"])
    assert copy.copy(seat).label == pickle.loads(pickle.dumps(seat)).label == "x-1"
    both = await db.get_all([Seat.key(room="x", number=1), Sofa.key(room="x", number=2)])
    assert [each.label for each in both if each is not None] == ["x-1", "x-2"]
    rows = await db.query(Seat, room="x").all()
    assert ([row.label for row in rows], rows[1]._double) == (["x-1", "x-2"], 4)  # type: ignore[attr-defined]
    assert {row.label for row in await db.query(Seat, index="by_row", row="a").all()} == {"x-1", "x-2"}
    assert {row.label for row in await db.scan(Seat).all()} == {"x-1", "x-2"}
    assert sorted(take_loaded()) == ["Seat"] * 4 + ["Sofa"] * 4
    async with db.transaction() as tx:
        first = await tx.get_one(Seat, room="x", number=1)
        again = await tx.get_one(Seat, room="x", number=1)
        rows = await tx.query(Seat, room="x").all()
        assert first is again is rows[0]
        assert (rows[1].label, take_loaded()) == ("x-2", ["Seat", "Sofa"])
        new = tx.create(Seat, room="y", number=1)
        with pytest.raises(AttributeError):
            new.label  # noqa: B018
    assert (await db.get_one(Plain, "a"))._twice == 8
    assert [row._twice for row in await db.query(Plain, id="a").all()] == [8]
    assert [row._twice for row in await db.scan(Plain).all()] == [8]


@everywhere
async def test_after_load_is_not_called_for_partial_items_or_by_a_migration(db: Db) -> None:
    await arrange(db, Seat(room="x", number=1))
    loaded.clear()
    (row,) = await db.query(Seat, room="x", only=["taken"]).all()
    assert row.taken is False
    await db.migrate(Seat)
    assert take_loaded() == []


@everywhere
async def test_fields_that_after_load_reads_are_locked(db: Db) -> None:
    await arrange(db, SelfIncrementing(id="b"), Plain(id="a", n=4), Plain(id="b"))
    with expect_contention():
        async with db.transaction() as tx:
            (row,) = await tx.query(Plain, id="a").all()
            tx.create(Plain, id="c", n=row._twice)
            await meanwhile(db, Plain.key("a"), n=5)


@everywhere
async def test_after_load_sees_converted_values(db: Db) -> None:
    await put_raw(
        db,
        Converted,
        {"pk": {"S": "Converted#a"}, "sk": {"S": "#"}, "id": {"S": "a"}, "n": {"N": "4"}},
    )
    assert (await db.get_one(Converted, "a"))._seen == 8
    async with db.transaction() as tx:
        assert (await tx.get_one(Converted, "a"))._seen == 8
    assert [row._seen for row in await db.query(Converted, id="a").all()] == [8]


@everywhere
async def test_an_assignment_to_a_stored_field_in_after_load_is_an_ordinary_change(db: Db) -> None:
    await arrange(db, SelfIncrementing(id="a"))
    with pytest.raises(FrozenItemError):
        await db.get(SelfIncrementing, "a")
    with pytest.raises(FrozenItemError):
        await db.query(SelfIncrementing, id="a").all()
    async with db.transaction() as tx:
        assert (await tx.get_one(SelfIncrementing, "a")).n == 1
    raw = await db.raw(SelfIncrementing.key("a"))
    assert raw is not None
    assert raw["n"] == {"N": "1"}


def test_streams_call_after_load_too() -> None:
    image = {
        "pk": {"S": "Seat#x"},
        "sk": {"S": "k"},
        "_type": {"S": "Seat"},
        "room": {"S": "x"},
        "number": {"N": "1"},
    }
    record = {
        "eventName": "INSERT",
        "dynamodb": {"Keys": {n: image[n] for n in ("pk", "sk")}, "NewImage": image},
    }
    change = stream_change(record, Seat)
    assert change is not None
    assert change.new is not None
    assert change.new.label == "x-1"


def test_only_attributes_with_a_leading_underscore_can_be_set_besides_fields() -> None:
    seat: Any = Seat(room="x", number=1)
    seat._cache = 1
    assert "_cache" not in seat.to_dict()
    for name in ("cache", "_schema", "__other"):
        with pytest.raises(InvalidFieldError, match="no such field"):
            setattr(seat, name, 1)


def test_an_async_after_load_is_refused() -> None:
    with pytest.raises(ModelDefinitionError, match="plain method"):

        class Waiting(Model):
            async def after_load(self) -> None:  # type: ignore[override]
                pass
