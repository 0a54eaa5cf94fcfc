"""Table definitions: which ones DynamoDB accepts, and which attributes an index holds."""

from __future__ import annotations

from typing import Any

import pytest

from holdall.core.rules.schema import check_schema, check_table_name
from holdall.core.schema import IndexSchema, KeyAttribute, Projection, TableSchema
from holdall.errors import ConfigurationError, IndexNotFoundError

ID = KeyAttribute("id")


def _index(name: str = "by_it", **kwargs: Any) -> IndexSchema:
    return IndexSchema(**{"name": name, "partition": KeyAttribute("it"), **kwargs})


def _table(*indexes: IndexSchema, **kwargs: Any) -> TableSchema:
    return TableSchema(**{"name": "table", "partition": ID, "indexes": indexes, **kwargs})


@pytest.mark.parametrize("name", ["abc", "A-Z_0.9", "x" * 255, "...", "my-app.Orders_2026"])
def test_a_valid_table_name_is_accepted(name: str) -> None:
    check_table_name(name)
    check_schema(_table(name=name))


@pytest.mark.parametrize("name", ["", "ab", "x" * 256, "with space", "näme", "a/b", "abc\n", "a#b"])
def test_an_invalid_table_or_index_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be the name of a table"):
        check_table_name(name)
    with pytest.raises(ConfigurationError, match="cannot be the name of a table"):
        check_schema(_table(name=name))
    with pytest.raises(ConfigurationError, match="cannot be the name of an index"):
        check_schema(_table(_index(name)))


def test_the_partition_key_comes_first() -> None:
    assert _table().keys == (ID,)
    assert _table(sort=KeyAttribute("at", "N")).keys == (ID, KeyAttribute("at", "N"))
    assert _index(sort=ID).keys == (KeyAttribute("it"), ID)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (_table(sort=ID), "an attribute is twice in the key"),
        (
            _table(_index(sort=KeyAttribute("it", "N"))),
            "an attribute is twice in the key",
        ),
        (_table(partition=KeyAttribute("id", "BOOL")), "the type of a key must be S, N or B, not BOOL"),  # type: ignore[arg-type]
        (_table(partition=KeyAttribute("")), "1 to 255 bytes"),
        (_table(partition=KeyAttribute("x" * 256)), "1 to 255 bytes"),
        (_table(partition=KeyAttribute("é" * 128)), "1 to 255 bytes"),
        (_table(_index(partition=KeyAttribute("id", "N"))), "attribute id is defined with two types"),
        (
            _table(_index(), _index("by_that", sort=KeyAttribute("it", "B"), partition=ID)),
            "it is defined with two types",
        ),
        (_table(_index(), _index()), "defines index by_it twice"),
        (_table(*(_index(f"index-{place}") for place in range(21))), "21 indexes; DynamoDB allows 20"),
        (_table(_index(projection=Projection("INCLUDE"))), "an INCLUDE projection must name attributes"),
        (_table(_index(projection=Projection("ALL", ("a",)))), "an INCLUDE projection must name attributes"),
        (
            _table(_index(projection=Projection("KEYS_ONLY", ("a",)))),
            "an INCLUDE projection must name attributes",
        ),
    ],
)
def test_a_definition_that_dynamodb_does_not_accept_is_refused(schema: TableSchema, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_schema(schema)


def test_definitions_that_dynamodb_accepts_pass() -> None:
    check_schema(_table())
    check_schema(_table(partition=KeyAttribute("é" * 127), sort=KeyAttribute("at", "B")))
    check_schema(_table(*(_index(f"index-{place}") for place in range(20))))
    check_schema(_table(_index(sort=ID), _index("by_id", partition=ID, sort=KeyAttribute("it"))))
    check_schema(_table(_index(projection=Projection("INCLUDE", ("a", "b")))))


def test_an_index_projects_at_most_20_attributes_and_all_indexes_together_100() -> None:
    def index(name: str, count: int) -> IndexSchema:
        names = tuple(f"{name}{place}" for place in range(count))
        return _index(name, projection=Projection("INCLUDE", names))

    full = [index(f"index-{number}", 20) for number in range(5)]
    check_schema(_table(*full))
    with pytest.raises(ConfigurationError, match="project more than 100 attributes"):
        check_schema(_table(*full, index("one-more", 1)))
    with pytest.raises(ConfigurationError, match="projects more than 20 attributes"):
        check_schema(_table(index("index", 21)))


def test_an_index_is_found_by_its_name() -> None:
    table = _table(_index("one"), _index("two"))
    assert table.index("two") is table.indexes[1]
    with pytest.raises(IndexNotFoundError, match="table table has no index three") as caught:
        table.index("three")
    assert str(caught.value.hint).endswith("one of: one, two")
    with pytest.raises(IndexNotFoundError, match="the table has none"):
        _table().index("one")


def test_an_index_holds_its_keys_and_the_projected_attributes() -> None:
    everything, keys, some = (
        _index("all", sort=KeyAttribute("at")),
        _index("keys", sort=KeyAttribute("at"), projection=Projection("KEYS_ONLY")),
        _index("some", projection=Projection("INCLUDE", ("note",))),
    )
    table = _table(everything, keys, some, sort=KeyAttribute("sort"))
    assert table.projected(everything) is None
    assert table.projected(keys) == frozenset({"id", "sort", "it", "at"})
    assert table.projected(some) == frozenset({"id", "sort", "it", "note"})


def test_an_index_is_described_with_the_role_of_each_key_attribute() -> None:
    index = IndexSchema(
        "by_day", KeyAttribute("day"), KeyAttribute("at", "N"), Projection("INCLUDE", ("note",)), False
    )
    assert index.describe() == {
        "name": "by_day",
        "partition_key": {"name": "day", "type": "S"},
        "sort_key": {"name": "at", "type": "N"},
        "keys": [
            {"name": "day", "type": "S", "role": "partition"},
            {"name": "at", "type": "N", "role": "sort"},
        ],
        "projection": "INCLUDE",
        "projected": ["note"],
        "local": False,
    }
