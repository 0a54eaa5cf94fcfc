"""Requests that are invalid, or only just valid: odd keys, values, start keys and names.

Each is a valid request with one part replaced. Whether the result is still valid depends on the table; the two sides
must agree on it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from differential_strategies import NAMES, TABLE, Strategy, attributes, items, keys, lists, numbers
from hypothesis import strategies as st

from holdall.core.expressions import (
    Add,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Delete,
    Exists,
    In,
    KeyCondition,
    ListAppend,
    Path,
    Plus,
    Set,
    Size,
    Update,
    Value,
)
from holdall.core.requests import (
    BatchGet,
    BatchWrite,
    DeleteItem,
    GetItem,
    PutItem,
    Query,
    Request,
    Scan,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.schema import IndexSchema, KeyAttribute, Projection, TableSchema

__all__ = ["odd_requests", "odd_tables"]

ODD_VALUES: tuple[Any, ...] = (
    {"S": ""},
    {"B": ""},
    {"SS": []},
    {"NS": []},
    {"BS": []},
    {"L": []},
    {"M": {}},
    {"SS": ["a", "a"]},
    {"SS": [""]},
    {"NS": ["1", "1.0"]},
    {"BS": ["YQ==", "YQ=="]},
    {"BS": [""]},
    {"NULL": False},
    {"NULL": True},
    {"N": ""},
    {"N": "abc"},
    {"N": "NaN"},
    {"N": "Infinity"},
    {"N": " 1"},
    {"N": "1_0"},
    {"N": "0x1"},
    {"N": "+1"},
    {"N": "00012"},
    {"N": ".5"},
    {"N": "5."},
    {"N": "1e+2"},
    {"N": "-0"},
    {"N": "1" * 38},
    {"N": "1" * 39},
    {"N": "1" * 38 + "0"},
    {"N": "0." + "1" * 38},
    {"N": "0." + "1" * 39},
    {"N": "9.9e125"},
    {"N": "1e126"},
    {"N": "1e-130"},
    {"N": "1e-131"},
    {"N": "1.1e-130"},
    {"N": "-9.9e125"},
    {"N": "-1e126"},
    {"N": "0e200"},
    {"B": "YQ"},
    {"B": "Y*=="},
    {"B": "YR=="},
    {},
    {"S": "a", "N": "1"},
    {"X": "a"},
    {"L": [{"SS": []}]},
    {"M": {"": {"S": "a"}}},
    {"M": {"a": {"N": "x"}}},
)
"""Values at and beyond the limits of an attribute."""


def _nest(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "x"}
    for level in range(depth):
        value = {"L": [value]} if level % 2 else {"M": {"a": value}}
    return value


odd_values: Strategy = st.sampled_from([*ODD_VALUES, *map(_nest, (29, 30, 31, 32, 33))])
odd_keys: Strategy = st.one_of(
    attributes,
    odd_values,
    st.sampled_from(["S", "B"]).flatmap(
        lambda kind: st.sampled_from([1023, 1024, 1025, 2047, 2048, 2049]).map(
            lambda size: _of_size(kind, size)
        )
    ),
)


def _of_size(kind: str, size: int) -> dict[str, str]:
    return {kind: "k" * size if kind == "S" else b64encode(b"k" * size).decode()}


# --- keys and items ---------------------------------------------------------------------------------------


@st.composite
def malformed_keys(draw: st.DrawFn, schema: TableSchema) -> dict[str, Any]:
    """A key with an attribute missing, an extra one, or one of another type or size."""
    key = dict(draw(keys(schema)))
    name = draw(st.sampled_from(sorted(key)))
    match draw(st.integers(0, 3)):
        case 0:
            del key[name]
        case 1:
            key[draw(st.sampled_from(["x", "a"]))] = draw(attributes)
        case _:
            key[name] = draw(odd_keys)
    return key


@st.composite
def odd_items(draw: st.DrawFn, schema: TableSchema) -> dict[str, Any]:
    """An item with an odd value, or an odd key of the table or an index."""
    item = dict(draw(items(schema)))
    parts = [part.name for part in (*schema.keys, *(part for index in schema.indexes for part in index.keys))]
    match draw(st.integers(0, 3)):
        case 0:
            item[draw(st.sampled_from(NAMES))] = draw(odd_values)
        case 1:
            del item[draw(st.sampled_from([part.name for part in schema.keys]))]
        case 2:
            item[""] = {"S": "nameless"}
        case _:
            item[draw(st.sampled_from(parts))] = draw(odd_keys)
    return item


# --- expressions ------------------------------------------------------------------------------------------


def odd_conditions() -> st.SearchStrategy[Condition]:
    """Conditions with an odd literal or path."""
    literal = odd_values.map(Value)
    path = odd_paths
    comparators = st.sampled_from(["=", "<>", "<", ">="])
    return st.one_of(
        st.builds(Exists, path),
        st.builds(Compare, comparators, path, path),
        st.builds(Compare, comparators, st.just(Path(("a",))), literal),
        st.builds(Compare, comparators, literal, literal),
        st.builds(Between, st.just(Path(("a",))), literal, literal),
        st.builds(Between, literal, st.just(Path(("a",))), literal),
        st.builds(In, literal, st.lists(literal, min_size=1, max_size=2).map(tuple)),
        st.builds(In, st.just(Path(("a",))), st.lists(literal, min_size=1, max_size=2).map(tuple)),
        st.builds(In, st.just(Path(("a",))), st.sampled_from([100, 101]).map(_options)),
        st.builds(BeginsWith, st.just(Path(("a",))), literal),
        st.builds(Contains, st.just(Path(("a",))), literal),
        st.builds(Contains, st.just(Path(("a",))), st.just(Path(("a",)))),
        st.builds(Contains, st.just(Path(("a",))), st.just(Size(Path(("a",))))),
    )


def _options(count: int) -> tuple[Value, ...]:
    return tuple(Value({"N": str(number)}) for number in range(count))


odd_paths: Strategy = st.sampled_from(
    [
        Path(("",)),
        Path(("a", "")),
        Path(("a" * 255,)),
        Path(("a" * 256,)),
        Path(("a", *range(30))),
        Path(("a", *range(31))),
        Path(("a", *range(32))),
        Path(("a", 2**31 - 1)),
        Path(("a", 2**31)),
        Path(("a",)),
    ]
)


def odd_updates() -> st.SearchStrategy[Update]:
    """Updates with overlapping paths or odd literals."""
    literal = odd_values.map(Value)
    path = (
        st.sampled_from([Path(("a",)), Path(("a", "b")), Path(("a", 0)), Path(("b",)), Path(("x",))])
        | odd_paths
    )
    action = st.one_of(
        st.builds(Set, path, literal),
        st.builds(Set, path, path),
        st.builds(Set, path, st.builds(Plus, literal, numbers.map(Value))),
        st.builds(Set, path, st.builds(ListAppend, literal, lists.map(Value))),
        st.builds(Set, path, st.builds(ListAppend, path, path)),
        st.builds(Add, path, literal),
        st.builds(Delete, path, literal),
    )
    return st.builds(Update, st.lists(action, max_size=2).map(tuple))


# --- requests ---------------------------------------------------------------------------------------------


@st.composite
def _odd_queries(draw: st.DrawFn, schema: TableSchema) -> Query:
    index = draw(st.sampled_from([None, *schema.indexes]))
    keyed = schema if index is None else index
    kind: str = keyed.partition.type
    key = KeyCondition(keyed.partition.name, {kind: _SAMPLE[kind]})
    query = Query(TABLE, key, None if index is None else index.name)
    names = [part.name for part in (*schema.keys, *keyed.keys)]
    match draw(st.integers(0, 7)):
        case 0:
            return replace(query, key=replace(key, partition=draw(st.sampled_from([*names, "a"]))))
        case 1:
            return replace(query, key=replace(key, equals=draw(odd_keys)))
        case 2:
            subject = Path((draw(st.sampled_from([*names, "a"])),))
            return replace(query, key=replace(key, sort=draw(_odd_ranges(subject))))
        case 3:
            return replace(query, limit=draw(st.sampled_from([-1, 0, 1])))
        case 4:
            return replace(query, consistent=True)
        case 5:
            return replace(query, index="no-such-index")
        case 6:
            return replace(query, filter=Exists(Path((draw(st.sampled_from(names)),))))
        case _:
            return replace(query, start_after=draw(_starts(schema, names)))


_SAMPLE: Mapping[str, str] = {"S": "a", "N": "1", "B": "YQ=="}


def _odd_ranges(subject: Path) -> Strategy:
    literal = (odd_keys | st.sampled_from([{kind: text} for kind, text in _SAMPLE.items()])).map(Value)
    operand = literal | st.sampled_from([Path(("a",)), Size(Path(("a",)))])
    return st.one_of(
        st.builds(Compare, st.sampled_from(["=", "<>", "<", ">="]), st.just(subject), operand),
        st.builds(Between, st.just(subject), operand, operand),
        st.builds(BeginsWith, st.just(subject), operand),
    )


def _starts(schema: TableSchema, names: list[str]) -> Strategy:
    values = st.sampled_from([{kind: text} for kind, text in _SAMPLE.items()]) | odd_keys
    exact = st.fixed_dictionaries(dict.fromkeys(names, values))
    return exact | st.dictionaries(st.sampled_from([*names, "a"]), values, max_size=4)


@st.composite
def _odd_scans(draw: st.DrawFn, schema: TableSchema) -> Scan:
    index = draw(st.sampled_from([None, *schema.indexes]))
    scan = Scan(TABLE, None if index is None else index.name)
    names = [part.name for part in (*schema.keys, *(() if index is None else index.keys))]
    match draw(st.integers(0, 4)):
        case 0:
            segments = draw(st.sampled_from([2, 3, 1_000_000, 1_000_001]))
            return replace(scan, segment=draw(st.sampled_from([-1, 0, 1, 2, 3])), segments=segments)
        case 1:
            return replace(scan, limit=draw(st.sampled_from([-1, 0, 1])))
        case 2:
            return replace(scan, consistent=True)
        case 3:
            return replace(scan, index="no-such-index")
        case _:
            return replace(scan, start_after=draw(_starts(schema, names)))


def odd_requests(schema: TableSchema) -> st.SearchStrategy[Request[Any]]:
    """Valid requests with one part replaced."""
    put = st.builds(PutItem, st.just(TABLE), odd_items(schema))
    conditional = st.builds(PutItem, st.just(TABLE), items(schema), odd_conditions())
    delete = st.builds(DeleteItem, st.just(TABLE), malformed_keys(schema))
    get = st.builds(GetItem, st.just(TABLE), malformed_keys(schema))
    projected = st.builds(
        GetItem,
        st.just(TABLE),
        keys(schema),
        projection=st.lists(odd_paths, min_size=1, max_size=2).map(tuple),
    )
    update = st.builds(UpdateItem, st.just(TABLE), keys(schema), odd_updates())
    keyed = st.builds(UpdateItem, st.just(TABLE), malformed_keys(schema), st.just(Update(())))
    good = st.builds(PutItem, st.just(TABLE), items(schema))
    token = st.sampled_from(["t", "t" * 37])
    return st.one_of(
        put,
        conditional,
        delete,
        get,
        projected,
        update,
        keyed,
        _odd_queries(schema),
        _odd_scans(schema),
        st.builds(Scan, st.just(TABLE), filter=odd_conditions()),
        # a batch has a single projection for all its reads
        st.builds(BatchGet, st.lists(get, max_size=2).map(tuple) | projected.map(lambda read: (read,))),
        st.builds(TransactGet, st.lists(get | projected, max_size=2).map(tuple)),
        st.builds(BatchWrite, st.lists(put | delete | good, max_size=2).map(tuple)),
        st.builds(TransactWrite, st.lists(put | delete | update | good, max_size=2).map(tuple), token),
    )


# --- tables -----------------------------------------------------------------------------------------------

_ODD_NAMES = ("ab", "abc", "a b c", "äöü", "x" * 255, "x" * 256, "a.b-c_D9", "")
_ODD_KEYS = ("pk", "sk", "x", "", "k" * 255, "k" * 256, "é" * 127, "é" * 128, "a b")
_ODD_PROJECTIONS = ((), ("a",), ("a", "a"), ("pk",), ("x",), ("",), ("n" * 255,), ("n" * 256,))


@st.composite
def odd_tables(draw: st.DrawFn) -> TableSchema:
    """Table definitions with odd names, types, keys or projections, or with too many indexes."""
    parts = st.builds(KeyAttribute, st.sampled_from(_ODD_KEYS[:3]) | st.sampled_from(_ODD_KEYS), _odd_types)
    index = st.builds(
        IndexSchema,
        st.sampled_from(["index-0", "index-1"]) | st.sampled_from(_ODD_NAMES),
        parts,
        st.none() | parts,
        st.builds(
            Projection, st.sampled_from(["ALL", "KEYS_ONLY", "INCLUDE"]), st.sampled_from(_ODD_PROJECTIONS)
        ),
        st.sampled_from([False, False, True]),
    )
    indexes = st.lists(index, max_size=2).map(tuple) | st.sampled_from([20, 21]).map(_many_indexes)
    name = st.sampled_from(_ODD_NAMES) if draw(st.integers(0, 3)) == 0 else st.just(TABLE)
    return TableSchema(draw(name), draw(parts), draw(st.none() | parts), draw(indexes))


_odd_types: Strategy = st.sampled_from(["S", "S", "S", "N", "B", "BOOL", "X"])


def _many_indexes(count: int) -> tuple[IndexSchema, ...]:
    return tuple(IndexSchema(f"index-{number}", KeyAttribute(f"x{number}")) for number in range(count))
