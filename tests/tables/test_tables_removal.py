"""Removing indexes: by name, never one that a model needs, while other processes may do the same."""

from __future__ import annotations

import asyncio

import pytest
from tables_rig import STORES, ScriptedStore, open_databases, settings, table_on

from holdall import AsyncDatabase, Database, Index, Key, Model, SortKey
from holdall.core import AddIndex, CreateTable, IndexSchema, KeyAttribute, RemoveIndex, TableSchema
from holdall.errors import (
    ConfigurationError,
    IndexNotFoundError,
    OutcomeUnknown,
    TableExistsError,
    TableNotFoundError,
)
from holdall.tables.definition import plan_schema

SPARE = IndexSchema("spare", KeyAttribute("x"))


class Order(Model, indexes=[Index("by_product", key=["product"])]):
    number: Key[int]
    product: str


class Payout(
    Model,
    table="Payouts",
    indexes=[Index("byAdmin", ["admin"]), Index("byTurn", sort_key=["admin"], local=True)],
):
    player: Key[str]
    turn: SortKey[int]
    admin: str


class NewPayout(Model, table="Payouts", name="Payout"):
    player: Key[str]
    turn: SortKey[int]
    admin: str


@pytest.mark.parametrize("store", STORES)
def test_an_index_that_no_model_needs_is_removed_and_the_items_stay(store: str) -> None:
    with open_databases(store) as (db,):
        db.table.create(models=[Order, Payout])
        with db.transaction() as tx:
            tx.create(Payout, player="ada", turn=1, admin="bo")
        assert db.query(Payout, index="byAdmin", admin="bo").count() == 1
        (unused,) = db.table.plan(models=[NewPayout]).tables
        assert {index.name for index in unused.unused} == {"byAdmin", "byTurn"}
        removed = db.table.remove_index("byAdmin", table="Payouts", models=[NewPayout])
        assert removed == Payout._schema.indexes["byAdmin"].schema
        (left,) = db.table.plan(models=[NewPayout]).tables
        assert [index.name for index in left.unused] == ["byTurn"]
        assert db.get_one(Payout, player="ada", turn=1).admin == "bo"
        with pytest.raises(ConfigurationError, match="has no index byAdmin"):
            db.query(Payout, index="byAdmin", admin="bo").all()
        assert db.table.remove_index("byAdmin", table="Payouts") is None


def test_an_index_that_is_needed_is_not_removed() -> None:
    with Database("memory:") as db:
        db.table.create(models=[Order, Payout])
        with pytest.raises(
            ConfigurationError, match="index gsi1 of table holdall was not removed: Order needs it"
        ):
            db.table.remove_index("gsi1", models=[Order, Payout])
        with pytest.raises(
            ConfigurationError, match="byAdmin of table Payouts was not removed: Payout needs it"
        ):
            db.table.remove_index("byAdmin", table="Payouts", models=[Payout])
        with pytest.raises(
            ConfigurationError, match="byTurn of table Payouts is local and cannot be removed"
        ):
            db.table.remove_index("byTurn", table="Payouts")
        assert db.table.plan(models=[Order, Payout]).ok
        assert db.table.remove_index("byAdmin") is None, "another table has it"


def test_the_index_of_a_table_with_a_numeric_sort_key_is_not_removed() -> None:
    with Database("memory:") as db:
        db.table.create(mode="B")
        with pytest.raises(ConfigurationError, match="Holdall lists attachments and jobs by it"):
            db.table.remove_index("active_storage_index")


def test_a_dry_run_removes_nothing() -> None:
    with Database("memory:") as db:
        db.table.create(models=[Order])
        found = db.table.remove_index("gsi1", dry_run=True)
        assert found is not None
        assert found.name == "gsi1"
        assert db.table.plan(models=[Order]).ok


def test_the_error_for_a_missing_table_names_it() -> None:
    with (
        Database("memory:", table_prefix="test-") as db,
        pytest.raises(TableNotFoundError, match="test-Payouts"),
    ):
        db.table.remove_index("byAdmin", table="Payouts")


def test_async_code_removes_an_index_in_the_same_way() -> None:
    async def remove() -> None:
        async with AsyncDatabase("memory:") as db:
            await db.table.create(models=[Order])
            removed = await db.table.remove_index("gsi1")
            assert removed is not None
            assert not (await db.table.plan(models=[Order])).ok

    asyncio.run(remove())


# --- other processes --------------------------------------------------------------------------------------


def make_store() -> ScriptedStore:
    store = ScriptedStore()
    schema = plan_schema(settings())
    store.inner.send_blocking(CreateTable(TableSchema(schema.name, schema.partition, schema.sort, (SPARE,))))
    return store


def test_remove_index_waits_while_another_process_changes_the_table() -> None:
    store = make_store()
    table, port = table_on(store)
    store.script(RemoveIndex, TableExistsError("being updated"))
    assert table.remove_index("spare") == SPARE
    assert store.sent["RemoveIndex"] == 2
    assert len(port.slept) == 1
    store.close()


def test_two_processes_can_remove_the_same_index() -> None:
    store = make_store()
    table, _ = table_on(store)

    def overtake(request: RemoveIndex) -> None:
        store.inner.send_blocking(request)
        raise IndexNotFoundError("another process was faster")

    store.script(RemoveIndex, overtake)
    assert table.remove_index("spare") == SPARE
    assert table.remove_index("spare") is None
    store.close()


def test_after_an_unknown_outcome_remove_index_checks_the_table_and_does_not_repeat() -> None:
    store = make_store()
    table, _ = table_on(store)

    def lose_reply(request: RemoveIndex) -> None:
        store.inner.send_blocking(request)
        raise OutcomeUnknown("the reply was lost")

    store.script(RemoveIndex, lose_reply)
    assert table.remove_index("spare") == SPARE
    store.inner.send_blocking(AddIndex("app", SPARE))
    store.script(RemoveIndex, OutcomeUnknown("the request was lost"))
    with pytest.raises(OutcomeUnknown):
        table.remove_index("spare")
    assert store.sent["RemoveIndex"] == 2
    store.close()
