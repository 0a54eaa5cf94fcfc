"""``holdall archive``: what it moves, restores and shows, its output on each stream, and its exit status."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cli_rig import call, enter, start

from holdall import Archive, Database, Key, Model, SortKey
from holdall.backends.port.world import World

URL = "embedded:app.db"
SHOP = """
from datetime import datetime

from holdall import Archive, Key, Model, SortKey


class Order(Model, archive=Archive(timestamp="placed_at", after_days=30, key="orders/{partitionKey}/{sortKey}")):
    customer: Key[str]
    number: SortKey[int]
    placed_at: datetime
    note: str


class Rush(Order):
    pass


class Customer(Model):
    id: Key[str]
"""
TOKENS = """
from datetime import datetime

from holdall import Archive, Key, Model


class Token(Model, archive=Archive(timestamp="made_at", key="tokens/{partitionKey}")):
    digest: Key[bytes]
    made_at: datetime
"""


class Order(
    Model, archive=Archive(timestamp="placed_at", after_days=30, key="orders/{partitionKey}/{sortKey}")
):
    customer: Key[str]
    number: SortKey[int]
    placed_at: datetime
    note: str


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch, URL)
    monkeypatch.syspath_prepend(tmp_path)
    module = f"shop_{tmp_path.name}"  # a new name for each test, because imported modules stay loaded
    (tmp_path / f"{module}.py").write_text(SHOP)
    monkeypatch.setattr("test_cli_archive.MODULE", module, raising=False)
    with Database() as db:
        db.table.create()
        now = datetime.now(UTC)
        with db.transaction() as tx:
            for number, (days, size) in enumerate([(90, 20_000), (60, 4_000), (40, 10), (5, 20_000)], 1):
                tx.create(
                    Order,
                    customer="ada",
                    number=number,
                    placed_at=now - timedelta(days=days),
                    note="".join(f"{each:x}" for each in range(size))[:size],
                )
    return tmp_path


MODULE = ""


def name_model() -> str:
    return f"{MODULE}:Order"


def read_json(*words: str) -> Any:
    """Run a command with ``--json``; return its output."""
    ended = call("archive", *words, "--json")
    assert ended.exit_code == 0, ended.stderr
    return json.loads(ended.stdout)


def find_cold() -> list[str]:
    with Database() as db:
        return sorted(file.key for file in db.files.list())


def test_a_dry_run_reports_costs_and_losses_and_moves_nothing() -> None:
    ended = call("archive", "run", MODULE, "--dry-run")
    assert (ended.exit_code, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert lines[0] == f"{name_model()}: 3 of 4 hot items would be archived (left in the table: 1 too young)"
    assert "prices of 2026-08-20 in us-east-1" in ended.stdout
    assert [line.split()[-1] for line in lines[4:10]] == ["0", "1", "1", "0", "0", "1"]
    assert lines[10].startswith("  1 item would not pay off")
    (report,) = read_json("run", MODULE, "--dry-run")["models"]
    assert (report["model"], report["archived"], report["skipped"]) == (name_model(), 3, {"too young": 1})
    assert report["paybacks"]["later or never"] == report["losing"] == 1
    assert report["cost_once"] / report["saved_monthly"] == pytest.approx(report["payback_months"])
    assert find_cold() == []


def test_prices_can_be_overridden() -> None:
    (usual,) = read_json("run", name_model(), "--dry-run")["models"]
    (other,) = read_json(
        "run", name_model(), "--dry-run", "--price", "object_put=1", "--price", "region=moon"
    )["models"]
    assert other["cost_once"] == pytest.approx(usual["cost_once"] + 3, rel=1e-4)
    assert other["prices"]["region"] == "moon"
    for wrong in ("object_put=much", "moon=1", "object_put"):
        assert call("archive", "run", name_model(), "--price", wrong).exit_code == 2


def test_items_are_archived_reported_and_restored() -> None:
    ended = call("archive", "run", name_model(), "--max-items", "2", "--segments", "1")
    assert ended.exit_code == 0
    assert ended.stdout.startswith(f"{name_model()}: 2 of ")
    assert "a month" in ended.stdout
    assert len(find_cold()) == 2
    assert call("archive", "run", MODULE).exit_code == 0
    assert find_cold() == [f"orders/ada/{number}.json.gz" for number in (1, 2, 3)]
    (report,) = read_json("report", MODULE)["models"]
    assert (report["hot_items"], report["cold_items"]) == (1, 3)
    heads, row = call("archive", "report", name_model()).stdout.splitlines()
    assert heads.split()[:2] == ["model", "hot"]
    assert row.split()[0] == name_model()
    ended = call("archive", "restore", name_model(), "customer=ada", "number=2")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "1 item restored\n")
    assert find_cold() == ["orders/ada/1.json.gz", "orders/ada/3.json.gz"]
    Path("keys.jsonl").write_text('{"customer": "ada", "number": 1}\n\n{"customer": "bob", "number": 1}\n')
    assert read_json("restore", name_model(), "--keys", "keys.jsonl") == {"restored": 1}
    assert read_json("restore", name_model(), "--all") == {"restored": 1}
    assert find_cold() == []
    with Database() as db:
        assert [len(order.note) for order in db.query(Order, customer="ada")] == [20_000, 4_000, 10, 20_000]


def test_the_key_of_an_object_can_be_shown_before_it_is_archived() -> None:
    ended = call("archive", "key", name_model(), "customer=Ada: <1>", "number=7")
    assert (ended.exit_code, ended.stdout) == (0, "orders/Ada_ _1_/7.json.gz\n")
    assert read_json("key", name_model(), "customer=ada", "number=7") == {"key": "orders/ada/7.json.gz"}


def test_a_key_of_bytes_is_given_in_hexadecimal(folder: Path) -> None:
    (folder / f"{MODULE}_tokens.py").write_text(TOKENS)
    assert read_json("key", f"{MODULE}_tokens:Token", "digest=0x00ff") == {"key": "tokens/AP8.json.gz"}


def test_an_orphaned_object_is_swept_after_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("archive", "run", MODULE).exit_code == 0
    with Database() as db:
        lost = db.files.get("orders/ada/1.json.gz")
        with db.transaction() as tx:
            tx.delete(Order.key(customer="ada", number=1))
        db.files.put("orders/ada/1.json.gz", lost)
    assert (
        call("archive", "sweep", MODULE, "--dry-run").stderr
        == f"{name_model()}: 0 of 0 objects would be deleted\n"
    )
    monkeypatch.setattr(World, "now", lambda self: datetime.now(UTC) + timedelta(days=8))
    ended = call("archive", "sweep", MODULE, "--dry-run")
    assert (ended.exit_code, ended.stderr) == (0, f"{name_model()}: 1 of 3 objects would be deleted\n")
    ended = call("archive", "sweep", MODULE)
    assert (ended.exit_code, ended.stdout) == (5, "")
    assert "--yes" in ended.stderr
    assert len(find_cold()) == 3
    assert call("archive", "sweep", MODULE, "--yes").stderr == f"{name_model()}: 1 of 3 objects deleted\n"
    assert find_cold() == ["orders/ada/2.json.gz", "orders/ada/3.json.gz"]


def test_packs_of_deleted_items_are_compacted_and_then_swept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = f"packed_{MODULE}"
    (folder / f"{packed}.py").write_text(SHOP.replace("after_days=30", "after_days=30, pack=True"))
    assert call("archive", "run", packed, "--segments", "1").exit_code == 0
    with Database() as db, db.transaction() as tx:
        tx.delete(Order.key(customer="ada", number=1))
    monkeypatch.setattr(World, "now", lambda self: datetime.now(UTC) + timedelta(days=8))
    ended = call("archive", "compact", packed, "--dry-run")
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert ended.stderr.startswith(f"{packed}:Order: 1 of 1 pack would be rewritten, with 2 items; ")
    assert read_json("compact", packed)["models"][0]["moved"] == 2
    assert call("archive", "sweep", packed, "--yes").stderr == f"{packed}:Order: 1 of 2 objects deleted\n"
    ended = call("archive", "key", f"{packed}:Order", "customer=ada", "number=2")
    assert (ended.exit_code, "pack" in ended.stderr) == (2, True)
    assert call("archive", "restore", f"{packed}:Order", "--all").stderr == "2 items restored\n"


def test_hot_and_cold_items_are_exported_into_one_file() -> None:
    assert call("archive", "run", MODULE).exit_code == 0
    ended = call("archive", "export", name_model(), "orders.json.gz")
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert ended.stderr.startswith("orders.json.gz: 4 items, 3 of them archived, ")
    lines = gzip.decompress(Path("orders.json.gz").read_bytes()).splitlines()
    rows = [json.loads(line)["Item"] for line in lines]
    assert sorted(len(row["note"]["S"]) for row in rows) == [10, 4_000, 20_000, 20_000]


def test_rekey_moves_objects_to_a_new_template_and_rebuild_reports_lost_objects(folder: Path) -> None:
    assert call("archive", "run", MODULE).exit_code == 0
    newer = f"newer_{MODULE}"
    (folder / f"{newer}.py").write_text(SHOP.replace("orders/", "cold/"))
    ended = call("archive", "rekey", newer, "--dry-run")
    assert ended.stderr == f"{newer}:Order: 3 of 3 archived items would be moved, 0 already in place\n"
    assert (read_json("rekey", newer)["models"][0]["moved"], len(find_cold())) == (3, 3)
    ended = call("archive", "rekey", newer)
    assert (ended.exit_code, ended.stderr[-19:]) == (0, "3 already in place\n")
    ended = call("archive", "rebuild", newer)
    assert (ended.exit_code, ended.stderr) == (
        0,
        f"{newer}:Order: 3 of 3 archived items intact, 0 repaired\n",
    )
    with Database() as db:
        db.files.delete("cold/ada/1.json.gz")
    ended = call("archive", "rebuild", newer)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert "cold/ada/1.json.gz" in ended.stderr
    ended = call("archive", "rebuild", newer, "--json")
    assert (ended.exit_code, json.loads(ended.stdout)["models"][0]["lost"]) == (1, 1)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("run",), 2),
        (("run", "nowhere"), 2),
        (("run", "{}:Customer"), 2),
        (("run", "{}:Order", "--keep-months", "soon"), 2),
        (("key", "{}"), 2),
        (("key", "{}:Order", "customer=ada"), 2),
        (("key", "{}:Order", "customer=ada", "number=x"), 2),
        (("key", "{}:Order", "customer=ada", "number=1", "colour=red"), 2),
        (("restore", "{}:Order"), 2),
        (("restore", "{}:Order", "--all", "customer=ada"), 2),
        (("sweep", "{}:Order", "--older-than", "soon"), 2),
    ],
)
def test_an_invalid_command_line_is_refused_and_changes_nothing(words: tuple[str, ...], status: int) -> None:
    ended = call("archive", *(word.format(MODULE) for word in words))
    assert (ended.exit_code, ended.stdout) == (status, "")
    assert "rror: " in ended.stderr
    assert find_cold() == []


def test_the_program_imports_models_from_the_working_directory(folder: Path) -> None:
    ended = start("archive", "run", MODULE, "--json", folder=folder, HOLDALL_URL=URL)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["models"][0]["archived"] == 3
