"""``holdall models move``: what it copies, its output on each stream, and its exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_rig import call, enter

from holdall import Database
from holdall.cli.module import load_module
from holdall.core import PutItem, Scan, encode_item

URL = "embedded:app.db?durability=normal"
MODELS = """
from holdall import Key, Model, col, field

stopping = []


class OldProduct(Model, table="products", layout="plain"):
    sku: Key[int]
    price: int
    colour: str = "red"


cheap = col(OldProduct.price) < 2


class Product(Model):
    sku: Key[int]
    price: int
    mail: str | None = field(default=None, unique=True)


def convert(old):
    if old.sku in stopping:
        raise KeyboardInterrupt
    return None if old.sku == 1 else {"sku": old.sku, "price": old.price * 100}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(tmp_path, monkeypatch, URL)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "moving", raising=False)
    Path("moving.py").write_text(MODELS)


@pytest.fixture
def models() -> Any:
    """The models; the old table has three products, the new one is empty."""
    found = load_module("moving")
    with Database(URL) as db:
        db.table.create(models=[found.OldProduct, found.Product])
        with db.transaction() as tx:
            for number in range(3):
                tx.create(found.OldProduct, sku=number, price=number)
    return found


def move(*options: str) -> Any:
    return call("models", "move", "moving:OldProduct", "moving:Product", *options)


def list_items(table: str = "holdall") -> list[Any]:
    with Database(URL) as db:
        return list(db.send(Scan(table, consistent=True)).items)


def test_items_are_copied_and_the_summary_goes_to_stdout(models: Any) -> None:
    before = list_items("products")
    ended = move()
    assert ended.exit_code == 0
    assert ended.stderr == (
        "not copied, because Product has no such field: colour\n"
        "not in OldProduct, so new items get defaults: mail\n"
    )
    first, second = ended.stdout.splitlines()
    assert first == "moving:OldProduct to moving:Product: 3 items, 3 copied"
    assert second.startswith("1")
    assert "bytes; on DynamoDB about 3 write units, $0.0000019 (on demand, prices of " in second
    with Database(URL) as db:
        assert [item.price for item in sorted(db.scan(models.Product), key=lambda item: item.sku)] == [
            0,
            1,
            2,
        ]
    assert list_items("products") == before


def test_a_dry_run_writes_nothing(models: Any) -> None:
    with Database(URL) as db:
        db.send(PutItem("products", encode_item({"sku": 9, "price": "dear", "supplier": "x"})))
    ended = move("--dry-run")
    assert ended.exit_code == 1
    assert "4 items, 3 would be copied, 1 would fail\n" in ended.stdout
    assert "not copied, because OldProduct does not declare them: supplier\n" in ended.stderr
    assert "problem: moving:OldProduct: 9: OldProduct.price: the stored value" in ended.stderr
    assert "error: 1 item cannot be copied\nhint: correct the items or use --convert, and run" in ended.stderr
    assert list_items() == []


def test_differing_items_are_listed_and_updated_with_an_option(models: Any) -> None:
    move()
    with Database(URL) as db:
        db.update(models.OldProduct.key(1), price=5)
        db.update(models.OldProduct.key(2), price=5)
        db.update(models.Product.key(2), price=6)
    ended = move()
    assert (ended.exit_code, ended.stdout.splitlines()[0]) == (
        0,
        "moving:OldProduct to moving:Product: 3 items, 1 already there, 2 there with other values",
    )
    assert "differs: Product(sku=1): price\n" in ended.stderr
    ended = move("--update")
    assert "3 items, 1 updated, 1 already there, 1 there with other values\n" in ended.stdout
    with Database(URL) as db:
        assert [db.get_one(models.Product, sku).price for sku in range(3)] == [0, 5, 6]


def test_a_function_converts_items_and_a_stopped_run_continues(models: Any) -> None:
    models.stopping.append(2)
    ended = move("--convert", "moving:convert")
    assert ended.exit_code == 1
    assert ended.stderr.startswith("stopped: run the same command again to continue from about here\n")
    models.stopping.clear()
    ended = move("--convert", "moving:convert", "--segments", "2", "--rate", "1000")
    assert ended.stdout.splitlines()[0].endswith("3 items, 2 copied, 1 left out")
    assert (
        move("--convert", "moving:convert", "--restart")
        .stdout.splitlines()[0]
        .endswith("3 items, 2 already there, 1 left out")
    )


def test_a_condition_chooses_items(models: Any) -> None:
    assert "2 items, 2 copied\n" in move("--where", "moving:cheap").stdout


def test_the_report_can_be_json(models: Any) -> None:
    report = json.loads(move("--dry-run", "--json").stdout)
    assert (report["source"], report["destination"]) == ("moving:OldProduct", "moving:Product")
    assert (report["dry_run"], report["found"], report["copied"], report["dropped"]) == (
        True,
        3,
        3,
        ["colour"],
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("moving", "moving:Product"), "'moving' does not name a model"),
        (("moving:OldProduct", "moving:Product", "--convert", "moving"), "'moving' does not name a function"),
        (("moving:OldProduct", "moving:Product", "--where", "moving:convert"), "does not name a condition"),
        (("moving:OldProduct", "moving:OldProduct"), "are in the same table, products"),
    ],
)
def test_an_invalid_command_line_is_rejected(models: Any, words: tuple[str, ...], problem: str) -> None:
    ended = call("models", "move", *words)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert problem in ended.stderr
