"""A plan compares what models need with what their tables have; create makes what the plan reports as missing."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables_rig import ScriptedStore, index_from, table_from, table_on

from holdall import AsyncDatabase, Database, Index, Key, Model, SortKey
from holdall.core import (
    AddIndex,
    CreateTable,
    DescribeTable,
    DescribeTtl,
    IndexSchema,
    KeyAttribute,
    Projection,
    SetTtl,
    TableSchema,
)
from holdall.core.schema import NeedsTable, TableNeeds
from holdall.errors import (
    ConfigurationError,
    IndexExistsError,
    InvalidRequestError,
    TableExistsError,
    ThrottledError,
)
from holdall.tables import PlannedTable, TablePlan


class Order(Model, indexes=[Index("by_product", key=["product"])]):
    product: str


class Session(Model, ttl="until"):
    until: datetime


class Payout(Model, table="Payouts", ttl="gone", indexes=[Index("byAdmin", ["admin"], include=["amount"])]):
    player: Key[str]
    turn: SortKey[int]
    admin: str
    amount: int
    gone: int


class Wide:
    """A model with many indexes."""

    def __init__(self, count: int, table: str | None = None) -> None:
        indexes = tuple(
            IndexSchema(f"gsi{n}", KeyAttribute(f"gsi{n}_pk"), KeyAttribute(f"gsi{n}_sk"))
            for n in range(1, count + 1)
        )
        key = None if table is None else KeyAttribute("_id")
        self.needs = TableNeeds(table, key, None, indexes, None, "Wide")

    def __table_needs__(self) -> TableNeeds:
        return self.needs


GSI1 = IndexSchema("gsi1", KeyAttribute("gsi1_pk"), KeyAttribute("gsi1_sk"))
BY_ADMIN = IndexSchema("byAdmin", KeyAttribute("admin"), None, Projection("INCLUDE", ("amount",)))
DATABASE = TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk"))
PAYOUTS = TableSchema("Payouts", KeyAttribute("_id"), KeyAttribute("_sk", "N"), (BY_ADMIN,))
ALL: list[NeedsTable] = [Order, Session, Payout]


def with_indexes(schema: TableSchema, *indexes: IndexSchema) -> TableSchema:
    return replace(schema, indexes=indexes)


def plan_of(store: ScriptedStore, models: list[NeedsTable], **given: object) -> TablePlan:
    table, _ = table_on(store, **given)
    return table.plan(models=models)


def only(plan: TablePlan) -> PlannedTable:
    (table,) = plan.tables
    return table


@pytest.fixture
def store() -> Any:
    store = ScriptedStore()
    yield store
    store.close()


# --- findings ---


def test_a_plan_reports_everything_as_missing_if_the_tables_do_not_exist(store: ScriptedStore) -> None:
    plan = plan_of(store, ALL)
    assert not plan.ok
    assert plan.text() == (
        "table app, for Order, Session: does not exist\n"
        "  missing     the table: pk (S), sk (S)\n"
        "  missing     index gsi1: gsi1_pk (S), gsi1_sk (S); holds ALL; for Order\n"
        "  missing     expiry by _ttl; for Session\n"
        "table Payouts, for Payout: does not exist\n"
        "  missing     the table: _id (S), _sk (N)\n"
        "  missing     index byAdmin: admin (S); holds amount; for Payout\n"
        "  missing     expiry by gone; for Payout\n"
    )


def test_planning_changes_nothing_and_only_describes_tables(store: ScriptedStore) -> None:
    store.inner.send_blocking(CreateTable(DATABASE))
    plan_of(store, ALL, manage_table=True)
    assert store.changes == []
    assert store.sent == {"DescribeTable": 2, "DescribeTtl": 1}


def test_a_table_that_has_everything_is_ready(store: ScriptedStore) -> None:
    for schema, ttl in ((with_indexes(DATABASE, GSI1), "_ttl"), (PAYOUTS, "gone")):
        store.send_blocking(CreateTable(schema))
        store.send_blocking(SetTtl(schema.name, ttl))
    plan = plan_of(store, ALL)
    assert plan.ok
    assert plan.text() == "table app, for Order, Session: ready\ntable Payouts, for Payout: ready\n"


def test_the_databases_table_is_planned_only_for_models_stored_in_it(store: ScriptedStore) -> None:
    assert [table.name for table in plan_of(store, [Payout]).tables] == ["Payouts"]
    assert [table.name for table in plan_of(store, [Order]).tables] == ["app"]
    assert [table.name for table in plan_of(store, []).tables] == ["app"]


def test_own_tables_are_planned_with_the_prefix(store: ScriptedStore) -> None:
    store.send_blocking(CreateTable(PAYOUTS))
    plan = plan_of(store, [Payout], table_prefix="test-")
    assert (only(plan).name, only(plan).exists) == ("test-Payouts", False)


def test_the_plan_of_an_incomplete_table_lists_what_is_missing(store: ScriptedStore) -> None:
    store.send_blocking(CreateTable(DATABASE))
    table = only(plan_of(store, [Order, Session]))
    assert [(each.index, each.models) for each in table.missing] == [(GSI1, ("Order",))]
    assert (table.lacks_ttl, table.other_ttl, table.faulty, table.ok) == (True, False, False, False)
    assert plan_of(store, [Order, Session]).text().startswith("table app, for Order, Session: incomplete\n")


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (
            IndexSchema("gsi1", KeyAttribute("gsi1_pk")),
            "its keys are gsi1_pk (S), not gsi1_pk (S) and gsi1_sk (S)",
        ),
        (
            IndexSchema("gsi1", KeyAttribute("gsi1_pk"), KeyAttribute("gsi1_sk", "N")),
            "its keys are gsi1_pk (S) and gsi1_sk (N), not gsi1_pk (S) and gsi1_sk (S)",
        ),
        (
            replace(GSI1, projection=Projection("KEYS_ONLY")),
            "it holds only the keys of each item, not all",
        ),
        (
            replace(GSI1, projection=Projection("INCLUDE", ("a", "b"))),
            "it holds only a, b of each item, not all",
        ),
    ],
)
def test_an_existing_index_that_differs_is_wrong(
    store: ScriptedStore, found: IndexSchema, problem: str
) -> None:
    store.send_blocking(CreateTable(with_indexes(DATABASE, found)))
    plan = plan_of(store, [Order])
    (wrong,) = only(plan).wrong
    assert (wrong.index, wrong.found, wrong.problem) == (GSI1, found, problem)
    assert f"  wrong       index gsi1: {problem}; for Order\n" in plan.text()
    assert plan.text().startswith("table app, for Order: does not fit\n")


def test_an_index_that_holds_more_than_needed_is_right(store: ScriptedStore) -> None:
    wide = IndexSchema("byAdmin", KeyAttribute("admin"))
    store.send_blocking(CreateTable(with_indexes(PAYOUTS, wide)))
    store.send_blocking(SetTtl("Payouts", "gone"))
    assert plan_of(store, [Payout]).ok


def test_an_index_that_could_not_be_added_is_wrong(store: ScriptedStore) -> None:
    other = IndexSchema("other", KeyAttribute("gsi1_pk", "B"))
    store.send_blocking(CreateTable(with_indexes(DATABASE, other)))
    (wrong,) = only(plan_of(store, [Order])).wrong
    assert (wrong.found, wrong.problem) == (None, "attribute gsi1_pk is defined with two types")


def test_more_indexes_than_a_table_can_have_are_wrong(store: ScriptedStore) -> None:
    others = [IndexSchema(f"old{n}", KeyAttribute("x")) for n in range(19)]
    store.send_blocking(CreateTable(with_indexes(DATABASE, *others)))
    table = only(plan_of(store, [Wide(2)]))
    assert [each.index.name for each in table.missing] == ["gsi1"]
    assert [(each.index.name, each.problem) for each in table.wrong] == [
        ("gsi2", "table app has 21 indexes; DynamoDB allows 20")
    ]


def test_an_index_that_another_program_is_creating_does_not_matter(store: ScriptedStore) -> None:
    store.send_blocking(CreateTable(with_indexes(DATABASE, GSI1, IndexSchema("theirs", KeyAttribute("x")))))
    store.send_blocking(SetTtl("app", "_ttl"))
    true = store.inner.send_blocking(DescribeTable("app"))
    states = {"gsi1": "ACTIVE", "theirs": "CREATING"}
    store.script(DescribeTable, lambda request: replace(true, index_status=states))
    assert plan_of(store, [Order]).ok


def test_an_index_that_is_still_being_created_is_not_ready_yet(store: ScriptedStore) -> None:
    store.send_blocking(CreateTable(with_indexes(DATABASE, GSI1)))
    store.send_blocking(SetTtl("app", "_ttl"))
    store.script(DescribeTable, store.in_state("ACTIVE", "CREATING"))
    plan = plan_of(store, [Order])
    assert not plan.ok
    assert plan.text() == (
        "table app, for Order: not ready yet\n  unfinished  index gsi1 is still being created\n"
    )


def test_planning_waits_for_a_table_that_is_being_created(store: ScriptedStore) -> None:
    store.send_blocking(CreateTable(DATABASE))
    store.script(DescribeTable, store.in_state("CREATING"))
    table, port = table_on(store)
    assert only(table.plan(models=[Order])).exists
    assert len(port.slept) == 1


def test_an_index_that_no_model_needs_is_reported_as_unused(store: ScriptedStore) -> None:
    spare = IndexSchema("spare", KeyAttribute("x", "N"))
    store.send_blocking(CreateTable(with_indexes(DATABASE, GSI1, spare)))
    store.send_blocking(SetTtl("app", "_ttl"))
    plan = plan_of(store, [Order])
    assert plan.ok
    assert only(plan).unused == (spare,)
    assert plan.text() == "table app, for Order: ready\n  unused      index spare: x (N); holds ALL\n"


def test_another_expiry_is_wrong_only_if_a_model_needs_its_own(store: ScriptedStore) -> None:
    store.send_blocking(CreateTable(with_indexes(DATABASE, GSI1)))
    store.send_blocking(SetTtl("app", "expires"))
    assert plan_of(store, [Order]).ok
    plan = plan_of(store, [Order, Session])
    assert only(plan).other_ttl
    assert "  wrong       expiry by expires, not by _ttl; for Session\n" in plan.text()


@pytest.mark.parametrize(
    ("schema", "models", "problem"),
    [
        (TableSchema("app", KeyAttribute("pk")), [Order], "table app has no sort key"),
        (
            TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk", "N")),
            [Order, Session],
            "table app has a numeric sort key, so it cannot hold Order, Session",
        ),
        (
            TableSchema("Payouts", KeyAttribute("_id")),
            [Payout],
            "table Payouts cannot hold Payout: its keys are _id (S), not _id (S) and _sk (N)",
        ),
        (
            TableSchema("Payouts", KeyAttribute("_id"), KeyAttribute("_sk", "B")),
            [Payout],
            "table Payouts cannot hold Payout: its keys are _id (S) and _sk (B), not _id (S) and _sk (N)",
        ),
        (
            TableSchema("Payouts", KeyAttribute("id"), KeyAttribute("_sk", "N")),
            [Payout],
            "table Payouts cannot hold Payout: its keys are id (S) and _sk (N), not _id (S) and _sk (N)",
        ),
    ],
)
def test_a_table_whose_key_is_wrong_cannot_hold_its_models(
    store: ScriptedStore, schema: TableSchema, models: list[NeedsTable], problem: str
) -> None:
    store.send_blocking(CreateTable(schema))
    table = only(plan_of(store, models))
    assert (table.problem, table.ok) == (problem, False)
    assert table.remedy


def test_a_numeric_key_that_a_table_keeps_as_text_is_fine(store: ScriptedStore) -> None:
    store.send_blocking(CreateTable(TableSchema("Payouts", KeyAttribute("_id"), KeyAttribute("_sk"))))
    assert only(plan_of(store, [Payout])).problem is None


# --- as data for programs ---


def test_the_plan_for_programs_has_the_definitions_of_missing_parts(store: ScriptedStore) -> None:
    store.send_blocking(CreateTable(DATABASE))
    plan = json.loads(json.dumps(plan_of(store, ALL).to_dict()))
    app, payouts = plan["tables"]
    assert (plan["ok"], app["ok"], app["exists"], app["definition"]) == (False, False, True, None)
    (missing,) = app["missing_indexes"]
    assert (missing["name"], missing["models"], missing["problem"]) == ("gsi1", ["Order"], None)
    assert index_from(missing["definition"]) == ("app", GSI1)
    assert app["ttl"] == {
        "wanted": "_ttl",
        "found": None,
        "ok": False,
        "models": ["Session"],
        "definition": {
            "TableName": "app",
            "TimeToLiveSpecification": {"AttributeName": "_ttl", "Enabled": True},
        },
    }
    assert (payouts["table"], payouts["models"], payouts["exists"]) == ("Payouts", ["Payout"], False)
    assert table_from(payouts["definition"]) == PAYOUTS


def test_the_plan_for_programs_has_wrong_and_unused_indexes(store: ScriptedStore) -> None:
    found = IndexSchema("gsi1", KeyAttribute("gsi1_pk"))
    spare = IndexSchema("spare", KeyAttribute("x"), None, Projection("INCLUDE", ("y",)))
    store.send_blocking(CreateTable(with_indexes(DATABASE, found, spare)))
    (app,) = plan_of(store, [Order]).to_dict()["tables"]
    (wrong,) = app["wrong_indexes"]
    assert wrong["problem"] == "its keys are gsi1_pk (S), not gsi1_pk (S) and gsi1_sk (S)"
    assert (wrong["sort_key"], wrong["found"]["sort_key"]) == ({"name": "gsi1_sk", "type": "S"}, None)
    assert app["unused_indexes"] == [
        {
            "name": "spare",
            "partition_key": {"name": "x", "type": "S"},
            "sort_key": None,
            "projection": "INCLUDE",
            "keys": [{"name": "x", "type": "S", "role": "partition"}],
            "projected": ["y"],
            "local": False,
        }
    ]


# --- create ---


def test_create_makes_everything_that_the_models_need(store: ScriptedStore) -> None:
    table, _ = table_on(store, table_prefix="test-")
    made = table.create(models=ALL)
    assert made == store.send_blocking(DescribeTable("app"))
    assert made.schema.indexes == (GSI1,)
    own = store.send_blocking(DescribeTable("test-Payouts"))
    assert own.schema == replace(PAYOUTS, name="test-Payouts")
    assert store.send_blocking(DescribeTtl("app")).attribute == "_ttl"
    assert store.send_blocking(DescribeTtl("test-Payouts")).attribute == "gone"
    assert table.plan(models=ALL).ok
    assert store.sent["AddIndex"] == 0, "a new table is created together with its indexes"


def test_creating_again_for_the_same_models_changes_nothing(store: ScriptedStore) -> None:
    table, port = table_on(store)
    table.create(models=ALL)
    done = list(store.changes)
    table.create(models=ALL)
    assert store.changes == done
    assert port.slept == []


@pytest.mark.parametrize("own", [None, "Own"])
def test_an_existing_table_gets_its_indexes_one_at_a_time(store: ScriptedStore, own: str | None) -> None:
    name = own or "app"
    schema = DATABASE if own is None else TableSchema("Own", KeyAttribute("_id"))
    store.send_blocking(CreateTable(schema))
    wide = Wide(20, own)

    def create_slowly(request: AddIndex) -> Any:
        described = store.inner.send_blocking(DescribeTable(name))
        assert set(described.index_status.values()) <= {"ACTIVE"}
        made = store.inner.send_blocking(request)
        store.script(
            DescribeTable, store.in_state("UPDATING", "CREATING"), store.in_state("ACTIVE", "CREATING")
        )
        return made

    store.script(AddIndex, *[create_slowly] * 20)
    table, port = table_on(store)
    table.create(models=[wide])
    assert store.sent["AddIndex"] == 20
    assert len(port.slept) == 40, "twice for each index, until it is active"
    found = store.send_blocking(DescribeTable(name)).schema.indexes
    assert found == wide.needs.indexes


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (TableExistsError("in use"), 1),
        (IndexExistsError("there is one"), 1),
        (ThrottledError("one at a time"), 1),
        (InvalidRequestError("a duplicate"), 0),
    ],
)
def test_create_looks_again_if_another_process_is_adding_the_index(
    store: ScriptedStore, error: Exception, waits: int
) -> None:
    store.send_blocking(CreateTable(DATABASE))

    def overtake(request: AddIndex) -> None:
        store.inner.send_blocking(request)
        raise error

    store.script(AddIndex, overtake)
    table, port = table_on(store)
    assert table.create(models=[Order]).schema.indexes == (GSI1,)
    assert (store.sent["AddIndex"], len(port.slept)) == (1, waits)


def test_an_index_that_the_service_refuses_is_an_error(store: ScriptedStore) -> None:
    store.send_blocking(CreateTable(DATABASE))
    store.script(AddIndex, InvalidRequestError("no such thing here"))
    table, _ = table_on(store)
    with pytest.raises(InvalidRequestError, match="no such thing"):
        table.create(models=[Order])
    assert store.sent["AddIndex"] == 1


WRONG_INDEX = IndexSchema("gsi1", KeyAttribute("gsi1_pk"))


@pytest.mark.parametrize(
    ("schema", "ttl", "problem"),
    [
        (
            with_indexes(DATABASE, WRONG_INDEX),
            None,
            "index gsi1 of table app does not fit Order: ",
        ),
        (
            TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk", "N")),
            None,
            "so it cannot hold Order, Session",
        ),
        (TableSchema("Payouts", KeyAttribute("_id")), None, "table Payouts cannot hold Payout"),
        (PAYOUTS, "other", "table Payouts expires items by other, but Payout needs gone"),
        (
            with_indexes(PAYOUTS, IndexSchema("old", KeyAttribute("admin", "N"))),
            None,
            "index byAdmin of table Payouts cannot be added: attribute admin is defined with two types",
        ),
    ],
)
def test_create_refuses_a_wrong_table_before_it_makes_anything(
    store: ScriptedStore, schema: TableSchema, ttl: str | None, problem: str
) -> None:
    store.inner.send_blocking(CreateTable(schema))
    store.inner.send_blocking(SetTtl(schema.name, ttl))
    table, _ = table_on(store)
    with pytest.raises(ConfigurationError) as caught:
        table.create(models=ALL)
    assert problem in caught.value.message
    assert store.changes == []


def test_the_hint_for_a_wrong_index_has_the_right_definition(store: ScriptedStore) -> None:
    store.send_blocking(CreateTable(with_indexes(DATABASE, WRONG_INDEX)))
    table, _ = table_on(store)
    with pytest.raises(ConfigurationError) as caught:
        table.create(models=[Order])
    assert caught.value.hint is not None
    words, brace, rest = caught.value.hint.partition("{")
    assert words == "an index cannot be changed: delete it and add this one:\n"
    assert index_from(json.loads(brace + rest)) == ("app", GSI1)


def test_create_reports_everything_that_is_wrong_at_once(store: ScriptedStore) -> None:
    store.send_blocking(CreateTable(with_indexes(DATABASE, WRONG_INDEX)))
    store.send_blocking(SetTtl("app", "expires"))
    store.send_blocking(CreateTable(TableSchema("Payouts", KeyAttribute("id"))))
    table, _ = table_on(store)
    with pytest.raises(ConfigurationError) as caught:
        table.create(models=ALL)
    assert len(caught.value.message.split("; ")) == 3


def test_a_table_of_another_mode_than_requested_is_refused_before_anything_is_made(
    store: ScriptedStore,
) -> None:
    store.inner.send_blocking(CreateTable(DATABASE))
    table, _ = table_on(store)
    with pytest.raises(ConfigurationError, match="with mode A instead of B"):
        table.create(mode="B", models=[Payout])
    assert store.changes == []


def test_models_with_their_own_tables_work_beside_a_numeric_sort_key() -> None:
    with Database("memory:") as db:
        db.table.create(mode="B", models=[Payout])
        assert db.table.layout().mode == "B"
        assert db.table.plan(models=[Payout]).ok
        assert not db.table.plan(models=[Order]).ok
        db.table.create(models=[Payout])
        with pytest.raises(ConfigurationError, match="so it cannot hold Order"):
            db.table.create(models=[Order])


def test_an_async_table_plans_and_creates_the_same() -> None:
    async def work() -> None:
        async with AsyncDatabase("memory:", manage_table=False) as db:
            before = await db.table.plan(models=ALL)
            assert before == db.sync.table.plan(models=ALL)
            await db.table.create(models=ALL)
            assert (await db.table.plan(models=ALL)).ok

    asyncio.run(work())


# --- any tables, any models ---

KEYS = st.sampled_from([KeyAttribute(name, kind) for name in "ab" for kind in ("S", "N")])
PROJECTIONS = st.sampled_from([Projection(), Projection("KEYS_ONLY"), Projection("INCLUDE", ("x", "y"))])
INDEXES = st.lists(
    st.builds(
        IndexSchema,
        st.sampled_from(["gsi1", "gsi2", "gsi3"]),
        KEYS,
        st.none() | st.just(KeyAttribute("c")),
        PROJECTIONS,
    ),
    max_size=3,
    unique_by=lambda index: index.name,
)
TTLS = st.sampled_from([None, "_ttl", "other"])


class Made:
    """A model with the given needs."""

    def __init__(self, needs: TableNeeds) -> None:
        self.needs = needs

    def __table_needs__(self) -> TableNeeds:
        return self.needs


MODELS = st.one_of(
    st.builds(
        TableNeeds,
        st.none(),
        st.none(),
        st.none(),
        INDEXES.map(tuple),
        st.none() | st.just("_ttl"),
        st.just("In"),
    ),
    st.builds(
        TableNeeds,
        st.just("Own"),
        st.sampled_from([KeyAttribute("_id"), KeyAttribute("_id", "N")]),
        st.none(),
        INDEXES.map(tuple),
        TTLS,
        st.just("Out"),
    ),
).map(Made)
THERE = st.sampled_from(
    [
        DATABASE,
        TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk", "N")),
        TableSchema("Own", KeyAttribute("_id")),
        TableSchema("Own", KeyAttribute("_id", "N")),
        TableSchema("Own", KeyAttribute("_id"), KeyAttribute("_sk")),
    ]
)


@given(
    models=st.lists(MODELS, min_size=1, max_size=3),
    there=st.lists(st.tuples(THERE, INDEXES, TTLS), max_size=2, unique_by=lambda each: each[0].name),
)
def test_create_does_what_the_plan_says_and_only_that(
    models: list[Made], there: list[tuple[TableSchema, list[IndexSchema], str | None]]
) -> None:
    store = ScriptedStore()
    for schema, indexes, ttl in there:
        try:
            store.inner.send_blocking(CreateTable(with_indexes(schema, *indexes)))
        except ConfigurationError:
            continue  # such a table cannot exist
        store.inner.send_blocking(SetTtl(schema.name, ttl))
    before = _all(store)
    table, _ = table_on(store)
    try:
        plan = table.plan(models=models)
    except ConfigurationError:
        store.close()
        return  # these models cannot share a table
    wrong = any(each.faulty for each in plan.tables)
    try:
        table.create(models=models)
    except ConfigurationError:
        assert wrong
        assert store.changes == []
    else:
        assert not wrong
        assert table.plan(models=models).ok
        for name, (schema, ttl) in before.items():
            after, expiry = _all(store)[name]
            assert after.keys == schema.keys
            assert {*schema.indexes} <= {*after.indexes}
            assert ttl in (None, expiry)
        if plan.ok:
            touched = {_table_of(change) for change in store.changes}
            assert not touched & {each.name for each in plan.tables}
    store.close()


def _all(store: ScriptedStore) -> dict[str, tuple[TableSchema, str | None]]:
    found = {}
    for name in ("app", "Own"):
        try:
            schema = store.inner.send_blocking(DescribeTable(name)).schema
        except LookupError:
            continue
        found[name] = schema, store.inner.send_blocking(DescribeTtl(name)).attribute
    return found


def _table_of(change: Any) -> str:
    return str(change.schema.name if isinstance(change, CreateTable) else change.table)
