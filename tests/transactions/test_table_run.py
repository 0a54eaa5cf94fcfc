"""Runs over a table: what happens to the other segments if one fails, and how segments share a rate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdall import AsyncDatabase
from holdall.core import Item, KeyAttribute, PutItem, Scan, TableSchema
from holdall.core.requests import CreateTable
from holdall.transactions.table_run.flow import TableRun, Tally

SEGMENTS = 4


def run_over_items(visit: Any, *, rate: float | None = None) -> TableRun:
    """Run over 40 items, in pages of one item."""

    async def work() -> TableRun:
        async with AsyncDatabase("memory:") as db:
            await db.send(CreateTable(TableSchema("walked", KeyAttribute("id"))))
            for number in range(40):
                await db.send(PutItem("walked", {"id": {"S": str(number)}}))
            run = TableRun(
                db._context,
                Scan("walked", limit=1),
                visit,
                segments=SEGMENTS,
                rate=rate,
                report=lambda run: None,
                progress=None,
            )
            await run.work(None, restart=False)
            return run

    return asyncio.run(work())


def test_all_items_are_visited_once() -> None:
    seen: list[str] = []

    async def visit(tally: Tally, items: Sequence[Item]) -> None:
        seen.extend(item["id"]["S"] for item in items)

    assert run_over_items(visit).count("scanned") == 40
    assert sorted(seen) == sorted(map(str, range(40)))


def test_if_one_segment_fails_the_others_finish_their_pages_and_stop() -> None:
    visits = 0

    async def visit(tally: Tally, items: Sequence[Item]) -> None:
        nonlocal visits
        visits += 1
        if items and tally.segment == 0:
            raise LookupError("on purpose")

    with pytest.raises(LookupError, match="on purpose"):
        run_over_items(visit)
    assert visits <= 2 * SEGMENTS


def test_the_other_segments_get_the_share_of_the_rate_of_those_that_have_ended() -> None:
    rates: dict[int, list[float | None]] = {segment: [] for segment in range(SEGMENTS)}

    async def visit(tally: Tally, items: Sequence[Item]) -> None:
        rates[tally.segment].append(tally.pace.rate)

    run_over_items(visit, rate=12.0)
    assert all(each[0] is not None and each[0] >= 12.0 / SEGMENTS for each in rates.values())
    assert max(rate for each in rates.values() for rate in each if rate is not None) == 12.0
