# mypy: ignore-errors
"""What type checkers know about the archive: declarations, ``db.archive``. E: an error, R: a revealed type."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import reveal_type

from holdall import Archive, AsyncDatabase, Database, Key, Model, SortKey, col
from holdall.archive import ArchiveReport, Prices, find_archive


class Order(Model, archive=Archive(timestamp="placed_at", after_days=365, unit="s", keep=["total"])):
    customer: Key[str]
    number: SortKey[str]
    placed_at: datetime
    total: int


Archive(pack=True, ancestor="old")
Archive(on_write="never")  # E
Archive(key_style="pretty")  # E
Archive(unit="days")  # E
Archive(after_years=1)  # E
Archive("placed_at")  # E


def watch(report: ArchiveReport) -> None:
    reveal_type(report.archived)  # R: int
    reveal_type(report.estimate.payback_months)  # R: float


def act(db: Database, order: Order) -> None:
    reveal_type(db.archive.key(order))  # R: str
    reveal_type(db.archive.key(Order.key(customer="ada", number="1")))  # R: str
    reveal_type(db.archive.run(Order))  # R: ArchiveReport
    db.archive.run(Order, where=col(Order.total) > 10, dry_run=True, force=True, max_items=3, progress=watch)
    db.archive.run(Order, prices=Prices(region="eu-central-1", table_storage=0.306), keep_months=12)
    db.archive.run(order)  # E
    db.archive.run(Order, dry=True)  # E
    reveal_type(db.archive.report(Order).cold_items)  # R: int
    reveal_type(db.archive.restore(order, Order.key(customer="ada", number="1")))  # R: int
    reveal_type(db.archive.restore_all(Order))  # R: int
    reveal_type(db.archive.sweep(Order, older_than=timedelta(days=30)).unreferenced)  # R: int
    reveal_type(db.archive.rekey(Order, dry_run=True).moved)  # R: int
    reveal_type(db.archive.rebuild_pointers(Order).lost)  # R: int
    reveal_type(db.archive.compact(Order, live_share=1))  # R: Compaction
    reveal_type(db.archive.export(Order, to="orders.json.gz"))  # R: ExportReport
    db.archive.export(Order, to="orders.csv", format="csv")  # E
    reveal_type(find_archive(Order))  # R: Archive | None


async def act_too(db: AsyncDatabase, order: Order) -> None:
    reveal_type(await db.archive.key(order))  # R: str
    reveal_type(await db.archive.run(Order))  # R: ArchiveReport
    reveal_type(await db.archive.restore(order))  # R: int
    reveal_type(await db.archive.sweep(Order))  # R: ArchiveSweep
    reveal_type((await db.archive.report(Order)).hot_bytes)  # R: int
