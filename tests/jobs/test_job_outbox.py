"""The outbox: a job exists if and only if the transaction that enqueued it committed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from rig.jobs import Rig, everywhere, in_memory, lose_after, on_servers

from holdall import Key, Model, job
from holdall.core.requests import BatchGet, BatchWrite, TransactWrite
from holdall.errors import (
    InvalidJobArgumentsError,
    InvalidOptionsError,
    ModelAlreadyExistsError,
    OutcomeUnknown,
    TransactionClosedError,
    TransactionFailedError,
    TransactionTooLarge,
    WriteAttemptedInReadOnlyTxError,
)

done: list[Any] = []


class Tally(Model):
    name: Key[str]
    n: int = 0


@job("outbox-note")
def note(*words: Any) -> None:
    done.append(words)


@job("outbox-two")
async def two(left: str, right: str = "default") -> None:
    done.append((left, right))


@job("outbox-change", transactional=True)
def change(tx: Any, name: str) -> None:
    tx.get_one(Tally, name).n += 1


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    done.clear()


def interfere(db: Rig, *, times: int = 1) -> list[int]:
    """Let another process change the tally just before each of the next commits; returns a list that they extend."""
    seen: list[int] = []

    def meddle(request: Any) -> None:
        if isinstance(request, TransactWrite) and len(seen) < times:
            seen.append(len(seen))
            with db.other.transaction() as tx:
                tx.get_one(Tally, "a").n += 10

    db.recorder.before = meddle
    return seen


# --- in a transaction -----------------------------------------------------------------------------------


@on_servers
async def test_a_job_of_a_committed_transaction_runs_once(db: Rig) -> None:
    await db.commit(lambda tx: (tx.create(Tally, name="a"), tx.enqueue(note, "a")))
    metrics = await db.drain()
    assert (metrics.started, metrics.succeeded) == (1, 1)
    assert (await db.drain()).started == 0
    assert done == [("a",)]
    assert await db.jobs.list() == []


@everywhere
async def test_a_job_of_a_block_that_failed_does_not_exist(db: Rig) -> None:
    def fail(tx: Any) -> None:
        tx.enqueue(note, "never")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await db.commit(fail)
    assert await db.jobs.list() == []


@everywhere
async def test_a_job_of_a_commit_that_was_refused_does_not_exist(db: Rig) -> None:
    await db.create(Tally(name="a"))
    handles: list[Any] = []

    def again(tx: Any) -> None:
        tx.create(Tally, name="a")
        handles.append(tx.enqueue(note, "never"))

    with pytest.raises(ModelAlreadyExistsError):
        await db.commit(again)
    assert handles[0].added is None
    assert await db.jobs.list() == []


@everywhere
async def test_a_retried_transaction_leaves_one_job(db: Rig) -> None:
    await db.create(Tally(name="a"))
    interfere(db)
    handles: list[Any] = []

    async def body(tx: Any) -> None:
        (await tx.get_one(Tally, "a")).n += 1
        handles.append(tx.enqueue(note, len(handles) + 1))

    await db.run(body)
    assert [handle.added for handle in handles] == [None, True]
    assert (await db.get_only()).id == handles[1].id
    await db.drain()
    assert done == [(2,)]
    assert (await db.get(Tally, "a")).n == 11


@in_memory
async def test_a_failed_transaction_leaves_no_job(db: Rig) -> None:
    await db.create(Tally(name="a"))
    interfere(db, times=3)

    async def body(tx: Any) -> None:
        (await tx.get_one(Tally, "a")).n += 1
        tx.enqueue(note, "never")
        tx.enqueue(note, "never", key="k")

    with pytest.raises(TransactionFailedError):
        await db.run(body, retries=2)
    assert await db.jobs.list() == []
    assert (await db.enqueue(note, key="k")).added


@in_memory
async def test_a_transaction_can_write_only_a_job(db: Rig) -> None:
    handle = await db.commit(lambda tx: tx.enqueue(note, 1))
    assert handle.added
    assert (await db.get_only()).id == handle.id


@in_memory
async def test_a_hook_of_an_item_can_enqueue(db: Rig) -> None:
    await db.commit(lambda tx: tx.create(Announced, name="a"))
    await db.drain()
    assert done == [("announced", "a")]


class Announced(Model):
    name: Key[str]

    def before_commit(self, tx: Any) -> None:
        tx.enqueue(note, "announced", self.name)


@everywhere
async def test_a_commit_whose_reply_is_lost_leaves_its_job(db: Rig) -> None:
    await db.enqueue(note, "before")
    db.recorder.after = lose_after(TransactWrite)
    handles: list[Any] = []

    def body(tx: Any) -> None:
        tx.create(Tally, name="a")
        handles.append(tx.enqueue(note, "a"))

    with pytest.raises(OutcomeUnknown):
        await db.run(body)
    assert [handle.added for handle in handles] == [None]
    await db.drain()
    assert sorted(done) == [("a",), ("before",)]


@everywhere
async def test_one_transaction_can_enqueue_several_jobs(db: Rig) -> None:
    def body(tx: Any) -> list[Any]:
        notes = [tx.enqueue(note, n) for n in range(20)]
        return [*notes, tx.enqueue(two, "l", "r"), tx.enqueue("outbox-two", "l")]

    handles = await db.commit(body)
    assert all(handle.added for handle in handles)
    assert {record.id for record in await db.jobs.list()} == {handle.id for handle in handles}
    assert (await db.drain()).succeeded == 22
    assert {words for words in done if len(words) == 1} == {(n,) for n in range(20)}
    assert {words for words in done if len(words) == 2} == {("l", "r"), ("l", "default")}


@in_memory
async def test_a_job_adds_one_action_to_the_transaction_and_one_with_a_key_two(db: Rig) -> None:
    await db.enqueue(note)  # registers the queue
    db.recorder.requests.clear()
    await db.commit(lambda tx: (tx.create(Tally, name="a"), tx.enqueue(note)))
    (write,) = db.recorder.requests
    assert isinstance(write, TransactWrite)
    assert len(write.actions) == 2
    db.recorder.requests.clear()
    await db.commit(lambda tx: (tx.create(Tally, name="b"), tx.enqueue(note, key="k")))
    write = db.recorder.requests[-1]
    assert isinstance(write, TransactWrite)
    assert len(write.actions) == 3


@in_memory
async def test_the_jobs_of_a_transaction_read_their_keys_and_register_their_queues_together(db: Rig) -> None:
    await db.enqueue(note)
    db.recorder.requests.clear()

    def body(tx: Any) -> None:
        for n in range(10):
            tx.enqueue(note, n, key=str(n), queue="new")
            tx.enqueue(note, n, queue="newer")

    await db.commit(body)
    read, register, write = db.recorder.requests
    assert isinstance(read, BatchGet)
    assert isinstance(register, BatchWrite)
    assert isinstance(write, TransactWrite)
    assert (len(read.reads), len(register.actions), len(write.actions)) == (10, 2, 30)
    assert await db.jobs.queues() == ["default", "new", "newer"]


# --- outside a transaction ------------------------------------------------------------------------------


@everywhere
async def test_a_job_can_be_enqueued_outside_a_transaction(db: Rig) -> None:
    handle = await db.enqueue(note, "alone", delay=timedelta(hours=1), queue="slow")
    record = await db.get_only()
    assert (record.id, record.name, record.queue, record.arguments) == (
        handle.id,
        "outbox-note",
        "slow",
        '["alone"]',
    )
    assert (record.due - record.enqueued) == timedelta(hours=1)
    assert (record.state, record.attempts, record.error, record.key) == ("waiting", 0, None, None)


@in_memory
async def test_an_undeclared_job_can_be_enqueued_by_its_name(db: Rig) -> None:
    await db.enqueue("declared-elsewhere", 1, {"a": [2]})
    record = await db.get_only()
    assert (record.name, record.queue, record.arguments) == ("declared-elsewhere", "default", '[1,{"a":[2]}]')


@in_memory
async def test_a_declared_job_can_still_be_called_as_a_function(db: Rig) -> None:
    note("called", "here")
    await two("called", right="there")
    assert done == [("called", "here"), ("called", "there")]
    assert await db.jobs.list() == []


# --- refused calls --------------------------------------------------------------------------------------


@in_memory
async def test_a_read_only_transaction_cannot_enqueue(db: Rig) -> None:
    with pytest.raises(WriteAttemptedInReadOnlyTxError):
        await db.commit(lambda tx: tx.enqueue(note), read_only=True)
    assert await db.jobs.list() == []


@in_memory
async def test_a_transaction_that_is_over_cannot_enqueue(db: Rig) -> None:
    tx = await db.commit(lambda tx: tx)
    with pytest.raises(TransactionClosedError):
        tx.enqueue(note)


@in_memory
async def test_more_than_a_hundred_actions_are_refused_before_anything_is_written(db: Rig) -> None:
    await db.create(Tally(name="a"))
    db.recorder.requests.clear()
    with pytest.raises(TransactionTooLarge):
        await db.commit(lambda tx: [tx.enqueue(note, n) for n in range(101)])
    with pytest.raises(TransactionTooLarge):
        await db.commit(lambda tx: [tx.enqueue(note, n, key=str(n)) for n in range(51)])
    assert not [request for request in db.recorder.requests if request.writes]
    await db.commit(lambda tx: [tx.enqueue(note, n) for n in range(100)])
    assert (await db.jobs.counts())["default"].waiting == 100


WRONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((note,), {"queue": "no such#queue"}),
    ((note,), {"queue": ""}),
    ((note,), {"queue": 5}),
    ((note,), {"delay": -1}),
    ((note,), {"delay": float("nan")}),
    ((note,), {"delay": "soon"}),
    ((note,), {"delay": True}),
    ((note,), {"delay": timedelta(days=400)}),
    ((note,), {"key": ""}),
    ((note,), {"key": "k" * 501}),
    ((note,), {"key": "é" * 251}),
    ((note,), {"key": 7}),
    ((note,), {"key": "\ud800"}),
    ((two,), {}),
    ((two, 1, 2, 3), {}),
    (("outbox-two",), {}),
    ((change,), {}),
    ((change, "a", "b"), {}),
    ((print,), {}),
    ((None,), {}),
    (("",), {}),
    (("no name\n",), {}),
    (("x" * 101,), {}),
]


@pytest.mark.parametrize(("args", "options"), WRONG, ids=lambda given: repr(given)[:40])
@in_memory
async def test_invalid_options_are_refused_before_anything_is_sent(
    db: Rig, args: tuple[Any, ...], options: dict[str, Any]
) -> None:
    def body(tx: Any) -> None:
        tx.create(Tally, name="a")
        tx.enqueue(*args, **options)

    with pytest.raises(InvalidOptionsError):
        await db.commit(body)
    with pytest.raises(InvalidOptionsError):
        await db.enqueue(*args, **options)
    assert not [request for request in db.recorder.requests if request.writes]


@in_memory
async def test_invalid_options_are_refused_even_if_the_key_is_taken_in_the_transaction(db: Rig) -> None:
    def body(tx: Any) -> None:
        tx.enqueue(note, key="k")
        with pytest.raises(InvalidJobArgumentsError):
            tx.enqueue(note, object(), key="k")
        with pytest.raises(InvalidOptionsError):
            tx.enqueue(note, key="k", delay=-1)

    await db.commit(body)


@in_memory
async def test_the_longest_key_and_the_longest_delay_are_kept(db: Rig) -> None:
    key = "é" * 250
    await db.enqueue(note, key=key, delay=timedelta(days=366))
    assert (await db.get_only()).key == key
    assert not (await db.enqueue(note, key=key)).added
