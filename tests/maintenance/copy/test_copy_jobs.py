"""Copied jobs arrive paused, follow their originals until they are resumed, and then run once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from copy_rig import Rig, everywhere

from holdall import Database, job
from holdall.core.port import run
from holdall.jobs import JobRecord
from holdall.jobs.lease import finish as finish_job
from holdall.jobs.lease import take
from holdall.worker import WorkerMetrics

ran: list[str] = []


@job("copied-greeting")
def greet(name: str) -> None:
    ran.append(name)


@job("copied-failure", retries=0)
def fail() -> None:
    raise ValueError("as usual")


def drain(db: Database) -> WorkerMetrics:
    """Run all due jobs, in a thread because the test may have its own event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(db.worker().drain).result()


def states(db: Database) -> dict[str, str]:
    return {each.arguments: each.state for each in db.jobs.list()}


def take_job(db: Database, id: str) -> JobRecord:
    record = db.jobs.get(id)
    assert record is not None
    taken = run(take(db._context, record, db.port.new_id(), 60))
    assert taken is not None
    return taken


@everywhere
async def test_jobs_arrive_paused_and_run_when_they_are_resumed(rig: Rig) -> None:
    ran.clear()
    rig.source.jobs.enqueue(greet, "waiting", key="one")
    rig.source.jobs.enqueue(greet, "later", delay=3600)
    held = rig.source.jobs.enqueue(greet, "held", key="two")
    take_job(rig.source, held.id)
    rig.source.jobs.enqueue(fail)
    report = await rig.copy()
    part = report.parts[0]
    assert (part.paused, part.leased, part.leased_jobs) == (4, 1, (f"copied-greeting {held.id}",))
    assert set(states(rig.target).values()) == {"paused"}
    assert rig.target.jobs.counts()["default"].paused == 4
    assert report.is_current
    metrics = drain(rig.target)
    assert (metrics.succeeded, ran) == (0, [])
    assert rig.target.jobs.resume() == 4
    assert rig.target.jobs.resume() == 0
    assert drain(rig.target).succeeded == 2
    assert sorted(ran) == ["held", "waiting"]
    assert states(rig.target) == {'["later"]': "waiting", "[]": "dead"}
    again = (await rig.copy()).parts[0]  # this pass does not copy resumed jobs again
    assert (again.copied, again.missing, rig.target.jobs.counts()["default"].paused) == (0, 0, 0)


@everywhere
async def test_copies_follow_their_originals_until_they_are_resumed(rig: Rig) -> None:
    done = rig.source.jobs.enqueue(greet, "done", key="one")
    kept = rig.source.jobs.enqueue(greet, "kept", key="two")
    await rig.copy()
    taken = take_job(rig.source, done.id)
    run(finish_job(rig.source._context, taken))
    report = await rig.copy()
    assert report.parts[0].deleted == 2  # the job and the item of its key
    assert [each.id for each in rig.target.jobs.list()] == [kept.id]
    assert rig.target.jobs.enqueue(greet, "new", key="one").added
    assert not rig.target.jobs.enqueue(greet, "new", key="two").added  # the paused job holds the key


@everywhere
async def test_a_resumed_job_keeps_its_key_when_its_original_is_deleted(rig: Rig) -> None:
    original = rig.source.jobs.enqueue(greet, "later", key="one", delay=3600)
    await rig.copy()
    assert rig.target.jobs.resume() == 1
    rig.source.jobs.delete(original.id)
    for delete in (False, True):
        report = await rig.copy(delete=delete)
        assert report.parts[0].deleted == 0
        assert not rig.target.jobs.enqueue(greet, "new", key="one").added


@everywhere
async def test_a_paused_job_is_dropped_if_a_waiting_one_has_its_key(rig: Rig) -> None:
    held = rig.source.jobs.enqueue(greet, "held", key="one")
    take_job(rig.source, held.id)  # this frees the key
    await rig.copy()
    assert rig.target.jobs.enqueue(greet, "new", key="one").added
    assert rig.target.jobs.resume() == 0
    assert states(rig.target) == {'["new"]': "waiting"}


@everywhere
async def test_paused_jobs_can_be_chosen_retried_and_deleted(rig: Rig) -> None:
    ids = [rig.source.jobs.enqueue(greet, name).id for name in ("a", "b")]
    rig.source.jobs.enqueue(fail, queue="other")
    await rig.copy()
    assert rig.target.jobs.resume(name="unknown") == 0
    assert rig.target.jobs.resume(queue="other") == 1
    assert rig.target.jobs.retry(ids[0]).state == "waiting"
    assert rig.target.jobs.delete(ids[1]).state == "paused"
    assert states(rig.target) == {'["a"]': "waiting", "[]": "waiting"}


@everywhere
async def test_dead_jobs_stay_dead(rig: Rig) -> None:
    rig.source.jobs.enqueue(fail)
    assert drain(rig.source).dead == 1
    await rig.copy()
    assert states(rig.target) == {"[]": "dead"}
