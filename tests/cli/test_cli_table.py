"""``holdall table``: create, describe, delete, export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_rig import answer_prompts, call, enter, start

from holdall import Database
from holdall.core import (
    AddIndex,
    CreateTable,
    IndexSchema,
    KeyAttribute,
    Projection,
    PutItem,
    TableSchema,
)

URL = "embedded:app.db"
DESCRIPTION = """\
table          holdall
status         ACTIVE
partition key  pk (S)
sort key       sk (S)
mode           A: the sort key is a string
expires by     _ttl
items          2
size           12 bytes
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch, URL)
    return tmp_path


def exists() -> bool:
    with Database(URL) as db:
        return db.table.exists()


def fill_table() -> None:
    with Database(URL) as db:
        db.table.create()
        for name in ("a", "b"):
            db.send(PutItem("holdall", {"pk": {"S": name}, "sk": {"S": name}}))


# --- create ---


def test_create_creates_the_table_and_reports_it_on_stderr() -> None:
    ended = call("table", "create")
    assert ended.exit_code == 0
    assert ended.stdout == ""
    assert ended.stderr == "table holdall is ready: keys pk and sk, mode A\n"
    assert exists()


def test_creating_the_table_again_keeps_its_items() -> None:
    fill_table()
    assert call("table", "create").exit_code == 0
    with Database(URL) as db:
        assert db.table.describe().item_count == 2


def test_create_can_print_the_table_as_json() -> None:
    ended = call("table", "create", "--mode", "B", "--json")
    created = json.loads(ended.stdout)
    assert (created["table"], created["mode"], created["sort_key"]) == (
        "holdall",
        "B",
        {"name": "sk", "type": "N"},
    )
    assert created == json.loads(call("table", "describe", "--json").stdout)


def test_create_refuses_an_unsuitable_table_and_prints_a_suitable_schema() -> None:
    with Database(URL) as db:
        db.send(CreateTable(TableSchema("holdall", KeyAttribute("pk"))))
    ended = call("table", "create")
    assert ended.exit_code == 2
    assert ended.stderr.startswith("error: table holdall has no sort key\nhint: ")
    assert json.loads(ended.stderr.partition("\n{")[1].strip() + ended.stderr.partition("\n{")[2])


def test_create_uses_the_name_and_keys_of_the_settings() -> None:
    call("--url", f"{URL}?table_name=orders&partition_key=h&sort_key=r", "table", "create")
    with Database(URL, table_name="orders") as db:
        assert [key.name for key in db.table.describe().schema.keys] == ["h", "r"]


# --- describe ---


def test_describe_shows_the_table_in_two_columns() -> None:
    fill_table()
    ended = call("table", "describe")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, DESCRIPTION, "")


def test_describe_shows_every_index() -> None:
    with Database(URL) as db:
        db.table.create(mode="B")
    last = call("table", "describe").stdout.splitlines()[-1]
    assert last == "index active_storage_index  as_index_pk (S), as_index_sk (S); holds ALL; ACTIVE"


def test_describe_can_print_json() -> None:
    fill_table()
    ended = call("table", "describe", "--json")
    assert json.loads(ended.stdout) == {
        "table": "holdall",
        "status": "ACTIVE",
        "partition_key": {"name": "pk", "type": "S"},
        "sort_key": {"name": "sk", "type": "S"},
        "mode": "A",
        "problem": None,
        "ttl": "_ttl",
        "items": 2,
        "size_bytes": 12,
        "indexes": [],
    }


def test_describe_shows_an_unsuitable_table_with_a_warning() -> None:
    team = IndexSchema("by_team", KeyAttribute("team", "B"), None, Projection("INCLUDE", ("name", "rank")))
    with Database(URL) as db:
        db.send(CreateTable(TableSchema("holdall", KeyAttribute("pk"), indexes=(team,))))
    ended = call("table", "describe")
    assert ended.exit_code == 0
    assert "sort key       none\n" in ended.stdout
    assert "index by_team  team (B); holds name, rank; ACTIVE\n" in ended.stdout
    assert ended.stderr.startswith(
        "warning: Holdall cannot use this table: table holdall has no sort key\nhint: "
    )
    data: dict[str, Any] = json.loads(call("table", "describe", "--json").stdout)
    assert (data["mode"], data["sort_key"], data["ttl"]) == (None, None, None)
    assert data["problem"].startswith("table holdall has no sort key")
    assert data["indexes"][0]["projected"] == ["name", "rank"]


def test_describe_does_not_add_a_missing_index() -> None:
    with Database(URL) as db:
        db.send(CreateTable(TableSchema("holdall", KeyAttribute("pk"), KeyAttribute("sk", "N"))))
    ended = call("table", "describe")
    assert "needs the index active_storage_index" in ended.stderr
    with Database(URL) as db:
        assert db.table.describe().schema.indexes == ()


@pytest.mark.parametrize(
    "words",
    [
        ("table", "describe"),
        ("jobs", "list"),
        ("artifacts", "list"),
        ("blobs", "show", "x"),
        ("models", "inspect", "orders"),
    ],
)
def test_commands_do_not_create_a_missing_database(folder: Path, words: tuple[str, ...]) -> None:
    ended = call(*words)
    assert (ended.exit_code, ended.stdout) == (3, "")
    assert ended.stderr == (
        f"error: there is no table holdall, because there is no file {folder / 'app.db'}\n"
        "hint: run `holdall table create` to create both, or this command where the file is\n"
    )
    assert [*folder.iterdir()] == []


def test_deleting_the_table_of_a_missing_database_succeeds(folder: Path) -> None:
    ended = call("table", "delete")
    assert (ended.exit_code, ended.stderr) == (0, "there is no table holdall: nothing to delete\n")
    assert [*folder.iterdir()] == []


def test_a_missing_table_is_an_error_with_a_hint() -> None:
    Database(URL).close()
    ended = call("table", "describe")
    assert (ended.exit_code, ended.stdout) == (3, "")
    assert ended.stderr == (
        "error: there is no table holdall\n"
        "hint: create it with `holdall --url embedded:app.db table create`, or check the name\n"
    )


# --- delete ---


def test_with_yes_the_table_is_deleted() -> None:
    fill_table()
    ended = call("table", "delete", "--yes")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "table holdall deleted\n")
    assert not exists()


def test_without_a_terminal_nothing_is_deleted() -> None:
    fill_table()
    ended = call("table", "delete", typed="holdall\n")
    assert ended.exit_code == 5
    assert ended.stderr == (
        "error: table holdall was not deleted: there is no terminal to ask for confirmation\n"
        "hint: add --yes if you are sure\n"
    )
    assert exists()


def test_deleting_a_missing_table_succeeds_without_confirmation() -> None:
    ended = call("table", "delete")
    assert (ended.exit_code, ended.stderr) == (0, "there is no table holdall: nothing to delete\n")


def run_at_terminal(folder: Path, typed: str, *command: str) -> tuple[int, str]:
    """Delete the table, or run another command, at a terminal and type this; return the status and the output."""
    return answer_prompts("table", *(command or ("delete",)), typed=typed, folder=folder, url=URL)


def test_at_a_terminal_typing_the_name_deletes_the_table(folder: Path) -> None:
    fill_table()
    code, seen = run_at_terminal(folder, "holdall\n")
    assert code == 0
    assert "This deletes table holdall and its 2 items. It cannot be undone." in seen
    assert seen.endswith("table holdall deleted\n")
    assert not exists()


def create_with_index() -> None:
    with Database(URL) as db:
        db.table.create()
        db.send(AddIndex("holdall", IndexSchema("spare", KeyAttribute("x"), KeyAttribute("y", "N"))))


def has_the_index() -> bool:
    with Database(URL) as db:
        return [index.name for index in db.table.describe().schema.indexes] == ["spare"]


INDEX_MESSAGE = "index spare of table holdall: x (S), y (N). The items stay.\n"


def test_with_yes_an_index_is_removed_and_a_missing_one_needs_no_confirmation() -> None:
    create_with_index()
    ended = call("table", "remove-index", "spare", "--dry-run")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", f"This would remove {INDEX_MESSAGE}")
    ended = call("table", "remove-index", "spare")
    assert ended.exit_code == 5
    assert "error: index spare was not removed: there is no terminal to ask" in ended.stderr
    assert has_the_index()
    ended = call("table", "remove-index", "spare", "--yes")
    assert (ended.exit_code, ended.stderr) == (0, f"This removes {INDEX_MESSAGE}index spare removed\n")
    assert not has_the_index()
    ended = call("table", "remove-index", "spare")
    assert (ended.exit_code, ended.stderr) == (0, "table holdall has no index spare: nothing to remove\n")


@pytest.mark.parametrize(("typed", "removes"), [("spare\n", True), ("y\n", False)], ids=["name", "y"])
def test_at_a_terminal_typing_the_name_removes_the_index(folder: Path, typed: str, removes: bool) -> None:
    create_with_index()
    code, seen = run_at_terminal(folder, typed, "remove-index", "spare")
    assert INDEX_MESSAGE in seen
    assert code == (0 if removes else 5)
    assert has_the_index() is not removes


@pytest.mark.parametrize("typed", ["y\n", "yes\n", "\n", "Holdall\n"])
def test_at_a_terminal_typing_anything_else_deletes_nothing(folder: Path, typed: str) -> None:
    fill_table()
    code, seen = run_at_terminal(folder, typed)
    assert code == 5
    assert seen.endswith("error: table holdall was not deleted: you did not type the table's name\n")
    assert exists()


# --- export ---


def test_export_prints_what_the_library_exports(folder: Path) -> None:
    with Database("memory:") as db:
        assert call("table", "export").stdout == db.table.export()
        assert call("table", "export", "--format", "yaml", "--mode", "B").stdout == db.table.export(
            format="yaml", mode="B"
        )
        for form in ("terraform", "cdk"):
            assert call("table", "export", "--format", form).stdout == db.table.export(format=form)
    assert list(folder.iterdir()) == [], "exporting a template must not create a store"


def test_policy_prints_what_the_library_exports(folder: Path) -> None:
    with Database("memory:") as db:
        assert call(
            "table", "policy", "models", "jobs", "--account", "123456789012"
        ).stdout == db.table.export_policy(["models", "jobs"], account="123456789012")
        assert call("table", "export", "--policy", "reads", "--policy", "scan").stdout == db.table.export(
            policy=["reads", "scan"]
        )
    assert list(folder.iterdir()) == [], "exporting a policy must not create a store"


def test_a_policy_for_an_unknown_feature_is_an_error(folder: Path) -> None:
    for command in (["table", "policy", "job"], ["table", "export", "--policy", "job"]):
        ended = call(*command)
        assert ended.exit_code == 2
        assert ended.stdout == ""
        assert ended.stderr == "error: there is no policy for 'job'\nhint: did you mean 'jobs'?\n"
    assert "needs a bucket" in call("table", "policy", "archive").stderr
    assert call("table", "policy").exit_code == 2


def test_export_needs_neither_region_nor_credentials(folder: Path) -> None:
    ended = start("--url", "dynamodb://my-app", "table", "export", folder=folder)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["Resources"]["Table"]["Properties"]["TableName"] == "my-app"


def test_the_export_of_an_existing_table_has_its_keys() -> None:
    with Database(URL) as db:
        db.send(CreateTable(TableSchema("holdall", KeyAttribute("id", "B"))))
    exported = json.loads(call("table", "export", "--existing").stdout)
    keys = exported["Resources"]["Table"]["Properties"]["AttributeDefinitions"]
    assert keys == [{"AttributeName": "id", "AttributeType": "B"}]


def test_data_goes_to_stdout_and_messages_go_to_stderr(folder: Path) -> None:
    ended = start("table", "create", "--json", folder=folder, HOLDALL_URL=URL)
    assert json.loads(ended.stdout)["status"] == "ACTIVE"
    assert ended.stderr == "table holdall is ready: keys pk and sk, mode A\n"
    assert "\x1b" not in ended.stdout + ended.stderr
