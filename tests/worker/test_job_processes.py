"""Jobs in child processes: their arguments, their failures, and that a crash ends only their process."""

from __future__ import annotations

import ast
import os
from pathlib import Path

from process_jobs import (
    Crate,
    busy,
    crash,
    hang,
    impatient,
    measure,
    measure_async,
    refuse,
    sleeper,
    write_process,
)
from rig.jobs import Rig, in_memory, in_one_colour

from holdall.errors import JobProcessError, JobTimeoutError


def is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@in_memory
async def test_jobs_run_in_another_process_which_is_reused(db: Rig, tmp_path: Path) -> None:
    handles = [await db.enqueue(write_process, str(tmp_path)) for _ in range(3)]
    metrics = await db.drain(processes=1)
    assert metrics.succeeded == 3
    results = [(tmp_path / handle.id).read_text("utf-8").split() for handle in handles]
    assert {tuple(words[1:]) for words in results} == {("process-write", "1")}
    (number,) = {int(words[0]) for words in results}
    assert number != os.getpid()
    assert not is_alive(number)  # the process ends with the worker


@in_one_colour
async def test_items_and_keys_are_passed_to_the_process(db: Rig, tmp_path: Path) -> None:
    crate = await db.create(Crate(name="a", weight=3))
    await db.enqueue(measure, str(tmp_path), crate, [crate.key, {"deep": crate.key}])
    await db.drain()
    assert db.kinds() == ["started", "succeeded"]
    results = ast.literal_eval((tmp_path / "measured").read_text("utf-8"))
    assert results == ["a", 3, repr(crate.key), repr({"deep": crate.key})]


@in_one_colour
async def test_an_async_job_can_run_in_a_process_too(db: Rig, tmp_path: Path) -> None:
    crate = await db.create(Crate(name="a", weight=3))
    await db.enqueue(measure_async, str(tmp_path), crate)
    assert (await db.drain()).succeeded == 1
    assert (tmp_path / "measured").read_text("utf-8") == "['a', 3]"


@in_one_colour
async def test_a_job_whose_item_was_deleted_is_dropped_before_it_gets_a_process(
    db: Rig, tmp_path: Path
) -> None:
    crate = await db.create(Crate(name="a"))
    await db.enqueue(measure_async, str(tmp_path), crate)
    await db.commit(lambda tx: tx.delete(crate.key))
    assert (await db.drain()).dropped == 1


@in_one_colour
async def test_a_process_that_dies_costs_one_attempt(db: Rig, tmp_path: Path) -> None:
    await db.enqueue(crash, "exit")
    await db.enqueue(crash, "kill")
    await db.enqueue(write_process, str(tmp_path))
    metrics = await db.drain(processes=1)
    assert (metrics.failed, metrics.succeeded) == (2, 1)
    errors = {str(event.error) for event in db.events if isinstance(event.error, JobProcessError)}
    assert len(errors) == 2
    assert any("exit code 5" in error for error in errors)
    assert any("exit code -9" in error for error in errors)
    records = await db.list_waiting()
    assert [record.attempts for record in records] == [1, 1]
    assert all("died" in str(record.error) for record in records)


@in_one_colour
async def test_the_traceback_of_a_failure_is_kept(db: Rig, tmp_path: Path) -> None:
    await db.enqueue(refuse, "x")
    await db.drain()
    (event,) = [event for event in db.events if event.kind == "dead"]
    assert isinstance(event.error, JobProcessError)
    error = str((await db.get_only()).error)
    assert "in _deeper" in error
    assert error.endswith("LookupError: nothing is called x")


@in_one_colour
async def test_a_job_that_takes_too_long_is_killed(db: Rig, tmp_path: Path) -> None:
    await db.enqueue(write_process, str(tmp_path))
    async with db.run_worker(processes=1):
        await db.until_event("succeeded")  # now the process exists
        await db.enqueue(hang, str(tmp_path))
        await db.until_event("dead")
    assert isinstance(db.events[-1].error, JobTimeoutError)
    assert not is_alive(int((tmp_path / "hanging").read_text("utf-8")))


@in_one_colour
async def test_waiting_for_a_process_does_not_count_as_the_jobs_time(db: Rig, tmp_path: Path) -> None:
    await db.enqueue(busy, str(tmp_path))
    async with db.run_worker(processes=1):
        await db.until((tmp_path / "busy").exists)
        await db.enqueue(impatient)
        await db.until(lambda: len(db.kinds()) >= 4)
    assert db.kinds("process-impatient") == ["started", "succeeded"]


@in_one_colour
async def test_the_process_of_a_released_job_is_killed(db: Rig, tmp_path: Path) -> None:
    await db.enqueue(sleeper, str(tmp_path))
    asleep = tmp_path / "asleep"
    async with db.run_worker(grace=0.0):
        await db.until(lambda: asleep.exists() and asleep.read_text("utf-8"))
    assert db.kinds() == ["started", "released"]
    assert not is_alive(int(asleep.read_text("utf-8")))
    assert (await db.get_only()).attempts == 0


@in_one_colour
async def test_an_idle_process_that_died_is_replaced(db: Rig, tmp_path: Path) -> None:
    first = await db.enqueue(write_process, str(tmp_path))
    async with db.run_worker(processes=1):
        await db.until_event("succeeded")
        number = int((tmp_path / first.id).read_text("utf-8").split()[0])
        os.kill(number, 9)
        await db.until(lambda: _state(number) in ("Z", ""))
        await db.enqueue(write_process, str(tmp_path))
        await db.until(lambda: len(db.kinds()) >= 4)
    assert db.kinds() == ["started", "succeeded"] * 2


def _state(number: int) -> str:
    """The state of a process as Linux reports it, or an empty text if it is gone."""
    try:
        return Path("/proc", str(number), "stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""
