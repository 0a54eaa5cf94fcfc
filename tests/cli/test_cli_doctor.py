"""``holdall doctor``: its output on each stream, what it repairs, and its exit status."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_rig import call

from holdall import Database, Key, Model, field
from holdall.core import DeleteItem, PutItem, encode_item

URL = "embedded:app.db"


class Account(Model, name="DoctorAccount"):
    name: Key[str]
    email: str = field(unique=True)


MODELS = f"{__name__}:Account"


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.chdir(tmp_path)
    with Database(URL) as found:
        found.table.create(models=[Account])
        found.create(Account, name="ada", email="ada@example.com")
        yield found


def damage(db: Database) -> None:
    key = {"pk": "holdall#Unique#DoctorAccount#email#ada@example.com", "sk": "#"}
    db.send(DeleteItem(db.table.name, encode_item(key)))


def test_a_healthy_database_has_the_exit_status_0(db: Database) -> None:
    result = call("--url", URL, "doctor", "--models", MODELS)
    assert result.exit_code == 0
    assert result.stdout.split()[:5] == ["MODEL", "ITEMS", "SIZE", "DoctorAccount", "1"]
    assert result.stderr == "2 items read: nothing is wrong\n"
    assert [each.items for each in db.figures()] == [1]


def test_findings_are_printed_as_a_table_and_the_exit_status_is_1(db: Database) -> None:
    damage(db)
    result = call("--url", URL, "doctor", "--models", MODELS, "--no-figures")
    assert result.exit_code == 1
    heads, row = result.stdout.splitlines()[-2:]
    assert heads.split() == ["SEVERITY", "CHECK", "SUBJECT", "FAULT", "REPAIR"]
    assert row.split()[:2] == ["error", "unique"]
    assert "its email is not reserved" in row
    assert result.stderr.splitlines()[-2:] == [
        "error: 1 fault was found",
        f"hint: run `holdall --url {URL} doctor --repair --models {MODELS}` to repair what can be repaired",
    ]
    assert db.figures() == []


def test_the_report_can_be_json(db: Database) -> None:
    damage(db)
    result = call("--url", URL, "doctor", "--models", MODELS, "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["healthy"], report["found"], report["repaired"]) == (1, False, 1, 0)
    assert report["findings"][0]["repair"] == "reserve the value"
    assert [(each["model"], each["items"]) for each in report["models"]] == [("DoctorAccount", 1)]


def test_a_repair_is_planned_confirmed_and_done(db: Database) -> None:
    damage(db)
    unconfirmed = call("--url", URL, "doctor", "--models", MODELS, "--repair")
    assert unconfirmed.exit_code == 5
    assert "its email is not reserved" in unconfirmed.stdout
    assert "1 fault can be repaired" in unconfirmed.stderr
    assert db.get_by(Account, email="ada@example.com") is None
    result = call("--url", URL, "doctor", "--models", MODELS, "--repair", "--yes")
    assert result.exit_code == 0
    assert "done: reserve the value" in result.stdout
    assert result.stderr == "2 items read: 1 fault repaired\n"
    assert db.get_by(Account, email="ada@example.com") is not None


def test_faults_that_cannot_be_repaired_are_counted(db: Database) -> None:
    damage(db)
    unreadable = {"pk": "DoctorAccount#eve", "sk": "#"}
    db.send(PutItem("holdall", encode_item({**unreadable, "_type": "DoctorAccount"})))
    result = call("--url", URL, "doctor", "--models", MODELS, "--repair", "--yes")
    assert result.exit_code == 1
    assert "done: reserve the value" in result.stdout
    assert result.stderr.splitlines()[-1] == "error: 1 fault was not repaired"


def test_a_repair_can_be_reported_as_json(db: Database) -> None:
    damage(db)
    result = call("--url", URL, "doctor", "--models", MODELS, "--repair", "--yes", "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["healthy"], report["repaired"]) == (0, True, 1)
    assert report["findings"][0]["repaired"] is True


def test_a_table_can_be_read_in_segments_and_slowly(db: Database) -> None:
    words = ("--url", URL, "doctor", "--models", MODELS, "--segments", "3", "--rate", "1000")
    assert call(*words).stderr == "2 items read: nothing is wrong\n"
    damage(db)
    assert call(*words).exit_code == 1


def test_a_check_can_run_alone(db: Database) -> None:
    damage(db)
    assert call("--url", URL, "doctor", "--models", MODELS, "--only", "tables").exit_code == 0
    assert call("--url", URL, "doctor", "--models", MODELS, "--only", "unique").exit_code == 1


def test_permissions_that_were_not_tried_are_listed(db: Database) -> None:
    words = ("--url", URL, "doctor", "--only", "permissions", "--feature", "create", "--feature", "models")
    result = call(*words)
    assert result.exit_code == 0
    assert "dynamodb:CreateTable on table holdall was not tried: if another process " in result.stderr
    report = json.loads(call(*words, "--json").stdout)
    assert "dynamodb:CreateTable" in [each["action"] for each in report["untried"]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "everything"], "'everything' is not a check; the checks are configuration, "),
        (["--feature", "model"], "there is no policy for 'model'"),
        (["--yes"], "--yes is only for --repair"),
        (["--repair", "--json"], "--repair with --json cannot ask; add --yes if you are sure"),
        (["--models", "nowhere"], "there is no module nowhere"),
        (["--segments", "0"], "0 is not in the range 1<=x<=1000"),
        (["--rate", "0"], "0.0 is not in the range x>0"),
    ],
    ids=["check", "feature", "yes", "json", "module", "segments", "rate"],
)
def test_invalid_options_are_rejected(db: Database, words: list[str], message: str) -> None:
    result = call("--url", URL, "doctor", *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_missing_database_has_the_exit_status_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("--url", URL, "doctor").exit_code == 3
