"""``holdall models inspect``: models for tables that other programs laid out."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cli_rig import call, enter
from rig.servers import ENVIRONMENT, start_server

from holdall import Database, Key, Model, col
from holdall.cli.module import load_module
from holdall.core import (
    CreateTable,
    IndexSchema,
    KeyAttribute,
    Projection,
    PutItem,
    SetTtl,
    TableSchema,
    encode_item,
)

URL = "embedded:app.db"
INDEXES = (
    IndexSchema("by-kind", KeyAttribute("kind"), KeyAttribute("price", "N")),
    IndexSchema("by-day", KeyAttribute("day"), None, Projection("INCLUDE", ("class", "kind", "colour"))),
    IndexSchema("by-hash", KeyAttribute("hash", "B"), None, Projection("KEYS_ONLY")),
)
SCHEMA = TableSchema("order-lines", KeyAttribute("SKU", "N"), KeyAttribute("placed at"), INDEXES)
ITEMS: list[dict[str, Any]] = [
    {
        "SKU": number,
        "placed at": f"2026-01-0{number}T00:00:00.000000Z",
        "kind": "tea",
        "price": Decimal(number) / 4,
        "day": "2026-01-31",
        "changed": "2026-01-31T09:30:00+01:00",
        "class": "green",
        "tags": {"a", "b"},
        "lines": [{"count": 1, "text": "x"}],
        "sizes": [1, Decimal("2.5")],
        "counts": {"a": 1},
        "fragile": True,
        "payload": b"\0\xff",
        "mixed": number if number % 2 else "one",
        "entity": "Box" if number % 2 else "Crate",
        "note": None,
        "seen": f"2026-01-0{number}T12:00:00{'.500000' if number == 3 else ''}Z",
        "written": f"2026-01-0{number}T12:00:00.000000+0000",
        "created_at": 1767355200000 + number,
        "is_hot": number % 2,
        "settings": '{"theme":"dark"}',
        **({"extra": "only here"} if number == 2 else {}),
    }
    for number in range(1, 6)
]
CASE = Path(__file__).resolve().parents[1] / "typing" / "cases" / "inspected.py"
SOURCE = CASE.read_text(encoding="utf-8").partition("\n")[2]
"""The expected source of the model; type checkers read it in `tests/typing`."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch, URL)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "lines", raising=False)
    return tmp_path


def fill(url: str = URL) -> None:
    with Database(url) as db:
        db.send(CreateTable(SCHEMA))
        db.send(SetTtl("order-lines", "until"))
        for item in ITEMS:
            db.send(PutItem("order-lines", encode_item(item)))


def create(*schemas: TableSchema) -> None:
    with Database(URL) as db:
        for schema in schemas:
            db.send(CreateTable(schema))


# --- generated models ---


def test_inspect_prints_a_model_of_the_table() -> None:
    fill()
    ended = call("models", "inspect", "order-lines")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, SOURCE, "")


@pytest.mark.parametrize("store", ["embedded", "ministack"])
def test_the_model_reads_and_changes_the_items(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = URL
    if store == "ministack":
        for name, text in ENVIRONMENT.items():
            monkeypatch.setenv(name, text)
        url = f"dynamodb://unused?region=x{uuid4().hex[:8]}&endpoint={start_server('ministack')}"
    fill(url)
    ended = call("models", "inspect", "order-lines", "--output", "lines.py", "--url", url)
    assert ended.stderr == "lines.py: a model of table order-lines, from 5 items\n"
    assert ended.stdout == ""
    lines: Any = load_module("lines").OrderLines
    with Database(url) as db:
        assert db.table.plan(models=[lines]).ok
        found = {line.SKU: line for line in db.scan(lines)}
        assert [found[number].extra for number in range(1, 6)] == [None, "only here", None, None, None]
        first = found[1]
        assert first.placed_at == datetime(2026, 1, 1, tzinfo=UTC)
        assert (first.class_, first.price, first.tags) == ("green", Decimal("0.25"), {"a", "b"})
        assert (first.lines, first.sizes) == ([{"count": 1, "text": "x"}], [1, Decimal("2.5")])
        assert (first.mixed, found[2].mixed, first.note) == (1, "one", None)
        assert (first.seen, first.written) == (datetime(2026, 1, 1, 12, tzinfo=UTC),) * 2
        assert first.created_at == datetime(2026, 1, 2, 12, 0, 0, 1000, tzinfo=UTC)
        assert (first.is_hot, found[2].is_hot, first.settings) == (True, False, {"theme": "dark"})
        cheap = db.query(lines, index="by-kind", kind="tea", sort=col(lines.price) < Decimal("0.6"))
        assert [line.SKU for line in cheap] == [1, 2]
        with db.transaction() as tx:
            tx.get_one(lines, SKU=1, placed_at=first.placed_at).class_ = "black"
        assert db.get_one(lines, SKU=1, placed_at=first.placed_at).class_ == "black"


def test_the_sample_is_limited_and_a_comment_warns_about_it() -> None:
    fill()
    ended = call("models", "inspect", "order-lines", "--sample", "1", "--class-name", "Line")
    assert '"placed at" (S). Sample: 1 item; the table can have more.\n' in ended.stdout
    assert "# - items outside the sample can lack required attributes" in ended.stdout
    assert "class Line(\n" in ended.stdout


def test_the_model_of_an_empty_table_has_only_the_key() -> None:
    create(TableSchema("none", KeyAttribute("h", "B")))
    source = call("models", "inspect", "none").stdout
    assert source.endswith('class TableNone(Model, table="none", layout="plain"):\n    h: Key[bytes]\n')
    assert "Sample: 0 items; the table has no others" in source


def test_a_number_that_may_count_writes_is_mentioned_in_a_comment() -> None:
    create(TableSchema("things", KeyAttribute("id")))
    with Database(URL) as db:
        db.send(PutItem("things", encode_item({"id": "a", "lockVersion": 3})))
    source = call("models", "inspect", "things").stdout
    assert "# - lockVersion: if another program counts the writes of an item in it" in source
    assert "field(default=0," in source


def test_the_table_prefix_of_the_settings_is_left_out_of_the_model() -> None:
    create(TableSchema("dev-things", KeyAttribute("id")))
    ended = call("models", "inspect", "things", "--url", f"{URL}?table_prefix=dev-")
    assert 'class Things(Model, table="things", layout="plain"):' in ended.stdout


# --- errors ---


def test_a_missing_table_is_reported() -> None:
    create(TableSchema("things", KeyAttribute("id")))
    ended = call("models", "inspect", "thing", "--output", "lines.py")
    assert ended.exit_code == 3
    assert (
        ended.stderr == "error: there is no table thing\nhint: create it first; this database has: things\n"
    )
    assert not Path("lines.py").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("a b",),
        ("things", "--sample", "0"),
        ("things", "--class-name", "thing"),
        ("things", "--class-name", "Key"),
    ],
)
def test_an_invalid_name_or_number_is_rejected(words: tuple[str, ...]) -> None:
    create(TableSchema("things", KeyAttribute("id")))
    ended = call("models", "inspect", *words)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "Inspected" not in ended.stderr


def test_a_file_is_never_replaced(folder: Path) -> None:
    create(TableSchema("things", KeyAttribute("id")))
    (folder / "lines.py").write_text("mine")
    ended = call("models", "inspect", "things", "--output", "lines.py")
    assert ended.exit_code == 4
    assert ended.stderr.startswith("error: lines.py already exists\nhint: ")
    assert (folder / "lines.py").read_text() == "mine"
    missing = call("models", "inspect", "things", "--output", "missing/lines.py")
    assert missing.stderr == "error: missing/lines.py cannot be written: No such file or directory\n"


class Order(Model):
    number: Key[int]


def test_tables_in_holdalls_own_layout_are_refused_without_force() -> None:
    with Database(URL) as db:
        db.table.create()
        with db.transaction() as tx:
            tx.create(Order, number=1)
    create(TableSchema("Invoices", KeyAttribute("_id")))
    shared = call("models", "inspect", "holdall", "--force")
    assert shared.exit_code == 5
    assert shared.stderr == (
        "error: table holdall has Holdall's own layout\n"
        "hint: declare its models without table= and layout=; the sample has items of Order\n"
    )
    elsewhere = call("models", "inspect", "holdall", "--url", f"{URL}?table_name=another")
    assert "the sample has items of Order; if another program laid it out, pass --force" in elsewhere.stderr
    assert call("models", "inspect", "Invoices").exit_code == 5
    forced = call("models", "inspect", "Invoices", "--force").stdout
    assert forced.endswith('    id: Key[str] = field(name="_id")\n')


def test_the_databases_own_table_is_refused() -> None:
    call("table", "create")
    ended = call("models", "inspect", "holdall")
    assert ended.exit_code == 5
    assert ended.stderr.startswith("error: table holdall is the database's own table")
