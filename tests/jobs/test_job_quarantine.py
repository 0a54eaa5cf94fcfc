"""Malformed items in the place of jobs: they stop no worker and are kept as dead jobs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from rig.jobs import Rig, Way, everywhere, in_memory, in_one_colour, on_servers, open_rig

import holdall
from holdall.core.frozen import replace
from holdall.core.port import run
from holdall.core.requests import PutItem, TransactWrite
from holdall.errors import JobNotFoundError, MalformedJobError
from holdall.jobs.record import JobRecord, encode_job, job_partition
from holdall.tables.flow import discover

done: list[Any] = []


@holdall.job("quarantine-fine")
def fine(n: int = 0) -> None:
    done.append(n)


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    done.clear()


async def make_good_item(db: Rig, **given: Any) -> dict[str, Any]:
    """The item of a job that is due."""
    port = db.context.port
    record = JobRecord(
        port.new_id(), fine.name, "default", "[]", port.now() - timedelta(seconds=1), port.now()
    )
    return dict(encode_job(await discover(db.context), replace(record, **given)).stored)


async def put(db: Rig, item: Any) -> Any:
    layout = await discover(db.context)
    await db.context.port.send(PutItem(layout.table, item))
    return item


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"job_name": None}, "'job_name' is missing"),
    "no id": ({"job_id": None}, "'job_id' is missing"),
    "a number for an id": ({"job_id": {"N": "7"}}, "job_id is not text"),
    "another job's id": ({"job_id": {"S": "f00"}}, "its key does not match the job in it"),
    "arguments without a list": ({"job_args": {"S": '{"a":1}'}}, "job_args is not a JSON list"),
    "no time": ({"job_at": {"S": "yesterday"}}, "isoformat"),
    "half an attempt": ({"job_attempts": {"N": "1.5"}}, "invalid literal"),
    "half a lease": (
        {"job_lease": {"S": "x"}, "job_lease_seconds": {"N": "3"}},
        "'job_lease_until' is missing",
    ),
    "a long name": (
        {"job_name": {"S": "n" * 2100}, "job_key": {"S": "k"}},
        "its name or its key is too long",
    ),
    "a long key": ({"job_key": {"S": "k" * 2100}}, "its name or its key is too long"),
    "bytes and nesting": (
        {"job_name": {"M": {"a": {"L": [{"B": "/w=="}, {"NULL": True}]}}}},
        "job_name is not text",
    ),
}


async def make_malformed_item(db: Rig, case: str = "no name") -> dict[str, Any]:
    item = await make_good_item(db)
    for name, attribute in MALFORMED[case][0].items():
        if attribute is None:
            del item[name]
        else:
            item[name] = attribute
    return item


@everywhere
async def test_malformed_items_become_dead_jobs_and_other_jobs_run(db: Rig) -> None:
    raws = [await put(db, await make_malformed_item(db, case)) for case in MALFORMED]
    await db.enqueue(fine, 1)
    metrics = await db.drain()
    assert (metrics.succeeded, metrics.dead, done) == (1, len(MALFORMED), [1])
    assert all(isinstance(event.error, MalformedJobError) for event in db.events if event.kind == "dead")
    dead = await db.list_dead()
    errors = "\n".join(record.error or "" for record in dead)
    for _, reason in MALFORMED.values():
        assert reason in errors
    kept = [record.raw for record in dead]
    assert all(raw in kept for raw in raws)
    assert (await db.drain()).dead == 0
    first, *others = dead
    assert await db.jobs.get(first.id) == first
    assert await db.jobs.delete(first.id) == first
    assert await db.jobs.get(first.id) is None
    assert await db.jobs.retry_all() == 0
    assert await db.jobs.purge() == len(others)


@in_memory
async def test_an_item_whose_key_has_no_time_is_malformed_too(db: Rig) -> None:
    layout = await discover(db.context)
    at = layout.address(job_partition("default", "a"), "0 o'clock", "x").attributes
    raw = await put(db, {**await make_good_item(db), **at})
    await db.enqueue(fine)
    assert (await db.drain()).dead == 1
    (dead,) = await db.list_dead()
    assert dead.raw == raw
    assert "0 o'clock" in (dead.error or "")


@everywhere
async def test_a_list_shows_a_malformed_item_as_a_dead_job_and_writes_nothing(db: Rig) -> None:
    await db.enqueue(fine, 1)
    raw = await put(db, await make_malformed_item(db))
    db.recorder.forget()
    waiting, dead = await db.jobs.list()
    assert (waiting.name, dead.raw, dead.state, dead.name) == (fine.name, raw, "dead", "malformed")
    assert await db.jobs.list(state="waiting") == [waiting]
    page = await db.jobs.page(state="waiting")
    assert (page.jobs, [each.raw for each in page.malformed]) == ((waiting,), [raw])
    for id in (waiting.id, dead.id):
        found = await db.jobs.get(id)
        assert found is not None
        assert found.id == id
    assert (await db.jobs.counts())["default"] == (2, 0, 0, 0)
    assert [each for each in db.recorder.requests if each.writes] == []


@pytest.mark.parametrize("case", ["no name", "no id", "arguments without a list", "half a lease"])
def test_a_retry_moves_a_malformed_item_to_the_dead_first(case: str) -> None:
    async def change(db: Rig) -> None:
        await db.enqueue(fine, 1)
        await put(db, await make_malformed_item(db, case))
        _, listed = await db.jobs.list()
        with pytest.raises(MalformedJobError):
            await db.jobs.retry(listed.id)
        (moved,) = await db.list_dead()
        assert (moved.id, moved.raw) == (listed.id, listed.raw)
        await db.jobs.delete(listed.id)
        assert await db.list_dead() == []
        with pytest.raises(JobNotFoundError):
            await db.jobs.delete(listed.id)

    with open_rig(Way("memory", "blocking")) as db:
        run(change(db))


@in_memory
async def test_purging_waiting_jobs_keeps_a_malformed_item(db: Rig) -> None:
    await db.enqueue(fine)
    await put(db, await make_malformed_item(db, "half a lease") | {"job_attempts": {"S": "one"}})
    await put(db, await make_malformed_item(db))
    assert await db.jobs.purge(state="waiting") == 1
    assert len(await db.list_dead()) == 1


@on_servers
async def test_moving_a_malformed_item_frees_its_key(db: Rig) -> None:
    assert (await db.enqueue(fine, 1, key="k")).added
    (record,) = await db.list_waiting()
    layout = await discover(db.context)
    item = encode_job(layout, record).stored
    await put(db, {**item, "job_args": {"N": "1"}})
    assert not (await db.enqueue(fine, 2, key="k")).added
    assert (await db.drain()).dead == 1
    assert (await db.enqueue(fine, 3, key="k")).added
    await db.drain()
    assert done == [3]


@in_memory
async def test_an_item_that_is_repaired_meanwhile_stays_and_runs(db: Rig) -> None:
    good = await make_good_item(db)
    await put(db, {name: attribute for name, attribute in good.items() if name != "job_name"})

    def repair(request: Any) -> None:
        if isinstance(request, TransactWrite):
            db.recorder.before = lambda _: None
            run(db.other._context.port.send(PutItem(request.actions[0].table, good)))

    db.recorder.before = repair
    assert (await db.drain()).dead == 0
    assert (await db.drain()).succeeded == 1
    assert done == [0]


@in_memory
async def test_a_malformed_item_that_cannot_be_moved_does_not_stop_other_jobs(
    db: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    raw = await make_malformed_item(db)
    raw["more"] = {
        "S": "x" * (409_500 - sum(map(len, raw)) - 300)
    }  # so large that no reason fits into the item
    await put(db, raw)
    await db.enqueue(fine, 1)
    metrics = await db.drain()
    assert (metrics.dead, done) == (0, [1])
    assert "stays in its queue" in caplog.text


@in_memory
async def test_a_retry_of_a_malformed_item_reads_it_again(db: Rig) -> None:
    await put(db, await make_malformed_item(db))
    await db.drain()
    (dead,) = await db.list_dead()
    with pytest.raises(MalformedJobError, match="'job_name' is missing"):
        await db.jobs.retry(dead.id)
    layout = await discover(db.context)
    await put(
        db, encode_job(layout, replace(dead, raw=await make_good_item(db))).stored
    )  # as if an older Holdall had moved it
    again = await db.jobs.retry(dead.id)
    assert (again.state, again.raw) == ("waiting", None)
    assert (await db.drain()).succeeded == 1
    assert await db.jobs.list() == []


@in_one_colour
async def test_the_reason_names_the_item(db: Rig) -> None:
    await put(db, await make_malformed_item(db))
    await db.drain()
    (dead,) = await db.list_dead()
    named = r"the item 'holdall#Job#default#.' / '.*' is not a job: 'job_name' is missing"
    assert re.fullmatch(named, dead.error or "")
