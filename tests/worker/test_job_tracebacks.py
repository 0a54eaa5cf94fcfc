"""The tracebacks of failed jobs: a refusal shows the job's line and the method it called, other errors show all."""

from __future__ import annotations

import re
from typing import Any

from process_jobs import Crate, ask_database, refuse
from rig.jobs import Rig, in_memory, in_one_colour

from holdall import current_job, job
from holdall.errors import RecordNotFound


@job("tracebacks-plain", retries=0)
def ask() -> None:
    current_job().database().get_one(Crate, "missing")


@job("tracebacks-async", retries=0)
async def ask_async() -> None:
    await current_job().database().get_one(Crate, "missing")


@job("tracebacks-transactional", transactional=True, retries=0)
def ask_transactional(tx: Any) -> None:
    tx.get_one(Crate, "missing")


@job("tracebacks-own", retries=0)
def raise_own() -> None:
    raise LookupError("mine")


def list_functions(error: str | None) -> list[str]:
    """The functions in a stored traceback, outermost first; those of Holdall are in brackets."""
    found = re.findall(r'File "(.*)", line \d+, in (\w+)', error or "")
    return [f"[{name}]" if "src/holdall" in file else name for file, name in found]


@in_memory
async def test_a_refusal_ends_at_the_method_that_the_job_called(db: Rig) -> None:
    for asking in (ask, ask_async, ask_transactional):
        await db.enqueue(asking)
    await db.drain()
    found = sorted(list_functions(record.error) for record in await db.list_dead())
    assert found == [[name, "[get_one]"] for name in ("ask", "ask_async", "ask_transactional")]
    errors = [event.error for event in db.events if event.error is not None]
    assert [type(error) for error in errors] == [RecordNotFound] * 3


@in_one_colour
async def test_a_refusal_in_a_process_ends_there_too(db: Rig) -> None:
    await db.enqueue(ask_database)
    await db.drain(processes=1)
    assert list_functions((await db.get_only()).error) == ["ask_database", "[database]"]


@in_memory
async def test_an_error_of_the_jobs_own_code_keeps_all_frames(db: Rig) -> None:
    await db.enqueue(raise_own)
    await db.drain()
    frames = list_functions((await db.get_only()).error)
    assert frames[-1] == "raise_own"
    assert "[_call_function]" in frames


@in_one_colour
async def test_an_error_in_a_process_keeps_all_frames_too(db: Rig) -> None:
    await db.enqueue(refuse, "x")
    await db.drain(processes=1)
    frames = list_functions((await db.get_only()).error)
    assert frames[-3:] == ["[run_message]", "refuse", "_deeper"]
