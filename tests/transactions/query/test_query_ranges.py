"""Ranges of sort keys, without a store: the range of a condition contains exactly the keys that meet the condition.

The values come from the whole range of a type, and are close to each other, so that they often equal an end.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from queries_models import ONE_TABLE, OWN_TABLES, Kind, Shape
from queries_oracle import compare_component
from queries_rig import examples

from holdall import Key, Model, SortKey, col
from holdall.core.expressions.evaluation import holds
from holdall.core.schema import KeyAttribute
from holdall.errors import InvalidFieldError, QueryNotSupported
from holdall.models.keys.ranges import Range
from holdall.transactions.query.question import Question

LETTERS = st.characters(exclude_categories=["Cs"]) | st.sampled_from("\0\x01\x02ab")
FOREIGN_LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from(
    "\x01\x02ab"
)
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9999, 12, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)

VALUES: dict[type, st.SearchStrategy[Any]] = {
    str: st.text(LETTERS, max_size=4),
    int: st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-12, 12),
    float: st.floats(-1e100, 1e100).filter(lambda number: number == 0 or abs(number) > 1e-100),
    Decimal: st.decimals(-(10**20), 10**20, places=6),
    datetime: MOMENTS,
    bool: st.booleans(),
    UUID: st.uuids(),
    bytes: st.binary(max_size=3),
}
FOREIGN: dict[type, st.SearchStrategy[Any]] = {
    **VALUES,
    str: st.text(FOREIGN_LETTERS, max_size=4),
    int: st.integers(-(2**53) + 1, 2**53 - 1) | st.integers(-12, 12),
}


def list_neighbours(value: Any) -> list[Any]:
    """Return a value and values next to it."""
    if isinstance(value, bool | UUID):
        return [value]
    if isinstance(value, str):
        return [value, value[:-1], value + "\x01", value + "a"]
    if isinstance(value, bytes):
        return [value, value[:-1], value + b"\0"]
    if isinstance(value, datetime):
        return [value, value + timedelta(microseconds=1), value - timedelta(microseconds=1)]
    if isinstance(value, int):
        return [value, -value, *([value + 1, value - 1] if abs(value) < 2**53 - 1 else [])]
    return [value, -value, value * 10]


OPERATORS = ["==", "<", "<=", ">", ">=", "between"]


@pytest.mark.parametrize("shape", [*ONE_TABLE, *OWN_TABLES], ids=repr)
def test_a_range_contains_exactly_the_keys_whose_values_meet_its_condition(shape: Shape) -> None:
    @examples(20)
    @hypothesis_given(data=st.data())
    def check(data: st.DataObject) -> None:
        _check(shape, data)

    check()


def _check(shape: Shape, data: st.DataObject) -> None:
    values = FOREIGN if shape.own else VALUES
    row = data.draw(st.tuples(*(values[kind.annotation] for kind in shape.sort)))
    assume(len(row) > 1 or row[0] not in ("", b""))
    fixed = data.draw(st.integers(0, len(row) - 1))
    criteria = [
        compare_component(f"s{n}", kind, shape, "==", [row[n]]) for n, kind in enumerate(shape.sort[:fixed])
    ]
    for operator in data.draw(_operators(shape, shape.sort[fixed])):
        pool = st.sampled_from(list_neighbours(row[fixed])) | values[shape.sort[fixed].annotation]
        if len(row) > 1 and shape.own:
            pool = pool.filter(lambda value: not isinstance(value, str) or "\0" not in value)
        ends = [data.draw(pool) for _ in range(2 if operator == "between" else 1)]
        criteria.append(compare_component(f"s{fixed}", shape.sort[fixed], shape, operator, ends))
    item = shape.model(p="p", **{f"s{n}": value for n, value in enumerate(row)})
    found = _range(shape, criteria)
    part = item.key.encoded[1]
    attribute = {"S": part} if isinstance(part, str) else {"N": str(part)}
    inside = found.condition is None or holds(found.condition, {"sk": attribute})
    included = inside and not found.empty and attribute not in found.excluded
    assert included == all(criterion.is_met(item) for criterion in criteria)


def _operators(shape: Shape, kind: Kind) -> st.SearchStrategy[list[str]]:
    if not shape.is_ordered(kind):
        return st.sampled_from([[], ["=="]])
    return st.lists(st.sampled_from(OPERATORS), max_size=3)


def _range(shape: Shape, criteria: list[Any]) -> Range:
    clause = None
    for criterion in criteria:
        clause = criterion.clause if clause is None else clause & criterion.clause
    question = Question(shape.model._schema, {"p": "p"}, sort=clause)
    number = shape.own and len(shape.sort) == 1 and shape.sort[0].annotation is int
    return question.schema.form.range(clause, {}, KeyAttribute("sk", "N" if number else "S"))


# --- mistakes ---------------------------------------------------------------------------------------------


class Day(Model):
    station: Key[str]
    year: SortKey[int]
    month: SortKey[int]
    name: SortKey[str]
    rain: int = 0


class OwnDay(Model, table="Day"):
    station: Key[str]
    month: SortKey[int]
    year: SortKey[int]
    rain: int = 0


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: (Day.year == 1) | (Day.year == 2), "a single range"),
    (lambda: ~(Day.year == 1), "a single range"),
    (lambda: (Day.year == 1) & ~(Day.month == 2), "a single range"),
    (lambda: Day.month == 3, "can be compared only if"),
    (lambda: (Day.year > 2025) & (Day.month == 3), "can be compared only if"),
    (lambda: (Day.year == 2025) & (Day.name == "x"), "can be compared only if"),
    (lambda: Day.year != 2025, "cannot be queried with <>"),
    (lambda: col(Day.year).in_(1, 2), "cannot be queried with in"),
    (lambda: col(Day.year).exists(), "cannot be queried with exists"),
    (lambda: col(Day.rain) > 1, "not a condition on the sort key"),
    (lambda: Day.station == "x", "not a condition on the sort key"),
    (lambda: col(Day.name).size > 3, "not a condition on the sort key"),
    (lambda: Day.year.begins_with("20"), "begins_with must be the only condition"),
    (
        lambda: (Day.year == 1) & (Day.month == 2) & Day.name.begins_with("a") & (Day.name > "b"),
        "begins_with must be the only condition",
    ),
]


@pytest.mark.parametrize(("sort", "problem"), REFUSED, ids=[problem for _, problem in REFUSED])
def test_a_condition_that_is_not_a_range_of_the_sort_key_is_refused_when_the_query_is_built(
    sort: Callable[[], Any], problem: str
) -> None:
    with pytest.raises(QueryNotSupported, match=problem):
        Question(Day._schema, {"station": "x"}, sort=sort())


def test_numbers_that_an_own_table_stores_as_text_can_only_be_compared_for_equality() -> None:
    with pytest.raises(QueryNotSupported, match="10 comes before 9"):
        Question(OwnDay._schema, {"station": "x"}, sort=OwnDay.month > 9)
    Question(OwnDay._schema, {"station": "x"}, sort=(OwnDay.month == 9) & (OwnDay.year == 2026))


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: Day.year == "2026", "year"),
    (lambda: Day.year > "2026", "year"),  # type: ignore[operator]
    (lambda: Day.year.between(1, None), "year"),  # type: ignore[arg-type]
    (lambda: Day.year == None, "year"),  # noqa: E711
    (lambda: Day.year > True, "year"),
    (lambda: (Day.year == 1) & (Day.month == 2) & Day.name.begins_with(b"x"), "name"),
    (lambda: (Day.year == 1) & (Day.month == 2) & (Day.name == "\ud800"), "name"),
]


@pytest.mark.parametrize(("sort", "name"), WRONG)
def test_the_error_for_a_value_of_another_type_names_the_field(sort: Callable[[], Any], name: str) -> None:
    with pytest.raises(InvalidFieldError, match=rf"Day\.{name}"):
        Question(Day._schema, {"station": "x"}, sort=sort())


class Blob(Model):
    box: Key[str]
    head: SortKey[bytes]
    tail: SortKey[bytes]


@examples(35)
@hypothesis_given(st.binary(max_size=3), st.binary(max_size=3), st.binary(max_size=2))
def test_begins_with_works_for_bytes(head: bytes, tail: bytes, start: bytes) -> None:
    key = Blob.key(box="b", head=head, tail=tail).encoded[1]
    for sort, met in (
        (Blob.head.begins_with(start), head.startswith(start)),
        ((Blob.head == head) & Blob.tail.begins_with(start), tail.startswith(start)),
    ):
        question = Question(Blob._schema, {"box": "b"}, sort=sort)
        found = question.schema.form.range(sort, {}, KeyAttribute("sk"))
        assert (found.condition is None or holds(found.condition, {"sk": {"S": key}})) == met
