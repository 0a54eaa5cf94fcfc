"""``holdall models list``, ``show`` and ``stubs``: what models declare, without a database."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
from cli_rig import call

MODELS = """
from datetime import datetime

from holdall import Index, Key, Model, SortKey, Template, field


class Order(Model, indexes=[Index("by_status", key=["status"], sort_key=["number"])]):
    customer: Key[str]
    number: SortKey[int]
    status: str = "open"
    mail: str = field(unique=True, name="eMail")
    made_at: datetime = field(now="create")


class Profile(Model, table="app", layout=Template(pk="C#{customer}", sk="PROFILE", type="entity")):
    customer: Key[str]
    until: datetime | None = field(default=None, stored="epoch", aliases=["end"])


class Own(Model, table="Own", indexes=[Index("by_kind", key=["kind"], include=[])]):
    id: Key[int]
    kind: str
    version: int = field(default=0, version=True)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "facts", raising=False)
    monkeypatch.delenv("HOLDALL_URL", raising=False)
    Path("facts.py").write_text(MODELS)


def test_models_are_listed_in_a_table() -> None:
    ended = call("models", "list", "facts", "facts:Own")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout == (
        "model          table  layout    key               fields  indexes\n"
        "facts:Order    -      shared    customer, number  5       by_status\n"
        "facts:Profile  app    template  customer          2       -\n"
        "facts:Own      Own    own       id                3       by_kind\n"
    )


def test_a_model_is_shown() -> None:
    assert call("models", "show", "facts:Order").stdout == (
        "model            facts:Order\n"
        "name             Order\n"
        "table            the database's table\n"
        "layout           Holdall's, in the database's table\n"
        'partition key    customer; stored as "Order#{customer}" (S)\n'
        'sort key         number; stored as "{number}" (S)\n'
        "type attribute   _type\n"
        "unique           mail\n"
        "index by_status  status; number; gsi1: gsi1_pk (S), gsi1_sk (S)\n"
        "\n"
        "field     type      attribute  stored as\n"
        "customer  str       customer   S          partition key\n"
        "number    int       number     N          sort key\n"
        "status    str       status     S          default 'open'\n"
        "mail      str       eMail      S          required; unique\n"
        "made_at   datetime  made_at    S          set on create\n"
    )


def test_keys_and_stored_forms_of_other_layouts_are_shown() -> None:
    shown = call("models", "show", "facts:Profile").stdout
    assert 'partition key   customer; stored as pk "C#{customer}" (S)\n' in shown
    assert 'sort key        none; stored as sk "PROFILE" (S)\n' in shown
    assert "until     datetime | None  until      N, epoch   formerly end\n" in shown
    shown = call("models", "show", "facts:Own").stdout
    assert "partition key  id; stored as _id (N)\n" in shown
    assert "index by_kind  kind; by_kind: kind (S); holds only keys\n" in shown
    assert "id       int   only in the key  N          partition key\n" in shown
    assert "version  int   version          N          default 0; counts writes\n" in shown


def test_models_can_be_listed_and_shown_as_json() -> None:
    shown = json.loads(call("models", "show", "facts:Own", "--json").stdout)
    assert (shown["model"], shown["layout"], shown["version"]) == ("facts:Own", "own", "version")
    listed = json.loads(call("models", "list", "facts", "--json").stdout)
    assert [each["name"] for each in listed["models"]] == ["Order", "Profile", "Own"]
    assert listed["models"][2] == shown


def test_show_takes_one_model() -> None:
    ended = call("models", "show", "facts")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "'facts' does not name a model; write MODULE:CLASS, as in facts:Order" in ended.stderr


def test_stubs_are_written_and_checked() -> None:
    missing = call("models", "stubs", "facts", "--check")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert missing.stderr.endswith("is missing or outdated\nhint: run `holdall models stubs facts`\n")
    assert not Path("typings").exists()
    ended = call("models", "stubs", "facts")
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert ended.stderr == "typings: stubs for 3 models, 5 files written\n"
    assert call("models", "stubs", "facts", "--check").exit_code == 0
    assert call("models", "stubs", "facts").stderr == "typings: stubs for 3 models, 0 files written\n"
    assert call("models", "stubs", "facts:Own", "--check").exit_code == 1


def test_stubs_contain_the_components_of_keys_and_the_names_of_indexes() -> None:
    call("models", "stubs", "facts", "--output", "stubs")
    written = {path.name: path.read_text() for path in Path("stubs").rglob("*.pyi")}
    assert {*written} == {"key.pyi", "api.pyi", "reader.pyi", "runner.pyi"}  # two of them are runner.pyi
    for text in written.values():
        assert isinstance(ast.parse(text), ast.Module)
    assert "/, *, customer: str, number: int) -> _M0 | None:" in written["reader.pyi"]
    assert "index: _typing.Literal['by_status']" in written["reader.pyi"]
    assert (
        "whose key is (customer: str, number: int) and whose indexes are by_status" in written["reader.pyi"]
    )
    assert "def __call__(self: KeyMaker[_M2], *, id: int) -> ModelKey[_M2]:" in written["key.pyi"]


def test_stubs_that_cannot_be_written_are_an_error() -> None:
    Path("typings").write_text("not a directory")
    ended = call("models", "stubs", "facts")
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert "cannot be written" in ended.stderr
