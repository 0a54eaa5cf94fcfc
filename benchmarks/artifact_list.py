"""Listing all versions of an artifact on the embedded engine: peak memory with 10,000 against 1,000, and the rate."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.harness import Figure
from holdall import Database
from holdall.core import BatchWrite, GetItem, PutItem
from holdall.core.values import Attribute

FEW, MANY = 1_000, 10_000
BAR = 1.1
BATCH = 25


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure: the peak memory of listing many versions against that of listing a tenth of them."""
    with Database(f"embedded:{workshop / 'artifact_list.db'}", durability="normal", files="memory:") as db:
        for name, count in (("few", FEW), ("many", MANY)):
            _publish(db, name, count)
        _list_versions(db, "few", FEW)  # fills caches
        few, many = _peak(db, "few", FEW), _peak(db, "many", MANY)
        start = process_time()
        _list_versions(db, "many", MANY)
        pace = MANY / (process_time() - start)
    note = f"{many / 1024:,.0f} KiB against {few / 1024:,.0f} KiB; {pace:,.0f} versions/s"
    yield Figure(
        "artifact_list", ("10,000 versions", "peak memory against 1,000"), many / few, BAR, note=note
    )


def _publish(db: Database, name: str, count: int) -> None:
    """Publish one version, then copy its row and its note to the following numbers."""
    db.artifacts.put(name, b"content", content_type="text/plain", metadata={"build": "1"}, tags={"team": "x"})
    db.artifacts.publish(name)
    table = db.table.describe().schema.name
    row = _item(db, table, name, "000001")
    note = _item(db, table, f"__{name}-meta", "version#000001")
    for start in range(2, count + 1, BATCH // 2):
        numbers = range(start, min(start + BATCH // 2, count + 1))
        copies = [{**row, "sk": {"S": f"{number:06d}"}} for number in numbers]
        copies += [{**note, "sk": {"S": f"version#{number:06d}"}} for number in numbers]
        db.send(BatchWrite(tuple(PutItem(table, item) for item in copies)))


def _item(db: Database, table: str, pk: str, sk: str) -> dict[str, Attribute]:
    found: Any = db.send(GetItem(table, {"pk": {"S": pk}, "sk": {"S": sk}})).item
    return dict(found)


def _list_versions(db: Database, name: str, count: int) -> None:
    """Iterate over the versions and keep none of them."""
    seen = described = 0
    for version in db.artifacts.versions(name):
        seen += 1
        described += version.tags == {"team": "x"}
    assert seen == described == count + 1, "a version, or its tags, is missing in the list"


def _peak(db: Database, name: str, count: int) -> float:
    tracemalloc.start()
    try:
        _list_versions(db, name, count)
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
