"""``holdall migrate``: what it does, its output on each stream, and its exit status."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_rig import INSTALLED, bare_environment, call, enter, start

from holdall import Database, Key, Model, SortKey, field
from holdall.core import Path as AttributePath
from holdall.core import Remove, Scan, Update, UpdateItem

URL = "embedded:app.db"
MODELS = """
from holdall import Index, Key, Model, SortKey, field

stopping = []


def to_cents(item):
    if item["id"] in stopping:
        raise KeyboardInterrupt
    item["cents"] = round(item.pop("euros") * 100)
    return item


class Base(Model, abstract=True):
    note: str | None = None


class Order(Base, migrations=[to_cents], indexes=[Index("by_cents", ["cents"])]):
    id: Key[int]
    cents: int


class Parcel(Base):
    id: Key[int]
    kind: SortKey[str] = "parcel"
    kilos: int = field(default=0, aliases=["weight"])


class Crate(Parcel):
    kind = "crate"


class Own(Model, table="Own"):
    id: Key[int]
    kilos: int = field(default=0, aliases=["weight"])


NUMBER = 5
"""


class Order(Model):
    """Orders as an older program declares them."""

    id: Key[int]
    euros: float


class Parcel(Model):
    id: Key[int]
    kind: SortKey[str] = field(default="parcel")
    weight: int


class Crate(Parcel):
    kind = "crate"


class Own(Model, table="Own"):
    id: Key[int]
    weight: int


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An application: ``shop/models.py``."""
    enter(tmp_path, monkeypatch, URL)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.partition(".")[0] in ("shop", "broken")]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "models.py").write_text(MODELS)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    return tmp_path


def fill(orders: int = 3) -> None:
    with Database(URL, durability="normal") as db:
        for first in range(0, orders, 50):
            with db.transaction() as tx:
                for number in range(first, min(first + 50, orders)):
                    tx.create(Order, id=number, euros=number + 0.5)
        with db.transaction() as tx:
            tx.create(Parcel, id=1, weight=5)
            tx.create(Crate, id=1, weight=6)
            tx.create(Own, id=1, weight=7)


def spoil(*numbers: int) -> None:
    """Remove the attribute that the conversion of these orders needs."""
    with Database(URL) as db:
        for number in numbers:
            key = {"pk": {"S": f"Order#{number}"}, "sk": {"S": "#"}}
            db.send(UpdateItem("holdall", key, Update((Remove(AttributePath(("euros",))),))))


def list_items(table: str = "holdall") -> list[Any]:
    with Database(URL) as db:
        return list(db.send(Scan(table, consistent=True)).items)


def count_converted() -> int:
    return sum("_v" in item for item in list_items())


# --- migrating ---


def test_items_are_brought_up_to_date_and_the_summary_goes_to_stdout() -> None:
    fill()
    ended = call("migrate", "shop.models:Order")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout == "shop.models:Order: 3 items, 3 brought up to date\n"
    orders = {item["id"]["N"]: item for item in list_items() if item["_type"]["S"] == "Order"}
    assert {number: item["cents"]["N"] for number, item in orders.items()} == {
        "0": "50",
        "1": "150",
        "2": "250",
    }
    assert all({"euros"}.isdisjoint(item) and "gsi1_pk" in item for item in orders.values())


def test_a_second_run_changes_nothing() -> None:
    fill()
    call("migrate", "shop.models:Order")
    before = list_items()
    ended = call("migrate", "shop.models:Order")
    assert (ended.exit_code, ended.stdout) == (0, "shop.models:Order: 3 items, 0 brought up to date\n")
    assert list_items() == before


def test_several_models_are_migrated_one_after_the_other() -> None:
    fill()
    ended = call("migrate", "shop.models:Own", "shop.models:Order", "shop.models:Own")
    assert ended.stdout == (
        "shop.models:Own: 1 item, 1 brought up to date\nshop.models:Order: 3 items, 3 brought up to date\n"
    )
    assert list_items("Own") == [{"_id": {"N": "1"}, "kilos": {"N": "7"}}]


def test_a_module_names_its_models_each_including_its_subclasses() -> None:
    fill()
    ended = call("migrate", "shop.models")
    assert ended.stdout.splitlines() == [
        "shop.models:Order: 3 items, 3 brought up to date",
        "shop.models:Parcel: 2 items, 2 brought up to date",
        "shop.models:Own: 1 item, 1 brought up to date",
    ]


def test_a_dry_run_changes_nothing() -> None:
    fill()
    spoil(1)
    before = list_items()
    ended = call("migrate", "shop.models:Order", "--dry-run")
    assert ended.exit_code == 1
    assert ended.stdout == "shop.models:Order: 3 items, 2 would be brought up to date, 1 failed\n"
    assert list_items() == before


def test_segments_and_a_rate_do_not_change_the_result() -> None:
    fill()
    ended = call("migrate", "shop.models:Order", "--segments", "4", "--rate", "100000")
    assert (ended.exit_code, count_converted()) == (0, 3)


def test_a_url_names_the_database() -> None:
    fill()
    ended = call("migrate", "--url", f"{URL}?table_name=other", "shop.models:Order")
    assert ended.exit_code == 2
    assert ended.stderr.startswith("error: there is no table other\nhint: ")
    assert count_converted() == 0


# --- items that cannot be brought up to date ---


def test_failed_items_are_reported_and_the_others_are_migrated() -> None:
    fill()
    spoil(1)
    ended = call("migrate", "shop.models:Order", "shop.models:Own")
    assert ended.exit_code == 1
    assert ended.stdout.splitlines() == [
        "shop.models:Order: 3 items, 2 brought up to date, 1 failed",
        "shop.models:Own: 1 item, 1 brought up to date",
    ]
    problem, error, hint = ended.stderr.splitlines()
    assert re.match(r"problem: shop\.models:Order: Order#1.*to_cents.*KeyError: 'euros'", problem)
    assert error == "error: 1 item could not be brought up to date"
    assert hint.startswith("hint: ")
    assert count_converted() == 2


def test_only_the_first_problems_are_listed() -> None:
    fill(orders=24)
    spoil(*range(24))
    ended = call("migrate", "shop.models:Order")
    lines = ended.stderr.splitlines()
    assert sum(line.startswith("problem: ") for line in lines) == 20
    assert lines[20:22] == ["… and 4 more", "error: 24 items could not be brought up to date"]


# --- JSON ---


def test_the_report_can_be_json() -> None:
    fill()
    spoil(1)
    ended = call("migrate", "shop.models:Order", "shop.models:Own", "--json")
    report = json.loads(ended.stdout)
    problem = report["models"][0]["problems"].pop()
    assert "Order#1" in problem
    assert report == {
        "dry_run": False,
        "models": [
            {
                "model": "shop.models:Order",
                "scanned": 5,
                "found": 3,
                "changed": 2,
                "failed": 1,
                "problems": [],
            },
            {
                "model": "shop.models:Own",
                "scanned": 1,
                "found": 1,
                "changed": 1,
                "failed": 0,
                "problems": [],
            },
        ],
    }
    assert ended.exit_code == 1
    assert json.loads(ended.stderr.splitlines()[-1])["error"]["code"] == "error"


# --- progress ---


def test_without_a_terminal_progress_is_printed_as_lines(folder: Path) -> None:
    fill(orders=1100)
    ended = start("migrate", "shop.models:Order", "--dry-run", folder=folder, HOLDALL_URL=URL)
    assert ended.returncode == 0
    assert ended.stderr == "shop.models:Order: 1,102 items read, 1,100 changed\n"
    assert "\x1b" not in ended.stdout + ended.stderr


@pytest.mark.parametrize(("model", "last"), [("Order", "5/5"), ("Own", "1")])
def test_at_a_terminal_progress_is_a_bar_that_is_full_at_the_end(folder: Path, model: str, last: str) -> None:
    fill()
    assert INSTALLED is not None
    ours, theirs = pty.openpty()
    ended = subprocess.run(
        [INSTALLED, "migrate", f"shop.models:{model}", "--json"],
        cwd=folder,
        env={**bare_environment(folder), "HOLDALL_URL": URL, "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        timeout=300,
    )
    os.close(theirs)
    seen = os.read(ours, 100_000).decode()
    os.close(ours)
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["models"][0]["failed"] == 0
    assert f"shop.models:{model}" in seen
    assert last in re.split(r"[\r\n]+", seen.strip())[-1]


# --- interruption ---


def test_an_interrupted_run_can_be_continued_and_says_so() -> None:
    fill()
    from importlib import import_module

    sys.path.insert(0, str(Path.cwd()))
    models = import_module("shop.models")
    models.stopping.append(1)
    ended = call("migrate", "shop.models:Order")
    assert ended.exit_code == 1
    assert ended.stderr.startswith("stopped: run the same command again to continue from about here\n")
    models.stopping.clear()
    ended = call("migrate", "shop.models:Order")
    assert (ended.exit_code, count_converted()) == (0, 3)


def test_an_interrupted_dry_run_does_not_offer_to_continue() -> None:
    fill()
    from importlib import import_module

    sys.path.insert(0, str(Path.cwd()))
    import_module("shop.models").stopping.append(1)
    ended = call("migrate", "shop.models:Order", "--dry-run")
    assert ended.exit_code == 1
    assert "stopped" not in ended.stderr


def test_a_run_can_start_from_the_beginning() -> None:
    fill()
    ended = call("migrate", "shop.models:Order", "--restart")
    assert (ended.exit_code, count_converted()) == (0, 3)


# --- invalid command lines ---


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("shop.nothing:Order", "there is no module shop.nothing"),
        ("nothing.models:Order", "there is no module nothing"),
        ("shop.models:Ordr", "shop.models has no model 'Ordr'"),
        ("shop.models:NUMBER", "shop.models has no model 'NUMBER'"),
        ("shop.models:Base", "model Base is abstract"),
        ("shop.models:", "shop.models has no model ''"),
        ("broken:Order", "module broken cannot be imported: ZeroDivisionError"),
        ("shop/models.py", "'shop/models.py' is not a module name"),
    ],
)
def test_an_invalid_name_of_a_model_is_an_error(name: str, problem: str) -> None:
    fill()
    ended = call("migrate", "shop.models:Order", name)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"error: {problem}")
    assert "\nhint: " in ended.stderr
    assert count_converted() == 0, "nothing must be migrated"


@pytest.mark.parametrize(
    "options",
    [(), ("shop.models:Order", "--segments", "0"), ("shop.models:Order", "--rate", "0"), ("x:Y", "--fast")],
)
def test_an_invalid_command_line_has_the_exit_status_2(options: tuple[str, ...]) -> None:
    ended = call("migrate", *options)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "Error: " in ended.stderr


# --- the guide ---


def test_the_commands_of_the_guide_print_what_it_shows(folder: Path) -> None:
    guide = Path(__file__).resolve().parents[2] / "docs" / "guides" / "evolution.md"
    block = re.compile(r"^```bash\n(.*?)^```\n\n```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
    (found,) = block.findall(guide.read_text(encoding="utf-8"))
    commands, shown = found
    (folder / "shop").rename(folder / "app")
    fill()
    printed = ""
    for command in commands.splitlines():
        ended = start(*command.split()[1:], folder=folder, HOLDALL_URL=URL)
        assert (ended.returncode, ended.stderr) == (0, "")
        printed += ended.stdout
    assert printed == shown
