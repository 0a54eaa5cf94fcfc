"""Secondary indexes, global and local: sparse, projected, ordered, and correct after every write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdall.core.expressions import (
    Add,
    BeginsWith,
    Between,
    Compare,
    Exists,
    KeyCondition,
    Remove,
    Set,
    Update,
    path,
    value,
)
from holdall.core.requests import (
    CreateTable,
    DescribeTable,
    PutItem,
    Query,
    Scan,
    UpdateItem,
)
from holdall.core.schema import IndexSchema, KeyAttribute, Projection, TableSchema
from holdall.core.values import decode_item, encode, encode_item
from holdall.errors import ConfigurationError, InvalidExpressionError, InvalidKeyError, InvalidRequestError
from holdall.testing.table_contract.check import Store, check, refused

BY_OWNER = IndexSchema("by-owner", KeyAttribute("owner"), KeyAttribute("rank", "N"))
KEYS_ONLY = IndexSchema("keys-only", KeyAttribute("owner"), None, Projection("KEYS_ONLY"))
BY_RANK = IndexSchema("by-rank", KeyAttribute("pk"), KeyAttribute("rank", "N"), local=True)
INCLUDE = IndexSchema("include", KeyAttribute("owner"), None, Projection("INCLUDE", ("color",)))


async def _list_owned(store: Store, table: str, owner: str = "ada") -> list[object]:
    return [item["pk"] for item in await store.query(table, owner, by="owner", index="by-owner")]


@check("immediate_indexes")
async def an_index_follows_every_kind_of_write(store: Store) -> None:
    table = await store.table(indexes=[BY_OWNER])
    await store.put(table, pk="a", owner="ada", rank=2)
    await store.put(table, pk="b", owner="ada", rank=1)
    assert await _list_owned(store, table) == ["b", "a"]
    await store.put(table, pk="b", owner="ada", rank=3)
    assert await _list_owned(store, table) == ["a", "b"]
    await store.update(table, {"pk": "a"}, Add(path("rank"), value(9)))
    assert await _list_owned(store, table) == ["b", "a"]
    await store.update(table, {"pk": "a"}, Set(path("owner"), value("bob")))
    assert await _list_owned(store, table) == ["b"]
    assert await _list_owned(store, table, "bob") == ["a"]
    await store.update(table, {"pk": "a"}, Remove(path("rank")))
    assert await _list_owned(store, table, "bob") == []
    await store.delete(table, pk="b")
    assert await _list_owned(store, table) == []
    update = UpdateItem(table, encode_item({"pk": "a"}), Update((Set(path("rank"), value(1)),)))
    put = PutItem(table, encode_item({"pk": "c", "owner": "bob", "rank": 0}))
    await store.transact(update, put)
    assert await _list_owned(store, table, "bob") == ["c", "a"]


@check("immediate_indexes")
async def an_index_shows_the_item_as_it_is_now(store: Store) -> None:
    table = await store.table(indexes=[BY_OWNER])
    await store.put(table, pk="a", owner="ada", rank=1, n=1)
    await store.update(table, {"pk": "a"}, Set(path("n"), value(2)))
    assert await store.query(table, "ada", by="owner", index="by-owner") == [
        {"pk": "a", "owner": "ada", "rank": 1, "n": 2}
    ]


@check("immediate_indexes")
async def items_without_the_keys_are_not_in_the_index(store: Store) -> None:
    table = await store.table(indexes=[BY_OWNER])
    await store.put(table, pk="both", owner="ada", rank=1)
    await store.put(table, pk="owner only", owner="ada")
    await store.put(table, pk="rank only", rank=1)
    assert await _list_owned(store, table) == ["both"]
    pages = await store.pages(Scan(table, index="by-owner"))
    assert [decode_item(item)["pk"] for page in pages for item in page.items] == ["both"]


@check()
async def index_keys_of_a_wrong_form_are_refused(store: Store) -> None:
    table = await store.table(indexes=[BY_OWNER])
    wrongs: list[dict[str, object]] = [{"owner": 1}, {"owner": ""}, {"rank": "1"}, {"owner": "x" * 2049}]
    for wrong in wrongs:
        with refused(InvalidKeyError):
            await store.put(table, pk="a", **wrong)
    await store.put(table, pk="a", owner="ada", rank=1)
    with refused(InvalidKeyError):
        await store.update(table, {"pk": "a"}, Set(path("rank"), value("1")))
    assert await store.get(table, pk="a") == {"pk": "a", "owner": "ada", "rank": 1}


@check("immediate_indexes")
async def projections_are_honoured(store: Store) -> None:
    table = await store.table(indexes=[KEYS_ONLY, INCLUDE])
    await store.put(table, pk="a", owner="ada", color="red", n=1)
    assert await store.query(table, "ada", by="owner", index="keys-only") == [{"pk": "a", "owner": "ada"}]
    assert await store.query(table, "ada", by="owner", index="include") == [
        {"pk": "a", "owner": "ada", "color": "red"}
    ]
    await store.update(table, {"pk": "a"}, Set(path("color"), value("blue")))
    assert await store.query(table, "ada", by="owner", index="include") == [
        {"pk": "a", "owner": "ada", "color": "blue"}
    ]


@check()
async def a_query_cannot_use_what_its_index_does_not_include(store: Store) -> None:
    table = await store.table(indexes=[INCLUDE])
    with refused(InvalidExpressionError):
        await store.query(table, "ada", by="owner", index="include", projection=(path("n"),))
    with refused(InvalidExpressionError):
        await store.query(table, "ada", by="owner", index="include", filter=Exists(path("n")))
    with refused(InvalidExpressionError):
        await store.query(table, "ada", by="owner", index="include", filter=Exists(path("owner")))
    with refused(InvalidRequestError):
        await store.query(table, "ada", by="owner", index="include", consistent=True)
    with refused(InvalidKeyError):
        await store.query(table, "ada", index="include")


@check("immediate_indexes")
async def equal_index_keys_page_without_gap_or_repetition(store: Store) -> None:
    table = await store.table("S", "N", indexes=[BY_OWNER])
    for number in range(9):
        await store.put(table, pk=f"p{number % 3}", sk=number, owner="ada", rank=number % 2)
    for reverse in (False, True):
        key = KeyCondition("owner", encode("ada"))
        query = Query(table, key, index="by-owner", limit=2, reverse=reverse)
        pages = await store.pages(query)
        found = [decode_item(item) for page in pages for item in page.items]
        assert [item["rank"] for item in found] == sorted((n % 2 for n in range(9)), reverse=reverse)
        assert sorted(item["sk"] for item in found) == list(range(9))
        last = pages[0].last_key
        assert last is not None
        assert last.keys() == {"pk", "sk", "owner", "rank"}


@check("immediate_indexes")
async def a_page_of_an_index_continues_where_a_deleted_item_was(store: Store) -> None:
    table = await store.table(indexes=[BY_OWNER])
    for pk in "abcd":
        await store.put(table, pk=pk, owner="ada", rank=1)
    key = KeyCondition("owner", encode("ada"))
    first = await store.send(Query(table, key, index="by-owner", limit=2))
    seen = [decode_item(item)["pk"] for item in first.items]
    await store.delete(table, pk=seen[-1])
    rest = await store.send(Query(table, key, index="by-owner", start_after=first.last_key))
    assert sorted(seen + [decode_item(item)["pk"] for item in rest.items]) == ["a", "b", "c", "d"]


@check("immediate_indexes")
async def index_ranges_work_like_the_tables(store: Store) -> None:
    table = await store.table(indexes=[BY_OWNER])
    for rank in (-1, 2, 10):
        await store.put(table, pk=f"r{rank}", owner="ada", rank=rank)
    above = Compare(">", path("rank"), value(-1))
    found = await store.query(table, "ada", above, by="owner", index="by-owner", reverse=True)
    assert [item["rank"] for item in found] == [10, 2]


@check("immediate_indexes")
async def an_index_can_be_scanned_in_segments(store: Store) -> None:
    table = await store.table(indexes=[BY_OWNER])
    for number in range(12):
        await store.put(table, pk=f"k{number}", owner=f"o{number % 5}", rank=number)
    found: list[int] = []
    for segment in range(3):
        scan = Scan(table, index="by-owner", limit=2, segment=segment, segments=3)
        found += [decode_item(item)["rank"] for page in await store.pages(scan) for item in page.items]
    assert sorted(found) == list(range(12))


@check("capacity", "immediate_indexes")
async def index_writes_and_reads_are_billed(store: Store) -> None:
    table = await store.table(indexes=[KEYS_ONLY])
    put = PutItem(table, encode_item({"pk": "a", "owner": "ada", "text": "x" * 3000}))
    assert (await store.send(put)).capacity == 4
    key = KeyCondition("owner", encode("ada"))
    assert (await store.send(Query(table, key, index="keys-only"))).capacity == 0.5


# --- local indexes ----------------------------------------------------------------------------------------


@check()
async def a_local_index_orders_a_partition_by_another_attribute(store: Store) -> None:
    table = await store.table("S", "N", indexes=[BY_RANK])
    for number, rank in enumerate((10, -1, 2, 2)):
        await store.put(table, pk="a", sk=number, rank=rank)
    await store.put(table, pk="a", sk=9)
    await store.put(table, pk="b", sk=0, rank=5)
    found = await store.query(table, "a", index="by-rank", consistent=True)
    assert [(item["rank"], item["sk"]) for item in found] == [(-1, 1), (2, 2), (2, 3), (10, 0)]
    above = Compare(">", path("rank"), value(2))
    found = await store.query(table, "a", above, index="by-rank", consistent=True)
    assert [item["sk"] for item in found] == [0]


@check()
async def a_local_index_shows_a_write_at_once_if_it_is_read_consistently(store: Store) -> None:
    table = await store.table("S", "N", indexes=[BY_RANK])

    async def ranks() -> list[int]:
        found = await store.query(table, "a", index="by-rank", consistent=True)
        return [item["rank"] for item in found]

    await store.put(table, pk="a", sk=0, rank=1)
    assert await ranks() == [1]
    await store.update(table, {"pk": "a", "sk": 0}, Set(path("rank"), value(2)))
    assert await ranks() == [2]
    await store.update(table, {"pk": "a", "sk": 0}, Remove(path("rank")))
    assert await ranks() == []


@check()
async def pages_of_a_local_index_have_neither_gap_nor_repetition(store: Store) -> None:
    table = await store.table("S", "N", indexes=[BY_RANK])
    for number in range(7):
        await store.put(table, pk="a", sk=number, rank=number % 2)
    for reverse in (False, True):
        key = KeyCondition("pk", encode("a"))
        query = Query(table, key, index="by-rank", limit=2, reverse=reverse, consistent=True)
        pages = await store.pages(query)
        found = [decode_item(item) for page in pages for item in page.items]
        assert [item["rank"] for item in found] == sorted((n % 2 for n in range(7)), reverse=reverse)
        assert sorted(item["sk"] for item in found) == list(range(7))
        last = pages[0].last_key
        assert last is not None
        assert last.keys() == {"pk", "sk", "rank"}


@check()
async def a_key_of_a_local_index_has_its_type(store: Store) -> None:
    table = await store.table("S", "N", indexes=[BY_RANK])
    with refused(InvalidKeyError):
        await store.put(table, pk="a", sk=0, rank="first")


# --- keys of several attributes ---------------------------------------------------------------------------

BY_PLACE = IndexSchema(
    "by-place",
    KeyAttribute("country"),
    KeyAttribute("people", "N"),
    more_partition=(KeyAttribute("zone", "N"),),
    more_sort=(KeyAttribute("city"), KeyAttribute("mark", "B")),
)
ROWS = [
    (people, city, mark) for people in (-1, 2, 10) for city in ("a", "a\0", "ab") for mark in (b"\0", b"\xff")
]


async def _put_places(store: Store) -> str:
    table = await store.table("N", None, [BY_PLACE])
    for number, (people, city, mark) in enumerate(reversed(ROWS)):
        await store.put(table, pk=number, country="ch", zone=1, people=people, city=city, mark=mark)
    await store.put(table, pk=100, country="ch", zone=2, people=1, city="z", mark=b"z")
    await store.put(table, pk=101, country="c", zone=11, people=1, city="z", mark=b"z")
    await store.put(table, pk=102, country="ch", zone=1, people=1, city="no mark")
    return table


async def _list_places(
    store: Store, table: str, *fixed: object, sort: Any = None, **options: Any
) -> list[Any]:
    names = [key.name for key in BY_PLACE.keys]
    values = [encode(each) for each in ("ch", 1, *fixed)]
    also = tuple(zip(names[1:], values[1:], strict=False))
    query = Query(table, KeyCondition("country", values[0], sort, also), index="by-place", **options)
    pages = await store.pages(query)
    items = [decode_item(item) for page in pages for item in page.items]
    return [(item["people"], item["city"], item["mark"]) for item in items]


@check("multi_attribute_keys")
async def a_table_is_described_with_keys_of_several_attributes(store: Store) -> None:
    table = await store.table("S", "N", [BY_PLACE])
    assert (await store.send(DescribeTable(table))).schema.indexes == (BY_PLACE,)


@check("multi_attribute_keys", "immediate_indexes")
async def attributes_of_a_sort_key_order_one_after_the_other(store: Store) -> None:
    table = await _put_places(store)
    assert await _list_places(store, table) == ROWS
    assert await _list_places(store, table, reverse=True) == ROWS[::-1]


@check("multi_attribute_keys", "immediate_indexes")
async def the_first_attributes_of_a_sort_key_are_fixed_and_the_next_one_has_a_range(store: Store) -> None:
    table = await _put_places(store)

    async def agree(fixed: tuple[object, ...], sort: Any, expected: Callable[[Any], bool]) -> None:
        wanted = [row for row in ROWS if row[: len(fixed)] == fixed and expected(row)]
        assert await _list_places(store, table, *fixed, sort=sort) == wanted

    people, city, mark = path("people"), path("city"), path("mark")
    await agree((), Compare("=", people, value(2)), lambda row: row[0] == 2)
    await agree((), Compare("<", people, value(2)), lambda row: row[0] < 2)
    await agree((), Compare("<=", people, value(2)), lambda row: row[0] <= 2)
    await agree((), Compare(">", people, value(2)), lambda row: row[0] > 2)
    await agree((), Between(people, value(-1), value(2)), lambda row: row[0] <= 2)
    await agree((2,), None, lambda row: True)
    await agree((2,), Compare("=", city, value("a")), lambda row: row[1] == "a")
    await agree((2,), Compare(">", city, value("a")), lambda row: row[1] > "a")
    await agree((2,), Compare("<=", city, value("a\0")), lambda row: row[1] <= "a\0")
    await agree((2,), BeginsWith(city, value("a")), lambda row: True)
    await agree((2,), BeginsWith(city, value("a\0")), lambda row: row[1] == "a\0")
    await agree((2, "a"), Compare(">=", mark, value(b"\x01")), lambda row: row[2] == b"\xff")
    await agree((2, "a"), BeginsWith(mark, value(b"\xff")), lambda row: row[2] == b"\xff")
    await agree((2, "a", b"\0"), None, lambda row: True)


@check("multi_attribute_keys", "immediate_indexes")
async def pages_of_an_index_with_keys_of_several_attributes_fit_together(store: Store) -> None:
    table = await _put_places(store)
    for reverse in (False, True):
        found = await _list_places(store, table, 2, sort=None, limit=2, reverse=reverse)
        wanted = [row for row in ROWS if row[0] == 2]
        assert found == (wanted[::-1] if reverse else wanted)


@check("multi_attribute_keys")
async def a_key_condition_has_all_attributes_of_a_partition_and_no_gap(store: Store) -> None:
    table = await store.table("N", None, [BY_PLACE])
    ch, one = encode("ch"), encode(1)
    for key in (
        KeyCondition("country", ch),
        KeyCondition("zone", one, None, (("country", ch),)),
        KeyCondition("country", ch, Compare("=", path("city"), value("a")), (("zone", one),)),
        KeyCondition("country", ch, None, (("zone", one), ("city", encode("a")))),
        KeyCondition("country", ch, None, (("zone", encode("one")),)),
    ):
        with refused(InvalidKeyError):
            await store.send(Query(table, key, index="by-place"))


@check()
async def a_key_has_at_most_four_attributes(store: Store) -> None:
    five = tuple(KeyAttribute(f"k{number}") for number in range(5))
    pk, sk = KeyAttribute("pk"), KeyAttribute("sk")
    for index in (
        IndexSchema("by-five", five[0], more_partition=five[1:]),
        IndexSchema("by-five", pk, five[0], more_sort=five[1:]),
        IndexSchema("by-twice", pk, sk, more_sort=(pk,)),
        IndexSchema("by-local", pk, five[0], local=True, more_sort=five[1:2]),
    ):
        with refused(ConfigurationError):
            await store.send(CreateTable(TableSchema("holdall-bad", pk, sk, (index,))))
