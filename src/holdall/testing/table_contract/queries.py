"""Queries: one partition, in DynamoDB's order, page by page."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from holdall.core.expressions import (
    BeginsWith,
    Between,
    Compare,
    Exists,
    KeyCondition,
    path,
    value,
)
from holdall.core.requests import Query
from holdall.core.values import decode_item, encode, encode_item
from holdall.errors import IndexNotFoundError, InvalidExpressionError, InvalidKeyError, InvalidRequestError
from holdall.testing.table_contract.check import Store, check, refused

NUMBERS = [
    Decimal("-1E+100"),
    -300,
    -100,
    -99,
    Decimal("-1.5"),
    -1,
    Decimal("-1E-100"),
    0,
    Decimal("1E-100"),
    Decimal("0.99"),
    1,
    9,
    10,
    Decimal("10.5"),
    99,
    100,
    Decimal("1E+100"),
]
STRINGS = ["!", "0", "10", "9", "A", "Z", "a", "aa", "a\u0301", "b", "é", "\uffff", "😀"]
BINARIES = [b"\x00", b"\x00\x00", b"\x01", b"a", b"\x7f", b"\x80", b"\xff", b"\xff\x00"]


async def _sorts(store: Store, kind: Any, expected: list[Any]) -> None:
    table = await store.table("S", kind)
    for member in reversed(expected):
        await store.put(table, pk="p", sk=member)
        await store.put(table, pk="other", sk=member)
    found = [item["sk"] for item in await store.query(table, "p")]
    assert found == expected
    backwards = [item["sk"] for item in await store.query(table, "p", reverse=True)]
    assert backwards == expected[::-1]


@check()
async def numbers_sort_by_value(store: Store) -> None:
    await _sorts(store, "N", NUMBERS)


@check()
async def strings_sort_by_their_utf8_bytes(store: Store) -> None:
    await _sorts(store, "S", sorted(STRINGS, key=str.encode))


@check()
async def binaries_sort_by_unsigned_bytes(store: Store) -> None:
    await _sorts(store, "B", sorted(BINARIES))


@check()
async def every_range_of_the_sort_key_can_be_queried(store: Store) -> None:
    table = await store.table("S", "N")
    for number in (-1, 0, 1, 2, 10):
        await store.put(table, pk="p", sk=number)
    sk = path("sk")
    expected = {
        Compare("=", sk, value(2)).comparator: ([2], Compare("=", sk, value(2))),
        "<": ([-1, 0, 1], Compare("<", sk, value(2))),
        "<=": ([-1, 0, 1, 2], Compare("<=", sk, value(2))),
        ">": ([10], Compare(">", sk, value(2))),
        ">=": ([2, 10], Compare(">=", sk, value(2))),
        "between": ([0, 1, 2], Between(sk, value(0), value(Decimal("2.5")))),
        "none": ([], Compare(">", sk, value(10))),
    }
    for name, (numbers, condition) in expected.items():
        found = [item["sk"] for item in await store.query(table, "p", condition)]
        assert found == numbers, name
        backwards = [item["sk"] for item in await store.query(table, "p", condition, reverse=True)]
        assert backwards == numbers[::-1], name


@check()
async def a_prefix_of_the_sort_key_can_be_queried(store: Store) -> None:
    table = await store.table("S", "S")
    for text in ("2025-12", "2026", "2026-01", "2026-02", "2027", "\uffff", "\U0010ffff", "\U0010ffffx"):
        await store.put(table, pk="p", sk=text)
    found = await store.query(table, "p", BeginsWith(path("sk"), value("2026")))
    assert [item["sk"] for item in found] == ["2026", "2026-01", "2026-02"]
    found = await store.query(table, "p", BeginsWith(path("sk"), value("\U0010ffff")))
    assert [item["sk"] for item in found] == ["\U0010ffff", "\U0010ffffx"]
    binary = await store.table("S", "B")
    for raw in (b"\xfe", b"\xff", b"\xff\xff", b"\xff\xff\x00"):
        await store.put(binary, pk="p", sk=raw)
    found = await store.query(binary, "p", BeginsWith(path("sk"), value(b"\xff\xff")))
    assert [item["sk"] for item in found] == [b"\xff\xff", b"\xff\xff\x00"]


@check()
async def pages_follow_each_other_without_gap_or_repetition(store: Store) -> None:
    table = await store.table("S", "N")
    for number in range(10):
        await store.put(table, pk="p", sk=number)
    for reverse in (False, True):
        query = Query(table, KeyCondition("pk", encode("p")), limit=3, reverse=reverse)
        pages = await store.pages(query)
        assert [page.count for page in pages][:3] == [3, 3, 3]
        assert all(page.scanned <= 3 for page in pages)
        found = [decode_item(item)["sk"] for page in pages for item in page.items]
        assert found == sorted(range(10), reverse=reverse)
        last = pages[0].last_key
        assert last == encode_item({"pk": "p", "sk": 7 if reverse else 2})


@check()
async def a_page_continues_where_a_deleted_item_was(store: Store) -> None:
    table = await store.table("S", "N")
    for number in range(4):
        await store.put(table, pk="p", sk=number)
    key = KeyCondition("pk", encode("p"))
    first = await store.send(Query(table, key, limit=2, consistent=True))
    await store.delete(table, pk="p", sk=1)
    second = await store.send(Query(table, key, start_after=first.last_key, consistent=True))
    assert [decode_item(item)["sk"] for item in second.items] == [2, 3]
    assert second.last_key is None


@check()
async def a_filter_works_after_the_limit(store: Store) -> None:
    table = await store.table("S", "N")
    for number in range(6):
        await store.put(table, pk="p", sk=number, odd=bool(number % 2))
    odd = Compare("=", path("odd"), value(True))
    page = await store.send(Query(table, KeyCondition("pk", encode("p")), filter=odd, limit=4))
    assert (page.count, page.scanned) == (2, 4)
    assert [decode_item(item)["sk"] for item in page.items] == [1, 3]
    assert page.last_key == encode_item({"pk": "p", "sk": 3})


@check()
async def a_page_ends_after_a_megabyte_before_filters(store: Store) -> None:
    table = await store.table("S", "N")
    for number in range(5):
        await store.put(table, pk="p", sk=number, blob="x" * 300_000)
    page = await store.send(Query(table, KeyCondition("pk", encode("p")), filter=Exists(path("missing"))))
    assert (page.count, page.scanned, page.items) == (0, 4, ())
    assert page.last_key == encode_item({"pk": "p", "sk": 3})


@check()
async def a_page_that_ends_with_the_data_is_the_last_one(store: Store) -> None:
    table = await store.table("S", "N")
    for number in range(4):
        await store.put(table, pk="p", sk=number, blob="x" * 300_000)
    page = await store.send(Query(table, KeyCondition("pk", encode("p"))))
    assert (page.count, page.last_key) == (4, None)


@check()
async def a_count_returns_no_items(store: Store) -> None:
    table = await store.table("S", "N")
    for number in range(5):
        await store.put(table, pk="p", sk=number)
    page = await store.send(Query(table, KeyCondition("pk", encode("p")), count_only=True))
    assert (page.count, page.items, page.last_key) == (5, (), None)


@check()
async def a_query_can_be_projected(store: Store) -> None:
    table = await store.table("S", "N")
    await store.put(table, pk="p", sk=1, m={"x": 1, "y": 2}, n=1)
    projection = (path("m", "x"), path("sk"))
    assert await store.query(table, "p", projection=projection) == [{"m": {"x": 1}, "sk": 1}]


@check()
async def an_empty_partition_is_one_empty_page(store: Store) -> None:
    table = await store.table("S", "S")
    pages = await store.pages(Query(table, KeyCondition("pk", encode("nobody"))))
    assert [(page.items, page.count, page.last_key) for page in pages] == [((), 0, None)]


@check()
async def a_table_without_sort_key_can_be_queried(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="p", n=1)
    assert await store.query(table, "p") == [{"pk": "p", "n": 1}]


@check()
async def invalid_queries_are_refused(store: Store) -> None:
    table = await store.table("S", "N")
    sk = path("sk")
    with refused(InvalidKeyError):
        await store.query(table, "p", by="sk")
    with refused(InvalidKeyError):
        await store.query(table, 5)
    with refused(InvalidKeyError):
        await store.query(table, "p", Compare("=", path("other"), value(1)))
    with refused(InvalidKeyError):
        await store.query(table, "p", Compare("=", sk, value("1")))
    with refused(InvalidExpressionError):
        await store.query(table, "p", Compare("<>", sk, value(1)))
    with refused(InvalidRequestError):
        await store.query(table, "p", BeginsWith(sk, value("1")))
    with refused(InvalidExpressionError):
        await store.query(table, "p", filter=Compare("=", path("pk"), value("p")))
    with refused(InvalidRequestError):
        await store.query(table, "p", limit=0)
    with refused(IndexNotFoundError):
        await store.query(table, "p", index="by-nobody")
    with refused(InvalidKeyError):
        await store.query(table, "p", start_after=encode_item({"pk": "p"}))
    with refused(InvalidKeyError):
        await store.query(table, "p", start_after=encode_item({"pk": "other", "sk": 1}))
    with refused(InvalidExpressionError):
        await store.query(table, "p", projection=(path("m"), path("m", "x")))


@check("capacity")
async def a_query_costs_the_sum_of_what_it_read(store: Store) -> None:
    table = await store.table("S", "N")
    for number in range(10):
        await store.put(table, pk="p", sk=number, text="x" * 1000)
    key = KeyCondition("pk", encode("p"))
    assert (await store.send(Query(table, key))).capacity == 1.5
    assert (await store.send(Query(table, key, consistent=True, count_only=True))).capacity == 3
    assert (await store.send(Query(table, key, limit=1))).capacity == 0.5
