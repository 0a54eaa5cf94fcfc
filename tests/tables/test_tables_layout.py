"""A table's layout: two modes, and tables that cannot be used are refused with a definition that works."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables_rig import INDEX, description, index_from, key, settings, table_from

from holdall import Database
from holdall.core import (
    AddIndex,
    CreateTable,
    GetItem,
    IndexSchema,
    KeyAttribute,
    Projection,
    PutItem,
    TableDescription,
    TableSchema,
)
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError
from holdall.tables import Layout
from holdall.tables.definition import RESERVED
from holdall.tables.layout import explain_missing_table, layout_of

MODE_A = Layout("A", "app", KeyAttribute("pk"), KeyAttribute("sk"))
MODE_B = Layout("B", "app", KeyAttribute("pk"), KeyAttribute("sk", "N"), INDEX)

texts = st.text(min_size=1, max_size=20)


def index(
    partition: str = "as_index_pk:S", sort: str | None = "as_index_sk:S", kind: Any = "ALL"
) -> IndexSchema:
    names = ("extra",) if kind == "INCLUDE" else ()
    return IndexSchema(
        "active_storage_index", key(partition), None if sort is None else key(sort), Projection(kind, names)
    )


def definition_in(error: ConfigurationError) -> dict[str, Any]:
    """The definition that a refusal's hint ends with."""
    assert error.hint is not None
    _, brace, rest = error.hint.partition("\n{")
    found: dict[str, Any] = json.loads(brace + rest)
    return found


def find_refusal(described: TableDescription, chosen: Settings) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        layout_of(described, chosen)
    return caught.value


# --- the modes ---


def test_a_string_sort_key_makes_mode_a() -> None:
    assert layout_of(description(), settings()) == MODE_A


def test_a_numeric_sort_key_and_the_index_make_mode_b() -> None:
    assert layout_of(description("pk:S", "sk:N", INDEX), settings()) == MODE_B


def test_key_names_are_the_tables_own() -> None:
    found = layout_of(description("hash_key:S", "version:N", index("one:S", "two:S")), settings())
    assert (found.partition.name, found.sort.name) == ("hash_key", "version")
    assert found.address("H", "R", "I").attributes == {
        "hash_key": {"S": "I"},
        "version": {"N": "0"},
        "one": {"S": "H"},
        "two": {"S": "R"},
    }


def test_in_mode_a_an_index_with_the_configured_name_is_ignored() -> None:
    useless = index("as_index_pk:N", None, "KEYS_ONLY")
    assert layout_of(description("pk:S", "sk:S", useless, index_status="CREATING"), settings()) == MODE_A


def test_the_right_names_in_the_settings_change_nothing() -> None:
    chosen = settings(
        partition_key="pk", sort_key="sk", index_partition_key="as_index_pk", index_sort_key="as_index_sk"
    )
    assert layout_of(description(), chosen) == MODE_A
    assert layout_of(description("pk:S", "sk:N", INDEX), chosen) == MODE_B


def test_another_index_can_be_named() -> None:
    mine = replace(INDEX, name="mine")
    found = layout_of(description("pk:S", "sk:N", INDEX, mine), settings(index_name="mine"))
    assert found.index == mine


def test_a_table_that_is_being_updated_can_be_used() -> None:
    assert layout_of(description(status="UPDATING"), settings()) == MODE_A
    described = description("pk:S", "sk:N", INDEX, index_status="UPDATING")
    assert layout_of(described, settings()) == MODE_B


# --- keys ---


@given(h=texts, r=texts, item_id=texts)
def test_in_mode_a_the_tables_key_is_h_and_r_and_nothing_else_is_written(
    h: str, r: str, item_id: str
) -> None:
    assert MODE_A.key(h, r, item_id) == {"pk": {"S": h}, "sk": {"S": r}}
    assert MODE_A.address(h, r, item_id).attributes == MODE_A.key(h, r, item_id)


@given(h=texts, r=texts, item_id=texts)
def test_in_mode_b_the_tables_key_is_the_id_and_the_index_has_h_and_r(h: str, r: str, item_id: str) -> None:
    assert MODE_B.key(h, r, item_id) == {"pk": {"S": item_id}, "sk": {"N": "0"}}
    extra = {"as_index_pk": {"S": h}, "as_index_sk": {"S": r}}
    assert MODE_B.address(h, r, item_id).attributes == {**MODE_B.key(h, r, item_id), **extra}


@pytest.mark.parametrize("layout", [MODE_A, MODE_B], ids=["A", "B"])
@given(h=texts, r=texts, item_id=texts)
def test_h_and_r_are_read_back_as_they_were_written(layout: Layout, h: str, r: str, item_id: str) -> None:
    assert layout.logical(layout.address(h, r, item_id).attributes) == (h, r)


@given(
    rows=st.sets(st.tuples(st.sampled_from(["x", "y"]), st.text("ab#", min_size=1, max_size=4)), max_size=12),
    prefix=st.text("ab#", max_size=2),
)
def test_both_modes_store_and_list_the_same_items(rows: set[tuple[str, str]], prefix: str) -> None:
    found = [_list_ids(mode, rows, prefix) for mode in ("A", "B")]
    expected = sorted(r for h, r in rows if h == "x" and r.startswith(prefix))
    assert found == [expected, expected]


def _list_ids(mode: Any, rows: set[tuple[str, str]], prefix: str) -> list[str]:
    with Database("memory:", table_name="app") as db:
        db.table.create(mode=mode)
        layout = db.table.layout()
        for h, r in rows:
            db.send(PutItem("app", layout.address(h, r, f"{h} {r}").attributes))
        for h, r in rows:
            read = GetItem("app", layout.key(h, r, f"{h} {r}"), consistent=True)
            stored = db.send(read).item
            assert stored is not None
            assert layout.logical(stored) == (h, r)
        query = layout.listing("x", prefix)
        assert query.consistent == (mode == "A")
        assert not query.may_be_old
        return [layout.logical(item)[1] for page in db.pages(query) for item in page.items]


# --- refusals ---

UNFIT_TABLES = [
    pytest.param(description("pk:S", None), "table app has no sort key", id="no sort key"),
    pytest.param(
        description("pk:N", "sk:S"),
        "the partition key pk of table app must be a string (S), not N",
        id="numeric partition key",
    ),
    pytest.param(
        description("pk:B", "sk:N", INDEX),
        "the partition key pk of table app must be a string (S), not B",
        id="binary partition key",
    ),
    pytest.param(
        description("pk:S", "sk:B"),
        "the sort key sk of table app must be a string (S) or a number (N), not B",
        id="binary sort key",
    ),
    *(
        pytest.param(
            description(f"{name}:S", "sk:S"),
            f"table app has the key attribute {name}",
            id=f"partition {name}",
        )
        for name in sorted(RESERVED)
    ),
    *(
        pytest.param(
            description("pk:S", f"{name}:N", INDEX),
            f"table app has the key attribute {name}",
            id=f"sort {name}",
        )
        for name in sorted(RESERVED)
    ),
]

UNFIT_INDEXES = [
    pytest.param(
        index(sort=None), "index active_storage_index of table app has no sort key", id="no sort key"
    ),
    pytest.param(
        index(partition="as_index_pk:N"),
        "the partition key as_index_pk of index active_storage_index of table app must be a string (S), not N",
        id="numeric partition key",
    ),
    pytest.param(index(sort="as_index_sk:B"), "the sort key as_index_sk of index", id="binary sort key"),
    pytest.param(
        index(kind="KEYS_ONLY"), "must hold whole items (ALL), not parts of them (KEYS_ONLY)", id="keys only"
    ),
    pytest.param(
        index(kind="INCLUDE"), "must hold whole items (ALL), not parts of them (INCLUDE)", id="include"
    ),
    *(
        pytest.param(index(partition=f"{name}:S"), f"has the key attribute {name}", id=f"partition {name}")
        for name in sorted(RESERVED)
    ),
    pytest.param(index(sort="as_name:S"), "has the key attribute as_name", id="sort as_name"),
]


def usable(schema: TableSchema, chosen: Settings, *indexes: IndexSchema) -> Layout:
    """The layout of a table after creating it and adding the indexes."""
    with Database("memory:") as db:
        made = db.send(CreateTable(schema))
        for added in indexes:
            made = db.send(AddIndex(schema.name, added))
        return layout_of(made, chosen)


@pytest.mark.parametrize(("described", "problem"), UNFIT_TABLES)
def test_a_table_with_an_unfit_key_is_refused_with_one_that_fits(
    described: TableDescription, problem: str
) -> None:
    error = find_refusal(described, settings())
    assert problem in error.message
    assert not error.retryable
    suggested = table_from(definition_in(error))
    assert suggested.name != "app", (
        "the existing table's key cannot be changed, so the suggestion needs another name"
    )
    assert usable(suggested, settings(table_name=suggested.name)).mode == "A"


def test_a_missing_table_is_refused_with_its_definition() -> None:
    error = explain_missing_table(settings(partition_key="hash", sort_key="range"))
    assert error.message == "there is no table app"
    suggested = table_from(definition_in(error))
    assert suggested == TableSchema("app", KeyAttribute("hash"), KeyAttribute("range"))
    assert usable(suggested, settings()).mode == "A"


def test_a_missing_index_is_refused_with_its_definition() -> None:
    error = find_refusal(description("pk:S", "sk:N"), settings())
    assert error.message == "table app has a numeric sort key, so it needs the index active_storage_index"
    table, suggested = index_from(definition_in(error))
    assert (table, suggested) == ("app", INDEX)
    assert usable(description("pk:S", "sk:N").schema, settings(), suggested).mode == "B"


def test_the_definition_of_a_missing_index_has_the_names_of_the_settings() -> None:
    chosen = settings(index_name="mine", index_partition_key="mine_h", index_sort_key="mine_r")
    _, suggested = index_from(definition_in(find_refusal(description("pk:S", "sk:N", INDEX), chosen)))
    assert suggested == IndexSchema("mine", KeyAttribute("mine_h"), KeyAttribute("mine_r"))
    assert usable(description("pk:S", "sk:N").schema, chosen, suggested).index == suggested


@pytest.mark.parametrize(("unfit", "problem"), UNFIT_INDEXES)
def test_an_unfit_index_is_refused_with_one_that_fits(unfit: IndexSchema, problem: str) -> None:
    error = find_refusal(description("pk:S", "sk:N", unfit), settings())
    assert problem in error.message
    _, suggested = index_from(definition_in(error))
    assert usable(description("pk:S", "sk:N").schema, settings(), suggested).mode == "B"


@pytest.mark.parametrize(
    ("setting", "kind", "actual"),
    [
        ("partition_key", "partition", "pk"),
        ("sort_key", "sort", "sk"),
        ("index_partition_key", "partition", "as_index_pk"),
        ("index_sort_key", "sort", "as_index_sk"),
    ],
)
def test_a_setting_that_names_another_attribute_than_the_key_is_refused(
    setting: str, kind: str, actual: str
) -> None:
    error = find_refusal(description("pk:S", "sk:N", INDEX), settings(**{setting: "other"}))
    assert error.message.startswith(f"{setting} is 'other', but the {kind} key of ")
    assert error.message.endswith(f" is {actual!r}")
    assert error.hint == f"set {setting} to {actual!r}, or remove the setting: Holdall finds the name itself"


def test_settings_cannot_exchange_partition_and_sort_key() -> None:
    assert "partition_key is 'sk'" in find_refusal(description(), settings(partition_key="sk")).message


@pytest.mark.parametrize("state", ["CREATING", "DELETING"])
def test_the_hint_for_an_index_in_transition_is_to_wait(state: str) -> None:
    error = find_refusal(description("pk:S", "sk:N", INDEX, index_status=state), settings())
    assert error.message.startswith(f"index active_storage_index of table app is {state}")
    assert error.retryable
    assert error.hint == "wait a while and try again"


@pytest.mark.parametrize("state", ["CREATING", "DELETING"])
def test_a_table_in_transition_is_refused_as_retryable(state: str) -> None:
    error = find_refusal(description(status=state), settings())
    assert error.message.startswith(f"table app is {state}")
    assert error.retryable


def test_an_index_in_transition_that_would_not_fit_is_not_retryable() -> None:
    unfit = description("pk:S", "sk:N", index(kind="KEYS_ONLY"), index_status="CREATING")
    assert not find_refusal(unfit, settings()).retryable


def test_a_suggested_definition_never_has_a_reserved_name() -> None:
    chosen = settings(partition_key="as_id", index_partition_key="as_key")
    assert table_from(definition_in(explain_missing_table(chosen))).partition == KeyAttribute("pk")
    error = find_refusal(description("pk:S", "sk:N"), settings(index_sort_key="as_name"))
    assert index_from(definition_in(error))[1] == INDEX


def test_there_are_sixteen_reserved_names() -> None:
    assert len(RESERVED) == 16
    assert all(name.startswith("as_") for name in RESERVED)
    assert not {"as_index_pk", "as_index_sk"} & RESERVED
