"""The fault-injecting backend: each fault does to requests what it promises, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.port.awaiting import AwaitingPort
from holdall.backends.port.blocking import BlockingPort
from holdall.core import (
    Add,
    CreateTable,
    GetItem,
    KeyAttribute,
    NotExists,
    PutItem,
    TableSchema,
    TransactWrite,
    Update,
    UpdateItem,
    encode_item,
    path,
    run,
    stamped,
    value,
)
from holdall.errors import OutcomeUnknown, ServiceUnavailableError, ThrottledError
from holdall.testing import Fault, FaultyBackend

TABLE = "things"
KEY = encode_item({"pk": "a"})
GET = GetItem(TABLE, KEY)
CONSISTENT = GetItem(TABLE, KEY, consistent=True)


def put(n: int) -> PutItem:
    return PutItem(TABLE, encode_item({"pk": "a", "n": n}))


@pytest.fixture
def real() -> Iterator[EmbeddedBackend]:
    backend = EmbeddedBackend(None)
    backend.send_blocking(CreateTable(TableSchema(TABLE, KeyAttribute("pk"))))
    yield backend
    backend.close()


def read_stored(backend: EmbeddedBackend) -> Any:
    item = backend.send_blocking(CONSISTENT).item
    return None if item is None else item["n"]["N"]


@pytest.mark.parametrize(
    ("fault", "error", "happened"),
    [
        (Fault.THROTTLE, ThrottledError, False),
        (Fault.UNAVAILABLE, ServiceUnavailableError, False),
        (Fault.LOST_BEFORE, OutcomeUnknown, False),
        (Fault.LOST_AFTER, OutcomeUnknown, True),
    ],
)
def test_each_fault_does_what_it_promises_sync_and_async(
    real: EmbeddedBackend, fault: Fault, error: type[Exception], happened: bool
) -> None:
    faulty = FaultyBackend(real)
    faulty.inject(fault)
    with pytest.raises(error):
        faulty.send_blocking(put(1))
    assert read_stored(real) == ("1" if happened else None)
    faulty.inject(fault)
    with pytest.raises(error):
        asyncio.run(AwaitingPort(faulty).send(put(2)))
    assert read_stored(real) == ("2" if happened else None)
    assert faulty.injected == {fault: 2}


def test_errors_that_the_caller_can_retry_are_marked_retryable() -> None:
    assert ThrottledError("x").retryable
    assert ServiceUnavailableError("x").retryable
    assert not OutcomeUnknown("x").retryable


def test_a_stale_read_shows_the_item_before_its_last_write(real: EmbeddedBackend) -> None:
    faulty = FaultyBackend(real, {Fault.STALE: 1.0})
    port = BlockingPort(faulty)
    run(port.send(put(1)))
    assert run(port.send(GET)).item is None
    run(port.send(put(2)))
    assert run(port.send(GET)).item == encode_item({"pk": "a", "n": 1})
    assert run(port.send(CONSISTENT)).item == encode_item({"pk": "a", "n": 2})


def test_stale_reads_must_be_enabled_from_the_start(real: EmbeddedBackend) -> None:
    with pytest.raises(ValueError, match="STALE"):
        FaultyBackend(real).inject(Fault.STALE)


def test_a_lost_transaction_resent_with_its_token_happens_once(real: EmbeddedBackend) -> None:
    faulty = FaultyBackend(real)
    count = UpdateItem(TABLE, KEY, Update((Add(path("n"), value(1)),)))
    request = TransactWrite((count,), "token")
    faulty.inject(Fault.LOST_AFTER, Fault.LOST_BEFORE, None)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown):
            faulty.send_blocking(request)
    faulty.send_blocking(request)
    assert read_stored(real) == "1"


def test_a_request_delivered_twice_happens_once_if_it_has_a_stamp_or_a_token(real: EmbeddedBackend) -> None:
    faulty = FaultyBackend(real)
    create = stamped(PutItem(TABLE, encode_item({"pk": "a", "n": 1}), NotExists(path("pk"))), "stamp")
    count = UpdateItem(TABLE, KEY, Update((Add(path("n"), value(1)),)))
    faulty.inject(Fault.TWICE, Fault.TWICE, Fault.TWICE)
    faulty.send_blocking(create)
    faulty.send_blocking(TransactWrite((count,), "token"))
    assert read_stored(real) == "2"
    faulty.send_blocking(count)
    assert read_stored(real) == "4", "a plain write has neither, so it happens twice"


def test_the_same_seed_draws_the_same_faults(real: EmbeddedBackend) -> None:
    def list_replies(seed: int) -> list[str]:
        faulty = FaultyBackend(real, {Fault.THROTTLE: 0.3, Fault.UNAVAILABLE: 0.3}, seed=seed)
        names = []
        for _ in range(50):
            try:
                faulty.send_blocking(GET)
                names.append("ok")
            except (ThrottledError, ServiceUnavailableError) as error:
                names.append(error.code)
        return names

    assert list_replies(1) == list_replies(1)
    assert list_replies(1) != list_replies(2)
    assert set(list_replies(1)) == {"ok", "throttled", "service-unavailable"}
