"""Pages of jobs: one order across all shards and queues, with a bound on the items read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rig.jobs import Rig, Way, everywhere, in_memory, open_rig

from holdall.core.port import run
from holdall.core.requests import BatchWrite, PutItem, Query, Scan
from holdall.errors import InvalidOptionsError
from holdall.jobs import JobRecord, Lease
from holdall.jobs.listing import queues
from holdall.jobs.record import JobState, encode_job
from holdall.tables.flow import discover

STATES: tuple[JobState, ...] = ("waiting", "running", "dead", "paused")


async def store(db: Rig, records: Sequence[JobRecord]) -> None:
    """Store jobs in the form of their states."""
    layout = await discover(db.context)
    puts = [PutItem(layout.table, encode_job(layout, record).stored) for record in records]
    for at in range(0, len(puts), 25):
        await db.context.port.send(BatchWrite(tuple(puts[at : at + 25])))


def make(db: Rig, number: int, state: JobState, seconds: int, queue: str = "a", name: str = "x") -> JobRecord:
    """A job whose id begins with a digit that depends on its number."""
    start = db.context.port.now().replace(microsecond=0)
    when = start + timedelta(seconds=seconds)
    id = f"{number * 7 % 16:x}{number:05}"
    lease = Lease("t", start, 30.0) if state == "running" else None
    died = when if state == "dead" else None
    return JobRecord(
        id, name, queue, "[]", when, start, lease=lease, died=died, error=None, paused=state == "paused"
    )


async def read_all(db: Rig, **options: Any) -> tuple[list[JobRecord], int]:
    """The jobs of all pages, and how many pages there were."""
    found: list[JobRecord] = []
    after, pages = None, 0
    while True:
        page = await db.jobs.page(**options, after=after)
        found += page.jobs
        pages += 1
        if page.next is None:
            return found, pages
        assert page.next != after
        after = page.next


def place(record: JobRecord) -> tuple[Any, str]:
    return record.died or record.due, record.id


jobs = st.lists(
    st.tuples(
        st.sampled_from(STATES), st.integers(0, 20), st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"])
    ),
    max_size=60,
)


@given(jobs=jobs, limit=st.integers(1, 9), most=st.none() | st.integers(1, 40), reverse=st.booleans())
def test_pages_together_are_all_jobs_in_order(
    jobs: list[tuple[JobState, int, str, str]], limit: int, most: int | None, reverse: bool
) -> None:
    async def check(db: Rig) -> None:
        await db.enqueue("z", queue="a", delay=3600)
        await db.enqueue("z", queue="b", delay=3600)
        assert await db.jobs.purge(state="waiting") == 2
        stored = [make(db, n, *each) for n, each in enumerate(jobs)]
        await store(db, stored)
        for state in STATES:
            expected = sorted((each for each in stored if each.state == state), key=place, reverse=reverse)
            options = {"state": state, "limit": limit, "reverse": reverse, "most_read": most}
            found, pages = await read_all(db, **options)
            assert found == expected
            if most is None:
                assert pages == max(1, -(-len(expected) // limit))
            found, _ = await read_all(db, **options, queue="b", name="y")
            assert found == [each for each in expected if (each.queue, each.name) == ("b", "y")]
            if not reverse:
                assert await db.jobs.list(state=state, limit=limit) == expected[:limit]
        alive = sorted((each for each in stored if each.died is None), key=place)
        dead = sorted((each for each in stored if each.died is not None), key=place)
        assert await db.jobs.list(limit=limit) == [*alive, *dead][:limit]

    with open_rig(Way("memory", "blocking")) as db:
        run(check(db))


@everywhere
async def test_a_short_list_reads_few_jobs_of_each_shard(db: Rig) -> None:
    await db.enqueue("x", queue="a")
    await store(db, [make(db, n, "waiting", 60 + n) for n in range(800)])
    db.recorder.forget()
    page = await db.jobs.page(state="waiting", limit=50)
    assert len(page.jobs) == 50
    assert page.read <= 400
    read = sum(reply.scanned for request, reply in db.recorder.exchanges if isinstance(request, Query))
    assert read == page.read + 1  # and the item of the queue
    assert db.recorder.list_sent(Scan) == []


@in_memory
async def test_a_page_ends_when_it_has_read_enough(db: Rig) -> None:
    await db.enqueue("x", queue="a")
    held = [make(db, 1000 + n, "running", 300 + n) for n in range(3)]
    await store(db, [*held, *(make(db, n, "waiting", n) for n in range(600))])
    page = await db.jobs.page(state="running", most_read=100)
    assert page.jobs == ()
    assert page.next is not None
    assert 80 < page.read <= 100
    found, pages = await read_all(db, state="running", most_read=100)
    assert found == held
    assert pages > 2


@everywhere
async def test_a_job_whose_place_is_known_is_found_without_a_search(db: Rig) -> None:
    await db.enqueue("x", queue="a")
    stored = [make(db, n, state, n) for n, state in enumerate(STATES)]
    await store(db, stored)
    for record in stored:
        db.recorder.forget()
        found = await db.jobs.get(record.id, queue="a", at=record.died or record.due)
        assert found == record
        assert db.recorder.list_sent(Query) == []
        moved = await db.jobs.get(record.id, queue="a", at=record.due + timedelta(days=1))
        assert moved == record
        assert await db.jobs.get(record.id, queue="b", at=record.due) is None


@in_memory
async def test_wrong_options_are_refused(db: Rig) -> None:
    await db.enqueue("x")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"state": "lost"}, "is not a state"),
        ({"limit": 0}, "limit must be a whole number"),
        ({"most_read": True}, "most_read must be a whole number"),
        ({"queue": "#"}, "queue"),
    ]
    for options, message in wrong:
        with pytest.raises(InvalidOptionsError, match=message):
            await db.jobs.page(**{"state": "waiting", **options})
    with pytest.raises(InvalidOptionsError, match="at must be a datetime with a time zone"):
        await db.jobs.get("x", at="now")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionsError, match="at must be in the years 1 to 9999 in UTC"):
        await db.jobs.get("x", at=datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))))
    assert await queues(db.context) == ["default"]
