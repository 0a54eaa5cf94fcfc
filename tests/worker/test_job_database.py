"""A job can get the database of its worker: sync or async, as its function is."""

from __future__ import annotations

import pytest
from process_jobs import ask_database
from rig.jobs import Rig, everywhere, in_memory

import holdall
from holdall import AsyncDatabase, Database, Key, Model, current_job
from holdall.errors import InvalidOptionsError


class Note(Model):
    name: Key[str]


@holdall.job("database-plain", retries=0)
def plain(name: str) -> None:
    db = current_job().database(Database)
    db.run(lambda tx: tx.create(Note, name=name))

    with pytest.raises(InvalidOptionsError, match="not AsyncDatabase"):
        current_job().database(AsyncDatabase)


@holdall.job("database-async", retries=0)
async def note_awaiting(name: str) -> None:
    db = current_job().database(AsyncDatabase)
    async with db.transaction() as tx:
        tx.create(Note, name=name)

    with pytest.raises(InvalidOptionsError, match="not Database"):
        current_job().database(Database)


@everywhere
async def test_each_kind_of_job_has_its_kind_of_database(db: Rig) -> None:
    await db.enqueue(plain, "plain")
    await db.enqueue(note_awaiting, "async")
    assert (await db.drain()).succeeded == 2
    assert (await db.get(Note, "plain")) is not None
    assert (await db.get(Note, "async")) is not None


@in_memory
async def test_a_job_in_a_child_process_has_no_database(db: Rig) -> None:
    await db.enqueue(ask_database)
    assert (await db.drain(processes=1)).dead == 1
    (dead,) = await db.list_dead()
    assert "open a database in that process" in (dead.error or "")
