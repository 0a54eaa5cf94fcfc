"""Validation of queries and scans: key conditions, filters, projections, limits and start keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdall.core.expressions import (
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Exists,
    KeyCondition,
    Path,
    Size,
    path,
    value,
)
from holdall.core.requests import Query, Scan
from holdall.core.rules.page import check_page
from holdall.core.schema import IndexSchema, KeyAttribute, Projection, TableSchema
from holdall.core.values import encode, encode_item
from holdall.errors import IndexNotFoundError, InvalidExpressionError, InvalidKeyError, InvalidRequestError

SCHEMA = TableSchema(
    "orders",
    KeyAttribute("customer"),
    KeyAttribute("number", "N"),
    (
        IndexSchema("by_product", KeyAttribute("product"), KeyAttribute("placed_at")),
        IndexSchema("by_state", KeyAttribute("state"), None, Projection("KEYS_ONLY")),
        IndexSchema(
            "by_shop", KeyAttribute("shop", "B"), KeyAttribute("tag", "B"), Projection("INCLUDE", ("note",))
        ),
    ),
)
SIMPLE = TableSchema("simple", KeyAttribute("id"))

ADA = KeyCondition("customer", {"S": "ada"})
COFFEE = KeyCondition("product", {"S": "coffee"})
OPEN = KeyCondition("state", {"S": "open"})
SHOP = KeyCondition("shop", encode(b"\x01"))


def _with_sort(sort: Any) -> KeyCondition:
    return KeyCondition("customer", {"S": "ada"}, sort)


# --- key conditions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sort",
    [
        None,
        Compare("=", path("number"), value(1)),
        Compare("<", path("number"), value(1)),
        Compare("<=", path("number"), value(1)),
        Compare(">", path("number"), value(1)),
        Compare(">=", path("number"), value(1)),
        Between(path("number"), value(1), value(2)),
    ],
)
def test_a_query_has_a_partition_and_optionally_a_range(sort: Compare | Between | None) -> None:
    check_page(SCHEMA, Query("orders", _with_sort(sort)))


def test_a_range_can_be_a_prefix_of_a_string_or_binary_key() -> None:
    prefix = BeginsWith(path("placed_at"), value("2026"))
    check_page(SCHEMA, Query("orders", KeyCondition("product", {"S": "x"}, prefix), index="by_product"))
    prefix = BeginsWith(path("tag"), value(b"\x01"))
    check_page(SCHEMA, Query("orders", KeyCondition("shop", encode(b"x"), prefix), index="by_shop"))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (KeyCondition("number", {"N": "1"}), "number is not the partition key of orders"),
        (KeyCondition("product", {"S": "x"}), "product is not the partition key of orders"),
        (KeyCondition("customer", {"N": "1"}), r"of type string \(S\), not N"),
        (KeyCondition("customer", {"S": ""}), "customer of table orders is empty"),
        (KeyCondition("customer", {"S": "x" * 2049}), "2,049 bytes"),
        (_with_sort(Compare("=", path("note"), value(1))), "note is not the sort key"),
        (_with_sort(Compare("=", path("number", 0), value(1))), r"number\[0\] is not the sort key"),
        (_with_sort(Compare("=", value(1), path("number"))), "is not the sort key"),
        (_with_sort(Compare("=", Size(path("number")), value(1))), "is not the sort key"),
        (_with_sort(Compare("=", path("number"), value("1"))), r"of type number \(N\), not S"),
        (_with_sort(Between(path("number"), value("a"), value("b"))), r"of type number \(N\), not S"),
        (_with_sort(Exists(path("number"))), "is not the sort key"),
    ],
)
def test_a_key_condition_on_another_attribute_or_type_is_refused(key: KeyCondition, message: str) -> None:
    with pytest.raises(InvalidKeyError, match=message):
        check_page(SCHEMA, Query("orders", key))


@pytest.mark.parametrize(
    ("sort", "message"),
    [
        (Compare("<>", path("number"), value(1)), "cannot be queried with <>"),
        (Compare("=", path("number"), path("other")), "only with values"),
        (Compare("=", path("number"), Size(path("other"))), "only with values"),
        (Between(path("number"), value(1), path("other")), "only with values"),
        (Between(path("number"), value(2), value(1)), "upper bound of BETWEEN is below its lower"),
        (BeginsWith(path("number"), value("1")), "number is a number; begins_with needs text"),
    ],
)
def test_an_unsupported_range_is_refused(sort: Any, message: str) -> None:
    with pytest.raises(InvalidExpressionError, match=message):
        check_page(SCHEMA, Query("orders", _with_sort(sort)))


def test_a_table_without_a_sort_key_has_no_range() -> None:
    check_page(SIMPLE, Query("simple", KeyCondition("id", {"S": "x"})))
    with pytest.raises(InvalidKeyError, match="not the sort key of simple"):
        check_page(
            SIMPLE, Query("simple", KeyCondition("id", {"S": "x"}, Compare("=", path("s"), value("y"))))
        )


@pytest.mark.parametrize(("length", "fits"), [(0, False), (1, True), (1024, True), (1025, False)])
def test_the_bound_of_a_range_must_be_a_valid_sort_key(length: int, fits: bool) -> None:
    sort = Compare(">", path("placed_at"), value("x" * length))
    query = Query("orders", KeyCondition("product", {"S": "x"}, sort), index="by_product")
    if fits:
        check_page(SCHEMA, query)
    else:
        with pytest.raises(InvalidKeyError):
            check_page(SCHEMA, query)


def test_an_index_has_its_own_keys() -> None:
    check_page(SCHEMA, Query("orders", COFFEE, index="by_product"))
    with pytest.raises(InvalidKeyError, match="customer is not the partition key of by_product"):
        check_page(SCHEMA, Query("orders", ADA, index="by_product"))
    with pytest.raises(IndexNotFoundError, match="no index by_colour"):
        check_page(SCHEMA, Query("orders", COFFEE, index="by_colour"))


# --- limits, consistency and segments -------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_", [Query("orders", COFFEE, index="by_product"), Scan("orders", "by_product")]
)
def test_a_consistent_read_of_an_index_is_refused(request_: Query | Scan) -> None:
    check_page(SCHEMA, request_)
    with pytest.raises(InvalidRequestError, match="cannot be read with strong consistency"):
        check_page(SCHEMA, replace(request_, consistent=True))


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "5"])
def test_a_limit_must_be_a_whole_number_of_at_least_one(limit: Any) -> None:
    check_page(SCHEMA, Query("orders", ADA, limit=1))
    with pytest.raises(InvalidRequestError, match="limit must be a whole number"):
        check_page(SCHEMA, Query("orders", ADA, limit=limit))
    with pytest.raises(InvalidRequestError, match="limit must be a whole number"):
        check_page(SCHEMA, Scan("orders", limit=limit))


@pytest.mark.parametrize(
    ("segment", "segments", "fits"),
    [
        (0, 1, True),
        (3, 4, True),
        (999_999, 1_000_000, True),
        (4, 4, False),
        (-1, 4, False),
        (0, 0, False),
        (0, 1_000_001, False),
    ],
)
def test_the_segment_must_be_below_the_number_of_segments(segment: int, segments: int, fits: bool) -> None:
    scan = Scan("orders", segment=segment, segments=segments)
    if fits:
        check_page(SCHEMA, scan)
    else:
        with pytest.raises(InvalidRequestError, match=f"segment {segment} of {segments}"):
            check_page(SCHEMA, scan)


# --- filters and projections ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "filter",
    [
        Exists(path("customer")),
        Compare("=", path("note"), value("x")) & Compare(">", path("number"), value(1)),
        ~Exists(path("number")),
        Compare("=", Size(path("customer")), value(3)),
        Contains(path("note"), path("customer")),
    ],
)
def test_a_query_that_filters_on_its_key_is_refused(filter: Condition) -> None:
    with pytest.raises(InvalidExpressionError, match="is a key of orders and cannot be filtered on"):
        check_page(SCHEMA, Query("orders", ADA, filter=filter))
    check_page(SCHEMA, Scan("orders", filter=filter))
    check_page(SCHEMA, Query("orders", COFFEE, index="by_product", filter=filter))


@pytest.mark.parametrize("name", ["customer", "number", "product", "placed_at"])
def test_a_path_into_a_key_of_the_table_or_an_index_is_refused(name: str) -> None:
    for request in (
        Scan("orders", projection=(path(name, 0),)),
        Scan("orders", filter=Exists(path(name, "inner"))),
    ):
        with pytest.raises(InvalidExpressionError, match=f"leads into {name}, which is a key"):
            check_page(SCHEMA, request)


def test_a_query_of_an_index_that_filters_on_the_keys_of_the_index_is_refused() -> None:
    with pytest.raises(InvalidExpressionError, match="placed_at is a key of by_product"):
        check_page(SCHEMA, Query("orders", COFFEE, index="by_product", filter=Exists(path("placed_at"))))
    check_page(SCHEMA, Query("orders", ADA, filter=Exists(path("placed_at"))))


def test_the_expressions_of_a_page_are_checked() -> None:
    for bad in ({"filter": Exists(Path(()))}, {"projection": (path("a"), path("a", "b"))}):
        with pytest.raises(InvalidExpressionError):
            check_page(SCHEMA, Query("orders", ADA, **bad))
        with pytest.raises(InvalidExpressionError):
            check_page(SCHEMA, Scan("orders", **bad))


@pytest.mark.parametrize(
    ("index", "key", "held"),
    [
        ("by_product", COFFEE, {"anything", "note"}),
        ("by_state", OPEN, {"customer", "number", "state"}),
        ("by_shop", SHOP, {"customer", "number", "shop", "tag", "note"}),
    ],
)
def test_a_filter_or_projection_on_attributes_that_the_index_does_not_hold_is_refused(
    index: str, key: KeyCondition, held: set[str]
) -> None:
    for name in sorted(held):
        check_page(SCHEMA, Scan("orders", index, projection=(path(name),), filter=Exists(path(name))))
        check_page(SCHEMA, Query("orders", key, index, projection=(path(name),)))
    if index == "by_product":
        return
    with pytest.raises(
        InvalidExpressionError, match=f"projection uses price, which index {index} does not hold"
    ):
        check_page(SCHEMA, Query("orders", key, index, projection=(path("customer"), path("price", 0))))
    with pytest.raises(InvalidExpressionError, match="filter uses price"):
        check_page(SCHEMA, Scan("orders", index, filter=Exists(path("customer")) & Exists(path("price"))))


# --- start keys -----------------------------------------------------------------------------------------


def _start(**values: object) -> dict[str, Any]:
    return encode_item(values)


def test_a_page_can_start_after_a_key_of_the_table() -> None:
    check_page(SCHEMA, Query("orders", ADA, start_after=_start(customer="ada", number=1)))
    check_page(SCHEMA, Scan("orders", start_after=_start(customer="bob", number=1)))


def test_the_start_of_a_page_of_an_index_must_have_both_keys() -> None:
    start = _start(customer="ada", number=1, product="coffee", placed_at="2026")
    check_page(SCHEMA, Query("orders", COFFEE, "by_product", start_after=start))
    check_page(SCHEMA, Scan("orders", "by_product", start_after=start))
    with pytest.raises(InvalidKeyError, match=r"start_after must have .*, not customer, number"):
        check_page(SCHEMA, Scan("orders", "by_product", start_after=_start(customer="ada", number=1)))


@pytest.mark.parametrize(
    "start",
    [
        {},
        _start(customer="ada"),
        _start(customer="ada", number=1, extra="x"),
        _start(customer="ada", number="1"),
        _start(customer=1, number=1),
        _start(customer="", number=1),
    ],
)
def test_a_start_that_is_not_a_key_is_refused(start: dict[str, Any]) -> None:
    with pytest.raises(InvalidKeyError):
        check_page(SCHEMA, Scan("orders", start_after=start))
    with pytest.raises(InvalidKeyError):
        check_page(SCHEMA, Query("orders", ADA, start_after=start))


def test_the_start_of_a_query_must_be_in_the_range_of_its_key_condition() -> None:
    key = _with_sort(Between(path("number"), value(2), value(4)))
    for number in (2, 3, 4):
        check_page(SCHEMA, Query("orders", key, start_after=_start(customer="ada", number=number)))
    for outside in ({"customer": "ada", "number": 5}, {"customer": "bob", "number": 3}):
        with pytest.raises(InvalidKeyError, match="outside the range of the key condition"):
            check_page(SCHEMA, Query("orders", key, start_after=_start(**outside)))


def test_the_start_of_a_query_is_compared_by_value_and_not_by_spelling() -> None:
    schema = TableSchema("numbered", KeyAttribute("id", "N"))
    key = KeyCondition("id", {"N": "1.0"})
    check_page(schema, Query("numbered", key, start_after={"id": {"N": "1"}}))
