# mypy: ignore-errors
"""What type checkers know about copies, dumps and loads. E: an error, R: a revealed type."""

from __future__ import annotations

from pathlib import Path
from typing import reveal_type

from holdall import AsyncDatabase, Database, Key, Model
from holdall.maintenance import CopyReport


class Town(Model, table="towns"):
    name: Key[str]


def watch(report: CopyReport) -> None:
    reveal_type(report.expected)  # R: int | None
    reveal_type(report.read)  # R: int
    reveal_type(report.parts[0].verified)  # R: int | None


def copy(db: Database, other: Database) -> None:
    report: CopyReport = db.copy_to(other)
    reveal_type(report.is_current)  # R: bool
    db.copy_to(other, models=[Town], tables=["more"], files=False, create=True, delete=True, overwrite=True)
    db.copy_to(other, segments=8, rate=100, bandwidth=20e6, verify=False, dry_run=True, restart=True)
    db.copy_to(other, manifest=Path("copy.manifest"), progress=watch)
    db.copy_to("embedded:copy.db")  # E
    db.copy_to(other.aio)  # E
    db.copy_to(other, bandwidth="20MB")  # E
    db.copy_to(other, model=[Town])  # E
    db.copy_to(other, progress=print)
    reveal_type(next(db.dump_lines(models=[Town], tables=["more"])))  # R: str
    reveal_type(db.load_lines(["{}"]))  # R: int
    db.load_lines(3)  # E
    db.dump_lines(Town)  # E


async def copy_async(db: AsyncDatabase, other: AsyncDatabase) -> None:
    watch(await db.copy_to(other, bandwidth=None))
    await db.copy_to(other.sync)  # E
    await db.copy_to(other, rates=1)  # E
    async for line in db.dump_lines(models=[Town]):
        reveal_type(line)  # R: str
    reveal_type(await db.load_lines(iter(["{}"])))  # R: int
