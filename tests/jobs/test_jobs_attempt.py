"""The end of a transactional job as part of its own transaction."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from holdall import Database
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.port import run
from holdall.core.requests import DeleteItem, PutItem
from holdall.errors import LeaseLostError
from holdall.jobs.attempt import Ending, RunningJob
from holdall.jobs.record import JobRecord, Lease
from holdall.tables.commit.change import Change
from holdall.tables.commit.plan import Step

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RECORD = JobRecord("7" * 36, "name", "queue", "[]", NOW, NOW, 1, lease=Lease("mine", NOW, 30.0))


@pytest.fixture
def context() -> Iterator[Context]:
    with Database("memory:") as db:
        yield db._context


def steps_of(context: Context, ending: Ending) -> tuple[Step, ...]:
    change = Change(context)
    run(ending.state(change))
    return change.plan.steps


def test_a_running_job_has_its_id_name_queue_and_attempt() -> None:
    running = RunningJob(RECORD)
    assert (running.id, running.name, running.queue, running.attempt) == ("7" * 36, "name", "queue", 1)
    assert not running.lost
    assert repr(running) == f"<running name {'7' * 36}, attempt 1>"


def test_a_transactional_job_ends_with_its_deletion(context: Context) -> None:
    ending = Ending(context, RunningJob(RECORD))
    actions = [step.action for step in steps_of(context, ending)]
    assert [type(action) for action in actions] == [DeleteItem]


def test_with_once_for_its_end_also_writes_the_guard_of_its_key(context: Context) -> None:
    ending = Ending(context, RunningJob(replace(RECORD, key="k", once_for=60.0)))
    actions = [step.action for step in steps_of(context, ending)]
    assert [type(action) for action in actions] == [DeleteItem, PutItem]


def test_a_lost_job_cannot_be_ended(context: Context) -> None:
    running = RunningJob(RECORD)
    running.lost = True
    with pytest.raises(LeaseLostError):
        steps_of(context, Ending(context, running))


def test_a_heartbeat_during_the_attempt_is_contention(context: Context) -> None:
    running = RunningJob(RECORD)
    running.tokens.add("mine too")
    ending = Ending(context, running)
    (step,) = steps_of(context, ending)
    assert step.refuse is not None
    for token in ("mine", "mine too"):
        assert step.refuse({"job_lease": {"S": token}}) is None


@pytest.mark.parametrize("item", [None, {}, {"job_lease": {"S": "theirs"}}])
def test_a_job_that_was_deleted_or_taken_by_another_worker_is_lost(
    context: Context, item: dict[str, dict[str, str]] | None
) -> None:
    (step,) = steps_of(context, Ending(context, RunningJob(RECORD)))
    assert step.refuse is not None
    assert isinstance(step.refuse(item), LeaseLostError)
