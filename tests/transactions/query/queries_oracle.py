"""An oracle for queries: random queries, each with its expected result, computed by a filter in Python.

A `Criterion` is a condition in two forms: the clause that a caller would write, and a function that decides whether a
row meets it. In DynamoDB, an absent attribute is equal to nothing, unequal to everything, and meets no other condition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_, or_
from typing import Any

from hypothesis import strategies as st
from queries_models import KINDS, Kind, Shape

from holdall import col
from holdall.models.fields.conditions import Clause

__all__ = ["RandomQuery", "Criterion", "draw_query", "compare_component", "partitions", "rows", "criteria"]

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Criterion:
    """A condition, as a clause and as a function."""

    clause: Clause

    is_met: Callable[[Any], bool] = field(repr=False)


# --- rows -------------------------------------------------------------------------------------------------

_TEXTS = [None, "", "a", "ab", "b", "😀é", "a\0b", "\x01"]
_NUMS = [None, 0, 1, -1, 7, 10, 10**20]
_REALS = [None, 0.0, 1.5, -2.25, 0.1, 1e100]
_WHENS = [None, *KINDS["time"].values[:4]]
_DATA = [None, b"", b"a", b"ab", b"\xff"]
_TAGS = [[], ["a"], ["a", "b"], ["ab", ""]]
_MARKS: list[set[int]] = [set(), {1}, {1, 2}, {-3, 10**12}]
_PLACES: list[dict[str, Any]] = [
    {},
    {"city": "Zürich", "spots": [1, 2]},
    {"city": "", "spots": [], "deep": {"x": 5}},
    {"city": "Aachen", "deep": {"x": -1, "y": "why"}},
]
_GROUPS = ["g", "g", "h", None]

_PLAIN: dict[str, Sequence[Any]] = {
    "text": _TEXTS,
    "num": _NUMS,
    "real": _REALS,
    "flag": [None, True, False],
    "when": _WHENS,
    "data": _DATA,
    "tags": _TAGS,
    "marks": _MARKS,
    "place": _PLACES,
}
# the values that JavaScript can read back
_SAFE: dict[str, Sequence[Any]] = {**_PLAIN, "num": _NUMS[:-1], "real": _REALS[:-1]}


def partitions(shape: Shape, name: str) -> st.SearchStrategy[str]:
    """Return partition keys that are easily confused with each other."""
    odd = ["", "#", "%23", "%", "##", " ", "é😀", "\x01", *([] if shape.own else ["\0", "\0#"])]
    return st.sampled_from([name + end for end in odd])


@st.composite
def rows(draw: Draw, shape: Shape, partition: str, most: int = 12) -> list[Any]:
    """Draw rows of one partition, with different keys; their index keys begin with the partition's name."""
    names: dict[str, Sequence[Any]] = {
        f"s{n}": _pool(shape, kind, shape.sort) for n, kind in enumerate(shape.sort)
    }
    names |= {
        f"i{n}": [None, *(_pool(shape, kind, shape.index) if shape.own else kind.values)]
        for n, kind in enumerate(shape.index)
    }
    names |= {
        "group": [None if name is None else partition + name for name in _GROUPS],
        **(_SAFE if shape.own else _PLAIN),
    }
    one = st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in names.items()})
    found = draw(st.lists(one, max_size=most))
    rows_by_rank = {}
    for values in found:
        row = shape.model(p=partition, **values)
        rows_by_rank[shape.rank(row)] = row
    return list(rows_by_rank.values())


def _pool(shape: Shape, kind: Kind, kinds: Sequence[Kind]) -> list[Any]:
    return kind.list_values(own=shape.own, alone=len(kinds) == 1)


# --- ranges of sort keys ----------------------------------------------------------------------------------


@st.composite
def _range(draw: Draw, shape: Shape, index: bool) -> Criterion | None:
    """Draw a condition on the first components of a sort key: some have fixed values, and the next one is compared."""
    kinds, letter = (shape.index, "i") if index else (shape.sort, "s")
    fixed = draw(st.integers(0, len(kinds)))
    criteria = [
        compare_component(f"{letter}{n}", kinds[n], shape, "==", [draw(_value(shape, kinds[n], kinds))])
        for n in range(fixed)
    ]
    if fixed < len(kinds):
        kind, name = kinds[fixed], f"{letter}{fixed}"
        for operator in draw(st.sampled_from(_comparisons(shape, kind, index))):
            values = [draw(_value(shape, kind, kinds)) for _ in range(2 if operator == "between" else 1)]
            criteria.append(compare_component(name, kind, shape, operator, values))
    if not criteria:
        return None
    return _join(draw(st.permutations(criteria)), and_, all)


def _comparisons(shape: Shape, kind: Kind, index: bool) -> list[list[str]]:
    found: list[list[str]] = [[]]
    if shape.is_ordered(kind, index=index):
        found += [
            ["<"],
            ["<="],
            [">"],
            [">="],
            ["between"],
            [">", "<"],
            [">=", "<"],
            [">", "<="],
            [">=", "<="],
        ]
        found += [["==", "<"], [">", ">="], ["between", "<"]]
    if kind.annotation is str:
        found.append(["begins_with"])
    return found


def _value(shape: Shape, kind: Kind, kinds: Sequence[Kind]) -> st.SearchStrategy[Any]:
    # an empty text cannot be a key, but a key can be compared with it
    return st.sampled_from(kind.list_values(own=shape.own, alone=False))


def compare_component(name: str, kind: Kind, shape: Shape, operator: str, values: Sequence[Any]) -> Criterion:
    """Return a criterion that compares one component of a key."""
    column = col(getattr(shape.model, name))
    order = kind.order if kind.text is None or not shape.own or _is_alone(shape, name) else kind.text
    ends = [order(value) for value in values]
    match operator:
        case "==":
            return Criterion(column == values[0], lambda row: order(getattr(row, name)) == ends[0])
        case "<":
            return Criterion(column < values[0], lambda row: order(getattr(row, name)) < ends[0])
        case "<=":
            return Criterion(column <= values[0], lambda row: order(getattr(row, name)) <= ends[0])
        case ">":
            return Criterion(column > values[0], lambda row: order(getattr(row, name)) > ends[0])
        case ">=":
            return Criterion(column >= values[0], lambda row: order(getattr(row, name)) >= ends[0])
        case "between":
            return Criterion(
                column.between(*values), lambda row: ends[0] <= order(getattr(row, name)) <= ends[1]
            )
        case _:
            return Criterion(
                column.begins_with(values[0]), lambda row: getattr(row, name).startswith(values[0])
            )


def _is_alone(shape: Shape, name: str) -> bool:
    return len(shape.index if name.startswith("i") else shape.sort) == 1


def _join(criteria: Sequence[Criterion], operator: Callable[[Any, Any], Any], verdict: Any) -> Criterion:
    clause = reduce(operator, [criterion.clause for criterion in criteria])
    return Criterion(clause, lambda row: bool(verdict(criterion.is_met(row) for criterion in criteria)))


# --- conditions on other fields ---------------------------------------------------------------------------

_ABSENT: Any = object()


@dataclass(frozen=True)
class _Target:
    """A field, or a value inside it: how a query refers to it, and how to find it in a row."""

    name: str
    path: tuple[str | int, ...]
    values: Sequence[Any]

    def column(self, shape: Shape) -> Any:
        column: Any = col(getattr(shape.model, self.name))
        for part in self.path:
            column = column[part]
        return column

    def find(self, row: Any) -> Any:
        found = getattr(row, self.name)
        for part in self.path:
            try:
                found = found[part]
            except (KeyError, IndexError):
                return _ABSENT
        return _ABSENT if found is None else found


_INSIDE = [
    _Target("place", ("city",), ["Zürich", "", "A", "Aachen"]),
    _Target("place", ("spots", 1), [1, 2]),
    _Target("place", ("deep", "x"), [5, -1, 0]),
    _Target("tags", (0,), ["a", "ab"]),
]
_COMPARED = [
    *(_Target(name, (), _PLAIN[name][1:]) for name in ("text", "num", "real", "when", "data")),
    *_INSIDE,
]


def criteria(shape: Shape) -> st.SearchStrategy[Criterion]:
    """Return nested conditions of every kind."""
    places = list(_COMPARED)
    if not shape.own:  # a model's own table stores key components only in the key
        places += [_Target(f"s{n}", (), kind.values) for n, kind in enumerate(shape.sort) if _plain_key(kind)]
    terms = st.one_of(
        st.sampled_from(places).flatmap(lambda place: _compare_term(shape, place)),
        st.sampled_from(places).flatmap(lambda place: _option_term(shape, place)),
        _presence_term(shape),
        _part_term(shape),
        _size_term(shape),
        _equal_term(shape),
    )
    return st.recursive(terms, _combine, max_leaves=6)


def _plain_key(kind: Kind) -> bool:
    return kind.annotation in (str, int, float, bytes)


def _combine(inner: st.SearchStrategy[Criterion]) -> st.SearchStrategy[Criterion]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda criteria: _join(criteria, and_, all)),
        several.map(lambda criteria: _join(criteria, or_, any)),
        inner.map(lambda criterion: Criterion(~criterion.clause, lambda row: not criterion.is_met(row))),
    )


@st.composite
def _compare_term(draw: Draw, shape: Shape, place: _Target) -> Criterion:
    operator = draw(st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "between"]))
    value = draw(st.sampled_from([value for value in place.values if value is not None]))
    other = draw(st.sampled_from([value for value in place.values if value is not None]))
    low, high = sorted([value, other])
    column = place.column(shape)
    if place.name == "num" and draw(st.booleans()):
        value += 0.5  # equal to no int, but comparable with all

    def is_met(row: Any) -> bool:
        found = place.find(row)
        if found is _ABSENT or (type(found) is not type(value) and not isinstance(found, int | float)):
            return bool(operator == "!=")
        verdicts: dict[str, Callable[[], bool]] = {
            "==": lambda: found == value,
            "!=": lambda: found != value,
            "<": lambda: found < value,
            "<=": lambda: found <= value,
            ">": lambda: found > value,
            ">=": lambda: found >= value,
            "between": lambda: low <= found <= high,
        }
        return verdicts[operator]()

    clause = {
        "==": lambda: column == value,
        "!=": lambda: column != value,
        "<": lambda: column < value,
        "<=": lambda: column <= value,
        ">": lambda: column > value,
        ">=": lambda: column >= value,
        "between": lambda: column.between(low, high),
    }[operator]()
    return Criterion(clause, is_met)


@st.composite
def _option_term(draw: Draw, shape: Shape, place: _Target) -> Criterion:
    values = [value for value in place.values if value is not None]
    options = draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
    return Criterion(place.column(shape).in_(*options), lambda row: place.find(row) in options)


@st.composite
def _presence_term(draw: Draw, shape: Shape) -> Criterion:
    places = [
        *_COMPARED,
        _Target("flag", (), []),
        _Target("tags", (), []),
        _Target("place", ("deep", "y"), []),
    ]
    place = draw(st.sampled_from(places))
    column = place.column(shape)
    clauses = [column.exists(), column.absent(), column == None, column != None]  # noqa: E711 - builds a clause
    there = draw(st.integers(0, 3))
    return Criterion(clauses[there], lambda row: (place.find(row) is not _ABSENT) == (there in (0, 3)))


@st.composite
def _part_term(draw: Draw, shape: Shape) -> Criterion:
    """Draw a criterion on the beginning of a value, or on a member."""
    name = draw(st.sampled_from(["text", "data", "tags", "marks", "city"]))
    if name == "city":
        place, values = _INSIDE[0], ["Z", "", "ch", "A"]
    else:
        parts: dict[str, list[Any]] = {
            "text": ["a", "b", "é", "\0", "x"],
            "data": [b"a", b"\xff", b"b"],
            "tags": ["a", "ab", "", "b"],
            "marks": [1, 2, -3, 5],
        }
        place, values = _Target(name, (), []), parts[name]
    part = draw(st.sampled_from(values))
    column = place.column(shape)
    begins = name in ("text", "data", "city") and (name == "data" or draw(st.booleans()))

    def is_met(row: Any) -> bool:
        found = place.find(row)
        if found is _ABSENT:
            return False
        return found.startswith(part) if begins else part in found

    return Criterion(column.begins_with(part) if begins else column.contains(part), is_met)


@st.composite
def _size_term(draw: Draw, shape: Shape) -> Criterion:
    place = draw(
        st.sampled_from(
            [_Target(name, (), []) for name in ("text", "data", "tags", "marks", "place")]
            + [_Target("place", ("spots",), [])]
        )
    )
    size = draw(st.integers(0, 4))
    column = place.column(shape).size
    operator = draw(st.sampled_from(["==", ">", "<=", "between"]))
    clause = {
        "==": lambda: column == size,
        ">": lambda: column > size,
        "<=": lambda: column <= size,
        "between": lambda: column.between(size, size + 1),
    }[operator]()

    def is_met(row: Any) -> bool:
        found = place.find(row)
        if found is _ABSENT:
            return False
        real = len(found.encode("utf-16-le")) // 2 if isinstance(found, str) else len(found)
        verdicts = {
            "==": real == size,
            ">": real > size,
            "<=": real <= size,
            "between": size <= real <= size + 1,
        }
        return bool(verdicts[operator])

    return Criterion(clause, is_met)


@st.composite
def _equal_term(draw: Draw, shape: Shape) -> Criterion:
    """Draw a criterion of equality, for values without an order."""
    name = draw(st.sampled_from(["flag", "tags", "marks", "place"]))
    value = draw(st.sampled_from([value for value in _PLAIN[name] if value is not None]))
    column: Any = col(getattr(shape.model, name))
    if draw(st.booleans()):
        return Criterion(column == value, lambda row: getattr(row, name) == value)
    return Criterion(column != value, lambda row: getattr(row, name) != value)


# --- queries ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RandomQuery:
    """A query and its expected result."""

    shape: Shape
    partition: str
    index: bool
    sort: Criterion | None
    where: Criterion | None
    reverse: bool
    limit: int | None

    def build_arguments(self) -> dict[str, Any]:
        """Return the arguments of ``query``, besides the model."""
        key = {"index": "by_group", "group": f"{self.partition}g"} if self.index else {"p": self.partition}
        options: dict[str, Any] = {"reverse": self.reverse}
        if self.sort is not None:
            options["sort"] = self.sort.clause
        if self.where is not None:
            options["where"] = self.where.clause
        if self.limit is not None:
            options["limit"] = self.limit
        return {**key, **options}

    def rank(self, row: Any) -> tuple[Any, ...]:
        """Return the values by which the result is ordered."""
        return self.shape.rank(row, index=self.index)

    def remove_limit(self) -> RandomQuery:
        """Return the same query without a limit."""
        return replace(self, limit=None)

    def compute_answer(self, stored: Sequence[Any]) -> list[Any]:
        """Return the expected rows in order; the order of rows with equal index keys is undefined."""
        found = [row for row in stored if self._is_match(row)]
        found.sort(key=self.rank, reverse=self.reverse)
        return found if self.limit is None else found[: self.limit]

    def _is_match(self, row: Any) -> bool:
        if self.index and not (self.shape.is_indexed(row) and row.group == f"{self.partition}g"):
            return False
        return all(criterion is None or criterion.is_met(row) for criterion in (self.sort, self.where))


@st.composite
def draw_query(draw: Draw, shape: Shape, partition: str, *, index: bool | None = None) -> RandomQuery:
    """Draw a query for rows that `rows` draws."""
    on_index = draw(st.booleans()) if index is None else index
    return RandomQuery(
        shape,
        partition,
        on_index,
        draw(st.none() | _range(shape, on_index)),
        draw(st.none() | criteria(shape)),
        draw(st.booleans()),
        draw(st.none() | st.integers(1, 8)),
    )
