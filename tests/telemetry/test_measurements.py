"""Measurements: requests by operation, what they cost, and the attempts of transactions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from telemetry_rig import COLOURS, Account, Recording, open_faulty, run_coloured, set_up_telemetry

from holdall.core import GetItem
from holdall.errors import ServiceUnavailableError, TransactionFailedError
from holdall.testing import Fault

KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}


def open_account(tx: Any) -> None:
    tx.create(Account, owner="ada")


def count_values(recording: Recording, name: str, attribute: str) -> dict[Any, float]:
    """For each value of an attribute, the number of measurements, or the sum of a counter."""
    found: dict[Any, float] = {}
    for attributes, point in recording.list_points(name):
        amount = point.count if hasattr(point, "count") else point.value
        found[attributes.get(attribute)] = found.get(attributes.get(attribute), 0) + amount
    return found


@pytest.mark.parametrize("traces", [True, False])
@pytest.mark.parametrize("colour", COLOURS)
def test_requests_are_counted_timed_and_billed_by_operation(colour: str, traces: bool) -> None:
    with open_faulty() as (db, _), set_up_telemetry(traces=traces) as recording:
        run_coloured(colour, db, open_account)
        for _ in range(3):
            if colour == "blocking":
                db.get(Account, "ada")
            else:
                asyncio.run(db.aio.get(Account, "ada"))
        assert count_values(recording, "db.client.operation.duration", "db.operation.name") == {
            "PutItem": 1,
            "GetItem": 3,
        }
        billed = count_values(recording, "holdall.consumed_capacity", "db.operation.name")
        assert billed["GetItem"] == 3.0
        assert billed["PutItem"] > 0
        attributes, point = recording.list_points("db.client.operation.duration")[0]
        assert attributes["db.system.name"] == "holdall"
        assert attributes["db.collection.name"] == "holdall"
        assert 0.001 in point.explicit_bounds
        assert bool(recording.spans) is traces


def test_errors_are_counted_by_their_codes() -> None:
    with open_faulty() as (db, backend), set_up_telemetry() as recording:
        backend.inject(Fault.UNAVAILABLE)
        with pytest.raises(ServiceUnavailableError):
            db.send(GetItem("holdall", KEY))
        db.send(GetItem("holdall", KEY))
        assert count_values(recording, "db.client.operation.duration", "error.type") == {
            "service-unavailable": 1,
            None: 1,
        }


@pytest.mark.parametrize("traces", [True, False])
@pytest.mark.parametrize("colour", COLOURS)
def test_attempts_retries_and_outcomes_of_transactions_are_counted(colour: str, traces: bool) -> None:
    with open_faulty() as (db, backend), set_up_telemetry(traces=traces) as recording:
        backend.inject(Fault.THROTTLE, Fault.THROTTLE)
        run_coloured(colour, db, open_account)
        backend.inject(Fault.UNAVAILABLE)
        with pytest.raises(TransactionFailedError):
            run_coloured(colour, db, open_account, retries=0)
        outcomes = {
            attributes["holdall.transaction.outcome"]: (point.count, point.sum)
            for attributes, point in recording.list_points("holdall.transaction.attempts")
        }
        assert outcomes == {"committed": (1, 3), "failed": (1, 1)}
        assert count_values(recording, "holdall.transaction.retries", "error.type") == {"throttled": 2}


def test_contention_is_counted() -> None:
    def body(tx: Any) -> None:
        account = tx.get_one(Account, "ada")
        if not (met := tx.carry.of(list)):
            met.append(tx)
            db.run(lambda other: setattr(other.get_one(Account, "ada"), "cents", 7))
        account.cents += 1

    with open_faulty() as (db, _), set_up_telemetry() as recording:
        db.run(open_account)
        db.run(body, initial_backoff=0.0)
        assert count_values(recording, "holdall.transaction.retries", "error.type") == {"contention": 1}


def test_spans_work_without_measurements() -> None:
    with open_faulty() as (db, _), set_up_telemetry(measures=False) as recording:
        db.run(open_account)
        assert len(recording.spans) == 2
        assert recording.reader.get_metrics_data() is None
