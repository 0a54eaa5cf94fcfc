"""Creating, deleting, describing: creates only what is missing, drops nothing, tolerates other processes."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from rig.recorder import Recorder
from tables_rig import INDEX, ScriptedStore, settings, table_on

from holdall import AsyncDatabase, Database, Index, Key, Model
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import (
    AddIndex,
    CreateTable,
    DeleteTable,
    DescribeTable,
    DescribeTtl,
    GetItem,
    IndexSchema,
    KeyAttribute,
    PutItem,
    SetTtl,
    TableSchema,
)
from holdall.errors import (
    ConfigurationError,
    IndexExistsError,
    InvalidRequestError,
    OutcomeUnknown,
    ServiceUnavailableError,
    TableExistsError,
    TableNotFoundError,
)
from holdall.tables.definition import plan_index, plan_schema
from holdall.tables.demand import plan_tables
from holdall.tables.flow import PATIENCE
from holdall.tables.provision import in_flux, next_step

NUMERIC = TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk", "N"))


# --- planned tables ---


def test_the_planned_table_has_string_keys_and_default_names() -> None:
    assert plan_schema(settings()) == TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk"))


def test_the_planned_table_of_mode_b_has_a_numeric_sort_key_and_the_index() -> None:
    assert plan_schema(settings(), "B") == replace(NUMERIC, indexes=(INDEX,))


def test_the_planned_names_are_those_in_the_settings() -> None:
    chosen = settings(
        partition_key="h", sort_key="r", index_name="mine", index_partition_key="mh", index_sort_key="mr"
    )
    mine = IndexSchema("mine", KeyAttribute("mh"), KeyAttribute("mr"))
    assert plan_schema(chosen, "B") == TableSchema("app", KeyAttribute("h"), KeyAttribute("r", "N"), (mine,))


@pytest.mark.parametrize("setting", ["partition_key", "sort_key", "index_partition_key", "index_sort_key"])
def test_a_table_with_a_reserved_name_is_refused(setting: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{setting} is 'as_entity'"):
        plan_schema(settings(**{setting: "as_entity"}), "B")


def test_a_table_that_fits_needs_no_step() -> None:
    store = ScriptedStore()
    for schema in (plan_schema(settings()), plan_schema(settings(table_name="other"), "B")):
        made = store.send_blocking(CreateTable(schema))
        chosen = settings(table_name=schema.name)
        (wanted,) = plan_tables(chosen, ())
        assert next_step(wanted, made, chosen) is None
        assert in_flux(made, indexes=True) is None
    store.close()


# --- create ---


def test_create_makes_the_table_with_its_expiry_and_returns_its_description() -> None:
    with Database("memory:", table_name="app") as db:
        made = db.table.create()
        assert made == db.send(DescribeTable("app"))
        assert made.schema == plan_schema(settings())
        assert db.send(DescribeTtl("app")).attribute == "_ttl"


def test_create_makes_a_table_of_mode_b_on_request() -> None:
    with Database("memory:", table_name="app") as db:
        db.table.create(mode="B")
        assert db.table.layout().mode == "B"


def test_creating_again_changes_nothing() -> None:
    store = ScriptedStore()
    table, port = table_on(store)
    first = table.create()
    store.send_blocking(PutItem("app", {"pk": {"S": "a"}, "sk": {"S": "b"}}))
    second = table.create()
    assert (first.schema, second.item_count) == (second.schema, 1)
    assert store.sent["CreateTable"] == 1
    assert store.sent["SetTtl"] == 1
    assert port.slept == []
    table.delete()
    store.close()


def test_create_adds_only_the_index_to_a_table_with_a_numeric_sort_key() -> None:
    store = ScriptedStore()
    store.send_blocking(CreateTable(NUMERIC))
    store.send_blocking(PutItem("app", {"pk": {"S": "mine"}, "sk": {"N": "7"}}))
    table, _ = table_on(store)
    assert table.create().schema.indexes == (INDEX,)
    stored = store.send_blocking(GetItem("app", {"pk": {"S": "mine"}, "sk": {"N": "7"}}))
    assert stored.item is not None
    assert store.sent["AddIndex"] == 1
    store.close()


def test_an_existing_expiry_is_kept() -> None:
    with Database("memory:", table_name="app") as db:
        db.send(CreateTable(plan_schema(settings())))
        db.send(SetTtl("app", "expires"))
        db.table.create()
        assert db.send(DescribeTtl("app")).attribute == "expires"


@pytest.mark.parametrize(
    "schema",
    [
        TableSchema("app", KeyAttribute("pk")),
        TableSchema("app", KeyAttribute("pk", "N"), KeyAttribute("sk", "N")),
        TableSchema("app", KeyAttribute("as_id"), KeyAttribute("sk", "N")),
        replace(NUMERIC, indexes=(replace(INDEX, sort=None),)),
    ],
)
def test_create_refuses_a_table_that_does_not_fit_and_does_not_change_it(schema: TableSchema) -> None:
    store = ScriptedStore()
    store.send_blocking(CreateTable(schema))
    table, _ = table_on(store)
    with pytest.raises(ConfigurationError):
        table.create()
    assert store.send_blocking(DescribeTable("app")).schema == schema
    assert store.sent["DeleteTable"] == 0
    store.close()


@pytest.mark.parametrize(("there", "requested"), [("A", "B"), ("B", "A")])
def test_create_refuses_a_table_of_another_mode_than_requested(there: str, requested: str) -> None:
    with Database("memory:") as db:
        db.table.create(mode=there)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match=f"with mode {there} instead of {requested}"):
            db.table.create(mode=requested)  # type: ignore[arg-type]
        assert db.table.create(mode=there).schema.name == "holdall"  # type: ignore[arg-type]


def test_create_waits_if_another_process_creates_the_table_first() -> None:
    store = ScriptedStore()
    table, port = table_on(store)

    def overtake(request: CreateTable) -> None:
        store.inner.send_blocking(request)
        store.script(DescribeTable, store.in_state("CREATING"), store.in_state("CREATING"))
        raise TableExistsError("another process was faster")

    store.script(CreateTable, overtake)
    assert table.create().status == "ACTIVE"
    assert store.sent["CreateTable"] == 1
    assert len(port.slept) == 3
    store.close()


def test_create_tries_again_if_a_new_table_is_not_visible_yet() -> None:
    store = ScriptedStore()
    table, port = table_on(store)

    def overtake(request: CreateTable) -> None:
        store.inner.send_blocking(request)
        store.script(DescribeTable, TableNotFoundError("not yet"))
        raise TableExistsError("another process was faster")

    store.script(CreateTable, overtake)
    assert table.create().status == "ACTIVE"
    assert store.sent["CreateTable"] == 2
    assert len(port.slept) == 2
    store.close()


def test_after_a_lost_reply_create_looks_whether_the_table_exists() -> None:
    store = ScriptedStore()
    table, _ = table_on(store)

    def lose_reply(request: CreateTable) -> None:
        store.inner.send_blocking(request)
        raise OutcomeUnknown("no reply")

    store.script(CreateTable, OutcomeUnknown("no reply, and not done"), lose_reply)
    assert table.create().status == "ACTIVE"
    assert store.sent["CreateTable"] == 2
    store.close()


def test_create_waits_for_an_index_that_another_process_adds() -> None:
    store = ScriptedStore()
    store.send_blocking(CreateTable(NUMERIC))
    table, port = table_on(store)

    def overtake(request: AddIndex) -> None:
        store.inner.send_blocking(request)
        store.script(
            DescribeTable, store.in_state("UPDATING", "CREATING"), store.in_state("ACTIVE", "CREATING")
        )
        raise IndexExistsError("another process was faster")

    store.script(AddIndex, overtake)
    assert table.create().schema.indexes == (INDEX,)
    assert store.sent["AddIndex"] == 1
    assert len(port.slept) == 3
    store.close()


def test_create_accepts_an_expiry_that_another_process_sets_at_the_same_time() -> None:
    store = ScriptedStore()
    table, _ = table_on(store)

    def overtake(request: SetTtl) -> None:
        store.inner.send_blocking(request)
        raise InvalidRequestError("TimeToLive is already enabled")

    store.script(SetTtl, overtake)
    table.create()
    assert store.sent["SetTtl"] == 1
    store.close()


def test_an_expiry_that_cannot_be_set_is_an_error() -> None:
    store = ScriptedStore()
    table, _ = table_on(store)
    store.script(SetTtl, InvalidRequestError("no such thing here"))
    with pytest.raises(InvalidRequestError, match="no such thing"):
        table.create()
    store.close()


def test_create_gives_up_on_a_table_that_never_settles() -> None:
    store = ScriptedStore()
    store.send_blocking(CreateTable(NUMERIC))
    table, port = table_on(store)
    store.script(DescribeTable, *[store.in_state("UPDATING")] * 1000)
    with pytest.raises(ServiceUnavailableError, match="table app is still UPDATING") as caught:
        table.create()
    assert caught.value.retryable
    assert PATIENCE <= sum(port.slept) < PATIENCE + 6
    store.close()


def test_create_gives_up_if_other_processes_keep_changing_the_table() -> None:
    store = ScriptedStore()
    table, _ = table_on(store)
    store.script(CreateTable, *[TableExistsError("another process was faster")] * 1000)
    with pytest.raises(ServiceUnavailableError, match="other processes keep changing it"):
        table.create()
    assert store.sent["CreateTable"] < 50
    store.close()


def test_many_creators_at_once_all_get_the_table(tmp_path: Path) -> None:
    databases = [Database(f"embedded:{tmp_path / 'app.db'}") for _ in range(6)]
    start = threading.Barrier(len(databases), timeout=30)

    def creator(db: Database) -> str:
        start.wait()
        return db.table.create().status

    with ThreadPoolExecutor(len(databases)) as pool:
        assert list(pool.map(creator, databases)) == ["ACTIVE"] * len(databases)
    for db in databases:
        db.close()


# --- exists, describe, delete ---


def test_opening_a_database_creates_no_table() -> None:
    with Database("memory:") as db:
        assert db.table.exists() is False
        with pytest.raises(TableNotFoundError, match="there is no table holdall"):
            db.table.describe()


def test_describe_returns_the_current_description() -> None:
    with Database("memory:") as db:
        db.table.create()
        assert db.table.exists() is True
        assert db.table.describe() == db.send(DescribeTable("holdall"))


class Errand(Model, name="FlowErrand", indexes=[Index("by_place", key=["place"])]):
    number: Key[int]
    place: str


def test_items_are_counted_only_for_a_description() -> None:
    recorder = Recorder(EmbeddedBackend(None))
    with Database(backend=recorder) as db:
        db.create(Errand, number=1, place="here")
        assert db.query(Errand, index="by_place", place="here").all() != []
        assert db.jobs.list() == []
        assert db.table.plan(models=[Errand]).ok
        assert {request.counts for request in recorder.list_sent(DescribeTable)} == {False}
        assert db.send(DescribeTable("holdall", counts=False)).item_count == -1
        assert db.table.describe().item_count == 1


def test_exists_and_describe_wait_for_a_table_that_is_being_created() -> None:
    store = ScriptedStore()
    table, port = table_on(store)
    table.create()
    for ask in (table.exists, table.describe):
        store.script(DescribeTable, store.in_state("CREATING"), store.in_state("UPDATING"))
        assert ask()
    assert len(port.slept) == 4
    store.close()


def test_exists_waits_for_a_table_that_is_being_deleted() -> None:
    store = ScriptedStore()
    table, port = table_on(store)
    table.create()
    store.script(DescribeTable, store.in_state("DELETING"), TableNotFoundError("gone"))
    assert table.exists() is False
    assert len(port.slept) == 1
    store.close()


def test_describe_does_not_wait_for_an_index_that_is_being_created() -> None:
    store = ScriptedStore()
    table, port = table_on(store)
    table.create(mode="B")
    store.script(DescribeTable, store.in_state("ACTIVE", "CREATING"))
    assert table.describe().index_status == {"active_storage_index": "CREATING"}
    assert port.slept == []
    store.close()


def test_delete_returns_whether_there_was_a_table() -> None:
    with Database("memory:") as db:
        assert db.table.delete() is False
        db.table.create()
        assert db.table.delete() is True
        assert db.table.exists() is False


def test_delete_touches_no_other_table() -> None:
    with Database("memory:") as db:
        db.send(CreateTable(NUMERIC))
        db.table.create()
        db.table.delete()
        assert db.send(DescribeTable("app")).schema == NUMERIC


def test_delete_returns_false_if_another_process_deletes_the_table_first() -> None:
    store = ScriptedStore()
    table, _ = table_on(store)
    table.create()
    store.script(DeleteTable, TableNotFoundError("another process was faster"))
    assert table.delete() is False
    store.close()


def test_delete_waits_while_another_process_changes_the_table() -> None:
    store = ScriptedStore()
    table, port = table_on(store)
    table.create()
    store.script(DeleteTable, TableExistsError("in use"))
    store.script(DescribeTable, None, store.in_state("UPDATING"))
    assert table.delete() is True
    assert table.exists() is False
    assert len(port.slept) == 2
    store.close()


def test_delete_gives_up_when_the_table_stays_in_use() -> None:
    store = ScriptedStore()
    table, _ = table_on(store)
    table.create()
    store.script(DeleteTable, *[TableExistsError("in use")] * 1000)
    with pytest.raises(ServiceUnavailableError, match="could not be deleted"):
        table.delete()
    store.close()


def test_after_a_lost_reply_delete_raises_and_is_not_repeated() -> None:
    store = ScriptedStore()
    table, _ = table_on(store)
    table.create()

    def lose_reply(request: DeleteTable) -> None:
        store.inner.send_blocking(request)
        raise OutcomeUnknown("no reply")

    store.script(DeleteTable, OutcomeUnknown("no reply, and not done"), lose_reply)
    with pytest.raises(OutcomeUnknown):
        table.delete()
    assert table.exists() is True
    assert table.delete() is True
    assert store.sent["DeleteTable"] == 2
    store.close()


# --- sync and async ---


def test_an_async_table_does_the_same() -> None:
    async def work() -> None:
        async with AsyncDatabase("memory:", table_name="app") as db:
            assert db.table.name == "app"
            assert await db.table.exists() is False
            made = await db.table.create(mode="B")
            assert made == await db.table.describe()
            assert (await db.table.layout()).mode == "B"
            assert await db.table.export(existing=True) == db.sync.table.export(existing=True)
            assert await db.table.delete() is True

    asyncio.run(work())


def test_the_async_database_of_a_sync_one_has_its_settings() -> None:
    with Database("memory:", table_name="app", index_name="mine", manage_table=False) as db:
        assert db.aio.table.name == "app"
        assert db.aio.sync.aio._context.settings == db._context.settings
        assert plan_index(db.aio._context.settings).name == "mine"
