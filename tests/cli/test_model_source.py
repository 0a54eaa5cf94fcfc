"""The generated source of a model: it reads every item of its sample, whatever its attributes and their names."""

from __future__ import annotations

from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdall import Database
from holdall.cli.inspect.source import is_class_name, name_class, write_source
from holdall.cli.inspect.stored_guess import guess_form
from holdall.cli.inspect.table_sample import TableSample
from holdall.cli.inspect.type_guess import infer_type
from holdall.core import (
    CreateTable,
    IndexSchema,
    Item,
    KeyAttribute,
    Projection,
    PutItem,
    TableSchema,
    encode,
)
from holdall.models.codec.stored_form import plain

NAMES = [
    "created_at",
    "isNew",
    "a b",
    "a-b",
    "a_b",
    "class",
    "date",
    "str",
    "self",
    "key",
    "1",
    "_",
    "__x__",
    "ä",
    "ﬁ",
    '"',
    "'\"\n\\",
    "😀",
]
TEXTS = ["2026-01-31T09:30:00.000000Z", "2026-01-31T09:30:00.000000", "2026-01-31", "2026-02-31", "", "x"]
TEXTS += ["0000-01-31", "2026-01-31 09:30", "2026-01-31T09:30:00Z", "2026-01-31T09:30:00.500Z"]
TEXTS += [
    "2026-01-31T09:30:00.000000+0000",
    "2026-01-31T09:30:00+01:00",
    '{"a": 1}',
    "[1, 2.5]",
    "{",
    "[1, {}]",
]

SCALARS = [
    "x",
    "",
    1,
    0,
    -7,
    1767355200,
    1767355200123,
    2.5,
    Decimal("1.000000000000000000001"),
    b"",
    b"\0\xff",
    True,
    False,
    None,
]
SETS = [{"a", "b"}, {1}, {1, 2.5}, {b"\xff"}]


def values() -> st.SearchStrategy[Any]:
    """Values as DynamoDB stores them."""
    leaves = st.sampled_from(TEXTS) | st.sampled_from([*SCALARS, *SETS])
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        ),
        max_leaves=5,
    )


@settings(max_examples=max(20, settings().max_examples // 2), deadline=None)
@given(st.data())
def test_a_model_reads_every_item_of_its_sample(data: st.DataObject) -> None:
    value = values().map(encode)
    rest = st.dictionaries(st.sampled_from(NAMES) | st.text(min_size=1, max_size=5), value, max_size=4)
    numbers = count()
    items: list[Item] = [
        {**item, "id": {"N": str(next(numbers))}} for item in data.draw(st.lists(rest, max_size=4))
    ]
    schema = TableSchema("things", KeyAttribute("id", "N"))
    names: dict[str, Any] = {"__name__": "sampled"}
    exec(write_source(TableSample("things", schema, None, items, True), "Things"), names)
    things = names["Things"]
    with Database("memory:") as db:
        db.send(CreateTable(schema))
        for item in items:
            db.send(PutItem("things", item))
        found = {thing.id: thing for thing in db.scan(things)}
    fields = {field.stored: field for field in things._fields.values()}
    for number, item in enumerate(items):
        for name, attribute in item.items():
            read = getattr(found[number], fields[name].name)
            assert plain(fields[name].encode(read) or {"NULL": True}) == plain(attribute)


@pytest.mark.parametrize(
    ("values", "annotation"),
    [
        ([1, 2], "int"),
        ([1, 2.5], "Decimal"),
        ([True], "bool"),
        ([{"a"}, {"b"}], "set[str]"),
        ([{1, 2.5}], "set[Decimal]"),
        ([{1}, []], "set[int]"),
        ([[], []], "list[Any]"),
        ([[1], [None]], "list[int | None]"),
        ([[1, "a"]], "list[Any]"),
        ([[[1]], [[]]], "list[list[int]]"),
        ([{"a": b"x"}, {}], "dict[str, bytes]"),
        ([1, "a"], "Any"),
        ([], "Any"),
    ],
)
def test_the_type_is_as_narrow_as_the_values_allow(values: list[Any], annotation: str) -> None:
    assert infer_type(map(encode, values)) == (annotation, False)


@pytest.mark.parametrize(
    ("name", "values", "guess"),
    [
        ("createdAt", [1767355200], ("datetime", "epoch")),
        ("created_at", [1767355200, None], ("datetime", "epoch")),
        ("updated", [1767355200123], ("datetime", "epoch_ms")),
        ("updated", [1767355200123, 1767355200], None),
        ("barcode", [1767355200123], None),
        ("at", [5], None),
        ("at", [1767355200.5], None),
        ("is_new", [0, 1], ("bool", "number")),
        ("is_new", [1, 1], None),
        ("new", [0, 1], None),
        ("x", ["2026-01-02T12:00:00Z", "2026-01-02T12:00:00.500000Z"], ("datetime", "iso")),
        ("x", ["2026-01-02T12:00:00.000Z"], ("datetime", "iso_ms")),
        ("x", ["2026-01-02T12:00:00.000000+0000"], ("datetime", "pynamodb")),
        ("x", ["2026-01-02T12:00:00.000000+0000", "2026-01-02T12:00:00Z"], None),
        ("x", ["2026-01-02T12:00:00+01:00"], None),
        ("x", ['{"a": 1}', "{}"], ("dict[str, Any]", "json")),
        ("x", ["[]", "[1]"], ("list[Any]", "json")),
        ("x", ["[]", "{}"], None),
        ("x", ["5"], None),
        ("x", [None], None),
        ("x", [], None),
    ],
)
def test_a_stored_form_is_proposed_if_all_values_have_it(name: str, values: list[Any], guess: Any) -> None:
    assert guess_form(name, [encode(value) for value in values], is_key=False, is_expiry=False) == guess
    as_key = None if guess and guess[1] in ("iso", "json", "number") else guess
    assert guess_form(name, [encode(value) for value in values], is_key=True, is_expiry=False) == as_key


def test_the_expiry_attribute_is_stored_in_seconds() -> None:
    for values in ([], [1767355200]):
        found = guess_form("x", [encode(value) for value in values], is_key=False, is_expiry=True)
        assert found == ("datetime", "epoch")
    assert guess_form("x", [encode(0)], is_key=False, is_expiry=True) is None


def test_a_null_makes_a_type_optional() -> None:
    assert infer_type(map(encode, [None, 1])) == ("int", True)


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("orders", "Orders"),
        ("my-app.OrderLines_2", "MyAppOrderLines2"),
        ("3d", "Table3d"),
        ("none", "TableNone"),
    ],
)
def test_the_model_is_named_after_the_table(table: str, name: str) -> None:
    assert name_class(table) == name
    assert is_class_name(name)


def test_a_local_index_is_declared_without_a_key() -> None:
    pk, rank = KeyAttribute("pk"), KeyAttribute("rank", "N")
    index = IndexSchema("by_rank", pk, rank, Projection("KEYS_ONLY"), local=True)
    schema = TableSchema("things", pk, KeyAttribute("sk"), (index,))
    source = write_source(TableSample("things", schema, None, (), True), "Things")
    assert 'Index("by_rank", sort_key=["rank"], include=[], local=True),' in source
    names: dict[str, Any] = {"__name__": "sampled"}
    exec(source, names)
    assert [each.schema for each in names["Things"]._schema.indexes.values()] == [index]


def test_an_index_with_keys_of_several_attributes_is_declared_with_all_of_them() -> None:
    pk, cup, zone, rank = (KeyAttribute(name) for name in ("pk", "cup", "zone", "rank"))
    index = IndexSchema("by_cup", cup, rank, more_partition=(zone,), more_sort=(pk,))
    schema = TableSchema("things", pk, None, (index,))
    source = write_source(TableSample("things", schema, None, (), True), "Things")
    assert 'Index("by_cup", key=["cup", "zone"], sort_key=["rank", "pk"]),' in source
    names: dict[str, Any] = {"__name__": "sampled"}
    exec(source, names)
    assert [each.schema for each in names["Things"]._schema.indexes.values()] == [index]
