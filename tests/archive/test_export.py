"""An export contains every item of a model, hot or cold, in full; its file appears only when it is complete."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from random import randbytes
from typing import Any
from uuid import UUID

import pytest
from rig.colour import COLOURS, Awaited, Colour, run_in
from rig.recorder import Recorder

from holdall import AsyncDatabase, Database, Key, Model, SortKey, field
from holdall.archive import Archive, ExportReport
from holdall.archive.export.parquet import format_json
from holdall.backends.memory import MemoryService
from holdall.core.objects import GetObject
from holdall.core.port import run
from holdall.core.requests import PutItem
from holdall.errors import ConfigurationError, DanglingPointerError, InvalidOptionsError, InvalidValueError

OLD = datetime(2020, 5, 17, 12, 30, 15, 250000, UTC)


class Sale(Model, archive=Archive(timestamp="at", after_days=30)):
    shop: Key[str]
    number: SortKey[int]
    at: datetime = field(read_only=True)
    text: str = 'naïve\n"quoted"'
    amount: Decimal = Decimal("12345678901234567890.123456789")
    weight: float = 0.1
    paid: bool = True
    note: str | None = None
    raw: bytes = b"\x00\xff"
    day: date = date(2024, 2, 29)
    id: UUID = UUID(int=7)
    lines: list[int] = field(default=[3, 1, 2])
    labels: set[str] = field(default={"b", "a"})
    blobs: set[bytes] = field(default={b"\x01"})
    sizes: set[int] = field(default={1, 20})
    more: dict[str, Any] = field(default={"deep": [None, {"n": Decimal("0.5")}], "flag": False})


class Gift(Sale):
    wrapped: bool = True


class Passing(Model, ttl="ends"):
    name: Key[str]
    ends: datetime


@dataclass(frozen=True)
class Way:
    colour: Colour

    def __str__(self) -> str:
        return self.colour


@contextmanager
def open_full_db(way: Way) -> Iterator[Any]:
    kind: Any = Database if way.colour == "blocking" else AsyncDatabase
    db = kind("memory:", files="memory:")
    blocking = db if way.colour == "blocking" else db.sync
    with blocking.transaction() as tx:
        for number in range(3):
            tx.create(Sale, shop="north", number=number, at=OLD)
        tx.create(Gift, shop="south", number=1, at=OLD, note="for Ada")
        tx.create(Sale, shop="south", number=2, at=datetime.now(UTC))
    assert blocking.archive.run(Sale).archived == 4
    try:
        yield db
    finally:
        blocking.close()


in_both_colours = run_in(lambda name: [Way(colour) for colour in COLOURS], open_full_db)


def view_blocking(db: Any) -> Any:
    return db if isinstance(db, Database) else db.sync


def read_lines(data: bytes) -> list[Any]:
    return [json.loads(line)["Item"] for line in gzip.decompress(data).splitlines()]


@in_both_colours
async def test_exported_dynamodb_json_can_be_put_into_another_table(db: Any, tmp_path: Path) -> None:
    file = tmp_path / "sales.json.gz"
    report = await Awaited(db.archive).export(Sale, to=file)
    assert (report.items, report.cold, report.bytes) == (5, 4, file.stat().st_size)
    lines = read_lines(file.read_bytes())
    kinds = {kind for item in lines for attribute in item.values() for kind in attribute}
    assert kinds == {"S", "N", "B", "BOOL", "L", "M", "SS", "NS", "BS"}
    assert not any("_archive" in item for item in lines)
    with Database("memory:") as other:
        other.table.create()
        for item in lines:
            run(other._context.port.send(PutItem(other.table.describe().schema.name, item)))
        known = {sale.key: sale.to_dict() for sale in view_blocking(db).scan(Sale)}
        assert {sale.key: sale.to_dict() for sale in other.scan(Sale)} == known


@in_both_colours
async def test_a_stream_gets_the_same_bytes_and_progress_only_grows(db: Any) -> None:
    stream, seen = BytesIO(), list[ExportReport]()
    report = await Awaited(db.archive).export(Sale, to=stream, progress=seen.append)
    assert len(read_lines(stream.getvalue())) == report.items == 5
    assert seen[-1] == report
    assert [each.bytes for each in seen] == sorted(each.bytes for each in seen)


@in_both_colours
async def test_an_export_that_finds_an_object_missing_leaves_the_old_file(db: Any, tmp_path: Path) -> None:
    file = tmp_path / "sales.json.gz"
    file.write_bytes(b"an earlier export")
    view_blocking(db).files.delete(view_blocking(db).archive.key(Sale.key(shop="north", number=1)))
    with pytest.raises(DanglingPointerError):
        await Awaited(db.archive).export(Sale, to=file)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"an earlier export"]


def test_an_export_leaves_out_items_of_other_models_and_expired_items() -> None:
    with Database("memory:", files="memory:") as db:
        with db.transaction() as tx:
            tx.create(Sale, shop="north", number=1, at=OLD)
            tx.create(Gift, shop="north", number=2, at=OLD)
            tx.create(Passing, name="gone", ends=OLD)
            tx.create(Passing, name="here", ends=datetime.now(UTC) + timedelta(days=1))
        for model, names in ((Gift, ["Gift"]), (Passing, ["Passing"])):
            stream = BytesIO()
            db.archive.export(model, to=stream)
            assert [item["_type"]["S"] for item in read_lines(stream.getvalue())] == names


def test_an_export_holds_few_archived_items_in_memory() -> None:
    held: list[int] = []

    class WatchedStream(BytesIO):
        def write(self, data: Any) -> int:
            held.append(len(gets()))
            return super().write(data)

    recorder = Recorder(MemoryService())
    with Database("memory:", files={"default": recorder}, default_service="default") as db:

        def gets() -> list[Any]:
            return recorder.list_sent(GetObject)

        with db.transaction() as tx:
            for number in range(99):
                tx.create(Sale, shop="north", number=number, at=OLD, raw=randbytes(3000))
        db.archive.run(Sale)
        db.archive.export(Sale, to=WatchedStream())
    assert held[0] < len(gets()) == 99  # some items were written before all were read


def test_an_impossible_export_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with Database("memory:") as db:
        with pytest.raises(InvalidOptionsError, match="csv"):
            db.archive.export(Sale, to=tmp_path / "a", format="csv")  # type: ignore[arg-type]
        with pytest.raises(InvalidOptionsError, match="no directory"):
            db.archive.export(Sale, to=tmp_path / "none" / "a")
        with pytest.raises(ConfigurationError, match="pyarrow") as refusal:
            db.archive.export(Sale, to=tmp_path / "a", format="parquet")
        assert "pip install" in str(refusal.value.hint)


def test_numbers_keep_their_digits_in_json() -> None:
    attribute = {"M": {"a": {"L": [{"N": "1234567890123456789.123"}, {"NULL": True}, {"BOOL": False}]}}}
    assert format_json(attribute) == '{"a":[1234567890123456789.123,null,false]}'
    assert format_json({"NS": ["1", "2"]}) == "[1,2]"
    assert format_json({"SS": ["é"]}) == '["é"]'


# --- Parquet ----------------------------------------------------------------------------------------------


def load_parquet() -> Any:
    return pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install pyarrow")


@in_both_colours
async def test_parquet_has_a_typed_column_per_field_and_a_row_per_item(db: Any, tmp_path: Path) -> None:
    parquet, file = load_parquet(), tmp_path / "sales.parquet"
    report = await Awaited(db.archive).export(Sale, to=file, format="parquet")
    assert (report.items, report.cold, report.bytes) == (5, 4, file.stat().st_size)
    table = parquet.read_table(file)
    types = {column.name: str(column.type) for column in table.schema}
    assert types == {
        "shop": "string",
        "number": "int64",
        "at": "timestamp[us, tz=UTC]",
        "text": "string",
        "amount": "string",
        "weight": "double",
        "paid": "bool",
        "note": "string",
        "raw": "binary",
        "day": "date32[day]",
        "id": "string",
        "lines": "list<element: int64>",
        "labels": "list<element: string>",
        "blobs": "list<element: binary>",
        "sizes": "list<element: int64>",
        "more": "string",
        "wrapped": "bool",
        "_type": "string",
    }
    rows = {(row["shop"], row["number"]): row for row in table.to_pylist()}
    assert rows.keys() == {("north", 0), ("north", 1), ("north", 2), ("south", 1), ("south", 2)}
    gift = rows["south", 1]
    assert (gift["_type"], gift["wrapped"], gift["note"], gift["at"]) == ("Gift", True, "for Ada", OLD)
    assert (gift["labels"], gift["lines"], gift["day"]) == (["a", "b"], [3, 1, 2], date(2024, 2, 29))
    assert gift["amount"] == "12345678901234567890.123456789"
    assert json.loads(gift["more"]) == {"deep": [None, {"n": 0.5}], "flag": False}
    assert rows["north", 0]["wrapped"] is None


def test_parquet_is_written_in_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet, file = load_parquet(), tmp_path / "sales.parquet"
    monkeypatch.setattr("holdall.archive.export.parquet._ROW_GROUP", 20_000)
    with Database("memory:", files="memory:") as db:
        with db.transaction() as tx:
            for number in range(99):
                tx.create(Sale, shop="north", number=number, at=OLD, raw=bytes(500))
        db.archive.export(Sale, to=file, format="parquet")
    assert parquet.ParquetFile(file).num_row_groups > 1
    assert sorted(parquet.read_table(file)["number"].to_pylist()) == list(range(99))


def test_a_number_too_large_for_its_column_is_refused(tmp_path: Path) -> None:
    load_parquet()
    with Database("memory:", files="memory:") as db:
        with db.transaction() as tx:
            tx.create(Sale, shop="north", number=10**30, at=OLD)
        with pytest.raises(InvalidValueError, match="number"):
            db.archive.export(Sale, to=tmp_path / "sales.parquet", format="parquet")
        assert list(tmp_path.iterdir()) == []
