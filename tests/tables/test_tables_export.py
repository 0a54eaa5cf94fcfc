"""The CloudFormation template has the tables that we need, is valid, and keeps them if the stack is deleted."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables_rig import INDEX, table_from

from holdall import Database, Index, Key, Model, SortKey
from holdall.core import (
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
from holdall.errors import ConfigurationError, InvalidRequestError, TableNotFoundError
from holdall.tables.export.policy import ACTIONS
from holdall.tables.export.yaml import yaml_text

WIDE = TableSchema(
    "wide.table",
    KeyAttribute("id", "B"),
    indexes=(
        IndexSchema(
            "by_team", KeyAttribute("team"), KeyAttribute("id", "B"), Projection("INCLUDE", ("name",))
        ),
        IndexSchema("by_rank", KeyAttribute("rank", "N"), None, Projection("KEYS_ONLY")),
    ),
)


def export(**options: Any) -> dict[str, Any]:
    with Database("memory:", table_name="app") as db:
        found: dict[str, Any] = json.loads(db.table.export(**options))
        return found


def properties(template: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = template["Resources"]["Table"]["Properties"]
    return found


@pytest.mark.parametrize("mode", ["A", "B"])
def test_the_template_has_exactly_the_table_that_create_makes(mode: Any) -> None:
    with Database("memory:", table_name="app") as db:
        template = properties(json.loads(db.table.export(mode=mode)))
        assert table_from(template) == db.table.create(mode=mode).schema
    assert template["TimeToLiveSpecification"] == {"AttributeName": "_ttl", "Enabled": True}
    assert ("GlobalSecondaryIndexes" in template) == (mode == "B")


def test_the_table_outlives_its_stack() -> None:
    table = export()["Resources"]["Table"]
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_the_policy_allows_what_the_features_do_on_table_and_indexes() -> None:
    tables, indexes = export()["Resources"]["TableAccess"]["Properties"]["PolicyDocument"]["Statement"]
    assert set(tables["Action"]) == set(ACTIONS)
    assert "dynamodb:ConditionCheckItem" in ACTIONS
    assert not [
        action for action in ACTIONS if "*" in action or action.endswith(("CreateTable", "DeleteTable"))
    ]
    assert tables["Resource"] == [{"Fn::GetAtt": ["Table", "Arn"]}]
    assert indexes == {
        "Effect": "Allow",
        "Action": ["dynamodb:Query"],
        "Resource": [{"Fn::Sub": "${Table.Arn}/index/*"}],
    }


def test_exporting_sends_no_request() -> None:
    class Silent:
        def send_blocking(self, request: object) -> Any:
            raise AssertionError(f"sent {request}")

        async def send_awaiting(self, request: object) -> Any:
            raise AssertionError(f"sent {request}")

        def close(self) -> None:
            pass

    with Database(backend=Silent(), table_name="app") as db:
        assert json.loads(db.table.export()) == export()


def test_an_existing_table_is_exported_with_its_indexes_and_expiry() -> None:
    with Database("memory:", table_name="wide.table") as db:
        db.send(CreateTable(WIDE))
        db.send(SetTtl("wide.table", "expires"))
        template = properties(json.loads(db.table.export(existing=True)))
    assert table_from(template) == WIDE
    assert template["TimeToLiveSpecification"]["AttributeName"] == "expires"


def test_a_table_without_expiry_is_exported_without() -> None:
    with Database("memory:", table_name="wide.table") as db:
        db.send(CreateTable(WIDE))
        assert "TimeToLiveSpecification" not in properties(json.loads(db.table.export(existing=True)))


def test_exporting_a_missing_table_or_another_mode_is_refused() -> None:
    with Database("memory:") as db:
        with pytest.raises(TableNotFoundError):
            db.table.export(existing=True)
        with pytest.raises(InvalidRequestError, match="already has a mode"):
            db.table.export(existing=True, mode="B")


def test_the_exported_index_has_the_names_in_the_settings() -> None:
    with Database("memory:", index_name="mine", index_partition_key="h", index_sort_key="r") as db:
        template = properties(json.loads(db.table.export(mode="B")))
    assert table_from(template).indexes == (
        IndexSchema("mine", KeyAttribute("h"), KeyAttribute("r"), INDEX.projection),
    )


# --- with models ---


class Order(Model, ttl="until", indexes=[Index("by_product", key=["product"])]):
    product: str
    until: datetime | None = None


class Payout(
    Model,
    table="my-app.payouts",
    ttl="gone",
    indexes=[Index("byAdmin", ["admin"], ["amount"]), Index("byAmount", ["amount"], include=["admin"])],
):
    player: Key[str]
    turn: SortKey[int]
    admin: str
    amount: int
    gone: int


class Number(Model, table="Numbers"):
    value: Key[int]


MODELS: list[NeedsTable] = [Order, Payout, Number]


def test_with_models_the_template_has_exactly_the_tables_that_create_makes() -> None:
    with Database("memory:", table_name="app", table_prefix="test-") as db:
        resources = json.loads(db.table.export(models=MODELS))["Resources"]
        db.table.create(models=MODELS)
        for name, table, ttl in (
            ("Table", "app", "_ttl"),
            ("MyAppPayoutsTable", "test-my-app.payouts", "gone"),
            ("NumbersTable", "test-Numbers", None),
        ):
            made = resources[name]["Properties"]
            assert table_from(made) == db.send(DescribeTable(table)).schema
            assert made.get("TimeToLiveSpecification", {}).get("AttributeName") == ttl
            assert db.send(DescribeTtl(table)).attribute == ttl
            assert (resources[name]["DeletionPolicy"], resources[name]["UpdateReplacePolicy"]) == (
                "Retain",
                "Retain",
            )
    assert resources.keys() == {"Table", "MyAppPayoutsTable", "NumbersTable", "TableAccess"}


def test_the_policy_is_for_all_tables_and_their_indexes() -> None:
    template = export(models=MODELS)
    statements = template["Resources"]["TableAccess"]["Properties"]["PolicyDocument"]["Statement"]
    tables = [name for name in template["Resources"] if name != "TableAccess"]
    assert [statement["Resource"] for statement in statements] == [
        [{"Fn::GetAtt": [name, "Arn"]} for name in tables],
        [{"Fn::Sub": f"${{{name}.Arn}}/index/*"} for name in tables],
    ]
    assert template["Outputs"].keys() == {
        *(f"{name}{part}" for name in tables for part in ("Name", "Arn")),
        "TableAccessPolicy",
    }


def test_models_with_their_own_tables_do_not_change_the_databases_table() -> None:
    assert export(models=[Number])["Resources"]["Table"] == export()["Resources"]["Table"]


def test_the_names_of_resources_do_not_depend_on_the_prefix() -> None:
    with Database("memory:", table_prefix="other-") as db:
        other = json.loads(db.table.export(models=MODELS))["Resources"]
    assert other.keys() == export(models=MODELS)["Resources"].keys()


class Named:
    """A model whose table has the given name."""

    def __init__(self, table: str) -> None:
        self.table = table

    def __table_needs__(self) -> TableNeeds:
        return TableNeeds(self.table, KeyAttribute("_id"), None, (), None, "Named")


@given(st.lists(st.text("aA-._1", min_size=3, max_size=5), unique=True, max_size=6))
def test_every_table_has_its_own_resource(names: list[str]) -> None:
    template = export(models=[Named(name) for name in names])
    tables = [name for name, part in template["Resources"].items() if part["Type"].endswith("::Table")]
    assert len(tables) == len(names) + 1
    assert all(re.fullmatch("[A-Za-z0-9]+", name) for name in tables)


@pytest.mark.parametrize(
    ("models", "words"),
    [([], "The table app,"), ([Number], "app and 1 table of models"), (MODELS, "app and 2 tables of models")],
    ids=["none", "one", "two"],
)
def test_the_description_counts_the_tables_of_models(models: list[NeedsTable], words: str) -> None:
    assert words in export(models=models)["Description"]


def test_existing_tables_of_models_are_exported_as_they_exist() -> None:
    old = IndexSchema("old", KeyAttribute("x"))
    with Database("memory:", table_name="app") as db:
        db.table.create()
        with pytest.raises(TableNotFoundError, match="there is no table Numbers"):
            db.table.export(models=[Number], existing=True)
        db.send(CreateTable(TableSchema("Numbers", KeyAttribute("_id"), indexes=(old,))))
        resources = json.loads(db.table.export(models=[Number], existing=True))["Resources"]
    assert table_from(resources["NumbersTable"]["Properties"]).indexes == (old,)


def test_exporting_shared_models_in_a_table_of_mode_b_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="so it cannot hold Order"):
        export(models=MODELS, mode="B")


def test_cfn_lint_reports_nothing(tmp_path: Path) -> None:
    program = shutil.which("cfn-lint", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("cfn-lint is not installed in this environment")
    with Database("memory:", table_name="wide.table") as db:
        db.send(CreateTable(WIDE))
        texts = {
            "a.json": db.table.export(),
            "b.json": db.table.export(mode="B"),
            "a.yaml": db.table.export(format="yaml"),
            "b.yaml": db.table.export(format="yaml", mode="B"),
            "wide.yaml": db.table.export(format="yaml", existing=True),
            "models.json": db.table.export(models=MODELS),
            "models.yaml": db.table.export(format="yaml", models=MODELS),
        }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run([program, *texts], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


# --- YAML ---

scalars = st.text(max_size=8) | st.integers() | st.booleans() | st.none()
words = st.sampled_from(
    ["yes", "No", "null", "~", "0x1f", "1_000", "1e3", "- a", "a: b", "#", "=", "<<", "2010-09-09"]
)
parts = st.recursive(
    scalars | words,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | words, inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4) | words, parts, max_size=4))
def test_yaml_is_read_back_unchanged(document: dict[str, Any]) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert yaml.safe_load(yaml_text(document)) == document


def test_both_formats_have_the_same_content() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    with Database("memory:") as db:
        for models in ([], MODELS):
            text = db.table.export(format="yaml", models=models)
            assert yaml.safe_load(text) == json.loads(db.table.export(format="json", models=models))
