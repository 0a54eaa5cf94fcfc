"""Items read outside a transaction: decoding a whole item at once equals decoding field by field, errors included."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import pytest
from annotated_types import Ge
from hypothesis import given
from hypothesis import strategies as st

from holdall import Database, Key, Model, SortKey, field
from holdall.core import PutItem
from holdall.errors import InvalidFieldError
from holdall.models.marks import DECODED, FROZEN
from holdall.models.model import build_instance


class Grade(Enum):
    GOOD = "good"
    BAD = 2


def own_list() -> list[int]:
    return [7]


class Thing(Model):
    owner: Key[str]
    number: SortKey[int]
    text: str = field(name='it\'s "text"\n')
    note: str | None = None
    count: Annotated[int, Ge(0)] = 3
    price: float = 1.5
    exact: Decimal | None = None
    paid: bool = False
    data: bytes = b"x"
    at: datetime = datetime(2026, 1, 31, tzinfo=UTC)
    day: date | None = None
    grade: Grade = Grade.GOOD
    tags: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    parts: dict[str, list[int]] = field(default_factory=dict)
    made: list[int] = field(default_factory=own_list)
    anything: Any = None


class Special(Thing):
    extra: int | None = None


class Elsewhere(Model, table="Elsewhere"):
    owner: Key[str]
    count: int = 0
    note: str | None = None


_USUAL: list[dict[str, Any]] = [
    {"S": "good"},
    {"S": "2026-01-31"},
    {"S": "2026-01-31T09:30:00.000000Z"},
    {"N": "2"},
    {"N": "-1.5"},
    {"BOOL": True},
    {"B": "eA=="},
    {"L": [{"S": "a"}]},
    {"M": {"a": {"N": "1"}}},
    {"M": {"a": {"L": [{"N": "1"}]}}},
]
_UNUSUAL: list[dict[str, Any]] = [
    {"NULL": True},
    {"S": ""},
    {"N": "1E+2"},
    {"N": "not a number"},
    {"L": [{"NULL": True}, {"S": "a"}]},
    {"L": []},
    {"SS": ["a"]},
    {"M": {"a": {"S": "x"}}},
]
_FITTING: dict[str, dict[str, Any]] = {
    "owner": {"S": "ada"},
    "number": {"N": "1"},
    "text": {"S": "x"},
    "note": {"S": "y"},
    "count": {"N": "2"},
    "price": {"N": "2.5"},
    "exact": {"N": "0.1"},
    "paid": {"BOOL": True},
    "data": {"B": "eA=="},
    "at": {"S": "2026-01-31T09:30:00.000000Z"},
    "day": {"S": "2026-01-31"},
    "grade": {"N": "2"},
    "tags": {"L": [{"S": "a"}]},
    "sizes": {"M": {"a": {"N": "1"}}},
    "parts": {"M": {"a": {"L": [{"N": "1"}]}}},
    "made": {"L": [{"N": "1"}]},
    "anything": {"M": {"a": {"S": "x"}}},
    "extra": {"N": "5"},
}


@st.composite
def stored_items(draw: st.DrawFn, model: type[Model]) -> dict[str, Any]:
    """An item as stored, where up to three attributes are missing or have another form."""
    item = {known.stored: _FITTING[name] for name, known in model._fields.items()}
    for stored in draw(st.lists(st.sampled_from(sorted(item)), max_size=3, unique=True)):
        attribute = draw(st.sampled_from([None, *_USUAL, *_UNUSUAL]))
        if attribute is None:
            del item[stored]
        else:
            item[stored] = attribute
    return item


def read(item: Any, name: str) -> Any:
    """A field's value and its type, or the error that reading it raises."""
    try:
        value = getattr(item, name)
    except InvalidFieldError as error:
        return str(error)
    return type(value), value


@pytest.mark.parametrize("model", [Thing, Special, Elsewhere])
@given(st.data())
def test_an_item_decoded_at_once_equals_one_decoded_field_by_field(
    model: type[Model], data: st.DataObject
) -> None:
    stored = data.draw(stored_items(model))
    names = data.draw(st.permutations(list(model._fields)))
    whole, piecemeal = (
        build_instance(model, stored, FROZEN, None),
        build_instance(model, stored, DECODED, None),
    )
    assert [read(whole, name) for name in names] == [read(piecemeal, name) for name in names]
    assert [read(whole, name) for name in names] == [read(piecemeal, name) for name in names]


def test_the_second_read_decodes_every_field_and_keeps_the_values_already_read() -> None:
    stored = {known.stored: _FITTING[name] for name, known in Thing._fields.items()}
    item = build_instance(Thing, stored, FROZEN, None)
    tags = item.tags
    assert set(vars(item)) == {"tags"}
    tags.append("b")
    assert item.note == "y"
    assert set(vars(item)) == set(Thing._fields)
    assert item.tags is tags
    assert pickle.loads(pickle.dumps(item)).to_dict() == item.to_dict()


def test_a_stored_value_that_does_not_fit_fails_when_it_is_read_and_no_sooner() -> None:
    stored = {known.stored: _FITTING[name] for name, known in Thing._fields.items()} | {"count": {"N": "-1"}}
    item = build_instance(Thing, stored, FROZEN, None)
    assert (item.owner, item.note, item.paid) == ("ada", "y", True)
    with pytest.raises(InvalidFieldError, match=r"^Thing\.count: the stored value"):
        item.count  # noqa: B018


def test_the_first_read_decodes_a_row_of_a_query_and_a_bad_attribute_affects_only_its_field() -> None:
    with Database("memory:") as db:
        with db.transaction() as tx:
            for number in range(2):
                tx.create(Thing, owner="ada", number=number, text="x", tags=["a"])
        (stored,) = [row._stored or {} for row in db.query(Thing, owner="ada", limit=1)]
        db.send(PutItem("holdall", {**stored, "count": {"N": "-1"}}))
        bad, good = db.query(Thing, owner="ada")
        assert (vars(bad), vars(good)) == ({}, {})
        assert (bad.tags, good.tags) == (["a"], ["a"])
        assert (set(vars(bad)), set(vars(good))) == ({"tags"}, set(Thing._fields))
        assert (bad.number, bad.note, good.count) == (0, None, 3)
        with pytest.raises(InvalidFieldError, match=r"^Thing\.count: the stored value"):
            bad.count  # noqa: B018


def test_defaults_of_missing_attributes_are_fresh_and_functions_run_only_for_their_field() -> None:
    calls = []

    def make() -> str:
        calls.append(1)
        return "made"

    class Counted(Model):
        owner: Key[str]
        tags: list[str] = field(default_factory=list)
        made: str = field(default_factory=make)

    one, other = (build_instance(Counted, {"owner": {"S": "ada"}}, FROZEN, None) for _ in range(2))
    for item in (one, other):
        assert (item.owner, item.tags) == ("ada", [])
    assert calls == []
    one.tags.append("x")
    assert (other.tags, one.made) == ([], "made")
