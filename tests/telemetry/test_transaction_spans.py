"""One span per transaction: its attempts, its outcome, and its children."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode
from telemetry_rig import COLOURS, QUICK, Account, open_faulty, run_coloured, set_up_telemetry

from holdall.core.telemetry import span
from holdall.errors import (
    AfterCommitError,
    ModelAlreadyExistsError,
    OutcomeUnknown,
    TransactionFailedError,
)
from holdall.testing import Fault

NAME = "holdall.transaction"


def read_attributes(found: ReadableSpan) -> dict[str, Any]:
    """The attempts, the outcome and the error of a transaction's span."""
    attributes = found.attributes or {}
    names = ("holdall.transaction.attempts", "holdall.transaction.outcome", "error.type")
    return {name.rpartition(".")[2]: attributes[name] for name in names if name in attributes}


def open_account(tx: Any) -> None:
    tx.create(Account, owner="ada")


@pytest.mark.parametrize("colour", COLOURS)
def test_a_run_is_a_span_whose_children_are_its_requests(colour: str) -> None:
    with open_faulty() as (db, _), set_up_telemetry() as recording:
        run_coloured(colour, db, open_account)
    found = recording.find_span(NAME)
    assert read_attributes(found) == {"attempts": 1, "outcome": "committed"}
    assert (found.attributes or {})["code.function.name"] == "open_account"
    assert (found.attributes or {})["holdall.transaction.read_only"] is False
    assert recording.list_children(found) == ["PutItem holdall"]
    assert found.parent is None
    assert found.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize("colour", COLOURS)
def test_a_call_of_a_transactional_function_is_a_run(colour: str) -> None:
    with open_faulty() as (db, _), set_up_telemetry() as recording:
        if colour == "blocking":
            db.transactional(read_only=True)(read_ada)()
        else:
            asyncio.run(db.aio.transactional(read_only=True)(read_ada_awaiting)())
    found = recording.find_span(NAME)
    assert (found.attributes or {})["holdall.transaction.read_only"] is True
    assert str((found.attributes or {})["code.function.name"]).startswith("read_ada")
    assert recording.list_children(found) == ["GetItem holdall"]


def read_ada(tx: Any) -> Any:
    return tx.get(Account, "ada")


async def read_ada_awaiting(tx: Any) -> Any:
    return await tx.get(Account, "ada")


@pytest.mark.parametrize("colour", COLOURS)
def test_a_transaction_block_is_a_span(colour: str) -> None:
    with open_faulty() as (db, _), set_up_telemetry() as recording:
        if colour == "blocking":
            with db.transaction() as tx:
                read_ada(tx)
                tx.create(Account, owner="bo")
        else:

            async def block() -> None:
                async with db.aio.transaction() as tx:
                    await read_ada_awaiting(tx)
                    tx.create(Account, owner="bo")

            asyncio.run(block())
        assert trace.get_current_span() is trace.INVALID_SPAN
    found = recording.find_span(NAME)
    assert read_attributes(found) == {"attempts": 1, "outcome": "committed"}
    assert "code.function.name" not in (found.attributes or {})
    # the commit also checks that the item that was missing still is, so there are two actions
    assert recording.list_children(found) == ["GetItem holdall", "TransactWriteItems holdall"]


@pytest.mark.parametrize("colour", COLOURS)
def test_each_failed_attempt_before_the_last_is_an_event(colour: str) -> None:
    with open_faulty() as (db, backend), set_up_telemetry() as recording:
        backend.inject(Fault.THROTTLE, Fault.UNAVAILABLE)
        run_coloured(colour, db, open_account)
    found = recording.find_span(NAME)
    assert read_attributes(found) == {"attempts": 3, "outcome": "committed"}
    assert [(event.name, dict(event.attributes or {})) for event in found.events] == [
        ("retry", {"holdall.transaction.attempt": 1, "error.type": "throttled"}),
        ("retry", {"holdall.transaction.attempt": 2, "error.type": "service-unavailable"}),
    ]
    assert recording.list_children(found) == ["PutItem holdall"] * 3


@pytest.mark.parametrize("colour", COLOURS)
def test_a_transaction_without_retries_left_has_failed(colour: str) -> None:
    with open_faulty() as (db, backend), set_up_telemetry() as recording:
        backend.inject(Fault.THROTTLE, Fault.THROTTLE)
        with pytest.raises(TransactionFailedError):
            run_coloured(colour, db, open_account, retries=1)
    found = recording.find_span(NAME)
    assert read_attributes(found) == {"attempts": 2, "outcome": "failed", "type": "transaction-failed"}
    assert (found.status.status_code, found.status.description) == (StatusCode.ERROR, "transaction-failed")


@pytest.mark.parametrize("colour", COLOURS)
def test_the_outcome_can_be_unknown(colour: str) -> None:
    with open_faulty() as (db, backend), set_up_telemetry() as recording:
        backend.inject(Fault.LOST_AFTER)
        with pytest.raises(OutcomeUnknown):
            run_coloured(colour, db, open_account)
    assert read_attributes(recording.find_span(NAME)) == {
        "attempts": 1,
        "outcome": "unknown",
        "type": "outcome-unknown",
    }


@pytest.mark.parametrize("colour", COLOURS)
def test_a_transaction_whose_after_commit_handler_failed_is_committed(colour: str) -> None:
    def body(tx: Any) -> None:
        open_account(tx)
        tx.after_commit(int, "no number")

    with open_faulty() as (db, _), set_up_telemetry() as recording, pytest.raises(AfterCommitError):
        run_coloured(colour, db, body)
    assert read_attributes(recording.find_span(NAME)) == {
        "attempts": 1,
        "outcome": "committed",
        "type": "after-commit",
    }


@pytest.mark.parametrize("colour", COLOURS)
def test_an_error_of_the_program_is_recorded_as_its_class(colour: str) -> None:
    class ProgramError(Exception):
        pass

    def body(tx: Any) -> None:
        raise ProgramError("about ada")

    with open_faulty() as (db, _), set_up_telemetry() as recording, pytest.raises(ProgramError):
        run_coloured(colour, db, body)
    found = recording.find_span(NAME)
    assert read_attributes(found)["outcome"] == "failed"
    assert read_attributes(found)["type"].endswith("ProgramError")
    assert "about ada" not in found.to_json()


@pytest.mark.parametrize("colour", COLOURS)
def test_a_block_that_raises_an_error_has_failed(colour: str) -> None:
    with open_faulty() as (db, _), set_up_telemetry() as recording:
        db.run(open_account)
        recording.clear()
        if colour == "blocking":
            with pytest.raises(ModelAlreadyExistsError), db.transaction() as tx:
                open_account(tx)
            with pytest.raises(KeyError), db.transaction() as tx:
                raise KeyError("ada")
        else:

            async def blocks() -> None:
                with pytest.raises(ModelAlreadyExistsError):
                    async with db.aio.transaction() as tx:
                        open_account(tx)
                with pytest.raises(KeyError):
                    async with db.aio.transaction() as tx:
                        raise KeyError("ada")

            asyncio.run(blocks())
    assert [read_attributes(found) for found in recording.find_spans(NAME)] == [
        {"attempts": 1, "outcome": "failed", "type": "model-already-exists"},
        {"attempts": 1, "outcome": "failed", "type": "KeyError"},
    ]


def test_a_run_inside_a_run_is_its_child() -> None:
    with open_faulty() as (db, _), set_up_telemetry() as recording:
        db.run(lambda tx: db.run(open_account))
    inner, outer = recording.find_spans(NAME)
    assert recording.list_children(outer) == [NAME]
    assert recording.list_children(inner) == ["PutItem holdall"]


def test_concurrent_runs_in_tasks_have_their_own_children() -> None:
    async def run_all(adb: Any) -> None:
        await asyncio.gather(*(adb.run(deposit, owner) for owner in ("ada", "bo", "cy")))

    async def deposit(tx: Any, owner: str) -> None:
        for each in (owner, f"{owner}'s child"):
            account = await tx.get(Account, each, create_if_missing=True)
            await asyncio.sleep(0)
            account.cents += 1

    with open_faulty() as (db, _), set_up_telemetry() as recording:
        asyncio.run(run_all(db.aio))
    found = recording.find_spans(NAME)
    assert len(found) == 3
    for each in found:
        assert recording.list_children(each) == [
            "GetItem holdall",
            "GetItem holdall",
            "TransactWriteItems holdall",
        ]


def test_concurrent_runs_in_threads_have_their_own_children() -> None:
    meeting = threading.Barrier(3)

    def deposit(tx: Any, owner: str) -> None:
        meeting.wait(120)
        tx.get(Account, owner, create_if_missing=True).cents += 1
        meeting.wait(120)

    with open_faulty() as (db, _), set_up_telemetry() as recording:
        threads = [
            threading.Thread(target=lambda owner=owner: db.run(deposit, owner, retries=0))
            for owner in ("ada", "bo", "cy")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = recording.find_spans(NAME)
    assert [read_attributes(each)["outcome"] for each in found] == ["committed"] * 3
    for each in found:
        assert recording.list_children(each) == ["GetItem holdall", "PutItem holdall"]


def test_concurrent_reads_in_one_transaction_are_its_children() -> None:
    async def body(tx: Any) -> None:
        await asyncio.gather(*(tx.get(Account, owner) for owner in ("ada", "bo")))
        await tx.scan(Account, segments=4).all()

    with open_faulty() as (db, _), set_up_telemetry() as recording:
        asyncio.run(db.aio.run(body))
        assert (
            recording.list_children(recording.find_span(NAME))
            == ["GetItem holdall"] * 2 + ["Scan holdall"] * 4
        )
        recording.clear()
        db.run(lambda tx: tx.scan(Account, segments=4).all())
        assert recording.list_children(recording.find_span(NAME)) == ["Scan holdall"] * 4


def test_the_span_of_a_transaction_cancelled_during_its_commit_ends() -> None:
    async def cancel(adb: Any) -> None:
        async def body(tx: Any) -> None:
            tx.create(Account, owner="ada")
            asyncio.get_running_loop().call_soon(task.cancel)

        task = asyncio.ensure_future(adb.run(body))
        with pytest.raises(asyncio.CancelledError):
            await task

    with open_faulty() as (db, _), set_up_telemetry() as recording:
        asyncio.run(cancel(db.aio))
        found = recording.find_span(NAME)
        assert read_attributes(found)["type"] == "asyncio.exceptions.CancelledError"
        assert recording.list_children(found) == ["PutItem holdall"]


def test_a_block_can_begin_in_one_context_and_end_in_another(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with open_faulty() as (db, _), set_up_telemetry() as recording:
        tx = db.transaction()
        contextvars.copy_context().run(tx.__enter__)
        tx.create(Account, owner="ada")
        contextvars.copy_context().run(tx.__exit__, None, None, None)
    assert read_attributes(recording.find_span(NAME)) == {"attempts": 1, "outcome": "committed"}
    assert [record.getMessage() for record in caplog.records] == []


# --- spans of other work ----------------------------------------------------------------------------------


@pytest.mark.parametrize("colour", COLOURS)
def test_other_work_can_have_a_span(colour: str) -> None:
    def work(tx: Any) -> None:
        tx.create(Account, owner="ada")

    with open_faulty() as (db, _), set_up_telemetry() as recording:
        if colour == "blocking":
            with span("holdall.job", {"holdall.job.name": "greet"}) as found:
                db.run(work, **QUICK)
                found.set("holdall.job.attempt", 2)
                found.event("heartbeat", {})
        else:

            async def job() -> None:
                async def await_work(tx: Any) -> None:
                    work(tx)

                with span("holdall.job", {"holdall.job.name": "greet"}) as found:
                    await db.aio.run(await_work, **QUICK)
                    found.set("holdall.job.attempt", 2)
                    found.event("heartbeat", {})

            asyncio.run(job())
    job_span = recording.find_span("holdall.job")
    assert dict(job_span.attributes or {}) == {"holdall.job.name": "greet", "holdall.job.attempt": 2}
    assert recording.list_children(job_span) == [NAME]
    assert [event.name for event in job_span.events] == ["heartbeat"]


def test_an_error_in_such_a_span_is_recorded_as_its_type() -> None:
    with set_up_telemetry() as recording, pytest.raises(ValueError, match="secret"), span("holdall.job"):
        raise ValueError("secret")
    found = recording.find_span("holdall.job")
    assert (found.attributes or {})["error.type"] == "ValueError"
    assert "secret" not in found.to_json()


def test_without_opentelemetry_such_a_span_does_nothing() -> None:
    with span("holdall.job", {"a": 1}) as found:
        found.set("b", 2)
        found.event("c", {})
    assert trace.get_current_span() is trace.INVALID_SPAN
