"""Random tables, items and requests for the comparison of backends.

Names, keys and values come from small pools on purpose, so that several writes hit the same item, about half of the
conditions hold, and queries find items. The requests are well-formed but not always valid: the comparison includes
whether a backend refuses them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

from hypothesis import strategies as st

from holdall.core.expressions import (
    Add,
    And,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Delete,
    Exists,
    IfNotExists,
    In,
    KeyCondition,
    ListAppend,
    Minus,
    Not,
    NotExists,
    Or,
    Path,
    Plus,
    Remove,
    Set,
    Size,
    TypeIs,
    Update,
    Value,
)
from holdall.core.requests import (
    BatchGet,
    BatchWrite,
    ConditionCheck,
    DeleteItem,
    GetItem,
    PutItem,
    Query,
    Request,
    Scan,
    TransactAction,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.schema import IndexSchema, KeyAttribute, KeyType, Projection, TableSchema
from holdall.core.values import Attribute, Item

__all__ = ["TABLE", "attributes", "items", "requests", "tables"]

TABLE = "differential"
"""The table name in generated requests; the runner replaces it with the real one."""

Strategy: TypeAlias = st.SearchStrategy[Any]

TYPES = ("S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS")
NAMES = ("a", "b.c", "size", "é")
KEY_NAMES = ("pk", "sk", "x", "y")


def _base64(*raw: bytes) -> tuple[str, ...]:
    return tuple(b64encode(part).decode() for part in raw)


KEYS: dict[KeyType, tuple[str, ...]] = {
    "S": ("a", "ab", "b", "é", "\uffff", "😀"),
    "N": ("-1.5", "0", "1", "1.0", "2", "1e1", "12345678901234567890123456789012345678"),
    "B": _base64(b"\x00", b"a", b"a\xff", b"\xff"),
}
"""The small key spaces; ``\\uffff`` and ``😀`` sort differently in UTF-8 and UTF-16."""

STRINGS = ("", "a", "ab", "b", "é", "\uffff", "😀")
NUMBERS = (
    "0",
    "-0.0",
    "-1",
    "1",
    "1.0",
    "2e0",
    "10",
    "0.1",
    "12345678901234567890123456789012345678",
    "1e-130",
    "9.9e125",
)
BINARIES = _base64(b"", b"a", b"ab", b"\xff")


# --- tables -----------------------------------------------------------------------------------------------


@st.composite
def tables(draw: st.DrawFn) -> TableSchema:
    """Tables with keys of every type, with and without a sort key, and up to two indexes, some of them local."""
    types: dict[str, KeyType] = {name: draw(st.sampled_from(("S", "N", "B"))) for name in KEY_NAMES}
    sort = draw(st.booleans())
    names = KEY_NAMES if sort else ("pk", "x", "y")
    indexes = []
    for number in range(draw(st.integers(0, 2))):
        local = sort and draw(st.booleans())
        if local:
            keys = ["pk", draw(st.sampled_from(("x", "y")))]
        else:
            keys = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        partition, *sorts = (KeyAttribute(name, types[name]) for name in keys)
        index_sort = sorts[0] if sorts else None
        indexes.append(IndexSchema(f"index-{number}", partition, index_sort, draw(_projections()), local))
    return TableSchema(
        TABLE,
        KeyAttribute("pk", types["pk"]),
        KeyAttribute("sk", types["sk"]) if sort else None,
        tuple(indexes),
    )


def _projections() -> Strategy:
    names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True).map(tuple)
    return st.one_of(
        st.just(Projection()),
        st.just(Projection("KEYS_ONLY")),
        names.map(lambda chosen: Projection("INCLUDE", chosen)),
    )


# --- attributes and items ---------------------------------------------------------------------------------


def _by_value(member: str) -> object:
    try:
        return float(member)
    except ValueError:
        return member


def _some(pool: Sequence[str]) -> Strategy:
    return st.lists(st.sampled_from(pool), min_size=1, max_size=3, unique_by=_by_value)


def _number_texts() -> Strategy:
    wide = st.builds(
        lambda sign, digits, exponent: f"{sign}{digits}E{exponent}",
        st.sampled_from(("", "-")),
        st.integers(1, 10**38 - 1),
        st.integers(-60, 60),
    )
    return st.sampled_from(NUMBERS) | st.sampled_from(NUMBERS) | wide


numbers: Strategy = _number_texts().map(lambda text: {"N": text})
sets: Strategy = st.one_of(
    _some(STRINGS).map(lambda members: {"SS": members}),
    _some(NUMBERS).map(lambda members: {"NS": members}),
    _some(BINARIES).map(lambda members: {"BS": members}),
)
_leaves: Strategy = st.one_of(
    st.sampled_from(STRINGS).map(lambda text: {"S": text}),
    numbers,
    st.sampled_from(BINARIES).map(lambda text: {"B": text}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
    sets,
)
attributes: Strategy = st.recursive(
    _leaves,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda members: {"L": members})
        | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3).map(lambda members: {"M": members})
    ),
    max_leaves=5,
)
lists: Strategy = st.lists(_leaves, max_size=2).map(lambda members: {"L": members})


@cache
def _key_values(kind: KeyType) -> Strategy:
    return st.sampled_from(KEYS[kind]).map(lambda text: {kind: text})


@cache
def keys(schema: TableSchema) -> st.SearchStrategy[dict[str, Attribute]]:
    """Keys of the table."""
    return st.fixed_dictionaries({part.name: _key_values(part.type) for part in schema.keys})


def _index_parts(schema: TableSchema) -> dict[str, KeyType]:
    own = {part.name for part in schema.keys}
    parts = [part for index in schema.indexes for part in index.keys]
    return {part.name: part.type for part in parts if part.name not in own}


@cache
def items(schema: TableSchema) -> st.SearchStrategy[dict[str, Attribute]]:
    """Items of the table; most of them are also in its indexes."""
    values = {name: _key_values(kind) for name, kind in _index_parts(schema).items()}
    others = st.dictionaries(st.sampled_from(NAMES), attributes, max_size=3)
    return st.builds(
        lambda key, index, rest: {**rest, **index, **key},
        keys(schema),
        st.fixed_dictionaries({}, optional=values),
        others,
    )


# --- expressions ------------------------------------------------------------------------------------------


def _heads(schema: TableSchema) -> tuple[str, ...]:
    return (*NAMES, *NAMES, *(part.name for part in schema.keys), *_index_parts(schema))


@cache
def _paths(heads: Sequence[str]) -> Strategy:
    part = st.sampled_from(NAMES) | st.integers(0, 3)
    deep = st.builds(
        lambda head, rest: Path((head, *rest)), st.sampled_from(heads), st.lists(part, max_size=2)
    )
    return st.sampled_from(heads).map(lambda head: Path((head,))) | deep


@cache
def conditions(schema: TableSchema) -> st.SearchStrategy[Condition]:
    """Conditions with every kind of node and operand, sensible or not."""
    return _conditions(_heads(schema))


@cache
def _conditions(heads: Sequence[str]) -> st.SearchStrategy[Condition]:
    path = _paths(heads)
    literal = attributes.map(Value)
    operand = path | literal | path.map(Size)
    leaves = st.one_of(
        st.builds(Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), path, operand),
        st.builds(Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), operand, operand),
        st.builds(Between, operand, operand, operand),
        st.builds(In, operand, st.lists(operand, min_size=1, max_size=3).map(tuple)),
        st.builds(Exists, path),
        st.builds(NotExists, path),
        st.builds(TypeIs, path, st.sampled_from(TYPES)),
        st.builds(BeginsWith, path, operand),
        st.builds(Contains, path, operand),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.builds(Not, inner),
        ),
        max_leaves=4,
    )


@cache
def updates(schema: TableSchema) -> st.SearchStrategy[Update]:
    """Updates with every action and right-hand side, whether or not an item fits them."""
    path = _paths(_heads(schema))
    source = path
    literal = attributes.map(Value)
    number = numbers.map(Value)
    sequence = lists.map(Value)
    new = st.one_of(
        source,
        literal,
        st.builds(IfNotExists, source, source | literal),
        st.builds(
            ListAppend, source | sequence | st.builds(IfNotExists, source, sequence), source | sequence
        ),
        st.builds(Plus, source | number | st.builds(IfNotExists, source, number), source | number),
        st.builds(Minus, source | number, source | number),
    )
    action = st.one_of(
        st.builds(Set, path, new),
        st.builds(Set, path, new),
        st.builds(Remove, path),
        st.builds(Add, path, (numbers | sets).map(Value)),
        st.builds(Delete, path, sets.map(Value)),
    )
    return st.builds(Update, st.lists(action, min_size=1, max_size=3).map(tuple))


# --- requests ---------------------------------------------------------------------------------------------


def _perhaps(strategy: Strategy) -> Strategy:
    return st.none() | strategy


@cache
def _puts(schema: TableSchema) -> Strategy:
    return st.builds(
        PutItem,
        st.just(TABLE),
        items(schema),
        _perhaps(conditions(schema)),
        st.sampled_from(["none", "old"]),
        st.booleans(),
    )


@cache
def _updates(schema: TableSchema) -> Strategy:
    return st.builds(
        UpdateItem,
        st.just(TABLE),
        keys(schema),
        updates(schema),
        _perhaps(conditions(schema)),
        st.sampled_from(["none", "old", "new"]),
        st.booleans(),
    )


@cache
def _deletes(schema: TableSchema) -> Strategy:
    return st.builds(
        DeleteItem,
        st.just(TABLE),
        keys(schema),
        _perhaps(conditions(schema)),
        st.sampled_from(["none", "old"]),
        st.booleans(),
    )


@cache
def _actions(schema: TableSchema) -> st.SearchStrategy[TransactAction]:
    perhaps = _perhaps(conditions(schema))
    none: Strategy = st.just("none")
    return st.one_of(
        st.builds(PutItem, st.just(TABLE), items(schema), perhaps, none, st.booleans()),
        st.builds(UpdateItem, st.just(TABLE), keys(schema), updates(schema), perhaps, none, st.booleans()),
        st.builds(DeleteItem, st.just(TABLE), keys(schema), perhaps, none, st.booleans()),
        st.builds(ConditionCheck, st.just(TABLE), keys(schema), conditions(schema), st.booleans()),
    )


@cache
def _transactions(schema: TableSchema) -> Strategy:
    """Transactions with one of three tokens, so that tokens repeat."""
    actions = st.lists(_actions(schema), min_size=1, max_size=4).map(tuple)
    return st.builds(TransactWrite, actions, st.sampled_from(["one", "two", "three"]))


@cache
def _some_projection(heads: Sequence[str]) -> Strategy:
    return st.just(()) | st.lists(_paths(heads), min_size=1, max_size=3).map(tuple)


@cache
def _gets(schema: TableSchema) -> Strategy:
    return st.builds(
        GetItem,
        st.just(TABLE),
        keys(schema),
        consistent=st.booleans(),
        projection=_some_projection(_heads(schema)),
    )


@cache
def _batch_gets(schema: TableSchema) -> Strategy:
    def batch(several: list[Item], projection: tuple[Path, ...]) -> BatchGet:
        return BatchGet(tuple(GetItem(TABLE, key, True, projection) for key in several))

    return st.builds(batch, st.lists(keys(schema), min_size=1, max_size=4), _some_projection(_heads(schema)))


@cache
def _transact_gets(schema: TableSchema) -> Strategy:
    read = st.builds(GetItem, st.just(TABLE), keys(schema), projection=_some_projection(_heads(schema)))
    return st.builds(TransactGet, st.lists(read, min_size=1, max_size=4).map(tuple))


@cache
def _batch_writes(schema: TableSchema) -> Strategy:
    action = st.builds(PutItem, st.just(TABLE), items(schema)) | st.builds(
        DeleteItem, st.just(TABLE), keys(schema)
    )
    return st.builds(BatchWrite, st.lists(action, min_size=1, max_size=4).map(tuple))


@cache
@st.composite
def _queries(draw: st.DrawFn, schema: TableSchema) -> Query:
    index = draw(st.sampled_from([None, *schema.indexes]))
    keyed = schema if index is None else index
    sort = None
    if keyed.sort is not None and draw(st.booleans()):
        sort = draw(_ranges(keyed.sort))
    return Query(
        TABLE,
        KeyCondition(keyed.partition.name, draw(_key_values(keyed.partition.type)), sort),
        index=None if index is None else index.name,
        filter=draw(_perhaps(_conditions(_visible_names(schema, index)))),
        limit=draw(_perhaps(st.integers(1, 3))),
        reverse=draw(st.booleans()),
        consistent=(index is None or index.local) and draw(st.booleans()),
        **draw(_some_selection(_visible_names(schema, index))),
    )


@cache
def _some_selection(heads: Sequence[str]) -> Strategy:
    """A projection of the rows, or only their count; a request for the count sends no projection."""
    counted: Strategy = st.just({"count_only": True})
    return counted | _some_projection(heads).map(lambda projection: {"projection": projection})


@cache
def _ranges(sort: KeyAttribute) -> Strategy:
    subject = st.just(Path((sort.name,)))
    operand = _key_values(sort.type).map(Value)
    compared = st.builds(Compare, st.sampled_from(["=", "<", "<=", ">", ">="]), subject, operand)
    return compared | st.builds(Between, subject, operand, operand) | st.builds(BeginsWith, subject, operand)


def _visible_names(schema: TableSchema, index: IndexSchema | None) -> tuple[str, ...]:
    """Mostly attributes that the table or index holds."""
    held = None if index is None else schema.projected(index)
    heads = _heads(schema)
    return heads if held is None else (*heads[:1], *(sorted(held) * 3))


@cache
@st.composite
def _scans(draw: st.DrawFn, schema: TableSchema) -> Scan:
    index = draw(st.sampled_from([None, *schema.indexes]))
    return Scan(
        TABLE,
        index=None if index is None else index.name,
        segments=draw(st.sampled_from([1, 1, 2, 3])),
        filter=draw(_perhaps(_conditions(_visible_names(schema, index)))),
        limit=draw(_perhaps(st.integers(1, 3))),
        consistent=(index is None or index.local) and draw(st.booleans()),
        **draw(_some_selection(_visible_names(schema, index))),
    )


@cache
def writes(schema: TableSchema) -> Strategy:
    """Requests that write."""
    return st.one_of(
        _puts(schema), _updates(schema), _deletes(schema), _transactions(schema), _batch_writes(schema)
    )


@cache
def reads(schema: TableSchema) -> Strategy:
    """Requests that read; queries and scans start with the first page."""
    return st.one_of(
        _gets(schema), _batch_gets(schema), _transact_gets(schema), _queries(schema), _scans(schema)
    )


@cache
def requests(schema: TableSchema) -> st.SearchStrategy[Request[Any]]:
    """Requests of every kind except those that create, describe or delete tables."""
    return writes(schema) | reads(schema)
