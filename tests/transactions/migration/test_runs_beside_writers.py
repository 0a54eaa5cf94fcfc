"""Bulk runs beside old and new programs that write: no update is lost, and every item is converted in the end.

Old programs do not know the index; a run after their end corrects the index attributes of the things they tagged.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from race_models import FirstThing, Thing, initial_size
from racing_writer import TAGS, Work
from rig.servers import ENVIRONMENT, NAMES, start_server
from rig.torture import TORTURE, Child

from holdall import AsyncDatabase, Database

pytestmark = pytest.mark.torture

SEED = os.environ.get("HOLDALL_SEED", "20261115")
ROUNDS = 30 * int(os.environ.get("HOLDALL_TORTURE_ROUNDS", "1"))
ITEMS = 24
VERSIONS = ["old", "new", "old", "new"]
SCRIPT = "racing_writer.py"


def fill(url: str) -> None:
    """Store things with the first version of the model, in a table with the index of the last."""
    with Database(url) as db:
        db.table.create(models=[Thing])
    with Database(url) as db, db.transaction() as tx:
        for number in range(ITEMS):
            tx.create(FirstThing, id=number, size=initial_size(number), qty=number)


def check_final_state(db: Database, hits: Counter[int], quantities: Counter[int]) -> None:
    """Check all things and the index after a final run, when the old programs have ended."""
    last = db.migrate(Thing)
    assert (last.found, last.failed) == (ITEMS, 0)
    things = [db.get_one(Thing, number) for number in range(ITEMS)]
    seed = f"(HOLDALL_SEED={SEED})"
    assert [thing.marks for thing in things] == [["converted"]] * ITEMS, seed
    assert [thing.size for thing in things] == [initial_size(number) * 2 for number in range(ITEMS)], seed
    assert [thing.hits for thing in things] == [hits[number] for number in range(ITEMS)], seed
    assert [thing.quantity for thing in things] == [n + quantities[n] for n in range(ITEMS)], seed
    for tag in filter(None, TAGS):
        found = [row.id for row in db.query(Thing, index="by_tag", tag=tag)]
        assert found == [thing.id for thing in things if thing.tag == tag], seed
    assert db.migrate(Thing).changed == 0, seed


def add_up(counters: list[Counter[int]]) -> Counter[int]:
    return sum(counters, Counter())


@pytest.fixture
def url(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if store == "file":
        return f"embedded:{tmp_path}/store.db?durability=normal"
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return f"dynamodb://race-{uuid4().hex}?endpoint={start_server(store)}&manage_table=true"


@pytest.mark.parametrize("store", ["file", *(NAMES if TORTURE else NAMES[::2])])
def test_a_run_beside_threads(url: str) -> None:
    fill(url)
    with ExitStack() as stack:
        db = stack.enter_context(Database(url))
        works = [Work(version, f"{SEED} {place}", ROUNDS, ITEMS) for place, version in enumerate(VERSIONS)]
        writers = [stack.enter_context(Database(url)) for _ in works]
        pool = stack.enter_context(ThreadPoolExecutor(len(works)))
        done = [pool.submit(work.run, writer) for work, writer in zip(works, writers, strict=True)]
        assert db.migrate(Thing, segments=2).found == ITEMS
        for each in done:
            each.result()
        check_final_state(
            db, add_up([work.hits for work in works]), add_up([work.quantities for work in works])
        )


@pytest.mark.parametrize("store", ["file", *(NAMES if TORTURE else NAMES[1:])])
def test_a_run_beside_tasks(url: str) -> None:
    works = [Work(version, f"{SEED} {place}", ROUNDS, ITEMS) for place, version in enumerate(VERSIONS)]

    async def all_at_once() -> Any:
        # programs of different versions, each with a database of its own
        writers = [AsyncDatabase(url) for _ in works]
        async with AsyncDatabase(url) as db:
            tasks = [work.run_awaiting(writer) for work, writer in zip(works, writers, strict=True)]
            report, *_ = await asyncio.gather(db.migrate(Thing, segments=3), *tasks)
        for writer in writers:
            await writer.close()
        return report

    fill(url)
    assert asyncio.run(all_at_once()).found == ITEMS
    with Database(url) as db:
        check_final_state(
            db, add_up([work.hits for work in works]), add_up([work.quantities for work in works])
        )


def test_a_run_beside_processes(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path}/store.db?durability=normal"
    fill(url)
    with ExitStack() as stack:
        writers = [
            stack.enter_context(Child(SCRIPT, url, version, f"{SEED} {place}", ROUNDS, ITEMS))
            for place, version in enumerate(VERSIONS)
        ]
        for writer in writers:
            assert writer.line() == "ready"
        for writer in writers:
            writer.write_line("go")
        with Database(url) as db:
            assert db.migrate(Thing, segments=2).found == ITEMS
        results = [json.loads("".join(writer.finish())) for writer in writers]
    hits, quantities = (
        add_up([Counter({int(number): count for number, count in each[place].items()}) for each in results])
        for place in (0, 1)
    )
    with Database(url) as db:
        check_final_state(db, hits, quantities)
