"""``holdall table`` with ``--models``: plan, create, export, and how models are named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli_rig import call, enter, start

from holdall import Database
from holdall.core import AddIndex, CreateTable, DescribeTable, IndexSchema, KeyAttribute, TableSchema

URL = "embedded:app.db"
MODELS = """
from datetime import datetime

from holdall import Index, Key, Model, SortKey


class Base(Model, abstract=True):
    name: str


class Order(Base, ttl="until", indexes=[Index("by_name", key=["name"])]):
    until: datetime | None = None


class Payout(Model, table="Payouts", indexes=[Index("byAdmin", ["admin"])]):
    player: Key[str]
    turn: SortKey[int]
    admin: str

    class Line(Model, table="Lines"):
        text: str
"""
PLAN = """\
table holdall, for Order: does not exist
  missing     the table: pk (S), sk (S)
  missing     index gsi1: gsi1_pk (S), gsi1_sk (S); holds ALL; for Order
  missing     expiry by _ttl; for Order
table Payouts, for Payout: does not exist
  missing     the table: _id (S), _sk (N)
  missing     index byAdmin: admin (S); holds ALL; for Payout
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An application: ``shop/models.py``, and a package that exports its models."""
    enter(tmp_path, monkeypatch, URL)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.partition(".")[0] in ("shop", "broken")]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("from shop.models import Order, Payout\n")
    (tmp_path / "shop" / "models.py").write_text(MODELS)
    (tmp_path / "shop" / "users.py").write_text("from shop.models import *\n")
    return tmp_path


# --- plan ---


def test_plan_shows_what_is_missing_and_has_the_exit_status_1() -> None:
    ended = call("table", "plan", "--models", "shop.models")
    assert (ended.exit_code, ended.stdout) == (1, PLAN)
    assert ended.stderr == "hint: `holdall table create --models shop.models` adds what is missing\n"


def test_plan_changes_nothing() -> None:
    call("table", "plan", "--models", "shop.models")
    with Database(URL) as db:
        assert not db.table.exists()


def test_plan_succeeds_if_the_tables_have_what_the_models_need() -> None:
    call("table", "create", "--models", "shop.models")
    ended = call("table", "plan", "--models", "shop.models")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout == "table holdall, for Order: ready\ntable Payouts, for Payout: ready\n"


def test_plan_lists_an_unused_index_with_the_command_that_removes_it() -> None:
    call("table", "create", "--models", "shop.models")
    with Database(URL) as db:
        db.send(AddIndex("Payouts", IndexSchema("spare", KeyAttribute("x"))))
    ended = call("table", "plan", "--models", "shop.models")
    assert ended.exit_code == 0
    assert ended.stdout.endswith(
        "table Payouts, for Payout: ready\n  unused      index spare: x (S); holds ALL\n"
    )
    assert "table remove-index NAME` removes an index that no program needs\n" in ended.stderr
    kept = call("table", "remove-index", "byAdmin", "--table", "Payouts", "--models", "shop.models", "--yes")
    assert (kept.exit_code, kept.stderr) == (
        2,
        "error: index byAdmin of table Payouts was not removed: Payout needs it\n"
        "hint: remove the index from the model first\n",
    )
    gone = call("table", "remove-index", "spare", "--table", "Payouts", "--models", "shop.models", "--yes")
    assert gone.exit_code == 0
    assert call("table", "plan", "--models", "shop.models").stderr == ""


def test_plan_explains_that_holdall_does_not_alter_a_wrong_index() -> None:
    wrong = IndexSchema("byAdmin", KeyAttribute("boss"))
    schema = TableSchema("Payouts", KeyAttribute("_id"), KeyAttribute("_sk", "N"), (wrong,))
    with Database(URL) as db:
        db.send(CreateTable(schema))
    ended = call("table", "plan", "--models", "shop.models:Payout")
    assert (ended.exit_code, ended.stdout) == (
        1,
        "table Payouts, for Payout: does not fit\n"
        "  wrong       index byAdmin: its keys are boss (S), not admin (S); for Payout\n",
    )
    assert ended.stderr.startswith("hint: Holdall does not alter what is wrong")
    refused = call("table", "create", "--models", "shop.models:Payout")
    assert refused.exit_code == 2
    assert refused.stderr.startswith(
        "error: index byAdmin of table Payouts does not fit Payout: its keys are boss"
    )
    assert '"IndexName": "byAdmin"' in refused.stderr
    with Database(URL) as db:
        assert db.send(DescribeTable("Payouts")).schema == schema


def test_plan_can_be_json() -> None:
    ended = call("table", "plan", "--models", "shop.models", "--json")
    data = json.loads(ended.stdout)
    assert (ended.exit_code, data["ok"]) == (1, False)
    assert [(table["table"], table["exists"]) for table in data["tables"]] == [
        ("holdall", False),
        ("Payouts", False),
    ]
    call("table", "create", "--models", "shop.models")
    ended = call("table", "plan", "--models", "shop.models", "--json")
    assert (ended.exit_code, json.loads(ended.stdout)["ok"]) == (0, True)


def test_plan_needs_models() -> None:
    ended = call("table", "plan")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "Missing option '--models'" in ended.stderr


# --- create and export ---


def test_create_creates_the_tables_of_the_models_and_reports_them() -> None:
    ended = call("table", "create", "--models", "shop.models")
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert ended.stderr == (
        "table holdall is ready: keys pk and sk, mode A\ntable Payouts is ready: keys _id and _sk\n"
    )
    with Database(URL) as db:
        assert [index.name for index in db.table.describe().schema.indexes] == ["gsi1"]
        assert [index.name for index in db.send(DescribeTable("Payouts")).schema.indexes] == ["byAdmin"]


def test_create_can_print_all_tables_as_json() -> None:
    created = json.loads(call("table", "create", "--models", "shop.models", "--json").stdout)
    (own,) = created.pop("own_tables")
    assert (own["table"], own["ttl"], own["indexes"][0]["name"]) == ("Payouts", None, "byAdmin")
    assert created == json.loads(call("table", "describe", "--json").stdout)


def test_plan_uses_the_table_prefix_of_the_settings() -> None:
    ended = call("--url", f"{URL}?table_prefix=test-", "table", "plan", "--models", "shop.models:Payout")
    assert ended.stdout.startswith("table test-Payouts, for Payout: does not exist\n")


def test_export_with_models_prints_what_the_library_exports(folder: Path) -> None:
    ended = call("table", "export", "--models", "shop.models", "--format", "yaml")
    from shop.models import Order, Payout  # type: ignore[import-not-found]

    with Database("memory:") as db:
        assert ended.stdout == db.table.export(format="yaml", models=[Order, Payout])
    assert list(folder.glob("*.db")) == [], "exporting a template must not create a store"


# --- naming models ---


def plan_tables(*names: str) -> list[str]:
    words = [word for name in names for word in ("--models", name)]
    ended = call("table", "plan", *words, "--json")
    return [table["table"] for table in json.loads(ended.stdout)["tables"]]


def test_one_model_can_be_named_and_several() -> None:
    assert plan_tables("shop.models:Payout") == ["Payouts"]
    assert plan_tables("shop.models:Payout.Line") == ["Lines"]
    assert plan_tables("shop.models:Payout", "shop.models:Order", "shop") == ["holdall", "Payouts"]


def test_a_package_names_the_models_that_it_exports() -> None:
    assert plan_tables("shop") == ["holdall", "Payouts"]


@pytest.mark.parametrize(
    ("name", "problem", "hint"),
    [
        ("shop.orders", "there is no module shop.orders", "the working directory is searched first"),
        ("nowhere.models", "there is no module nowhere", "the working directory is searched first"),
        ("shop.users", "module shop.users defines no models", "name the module that defines them"),
        ("shop.models:Ordr", "shop.models has no model 'Ordr'", "it has: Order, Payout"),
        ("shop.models:datetime", "shop.models has no model 'datetime'", "it has: Order, Payout"),
        (
            "shop.models:Base",
            "model Base is abstract, so it has no items",
            "name the models that derive from it",
        ),
        (
            "shop.models:Model",
            "model Model is abstract, so it has no items",
            "name the models that derive from it",
        ),
        ("shop/models.py", "'shop/models.py' is not a module name", "write it as in an import: app.models"),
        ("", "'' is not a module name", "write it as in an import: app.models"),
    ],
)
def test_an_invalid_name_of_models_is_rejected(name: str, problem: str, hint: str) -> None:
    ended = call("table", "plan", "--models", name)
    assert (ended.exit_code, ended.stdout) == (2, "")
    first, second = ended.stderr.splitlines()
    assert first == f"error: {problem}"
    assert second.startswith(f"hint: {hint}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import nonesuch\n", "ModuleNotFoundError: No module named 'nonesuch'"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("def\n", "SyntaxError: "),
    ],
)
def test_an_error_while_importing_a_module_is_reported_with_its_line(
    folder: Path, text: str, problem: str
) -> None:
    (folder / "broken.py").write_text(text)
    ended = call("table", "create", "--models", "broken")
    assert (ended.exit_code, ended.stdout) == (2, "")
    first, second = ended.stderr.splitlines()
    assert first.startswith(f"error: module broken cannot be imported: {problem}")
    assert second == f"hint: look at {folder / 'broken.py'}, line 1"
    with Database(URL) as db:
        assert not db.table.exists()


def test_an_invalid_model_is_reported(folder: Path) -> None:
    (folder / "broken.py").write_text("from holdall import Model\n\n\nclass Order(Model):\n    id: str\n")
    ended = call("table", "plan", "--models", "broken")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.startswith(
        "error: Order.id: the model has no key, and its id is not declared as one\n"
    )


def test_the_installed_program_finds_the_models_of_the_working_directory(folder: Path) -> None:
    ended = start("table", "plan", "--models", "shop.models", folder=folder, HOLDALL_URL=URL)
    assert (ended.returncode, ended.stdout) == (1, PLAN)
