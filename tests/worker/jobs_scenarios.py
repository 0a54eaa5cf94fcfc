"""Jobs that end in every possible way, for workers and enqueuers that are killed meanwhile.

Each run of a scenario has its own queue, and its jobs record their work under the name of that queue: a plain job
leaves an `Effect` each time it runs to its end, a transactional one counts in a `Tally`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from jobs_torture_rig import LEASE, until

import holdall
from holdall import AsyncTransaction, Database, Key, Model, SortKey, Transaction
from holdall.core.frozen import dataclass

__all__ = ["SCENARIOS", "Effect", "Order", "Scenario", "Tally", "at_work", "declare_recurring"]

DECADES = 36525 * 24 * 3600
BACKOFF = 0.01


class Effect(Model):
    """A job creates one each time it runs to its end."""

    queue: Key[str]
    id: SortKey[str]


class Tally(Model):
    """How often a transactional job has taken effect."""

    name: Key[str]
    count: int = 0


class Order(Model):
    """An item that is the argument of a job."""

    queue: Key[str]


class _AtWork:
    """The database of this process, for jobs that have no transaction."""

    db: Database


at_work = _AtWork()


def leave_effect() -> None:
    with at_work.db.transaction() as tx:
        tx.create(Effect, queue=holdall.current_job().queue, id=str(uuid4()))


def count_name(tx: Transaction, name: str) -> None:
    tally: Any = tx.get(Tally, name, create_if_missing=True)
    tally.count += 1


def is_first() -> bool:
    return holdall.current_job().attempt == 1


# --- the jobs ---


@holdall.job("dying-plain", backoff=BACKOFF)
def plain() -> None:
    leave_effect()


@holdall.job("dying-awaited", backoff=BACKOFF)
async def leave_effect_awaited() -> None:
    async with at_work.db.aio.transaction() as tx:
        tx.create(Effect, queue=holdall.current_job().queue, id=str(uuid4()))


@holdall.job("dying-about", backoff=BACKOFF)
def about(order: Order) -> None:
    assert order.queue == holdall.current_job().queue
    leave_effect()


@holdall.job("dying-long", backoff=BACKOFF)
def long() -> None:
    job = holdall.current_job()
    first = job.record.lease
    while job.record.lease == first and not job.lost:
        time.sleep(0.002)  # until a heartbeat has been sent and answered
    leave_effect()


@holdall.job("dying-failing-once", backoff=BACKOFF)
def fail_once() -> None:
    if is_first():
        raise ValueError("the first attempt fails")
    leave_effect()


@holdall.job("dying-hopeless", retries=1, backoff=BACKOFF)
def hopeless() -> None:
    raise ValueError("every attempt fails")


@holdall.job("dying-once", once_for=3600, backoff=BACKOFF)
def once() -> None:
    leave_effect()


@holdall.job("dying-once-failing", once_for=3600, backoff=BACKOFF)
def once_failing() -> None:
    fail_once()


@holdall.job("dying-once-hopeless", once_for=3600, retries=1, backoff=BACKOFF)
def once_hopeless() -> None:
    hopeless()


@holdall.job("dying-counting", transactional=True, backoff=BACKOFF)
def count_queue(tx: Transaction) -> None:
    count_name(tx, holdall.current_job().queue)


@holdall.job("dying-counting-awaited", transactional=True, backoff=BACKOFF)
async def count_awaited(tx: AsyncTransaction) -> None:
    tally: Any = await tx.get(Tally, holdall.current_job().queue, create_if_missing=True)
    tally.count += 1


@holdall.job("dying-counting-failing", transactional=True, backoff=BACKOFF)
def count_and_fail(tx: Transaction) -> None:
    count_name(tx, holdall.current_job().queue)
    if is_first():
        raise ValueError("the first attempt fails")


@holdall.job("dying-counting-once", transactional=True, once_for=3600, backoff=BACKOFF)
def count_once(tx: Transaction) -> None:
    count_name(tx, holdall.current_job().queue)


@holdall.job("dying-link", transactional=True, backoff=BACKOFF)
def link(tx: Transaction, more: int, keyed: bool) -> None:
    queue = holdall.current_job().queue
    count_name(tx, f"{queue} {more}")
    if more:
        tx.enqueue(link, more - 1, keyed, queue=queue, key=f"{queue} {more - 1}" if keyed else None)


def declare_recurring(queue: str) -> Any:
    """Declare a recurring job for a queue, with an interval of a hundred years."""
    return holdall.job(f"dying-recurring-{queue}", queue=queue, every=DECADES)(_refuse)


def _refuse() -> None:
    raise AssertionError("it was not due")


# --- the scenarios ---

Act = Callable[[Database, str], None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens before the process that will die, what that process does, and what must hold in the end.

    ``prepare`` and ``act`` get a database and the queue; without ``act`` the process works on the queue until it is
    empty. ``effects``: whether a plain job ran to its end at least once (otherwise never). ``tallies``: the tallies
    that must be 1, by the end of their names. ``ordered``: all this holds only if there is an order; otherwise nothing
    was done. ``again``: a job that was enqueued with the queue as its key, and whether it can be enqueued again.
    """

    prepare: Act
    act: Act | None = None
    effects: bool = True
    tallies: tuple[str, ...] = ()
    dead: int = 0
    waiting: int = 0
    ordered: bool = False
    again: tuple[Any, bool] | None = None


def _enqueue(job: Any, *arguments: Any, keyed: bool = False) -> Act:
    def enqueue(db: Database, queue: str) -> None:
        db.jobs.enqueue(job, *arguments, queue=queue, key=queue if keyed else None)

    return enqueue


def _about_nothing(db: Database, queue: str) -> None:
    db.jobs.enqueue(about, Order(queue=queue), queue=queue)


def _about_an_order(db: Database, queue: str) -> None:
    with db.transaction() as tx:
        tx.enqueue(about, tx.create(Order, queue=queue), queue=queue)


def _order(job: Any, keyed: bool) -> Act:
    def act(db: Database, queue: str) -> None:
        with db.transaction() as tx:
            tx.create(Order, queue=queue)
            tx.enqueue(job, queue=queue, key=queue if keyed else None)

    return act


def _recur(db: Database, queue: str) -> None:
    with db.worker(queues=[queue], jobs=[declare_recurring(queue)], lease=LEASE, poll_interval=0.05):
        until(lambda: db.jobs.counts(queue=queue)[queue].waiting, "a recurring job was enqueued")


def _prepare_nothing(db: Database, queue: str) -> None:
    """Do nothing."""


SCENARIOS = {
    "success": Scenario(_enqueue(plain)),
    "awaited success": Scenario(_enqueue(leave_effect_awaited)),
    "heartbeat": Scenario(_enqueue(long)),
    "an order": Scenario(_about_an_order),
    "drop": Scenario(_about_nothing, effects=False),
    "failure": Scenario(_enqueue(fail_once)),
    "death": Scenario(_enqueue(hopeless), effects=False, dead=1),
    "keyed": Scenario(_enqueue(plain, keyed=True), again=(plain, True)),
    "keyed failure": Scenario(_enqueue(fail_once, keyed=True), again=(fail_once, True)),
    "keyed death": Scenario(_enqueue(hopeless, keyed=True), effects=False, dead=1, again=(hopeless, True)),
    "once": Scenario(_enqueue(once, keyed=True), again=(once, False)),
    "once failing": Scenario(_enqueue(once_failing, keyed=True), again=(once_failing, False)),
    "once dying": Scenario(
        _enqueue(once_hopeless, keyed=True), effects=False, dead=1, again=(once_hopeless, True)
    ),
    "transactional": Scenario(_enqueue(count_queue), effects=False, tallies=("",)),
    "transactional awaited": Scenario(_enqueue(count_awaited), effects=False, tallies=("",)),
    "transactional failure": Scenario(_enqueue(count_and_fail), effects=False, tallies=("",)),
    "transactional once": Scenario(
        _enqueue(count_once, keyed=True), effects=False, tallies=("",), again=(count_once, False)
    ),
    "chain": Scenario(_enqueue(link, 2, False), effects=False, tallies=(" 2", " 1", " 0")),
    "keyed chain": Scenario(_enqueue(link, 2, True), effects=False, tallies=(" 2", " 1", " 0")),
    "enqueuer": Scenario(_prepare_nothing, _order(plain, False), ordered=True),
    "keyed enqueuer": Scenario(_prepare_nothing, _order(plain, True), ordered=True, again=(plain, True)),
    "once enqueuer": Scenario(
        _prepare_nothing, _order(count_once, True), effects=False, tallies=("",), ordered=True
    ),
    "repeating enqueuer": Scenario(_enqueue(plain, keyed=True), _order(plain, True), again=(plain, True)),
    "recurring": Scenario(_prepare_nothing, _recur, effects=False, waiting=1),
}
