"""Every command with valid and invalid input: its output, its exit status, and that a refused command writes nothing.

A new command fails the first test until ``command_cases`` has cases for it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from cli_rig import call, list_commands
from click.testing import Result
from command_cases import COMMANDS, MODULE, Bad, Good
from PIL import Image

from holdall import Database
from holdall.cli.module import load_module
from holdall.core import CreateTable, DeleteItem, KeyAttribute, PutItem, TableSchema, encode_item

ALL = {
    words.removeprefix("holdall "): command
    for words, command in list_commands()
    if not isinstance(command, click.Group)
}
NEEDS_NO_FILE = {"restore", "table create", "table delete", "table export", "table plan", "table policy"}
"""Commands that succeed without the database's file: they create it, or do not need it."""


def list_parameters(name: str) -> set[str | None]:
    return {each.name for each in ALL[name].params}


class Market(NamedTuple):
    """A directory with a database, and IDs in that database."""

    folder: Path
    ids: dict[str, str]


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Market]:
    """The directory in which invalid input runs, because that changes nothing; valid input runs in a copy."""
    folder = tmp_path_factory.mktemp("market")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("HOLDALL_", "AWS_")):
                patch.delenv(name)
        patch.setattr(sys, "path", [*sys.path])
        patch.chdir(folder)
        yield Market(folder, _prepare(folder))
    sys.modules.pop("market", None)


def _prepare(folder: Path) -> dict[str, str]:
    (folder / "market.py").write_text(MODULE, encoding="utf-8")
    (folder / "note.txt").write_text("a note", encoding="utf-8")
    (folder / "empty").mkdir()
    module = load_module("market")
    picture = BytesIO()
    Image.new("RGB", (4, 4)).save(picture, "PNG")
    (folder / "small.png").write_bytes(picture.getvalue())
    with Database("embedded:holdall.db", durability="normal") as db:
        db.table.create(models=[module.Order, module.Guest])
        db.create(module.Customer, name="ada", mail="ada@x")
        for number, year in ((1, 2020), (2, 2099), (3, 2099), (4, 2020)):
            db.create(module.Order, customer="ada", number=number, placed=datetime(year, 1, 1, tzinfo=UTC))
        db.archive.run(module.Order, force=True)
        db.send(DeleteItem("holdall", encode_item({"pk": "Order#ada", "sk": "p5014"})))  # leaves its object
        for content in (b"one", b"two", b"three", b"four"):
            db.artifacts.publish("app", content)
        db.artifacts.delete("app", 4)
        for number in (2, 1):
            db.artifacts.put_alias("app", "prod", number)
        db.artifacts.put_alias("app", "safe", 1, protected=True)
        db.artifacts.put_alias("app", "moving", 1)
        db.artifacts.start_rollout("app", "moving", 2, [(5, None)])
        db.artifacts.put_alias("app", "paused", 1)
        db.artifacts.start_rollout("app", "paused", 2, [(5, 3600)])
        db.artifacts.pause_rollout("app", "paused")
        blob = db.blobs.create_and_upload(b"a note", filename="note.txt")
        image = db.blobs.create_and_upload(picture.getvalue(), filename="small.png")
        db.blobs.attach(blob.id, record_type="Customer", record_id="ada", name="photo")
        (attachment,) = db.blobs.attachments(blob.id)
        job = db.jobs.enqueue(module.work)
        db.send(CreateTable(TableSchema("foreign", KeyAttribute("id"))))
        db.send(PutItem("foreign", encode_item({"id": "a", "size": 3})))
        db.backup("backup")
        (folder / "items.jsonl").write_text("\n".join(db.dump_lines()) + "\n", encoding="utf-8")
    return {"@blob": blob.id, "@image": image.id, "@attachment": attachment.id, "@job": job.id}


def run(market: Market, name: str, case: Good | Bad, *more: str) -> Result:
    words = [market.ids.get(word, word) for word in shlex.split(case.words)]
    ended = call(*name.split(), *words, *more, typed=case.typed)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended


def read_everything(folder: Path) -> dict[str, Any]:
    """Everything in a directory: the items of databases, and the bytes of other files."""
    found: dict[str, Any] = {}
    for place, folders, names in os.walk(folder):
        found[place] = sorted({*folders, *names} - {"__pycache__", "holdall.db-wal", "holdall.db-shm"})
        for path in (Path(place, name) for name in names):
            if path.name == "holdall.db":
                with sqlite3.connect(path) as connection:
                    for table in ("items", "catalog"):
                        found[table] = connection.execute(f"select * from {table}").fetchall()
            elif path.suffix not in (".pyc", ".db-wal", ".db-shm"):
                found[str(path)] = path.read_bytes()
    return found


@pytest.fixture
def unchanged_market(market: Market) -> Iterator[None]:
    """Check that a test has written nothing."""
    before = read_everything(market.folder)
    yield
    assert read_everything(market.folder) == before


def refuse(market: Market, name: str, case: Bad, *more: str) -> str:
    """Run a command that has to fail; return the error."""
    ended = run(market, name, case, *more)
    about = f"{name} {case.words}: {ended.output}"
    assert case.problem in ended.stderr, about
    assert (ended.exit_code, ended.stdout) == (case.status, ""), about
    return ended.stderr


# --- the table of cases -----------------------------------------------------------------------------------


def test_every_command_has_good_and_bad_cases() -> None:
    assert COMMANDS.keys() == ALL.keys()
    assert [name for name, cases in COMMANDS.items() if not cases.bad] == []
    assert [name for name, cases in COMMANDS.items() if not cases.good] == ["serve"]


# --- good input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, cases in COMMANDS.items() if cases.good])
def test_good_input_succeeds(
    market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for number, case in enumerate(COMMANDS[name].good):
        monkeypatch.chdir(shutil.copytree(market.folder, tmp_path / str(number)))
        ended = run(market, name, case)
        assert ended.exit_code == 0, f"{case.words}: {ended.output}"
        assert case.prints in ended.output, case.words
        assert "error" not in ended.stderr.lower()
        if "--json" in case.words.split():
            json.loads(ended.stdout)


# --- bad input --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unchanged_market")
@pytest.mark.parametrize("name", COMMANDS)
def test_bad_input_is_refused_and_nothing_is_written(market: Market, name: str) -> None:
    for case in (*COMMANDS[name].bad, Bad("--no-such-option", 2, "No such option")):
        refuse(market, name, case)
        if "as_json" in list_parameters(name):
            error = json.loads(run(market, name, case, "--json").stderr.splitlines()[-1])["error"]
            assert case.problem in f"{error['message']} {error['hint']}"
            assert error.keys() == {"code", "message", "hint"}


@pytest.mark.usefixtures("unchanged_market")
@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if "url" in list_parameters(name) and name != "serve"]
)
def test_an_invalid_url_and_a_missing_file_are_refused(market: Market, name: str) -> None:
    good = COMMANDS[name].good[0]
    bad = Bad(good.words, 2, "is not a database URL\nhint: use one of: ", good.typed)
    refuse(market, name, bad, "--url", "mysql://here")
    if name not in NEEDS_NO_FILE:
        bad = Bad(good.words, 3, "there is no file", good.typed)
        assert "\nhint: " in refuse(market, name, bad, "--url", "embedded:none.db")


CONFIRMED = [name for name, cases in COMMANDS.items() if cases.good and "--yes" in cases.good[0].words]


@pytest.mark.usefixtures("unchanged_market")
@pytest.mark.parametrize("name", CONFIRMED)
def test_without_a_terminal_a_deletion_needs_yes(market: Market, name: str) -> None:
    words = COMMANDS[name].good[0].words.replace("--yes", "")
    refuse(market, name, Bad(words, 5, "there is no terminal to ask for confirmation\nhint: add --yes"))


def test_every_command_with_a_confirmation_has_a_case_with_yes() -> None:
    assert {name for name in COMMANDS if "yes" in list_parameters(name)} == {*CONFIRMED, "doctor"}
