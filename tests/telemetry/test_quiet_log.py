"""The log and OpenTelemetry get names, counts and codes from a busy program, but none of its data."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Annotated, Any

import pytest
from annotated_types import Ge
from telemetry_rig import QUICK, Recording, set_up_telemetry

from holdall import Database, Index, Key, Model, SortKey, col, field
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import GetItem, encode_item
from holdall.errors import (
    AfterCommitError,
    HoldallError,
    InvalidFieldError,
    ModelAlreadyExistsError,
    OutcomeUnknown,
    TransactionErrors,
    TransactionFailedError,
)
from holdall.testing import Fault, FaultyBackend

MARK = "m4rk"
NUMBER = 4242424242
MARKS = (MARK, str(NUMBER), "bTRya")  # the last is the beginning of its base64


class Patient(Model, indexes=[Index("by_ward", key=["ward"])]):
    ward: Key[str]
    number: SortKey[str]
    illness: str
    weight: Annotated[int, Ge(0)] = NUMBER
    picture: bytes = MARK.encode()
    mail: str | None = field(default=None, unique=True)


def admit(tx: Any, number: str) -> Any:
    name = f"{MARK}-{number}"
    return tx.create(Patient, ward=f"{MARK}-w", number=name, illness=f"{MARK}-flu", mail=f"{name}@{MARK}")


_numbers = count()


def treat(tx: Any) -> Any:
    patient = tx.get_one(Patient, ward=f"{MARK}-w", number=f"{MARK}-1")
    patient.illness = f"{MARK}-cold-{next(_numbers)}"
    return patient


def contend(db: Database) -> Any:
    def body(tx: Any) -> None:
        patient = treat(tx)
        if not (met := tx.carry.of(list)):
            met.append(tx)
            db.run(lambda other: setattr(other.get_one(patient.key), "illness", f"{MARK}-other"))

    return body


def always_contend(db: Database) -> Any:
    def body(tx: Any) -> None:
        patient = treat(tx)
        db.run(lambda other: setattr(other.get_one(patient.key), "illness", f"{MARK}-{db.port.new_id()}"))

    return body


def cause_all_outcomes(db: Database, backend: FaultyBackend) -> None:
    """Run transactions and reads with every kind of outcome, successes and failures."""
    db.run(admit, "1")
    db.run(admit, "2")
    with pytest.raises(ModelAlreadyExistsError, match=MARK):
        db.run(admit, "1")
    with pytest.raises((TransactionErrors, HoldallError)):
        db.run(lambda tx: tx.create(Patient, ward="w", number=MARK, illness="x", mail=f"{MARK}-1@{MARK}"))
    db.run(contend(db), **QUICK)
    with pytest.raises(TransactionFailedError, match=MARK):
        db.run(always_contend(db), retries=2, **QUICK)
    with pytest.raises(TransactionFailedError), db.transaction() as tx:
        always_contend(db)(tx)
    backend.inject(None, Fault.THROTTLE, None, Fault.UNAVAILABLE)
    db.run(treat, **QUICK)
    backend.inject(None, Fault.THROTTLE)
    with pytest.raises(TransactionFailedError):
        db.run(treat, retries=0)
    backend.inject(None, Fault.LOST_AFTER)
    with pytest.raises(OutcomeUnknown):
        db.run(treat)
    with pytest.raises(AfterCommitError, match=MARK):
        db.run(handle)
    with pytest.raises(InvalidFieldError, match=str(-NUMBER)):
        db.run(lambda tx: setattr(treat(tx), "weight", -NUMBER))
    with pytest.raises(KeyError, match=MARK):
        db.run(fail)
    with pytest.raises(KeyError, match=MARK), db.transaction() as tx:
        fail(tx)
    read_everything(db)


def handle(tx: Any) -> None:
    patient = treat(tx)
    tx.after_commit(lambda: {}[patient.illness])


def fail(tx: Any) -> None:
    raise KeyError(treat(tx).illness)


def read_everything(db: Database) -> None:
    """Send reads of all kinds, with data in every part of the requests."""
    where = (col(Patient.illness) != f"{MARK}-x") & (col(Patient.weight) > NUMBER - 1)
    sort = Patient.number.begins_with(MARK)
    assert db.query(Patient, ward=f"{MARK}-w", sort=sort, where=where).all()
    assert db.query(Patient, index="by_ward", ward=f"{MARK}-w").count() == 2
    assert db.scan(Patient, where=col(Patient.illness) != f"{MARK}-x").count() == 2
    key = Patient.key(ward=f"{MARK}-w", number=f"{MARK}-1")
    db.get_all([key])
    db.get_all([key], consistent=False)
    with pytest.raises(HoldallError):
        db.send(GetItem("holdall", encode_item({"pk": f"{MARK}-1"})))


async def cause_all_outcomes_awaiting(db: Database, backend: FaultyBackend) -> None:
    """The outcomes whose async code differs."""

    async def treat(tx: Any) -> Any:
        patient = await tx.get_one(Patient, ward=f"{MARK}-w", number=f"{MARK}-1")
        patient.illness = f"{MARK}-{tx.carry.of(dict).setdefault('id', db.port.new_id())}"
        return patient

    async def fail(tx: Any) -> None:
        raise KeyError((await treat(tx)).illness)

    backend.inject(None, Fault.THROTTLE, None, Fault.UNAVAILABLE)
    await db.aio.run(treat, **QUICK)
    backend.inject(None, Fault.LOST_BEFORE)
    with pytest.raises(OutcomeUnknown):
        await db.aio.run(treat)
    with pytest.raises(KeyError, match=MARK):
        async with db.aio.transaction() as tx:
            await fail(tx)


@contextmanager
def open_ward() -> Iterator[tuple[Database, FaultyBackend]]:
    backend = FaultyBackend(EmbeddedBackend(None))
    with Database(backend=backend) as db:
        db.table.create(models=[Patient])
        yield db, backend


def format_whole(record: logging.LogRecord) -> str:
    """Everything that a handler could print of a record, including an error's message and traceback."""
    return f"{logging.Formatter().format(record)} {record.__dict__}"


def dump_telemetry(recording: Recording) -> str:
    """Everything that OpenTelemetry could export."""
    data = recording.reader.get_metrics_data()
    assert data is not None
    return "\n".join([*(span.to_json() for span in recording.spans), data.to_json()])


def test_no_data_reaches_the_log_or_opentelemetry(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with open_ward() as (db, backend), set_up_telemetry() as recording:
        cause_all_outcomes(db, backend)
        asyncio.run(cause_all_outcomes_awaiting(db, backend))
        texts = [*map(format_whole, caplog.records), dump_telemetry(recording)]
    found = {mark for mark in MARKS for text in texts if mark in text}
    assert found == set()
    assert len(recording.spans) > 50
    assert "Patient" not in MARKS
    assert any("Patient" in text for text in texts)  # names of models may appear


def test_the_log_reports_retries_failures_throttling_and_unknown_outcomes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="holdall")
    with open_ward() as (db, backend):
        cause_all_outcomes(db, backend)
    messages = [(r.levelname, r.getMessage()) for r in caplog.records if r.name == "holdall.transactions"]
    assert messages == [
        ("DEBUG", "transaction admit: gave up after attempt 1 (model-already-exists)"),
        ("DEBUG", f"transaction {OUTCOMES}.<lambda>: gave up after attempt 1 (unique-violation)"),
        (
            "DEBUG",
            "transaction contend.<locals>.body: attempt 1 failed with contention, the next begins in 0.000 s",
        ),
        *(
            (
                "DEBUG",
                f"transaction {ALWAYS}: attempt {n} failed with contention, the next begins in 0.000 s",
            )
            for n in (1, 2)
        ),
        ("DEBUG", f"transaction {ALWAYS}: gave up after attempt 3 (contention)"),
        ("DEBUG", "transaction in a with block: gave up after attempt 1 (contention)"),
        ("WARNING", "transaction treat: attempt 1 failed with throttled, the next begins in 0.000 s"),
        ("DEBUG", "transaction treat: attempt 2 failed with service-unavailable, the next begins in 0.000 s"),
        ("WARNING", "transaction treat: gave up after attempt 1 (throttled)"),
        ("WARNING", "transaction treat: it is unknown whether it was committed (outcome-unknown)"),
        ("WARNING", "transaction handle: committed, but a step after the commit failed (after-commit)"),
        ("DEBUG", f"transaction {OUTCOMES}.<lambda>: gave up after attempt 1 (invalid-field)"),
        ("DEBUG", "transaction fail: gave up after attempt 1 (KeyError)"),
        ("DEBUG", "transaction in a with block: gave up after attempt 1 (KeyError)"),
    ]


OUTCOMES = "cause_all_outcomes.<locals>"
ALWAYS = "always_contend.<locals>.body"


def test_all_loggers_are_children_of_the_packages_logger(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with open_ward() as (db, backend):
        cause_all_outcomes(db, backend)
    assert {record.name.partition(".")[0] for record in caplog.records} == {"holdall"}
    assert all(record.exc_info is None for record in caplog.records)
