"""Local indexes: declared in every layout of an own table, made with the table, read with strong consistency."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from rig.behaviour import Db, awaiting, everywhere, in_memory
from rig.behaviour_models import arrange, expect_contention, meanwhile

from holdall import Database, Index, Key, Model, SortKey, Template, col, field
from holdall.core import BatchGet, CreateTable, KeyAttribute, Query, TableSchema, encode_item
from holdall.errors import ConfigurationError, InvalidFieldError, InvalidOptionsError, ModelDefinitionError

DAYS = [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 6)]


class Order(
    Model,
    table="orders",
    layout="plain",
    indexes=[
        Index("by_total", sort_key=["total"], local=True),
        Index("by_status", ["status"], include=["total"]),
        Index("by_day", sort_key=["day"], include=["status"], local=True),
    ],
):
    customer: Key[str]
    number: SortKey[int] = field(name="no")
    total: int | None = None
    status: str = "open"
    day: datetime | None = None


class Event(
    Model,
    table="events",
    layout=Template(
        pk="T#{tenant}",
        sk="E#{number:05d}",
        type="entity",
        local={"lsi1": "S#{status}#{at}", "lsi2": {"LSI2SK": "{at}"}},
    ),
    indexes=[Index("by_size", sort_key=["size"], local=True)],
):
    tenant: Key[str]
    number: SortKey[int]
    status: str | None = None
    at: datetime = field(default_factory=lambda: DAYS[0])
    size: int = 0


class Result(
    Model,
    table="results",
    indexes=[
        Index("bySeconds", sort_key=["seconds"], local=True),
        Index("byClub", sort_key=["club", "seconds"], local=True, sparse=True),
    ],
):
    race: Key[int]
    runner: SortKey[str]
    seconds: float
    club: str | None = None


async def list_rows(rows: Any, name: str) -> list[Any]:
    return [getattr(row, name) async for row in rows]


# --- queries ----------------------------------------------------------------------------------------------


@everywhere
async def test_a_query_uses_the_local_index_of_a_plain_table(db: Db) -> None:
    orders = [Order(customer="ada", number=n, total=total) for n, total in enumerate((5, 1, 3, None))]
    await arrange(db, *orders, Order(customer="bo", number=9, total=2))

    async def find(**options: Any) -> list[int]:
        return await list_rows(db.query(Order, index="by_total", customer="ada", **options), "number")

    assert await find() == [1, 2, 0]
    assert await find(sort=col(Order.total) >= 3, reverse=True) == [0, 2]
    assert await find(where=col(Order.status) == "gone") == []
    assert await find(where=Order.number > 1) == [2]
    async with db.transaction() as tx:
        (await tx.get_one(Order, customer="ada", number=1)).total = 9
        (await tx.get_one(Order, customer="ada", number=0)).total = None
    assert await find() == [2, 1]
    assert (await db.raw(Order.key(customer="ada", number=1)) or {}).keys() == {
        "customer",
        "no",
        "total",
        "status",
    }


@everywhere
async def test_conditions_can_use_the_tables_key_because_every_index_holds_it(db: Db) -> None:
    await arrange(db, *(Order(customer="ada", number=n, total=n, day=DAYS[n]) for n in range(3)))
    local = db.query(Order, index="by_day", customer="ada", where=Order.number >= 1)
    assert await list_rows(local, "number") == [1, 2]
    key = (Order.number < 2) & (Order.customer == "ada") & (col(Order.total) > 0)
    rows = db.query(Order, index="by_status", status="open", where=key)
    assert await list_rows(rows, "number") == [1]
    assert await rows.count() == 1
    with pytest.raises(InvalidFieldError, match="customer: it is part of the key of the index 'by_day'"):
        db.query(Order, index="by_day", customer="ada", where=Order.customer == "ada")


@everywhere
async def test_a_template_has_local_indexes_of_texts_and_of_fields(db: Db) -> None:
    await arrange(
        db,
        Event(tenant="a", number=1, status="new", at=DAYS[2], size=5),
        Event(tenant="a", number=2, status="new", at=DAYS[0], size=7),
        Event(tenant="a", number=3, at=DAYS[1], size=6),
    )
    stored = await db.raw(Event.key(tenant="a", number=1)) or {}
    assert {name: stored.get(name) for name in ("pk", "lsi1pk", "lsi1sk", "LSI2SK")} == {
        "pk": {"S": "T#a"},
        "lsi1pk": None,
        "lsi1sk": {"S": "S#new#2026-01-03T00:00:00.000000Z"},
        "LSI2SK": {"S": "2026-01-03T00:00:00.000000Z"},
    }
    assert "lsi1sk" not in (await db.raw(Event.key(tenant="a", number=3)) or {})

    async def find(index: str, **options: Any) -> list[int]:
        return await list_rows(db.query(Event, index=index, tenant="a", **options), "number")

    assert await find("lsi1", sort=col(Event.status) == "new") == [2, 1]
    assert await find("lsi2", sort=col(Event.at) >= DAYS[1]) == [3, 1]
    assert await find("by_size") == [1, 3, 2]
    async with db.transaction() as tx:
        tx.update(Event, {"tenant": "a", "number": 2, "at": DAYS[0], "status": "new"}, {"status": "old"})
    assert await find("lsi1", sort=col(Event.status) == "new") == [1]
    assert await find("lsi1", sort=col(Event.status).begins_with("o")) == [2]


@everywhere
async def test_a_table_in_the_ancestors_layout_has_local_indexes(db: Db) -> None:
    await arrange(
        db,
        Result(race=1, runner="Bo", seconds=61.5, club="b"),
        Result(race=1, runner="Ada", seconds=9.5, club="a"),
        Result(race=1, runner="Cy", seconds=30),
    )
    assert await list_rows(db.query(Result, index="bySeconds", race=1), "runner") == ["Ada", "Cy", "Bo"]
    assert await list_rows(db.query(Result, index="byClub", race=1), "runner") == ["Ada", "Bo"]
    found = db.query(Result, index="byClub", race=1, sort=(col(Result.club) == "b"))
    assert await list_rows(found, "seconds") == [61.5]


@everywhere
async def test_a_numeric_key_that_a_table_keeps_as_text_has_local_indexes(db: Db) -> None:
    indexes = [index.schema for index in Result._schema.indexes.values()]
    text = KeyAttribute("_id", "S")
    local = tuple(type(each)(each.name, text, each.sort, each.projection, True) for each in indexes)
    table = db.table_of(Result)
    await db.send(CreateTable(TableSchema(table, text, KeyAttribute("_sk"), local)))
    await arrange(db, Result(race=1, runner="Bo", seconds=2), Result(race=1, runner="Ada", seconds=1))
    assert await list_rows(db.query(Result, index="bySeconds", race=1), "runner") == ["Ada", "Bo"]


@everywhere
async def test_a_local_index_can_hold_a_part_of_each_item(db: Db) -> None:
    await arrange(db, Order(customer="ada", number=1, total=5, day=DAYS[0]))
    order = await db.query(Order, index="by_day", customer="ada").one()
    assert (order.number, order.day, order.status) == (1, DAYS[0], "open")
    with pytest.raises(InvalidFieldError, match="it was not fetched"):
        assert order.total


# --- consistency ------------------------------------------------------------------------------------------


@everywhere
async def test_a_local_index_is_read_with_strong_consistency_unless_the_caller_accepts_less(db: Db) -> None:
    await arrange(db, Order(customer="ada", number=1, total=5))
    for consistent, expected in ((None, True), (True, True), (False, False)):
        db.forget()
        await db.query(Order, index="by_total", customer="ada", consistent=consistent).all()
        (sent,) = (request for request in db.list_sent() if isinstance(request, Query))
        assert (sent.index, sent.consistent) == ("by_total", expected)


@in_memory
async def test_a_global_index_cannot_be_read_with_strong_consistency(db: Db) -> None:
    with pytest.raises(InvalidOptionsError, match="'by_status' cannot be read consistently") as caught:
        db.query(Order, index="by_status", status="open", consistent=True)
    assert "local index" in str(caught.value.hint)
    assert db.list_sent() == []


@everywhere
async def test_rows_of_a_local_index_are_locked_in_a_transaction(db: Db) -> None:
    await arrange(db, Order(customer="ada", number=1, total=5), Order(customer="ada", number=2, total=6))
    with expect_contention():
        async with db.transaction() as tx:
            totals = await list_rows(tx.query(Order, index="by_total", customer="ada"), "total")
            tx.create(Order, customer="bo", number=1, total=sum(totals))
            await meanwhile(db, Order.key(customer="ada", number=2), total=7)
    assert await db.get(Order, customer="bo", number=1) is None


@everywhere
async def test_a_transaction_that_runs_again_reads_the_local_index_strongly_and_not_the_table(db: Db) -> None:
    await arrange(db, Order(customer="ada", number=1, total=5))
    attempts = 0

    async def body(tx: Any) -> None:
        nonlocal attempts
        attempts += 1
        db.forget()
        rows = tx.query(Order, index="by_total", customer="ada", consistent=False)
        (total,) = await list_rows(rows, "total")
        tx.create_or_put(Order, {}, {"customer": "bo", "number": 1, "total": total})
        if attempts == 1:
            await meanwhile(db, Order.key(customer="ada", number=1), total=6)

    await db.run(body)
    assert (await db.get_one(Order, customer="bo", number=1)).total == 6
    (sent,) = (request for request in db.list_sent() if isinstance(request, Query))
    assert sent.consistent
    assert not [request for request in db.list_sent() if isinstance(request, BatchGet)]


@everywhere
async def test_items_found_by_a_local_index_can_all_be_changed(db: Db) -> None:
    await arrange(db, *(Order(customer="ada", number=n, total=n, day=DAYS[n]) for n in range(4)))
    await db.update_all(
        Order, {"status": "big"}, index="by_day", customer="ada", sort=col(Order.day) > DAYS[1]
    )
    assert await list_rows(db.query(Order, index="by_status", status="big"), "number") == [2, 3]


# --- tables -----------------------------------------------------------------------------------------------


@everywhere
async def test_an_existing_table_without_the_local_index_is_refused_with_its_definition(db: Db) -> None:
    table = db.table_of(Order)
    await db.send(CreateTable(TableSchema(table, KeyAttribute("customer"), KeyAttribute("no", "N"))))
    await arrange(db, Order(customer="ada", number=1, total=5))
    with pytest.raises(ConfigurationError, match="has no index by_total") as caught:
        await db.query(Order, index="by_total", customer="ada").all()
    hint = str(caught.value.hint)
    assert hint.startswith("a local index can only be created together with its table")
    assert '"LocalSecondaryIndexes"' in hint
    planned = (await db.table.plan(models=[Order])).to_dict()["tables"][0]
    assert {each["name"] for each in planned["wrong_indexes"]} == {"by_total", "by_day"}
    assert "LocalSecondaryIndexes" in planned["wrong_indexes"][0]["definition"]
    with pytest.raises(ConfigurationError, match=r"by_total of table .* cannot be added: a local index can"):
        await db.table.create(models=[Order])


@awaiting
async def test_an_index_of_the_other_kind_is_refused(db: Db) -> None:
    class Global(Model, table="orders", layout="plain", indexes=[Index("by_total", ["customer"], ["total"])]):
        customer: Key[str]
        number: SortKey[int] = field(name="no")
        total: int | None = None

    await arrange(db, Order(customer="ada", number=1, total=5))
    with pytest.raises(ConfigurationError, match=r"the index by_total of table .* is local"):
        await db.query(Global, index="by_total", customer="ada").all()
    with pytest.raises(ConfigurationError, match="declare the index by_total as local and as global"):
        await db.table.plan(models=[Order, Global])
    (planned,) = (await db.table.plan(models=[Global])).tables
    assert [each.problem for each in planned.wrong] == ["it is local, not global"]


@everywhere
async def test_create_makes_the_table_with_its_local_indexes(db: Db) -> None:
    plan = await db.table.plan(models=[Event])
    assert "missing     index lsi1: pk (S), lsi1sk (S); holds ALL; local; for Event" in plan.text()
    await db.table.create(models=[Event, Order, Result])
    assert (await db.table.plan(models=[Event, Order, Result])).ok


def test_the_template_of_a_table_has_its_local_indexes() -> None:
    import json

    with Database("memory:") as db:
        resources = json.loads(db.table.export(models=[Order]))["Resources"]
    properties = resources["OrdersTable"]["Properties"]
    assert [each["IndexName"] for each in properties["GlobalSecondaryIndexes"]] == ["by_status"]
    assert properties["LocalSecondaryIndexes"][1] == {
        "IndexName": "by_day",
        "KeySchema": [
            {"AttributeName": "customer", "KeyType": "HASH"},
            {"AttributeName": "day", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["status"]},
    }


@in_memory
async def test_an_item_of_another_program_without_the_attribute_is_not_in_the_index(db: Db) -> None:
    await arrange(db, Event(tenant="a", number=1, status="new"))
    other = encode_item({"pk": "T#a", "sk": "E#00002", "entity": "Event", "tenant": "a", "number": 2})
    from holdall.core import PutItem

    await db.send(PutItem(db.table_of(Event), other))
    assert await list_rows(db.query(Event, index="lsi1", tenant="a"), "number") == [1]
    assert await list_rows(db.query(Event, tenant="a"), "number") == [1, 2]


# --- refused declarations ---------------------------------------------------------------------------------


def test_a_model_of_the_shared_table_has_no_local_indexes() -> None:
    with pytest.raises(
        ModelDefinitionError, match=r"limit every partition of the table .* to 10 GB"
    ) as caught:

        class Shared(Model, indexes=[Index("by_n", sort_key=["n"], local=True)]):
            id: Key[str]
            at: SortKey[int]
            n: int

    assert str(caught.value.hint) == "remove local=True, or give the model its own table: table=..."


LOCAL = [Index(f"by_{number}", sort_key=["n"], local=True) for number in range(6)]


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        (LOCAL, "the index 'by_5': a table can have 5 local indexes, and these are 6"),
        (Index("by_n", local=True), "it has no sort key"),
        (Index("by_n", ["n"], ["at"], local=True), r"a local index has the key of its table \(id\)"),
        (Index("by_n", sort_key=["words"], local=True), "words is not stored as a string"),
        (
            Index("by_n", sort_key=["n", "at"], local=True),
            "the sort key of a local index can have 1 attribute, not 2",
        ),
        (Index("by_n", sort_key=["n"], local=True, slot=1), "slot= does not apply"),
    ],
)
def test_a_local_index_that_cannot_work_is_refused(index: Index | list[Index], problem: str) -> None:
    indexes = [index] if isinstance(index, Index) else index
    with pytest.raises(ModelDefinitionError, match=problem):

        class Wrong(Model, table="wrong", layout="plain", indexes=indexes):
            id: Key[str]
            at: SortKey[int]
            n: int
            words: list[str]


def test_a_table_without_a_sort_key_has_no_local_indexes() -> None:
    with pytest.raises(ModelDefinitionError, match="without a sort key cannot have local indexes"):

        class Wrong(
            Model, table="wrong", layout="plain", indexes=[Index("by_n", sort_key=["n"], local=True)]
        ):
            id: Key[str]
            n: int

    with pytest.raises(ModelDefinitionError, match="without a sort key cannot have local indexes"):
        Template(pk="{id}", local={"lsi1": "{n}"})
    with pytest.raises(ModelDefinitionError, match="the local index lsi1"):
        Template(pk="{id}", sk="{n}", local={"lsi1": {"a": "{n}", "b": "{n}"}})


def test_the_partition_key_can_be_repeated() -> None:
    class Fine(Model, table="fine", layout="plain", indexes=[Index("by_n", ["id"], ["n"], local=True)]):
        id: Key[str]
        at: SortKey[int]
        n: int

    assert Fine._schema.indexes["by_n"].schema.local
