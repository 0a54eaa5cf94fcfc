"""Tables: created, described, deleted, given indexes and a TTL attribute."""

from __future__ import annotations

from typing import Any

from holdall.core.requests import (
    AddIndex,
    CreateTable,
    DeleteTable,
    DescribeTable,
    DescribeTtl,
    GetItem,
    RemoveIndex,
    Request,
    SetTtl,
)
from holdall.core.schema import IndexSchema, KeyAttribute, Projection, TableSchema
from holdall.core.values import encode_item
from holdall.errors import (
    ConfigurationError,
    IndexExistsError,
    IndexNotFoundError,
    TableExistsError,
    TableNotFoundError,
)
from holdall.testing.table_contract.check import Store, check, refused

BY_OWNER = IndexSchema("by-owner", KeyAttribute("owner"), KeyAttribute("rank", "N"))


@check()
async def a_table_is_described_as_it_was_made(store: Store) -> None:
    include = IndexSchema("by-team", KeyAttribute("team", "B"), None, Projection("INCLUDE", ("name",)))
    keys_only = IndexSchema("by-name", KeyAttribute("name"), None, Projection("KEYS_ONLY"))
    table = await store.table("N", "B", [BY_OWNER, include, keys_only])
    description = await store.send(DescribeTable(table))
    assert description.schema.partition == KeyAttribute("pk", "N")
    assert description.schema.sort == KeyAttribute("sk", "B")
    assert {index.name: index for index in description.schema.indexes} == {
        "by-owner": BY_OWNER,
        "by-team": include,
        "by-name": keys_only,
    }
    assert description.status == "ACTIVE"
    assert set(description.index_status.values()) == {"ACTIVE"}
    uncounted = await store.send(DescribeTable(table, counts=False))
    assert (uncounted.schema, uncounted.status) == (description.schema, description.status)
    assert uncounted.index_status == description.index_status


@check()
async def a_table_is_described_with_its_local_indexes(store: Store) -> None:
    keys_only = IndexSchema(
        "local-name", KeyAttribute("pk"), KeyAttribute("name"), Projection("KEYS_ONLY"), local=True
    )
    by_rank = IndexSchema("local-rank", KeyAttribute("pk"), KeyAttribute("rank", "N"), local=True)
    table = await store.table("S", "N", [BY_OWNER, keys_only, by_rank])
    description = await store.send(DescribeTable(table))
    assert {index.name: index for index in description.schema.indexes} == {
        "by-owner": BY_OWNER,
        "local-name": keys_only,
        "local-rank": by_rank,
    }
    assert set(description.index_status.values()) == {"ACTIVE"}


@check()
async def a_local_index_has_the_tables_partition_key_and_comes_with_the_table(store: Store) -> None:
    table = await store.table("S", "N")
    rank = KeyAttribute("rank", "N")
    local = IndexSchema("by-rank", KeyAttribute("pk"), rank, local=True)
    with refused(ConfigurationError):
        await store.send(AddIndex(table, local))
    pk, sk = KeyAttribute("pk"), KeyAttribute("sk", "N")
    for schema in (
        TableSchema("holdall-bad", pk, None, (local,)),
        TableSchema(
            "holdall-bad", pk, sk, (IndexSchema("by-rank", KeyAttribute("owner"), rank, local=True),)
        ),
        TableSchema("holdall-bad", pk, sk, (IndexSchema("by-rank", pk, None, local=True),)),
        TableSchema(
            "holdall-bad",
            pk,
            sk,
            tuple(IndexSchema(f"local-{n}", pk, KeyAttribute(f"k{n}"), local=True) for n in range(6)),
        ),
    ):
        with refused(ConfigurationError):
            await store.send(CreateTable(schema))


@check()
async def a_table_cannot_be_created_twice(store: Store) -> None:
    table = await store.table()
    with refused(TableExistsError):
        await store.send(CreateTable(TableSchema(table, KeyAttribute("pk"))))


@check()
async def a_missing_table_is_named(store: Store) -> None:
    requests: list[Request[Any]] = [DescribeTable("holdall-missing"), DeleteTable("holdall-missing")]
    for request in requests:
        with refused(TableNotFoundError) as refusal:
            await store.send(request)
        assert "holdall-missing" in str(refusal.error)
    with refused(TableNotFoundError):
        await store.send(GetItem("holdall-missing", encode_item({"pk": "a"})))


@check()
async def a_deleted_table_is_gone_with_its_items(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="a")
    await store.send(DeleteTable(table))
    with refused(TableNotFoundError):
        await store.get(table, pk="a")
    await store.send(CreateTable(TableSchema(table, KeyAttribute("pk"))))
    assert await store.get(table, pk="a") is None


@check()
async def an_invalid_name_of_a_table_or_index_is_refused(store: Store) -> None:
    table = await store.table()
    for name in ("ab", "with space", "ü" * 5, "x" * 256, ""):
        index = IndexSchema(name, KeyAttribute("owner"))
        refusable: list[Request[Any]] = [
            CreateTable(TableSchema(name, KeyAttribute("pk"))),
            DescribeTable(name),
            DeleteTable(name),
            GetItem(name, encode_item({"pk": "a"})),
            CreateTable(TableSchema("holdall-bad", KeyAttribute("pk"), indexes=(index,))),
            AddIndex(table, index),
        ]
        for request in refusable:
            with refused(ConfigurationError):
                await store.send(request)


@check()
async def a_definition_that_contradicts_itself_is_refused(store: Store) -> None:
    same = TableSchema("holdall-bad", KeyAttribute("pk"), KeyAttribute("pk"))
    two_types = TableSchema(
        "holdall-bad", KeyAttribute("pk"), indexes=(IndexSchema("index", KeyAttribute("pk", "N")),)
    )
    twice = TableSchema("holdall-bad", KeyAttribute("pk"), indexes=(BY_OWNER, BY_OWNER))
    for schema in (same, two_types, twice):
        with refused(ConfigurationError):
            await store.send(CreateTable(schema))


@check("add_index", "immediate_indexes")
async def an_index_added_later_holds_the_items_that_fit_it(store: Store) -> None:
    table = await store.table()
    await store.put(table, pk="fits", owner="ada", rank=1)
    await store.put(table, pk="no rank", owner="ada")
    await store.put(table, pk="wrong type", owner="ada", rank="first")
    description = await store.send(AddIndex(table, BY_OWNER))
    assert [index.name for index in description.schema.indexes] == ["by-owner"]
    await store.put(table, pk="later", owner="ada", rank=0)
    found = await store.query(table, "ada", by="owner", index="by-owner")
    assert [item["pk"] for item in found] == ["later", "fits"]


@check("add_index")
async def an_index_cannot_be_added_twice(store: Store) -> None:
    table = await store.table(indexes=[BY_OWNER])
    with refused(IndexExistsError):
        await store.send(AddIndex(table, BY_OWNER))


@check("remove_index")
async def a_removed_index_is_gone_and_the_items_stay(store: Store) -> None:
    by_name = IndexSchema("by-name", KeyAttribute("name"))
    table = await store.table(indexes=[BY_OWNER, by_name])
    await store.put(table, pk="a", owner="ada", rank=1, name="x")
    description = await store.send(RemoveIndex(table, "by-owner"))
    assert description.schema.indexes == (by_name,)
    assert (await store.send(DescribeTable(table))).schema.indexes == (by_name,)
    assert await store.get(table, pk="a") == {"pk": "a", "owner": "ada", "rank": 1, "name": "x"}
    await store.put(table, pk="b", owner=7, rank="no longer a key")
    with refused(IndexNotFoundError):
        await store.query(table, "ada", by="owner", index="by-owner")


@check("add_index", "remove_index", "immediate_indexes")
async def an_index_can_be_added_again_with_other_keys(store: Store) -> None:
    table = await store.table(indexes=[BY_OWNER])
    await store.put(table, pk="a", owner="ada", rank=1)
    await store.send(RemoveIndex(table, "by-owner"))
    await store.send(AddIndex(table, IndexSchema("by-owner", KeyAttribute("owner"))))
    assert [item["pk"] for item in await store.query(table, "ada", by="owner", index="by-owner")] == ["a"]


@check("remove_index")
async def only_a_global_index_that_exists_can_be_removed(store: Store) -> None:
    local = IndexSchema("local-rank", KeyAttribute("pk"), KeyAttribute("rank", "N"), local=True)
    table = await store.table("S", "N", [local])
    with refused(IndexNotFoundError):
        await store.send(RemoveIndex(table, "by-owner"))
    for unverified in (False, True):
        with refused(ConfigurationError):
            await store.send(RemoveIndex(table, "local-rank", unverified))
    with refused(TableNotFoundError):
        await store.send(RemoveIndex("holdall-missing", "by-owner"))


@check("ttl")
async def the_ttl_attribute_can_be_set_and_read(store: Store) -> None:
    table = await store.table()
    assert (await store.send(DescribeTtl(table))).attribute is None
    await store.send(SetTtl(table, "_ttl"))
    assert (await store.send(DescribeTtl(table))).attribute == "_ttl"


@check("ttl")
async def an_item_that_has_not_expired_stays(store: Store) -> None:
    table = await store.table()
    await store.send(SetTtl(table, "_ttl"))
    later = int(store.port.now().timestamp()) + 3600
    await store.put(table, pk="later", _ttl=later)
    await store.put(table, pk="text", _ttl="tomorrow")
    assert await store.get(table, pk="later") == {"pk": "later", "_ttl": later}
    assert await store.get(table, pk="text") == {"pk": "text", "_ttl": "tomorrow"}
