"""Keys of items: from components to stored keys. The forms are data on disk, so the tests spell them out."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from annotated_types import MaxLen
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from holdall import Database, Key, Model, SortKey, field
from holdall.core import Scan
from holdall.errors import InvalidFieldError, InvalidKeyError
from holdall.models.keys.part import NO_SORT_KEY

FILE = Path(__file__).parents[1] / "fixtures" / "models" / "model_keys.jsonl"
VECTORS = [json.loads(line) for line in FILE.read_text().splitlines()]


class Colour(Enum):
    RED = "red#1"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 20


class Place(BaseModel):
    x: int
    y: str | None = None


class Pair(Model):
    a: Key[str]
    b: Key[str]


class SortedPair(Model):
    k: Key[str]
    a: SortKey[str]
    b: SortKey[str]


class Row(Model):
    k: Key[str]
    a: SortKey[int]
    b: SortKey[str]
    c: SortKey[bool]


@cache
def single(annotation: Any, kind: Any = Key) -> Any:
    """A model whose key, or sort key, is one component of the given type."""
    names = {"v": kind[annotation]} if kind is Key else {"k": Key[str], "v": SortKey[annotation]}
    return type("Thing", (Model,), {"__annotations__": names, "__module__": __name__})


# --- the partition key in the shared table --------------------------------------------------------------

TEXTS = [
    (str, "ada", "ada"),
    (str, "", ""),
    (str, "a#b", "a%23b"),
    (str, "100%", "100%25"),
    (str, "a%23b", "a%2523b"),
    (str, "a\x00\n\x1f\x7fb", "a%00%0A%1F%7Fb"),
    (str, "é😀 /?&+", "é😀 /?&+"),
    (int, 0, "0"),
    (int, -42, "-42"),
    (int, 10**37, "1" + "0" * 37),
    (float, 1.0, "1"),
    (float, 0.1, "0.1"),
    (Decimal, Decimal("1.50"), "1.5"),
    (Decimal, Decimal("1E+2"), "100"),
    (bool, True, "1"),
    (bool, False, "0"),
    (bytes, b"\x00\xff#", "00ff23"),
    (bytes, b"", ""),
    (UUID, UUID("12345678-1234-5678-1234-567812345678"), "12345678123456781234567812345678"),
    (datetime, datetime(2026, 1, 31, 9, 30, tzinfo=UTC), "2026-01-31T09:30:00.000000Z"),
    (
        datetime,
        datetime(2026, 1, 31, 9, 30, tzinfo=timezone(timedelta(hours=2))),
        "2026-01-31T07:30:00.000000Z",
    ),
    (date, date(2026, 1, 31), "2026-01-31"),
    (time, time(9, 30), "09:30:00"),
    (timedelta, timedelta(seconds=1.5), "1.5"),
    (Colour, Colour.RED, "red%231"),
    (Level, Level.HIGH, "20"),
    (Literal["a", "b"], "b", "b"),
    (list[int], [1, 2], "[1,2]"),
    (dict[str, Any], {"b": 1, "a": [None, True, "#"]}, '{"a":[null,true,"%23"],"b":1}'),
    (Place, Place(x=1), '{"x":1,"y":null}'),
]


@pytest.mark.parametrize(("annotation", "value", "text"), TEXTS, ids=[repr(value) for _, value, _ in TEXTS])
def test_a_component_is_its_canonical_text_percent_encoded(annotation: Any, value: Any, text: str) -> None:
    assert single(annotation).key(v=value).encoded == (f"Thing#{text}", NO_SORT_KEY)


def test_components_are_in_the_order_of_their_declaration() -> None:
    class Race(Model):
        year: Key[int]
        country: Key[str]

    assert Race.key(country="ch#", year=2026).encoded == ("Race#2026#ch%23", "#")


def test_a_key_has_the_name_of_the_model_and_not_of_the_field() -> None:
    class Race(Model, name="Run"):
        year: Key[int] = field(name="raceYear")

    assert Race.key(2026).encoded == ("Run#2026", "#")


@given(st.lists(st.text(), min_size=2, max_size=2), st.lists(st.text(), min_size=2, max_size=2))
@example(["a#", "b"], ["a", "#b"])
@example(["a%23", "b"], ["a#", "b"])
@example(["", "#"], ["#", ""])
def test_distinct_components_never_have_the_same_key(one: list[str], two: list[str]) -> None:
    first, second = (Pair.key(a=a, b=b) for a, b in (one, two))
    assert (first.encoded == second.encoded) == (one == two)
    assert (first == second) == (one == two)


@given(st.tuples(st.text(min_size=1), st.text()), st.tuples(st.text(min_size=1), st.text()))
@example(("a\x00", "b"), ("a", "\x00b"))
@example(("a\x00b", "c"), ("a", "b\x00c"))
@example(("a\x01", "\x02"), ("a\x01\x02", ""))
def test_distinct_sort_keys_of_two_texts_are_never_the_same(
    one: tuple[str, str], two: tuple[str, str]
) -> None:
    first, second = (SortedPair.key(k="k", a=a, b=b).encoded for a, b in (one, two))
    assert (first == second) == (one == two)
    assert (str(first[1]).encode() < str(second[1]).encode()) == (one < two)


numbers = st.integers(-(10**37), 10**37) | st.integers(-3, 3)
decimals = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9)
floats = st.floats(-1e100, 1e100).filter(lambda number: number == 0 or abs(number) > 1e-100)
moments = st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=st.timezones())

ORDERED: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "str": (str, st.text(min_size=1)),
    "int": (int, numbers),
    "float": (float, floats),
    "Decimal": (Decimal, decimals),
    "bool": (bool, st.booleans()),
    "bytes": (bytes, st.binary(min_size=1)),
    "UUID": (UUID, st.uuids()),
    "datetime": (datetime, moments),
    "date": (date, st.dates()),
    "time": (time, st.times()),
    "timedelta": (timedelta, st.timedeltas()),
    "IntEnum": (Level, st.sampled_from(Level)),
}


def same(one: Any, two: Any) -> bool:
    """Whether two values are equal. Compares datetimes as moments: a repeated hour equals nothing in another zone."""
    if isinstance(one, datetime):
        return bool(one.astimezone(UTC) == two.astimezone(UTC))
    return bool(one == two)


@pytest.mark.parametrize("kind", ORDERED)
@given(data=st.data())
def test_distinct_values_never_have_the_same_partition_key(kind: str, data: st.DataObject) -> None:
    annotation, values = ORDERED[kind]
    model, one, two = single(annotation), data.draw(values), data.draw(values)
    assert (model.key(v=one).encoded == model.key(v=two).encoded) == same(one, two)


@pytest.mark.parametrize("kind", ORDERED)
@given(data=st.data())
def test_sort_keys_are_in_the_order_of_their_values(kind: str, data: st.DataObject) -> None:
    annotation, values = ORDERED[kind]
    model, drawn = single(annotation, SortKey), data.draw(st.lists(values, min_size=2, max_size=8))
    if kind == "datetime":
        drawn = [moment.astimezone(UTC) for moment in drawn]
    texts = [str(model.key(k="k", v=value).encoded[1]).encode() for value in sorted(drawn)]
    for (one, low), (two, high) in pairwise(zip(sorted(drawn), texts, strict=True)):
        assert low == high if one == two else low < high


@given(st.lists(st.tuples(numbers, st.text(max_size=3), st.booleans()), min_size=2, max_size=8))
def test_a_sort_key_of_several_parts_is_in_the_order_of_tuples(rows: list[tuple[int, str, bool]]) -> None:
    rows = sorted(set(rows))
    texts = [str(Row.key(k="k", a=a, b=b, c=c).encoded[1]).encode() for a, b, c in rows]
    assert texts == sorted(texts)
    assert len(set(texts)) == len(rows)


SORTS = [
    (str, "2026#a%", "2026#a%"),
    (int, 42, "p50242"),
    (int, -42, "n49757~"),
    (int, 0, "o"),
    (datetime, datetime(2026, 1, 31, tzinfo=UTC), "2026-01-31T00:00:00.000000Z"),
    (bool, True, "1"),
    (UUID, UUID(int=1), "0" * 31 + "1"),
    (Colour, Colour.RED, "red#1"),
]


@pytest.mark.parametrize(("annotation", "value", "text"), SORTS, ids=[repr(value) for _, value, _ in SORTS])
def test_a_sort_key_alone_is_its_sortable_text(annotation: Any, value: Any, text: str) -> None:
    assert single(annotation, SortKey).key(k="a", v=value).encoded == ("Thing#a", text)


def test_a_model_without_a_sort_key_has_a_fixed_one() -> None:
    assert single(str).key("a").encoded == ("Thing#a", "#")


def test_models_share_keys_only_with_their_subclasses() -> None:
    class Thing2(Model):
        v: Key[str]

    class Special(Thing2):
        pass

    assert Thing2.key("a") != single(str).key("a")
    assert Special.key("a") == Thing2.key("a")
    assert Special.key("a").model is Special


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, "\ud800"),
        (str, 5),
        (int, "5"),
        (int, 10**38 + 1),
        (float, float("nan")),
        (Annotated[str, MaxLen(2)], "abc"),
        (datetime, datetime(2026, 1, 31)),
        (Colour, "red"),
        (time, time(9, 30, tzinfo=UTC)),  # equal times would have several texts, in no order
        (list[bytes], [b"x"]),
    ],
    ids=repr,
)
def test_a_component_that_does_not_fit_is_refused_whenever_a_key_is_made(annotation: Any, value: Any) -> None:
    model = single(annotation)
    with pytest.raises(InvalidFieldError, match=r"^Thing\.v: "):
        model.key(value)
    with pytest.raises(InvalidFieldError, match=r"^Thing\.v: "):
        model(v=value).key  # noqa: B018
    with Database("memory:") as db, pytest.raises(InvalidFieldError, match=r"^Thing\.v: "):
        db.get(model, value)


# --- how the caller passes keys -------------------------------------------------------------------------


class Order(Model):
    customer: Key[str]
    number: SortKey[int]
    note: str | None = None


class Page(Model):
    book: Key[str]
    number: SortKey[int] = field(default=1)


def test_components_are_given_by_name_or_in_a_mapping() -> None:
    key = Order.key(customer="ada", number=1)
    assert Order.key({"number": 1, "customer": "ada"}) == key
    assert key.model is Order
    assert key.components == {"customer": "ada", "number": 1}
    assert repr(key) == "Order(customer='ada', number=1)"


def test_a_single_component_can_be_passed_without_its_name() -> None:
    class User(Model):
        mail: Key[str]

    assert User.key("a@b") == User.key(mail="a@b")


def test_a_default_of_a_sort_key_applies_in_keys() -> None:
    assert Page.key("x") == Page.key(book="x") == Page.key(book="x", number=1) == Page(book="x").key
    assert Page.key(book="x", number=2) != Page.key("x")


def test_a_key_to_look_up_does_not_use_the_factory_of_a_sort_key() -> None:
    class Event(Model):
        k: Key[str]
        at: SortKey[datetime] = field(default_factory=lambda: datetime.now(UTC))

    made = Event(k="a")
    assert Event.key(k="a", at=made.at) == made.key
    with pytest.raises(InvalidFieldError, match=r"^Event\.at: it is missing from the key"):
        Event.key(k="a")
    with pytest.raises(InvalidKeyError, match=r"^the key of Event has 2 components"):
        Event.key("a")


def test_a_key_to_look_up_does_not_use_the_factory_of_a_partition_key() -> None:
    class Session(Model):
        token: Key[str] = field(default_factory=lambda: "t1")

    assert Session().key == Session.key("t1")
    with pytest.raises(InvalidFieldError, match=r"^Session\.token: it is missing from the key"):
        Session.key()


def test_a_mapping_is_the_value_if_the_key_is_a_mapping() -> None:
    class Thing(Model):
        v: Key[dict[str, int]]

    assert Thing.key({"a": 1}).components == {"v": {"a": 1}}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Order.key(customer="ada"), InvalidFieldError, r"Order\.number: it is missing from the key"),
        (lambda: Order.key(), InvalidFieldError, r"Order\.customer: it is missing from the key"),
        (
            lambda: Order.key(customer="ada", number=1, note="x"),
            InvalidFieldError,
            r"Order\.note: it is not part of the key",
        ),
        (
            lambda: Order.key(customer="ada", numbr=1),
            InvalidFieldError,
            r"Order\.numbr: the model has no such field\nhint: did you mean 'number'\? write Order\.key\(",
        ),
        (
            lambda: Order.key("ada"),
            InvalidKeyError,
            r"the key of Order has 2 components, but 'ada' is a single value",
        ),
        (
            lambda: Order.key("ada", number=1),  # type: ignore[call-overload]
            InvalidKeyError,
            r"Order\.key takes either a single value or the components by name",
        ),
        (
            lambda: Order.key("ada", 1),  # type: ignore[call-overload]
            InvalidKeyError,
            r"Order\.key takes either a single value or the components by name",
        ),
        (lambda: Order.key(customer="ada", number="1"), InvalidFieldError, r"Order\.number: "),
    ],
)
def test_an_incomplete_or_wrong_key_is_refused_by_name(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{message}"):
        make()


def test_an_item_has_its_key() -> None:
    order = Order(customer="ada", number=1)
    assert order.key == Order.key(customer="ada", number=1)
    assert order.key is order.key


def test_keys_are_values() -> None:
    key = Order.key(customer="ada", number=1)
    again = pickle.loads(pickle.dumps(key))
    assert (again, hash(again), again.components) == (key, hash(key), key.components)
    assert key != "Order#ada"
    assert len({key, again, Order.key(customer="ada", number=2)}) == 2
    with pytest.raises(AttributeError, match="a key cannot be changed"):
        key.components = {}


# --- own tables, as another library wrote them ----------------------------------------------------------


class Race(Model, table="Race"):
    race_id: Key[int] = field(name="raceID")
    runner_name: Key[str] = field(name="runnerName")


class Whole(Model, table="Whole"):
    id: Key[int] = field()


class Double(Model, table="Double"):
    id: Key[float] = field()


class Flag(Model, table="Flag"):
    id: Key[bool] = field()


class Array(Model, table="Array"):
    id: Key[list[Any]] = field()


class Timed(Model, table="Timed"):
    id: Key[str] = field()
    ts: SortKey[int]


class Both(Model, table="Both"):
    id: Key[str] = field()
    b: SortKey[int]
    a: SortKey[str]


class Mixed(Model, table="Mixed"):
    a: Key[float]
    b: Key[str]


class Pay(Model, table="Pay"):
    player: Key[str]
    admin: Key[str]
    payout: int
    status: bool
    tags: list[Any] | None = None
    meta: dict[str, Any] | None = None


MODELS: dict[str, Any] = {
    "raceID int, runnerName str": Race,
    "single int": Whole,
    "single double": Double,
    "single bool": Flag,
    "single arr": Array,
    "id str + sort int": Timed,
    "id str + sort (str,int)": Both,
    "a double, b str": Mixed,
    "Pay": Pay,
}


def translate(model: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Values under our field names, from values under the stored names."""
    names = {known.stored: name for name, known in model._schema.fields.items()}
    return {names[stored]: value for stored, value in values.items()}


@pytest.mark.parametrize(
    "vector",
    [vector for vector in VECTORS if "key" in vector],
    ids=lambda vector: f"{vector['key']}: {vector['in']}",
)
def test_keys_of_an_own_table_are_those_of_the_other_library(vector: dict[str, Any]) -> None:
    model = MODELS[vector["key"]]
    partition, sort = model.key(**translate(model, vector["in"])).encoded
    assert (partition, sort) == (vector["out"]["_id"], vector["out"].get("_sk"))
    assert isinstance(partition, str) == isinstance(vector["out"]["_id"], str)


@pytest.mark.parametrize(
    "vector",
    [vector for vector in VECTORS if "item" in vector],
    ids=lambda vector: str(vector["in"]["player"]),
)
def test_items_of_an_own_table_are_those_of_the_other_library(vector: dict[str, Any]) -> None:
    model = MODELS[vector["item"]]
    expected = {name: value for name, value in vector["out"].items() if not name.startswith("_c_")}
    with Database("memory:") as db:
        db.run(lambda tx: tx.create(model, **translate(model, vector["in"])))
        (item,) = db.send(Scan(model._schema.table)).items
        assert item == expected
        key = {name: vector["in"][name] for name in ("player", "admin")}
        assert {**db.get_one(model, **key).to_dict()} == {"tags": None, "meta": None, **vector["in"]}


def test_there_are_vectors_of_both_kinds() -> None:
    assert {kind for vector in VECTORS for kind in vector} == {"key", "item", "in", "out"}
    assert {vector.get("key") or vector["item"] for vector in VECTORS} == {*MODELS}


def test_a_text_with_a_nul_cannot_be_in_a_key_of_an_own_table() -> None:
    with pytest.raises(InvalidFieldError, match=r"U\+0000"):
        Race.key(race_id=1, runner_name="a\x00b")
