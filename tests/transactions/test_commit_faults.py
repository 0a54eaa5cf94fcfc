"""Faults at each request of a transaction: it happens once or not at all, and the caller knows.

The rule that is held to every case, whichever request meets whichever fault:

- no error: done exactly once, and the commit handlers ran once;
- `OutcomeUnknown`: done or not, at most once; no handler of either kind ran, and the body was not run again;
- any other error: not done; the failure handlers ran once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from random import Random
from typing import Any, TypeVar

import pytest
from fault_cases import CASES, REPLANNED, WRITES, Case
from rig.colour import in_turn
from rig.torture import TORTURE
from transactions_rig import COLOURS, Colour, Driver, Thing, Watched, now, open_database, open_driver

from holdall import Database
from holdall.core.port import Backend
from holdall.core.requests import Request, TransactWrite
from holdall.errors import (
    CancellationReason,
    ConflictError,
    HoldallError,
    OutcomeUnknown,
    TransactionCanceledError,
    TransactionFailedError,
)
from holdall.testing import Fault, FaultyBackend

R = TypeVar("R")
B = TypeVar("B", bound=Backend)
ROUNDS = int(os.environ.get("HOLDALL_TORTURE_ROUNDS", "2"))
SEED = os.environ.get("HOLDALL_SEED", "20261115")
FAULTS = [Fault.THROTTLE, Fault.UNAVAILABLE, Fault.LOST_BEFORE, Fault.LOST_AFTER]
LOST = {Fault.LOST_BEFORE, Fault.LOST_AFTER}
SHORT = FAULTS if TORTURE else [Fault.THROTTLE, *LOST]
"""Where faults meet one another: being throttled and being told to come back are answered alike."""


@dataclass
class Account:
    """What the caller of a transaction could see of it."""

    bodies: int = 0
    handlers: list[str] = field(default_factory=list)
    result: Any = None
    error: BaseException | None = None

    def check(self, case: Case, db: Database) -> None:
        """Hold the rule."""
        done = 0 if case.done is None else case.done(db)
        if self.error is None:
            assert self.handlers == ["committed"]
            assert self.result == case.result
            assert done == (case.done is not None)
        elif isinstance(self.error, OutcomeUnknown):
            assert self.handlers == []
            assert done in (0, 1)
        else:
            assert isinstance(self.error, HoldallError)
            assert self.handlers == ["failed"]
            assert done == 0


def attempt(driver: Driver, case: Case, **options: Any) -> Account:
    """Run a case as its caller would."""
    account = Account()

    async def body(tx: Any) -> Any:
        account.bodies += 1
        tx.after_commit(account.handlers.append, "committed")
        tx.after_failure(lambda error: account.handlers.append("failed"))
        return await case.body(tx)

    try:
        account.result = driver.run(body, read_only=case.read_only, **options)
    except Exception as error:  # noqa: BLE001 - looked at by the rule
        account.error = error
    return account


@contextmanager
def stage(colour: Colour, case: Case, meddle: Callable[[Backend], B]) -> Iterator[tuple[Driver, B, Database]]:
    """A driver on a store that something stands before, that thing, and the same store without it."""
    store = Watched()
    with open_database(store) as calm:
        calm.run(case.start)
        meddler = meddle(store)
        troubled = Database(backend=meddler)
        troubled.get(Thing, "nobody")  # the table is known by now, so that faults meet the transaction alone
        yield Driver(colour, troubled), meddler, calm


@cache
def requests_of(case: Case) -> list[Request[Any]]:
    """What the case sends when nothing goes wrong."""
    watched = Watched()
    with open_database(watched) as db:
        db.run(case.start)
        begun = len(watched.requests)
        attempt(Driver("blocking", db), case)
        return watched.requests[begun:]


def places() -> list[Any]:
    """Every request of every case."""
    return [
        pytest.param(case, place, id=f"{case}-{place}-{type(request).__name__}")
        for case in CASES
        for place, request in enumerate(requests_of(case))
    ]


PLACES = places()


@pytest.mark.parametrize(
    ("case", "place", "fault", "colour"),
    [
        pytest.param(*place.values, fault, colour, id=f"{place.id}-{fault}-{colour}")
        for place in PLACES
        for fault in FAULTS
        for colour in in_turn(str(place.id), str(fault))
    ],
)
def test_one_fault_is_overcome_or_told(case: Case, place: int, fault: Fault, colour: Colour) -> None:
    with stage(colour, case, FaultyBackend) as (driver, faulty, calm):
        faulty.inject(*[None] * place, fault)
        account = attempt(driver, case)
        account.check(case, calm)
        assert faulty.injected[fault] == 1
        refused = case in REPLANNED and place == 0 and fault is Fault.LOST_AFTER  # nothing was done, or lost
        if refused:
            assert (account.error, account.bodies) == (None, 1)
        elif fault in LOST and requests_of(case)[place].writes:
            assert isinstance(account.error, OutcomeUnknown)
            assert account.bodies == 1
            assert case.done is not None
            assert case.done(calm) == (fault is Fault.LOST_AFTER)
        else:
            assert account.error is None
            assert account.bodies == 2


# with one fault there are both colours; with two, everyday, the one that may be cancelled
@pytest.mark.parametrize("colour", COLOURS if TORTURE else ["awaiting"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_any_two_faults_are_overcome_or_told(case: Case, colour: Colour) -> None:
    for faults in product(SHORT, repeat=2):
        for gap in range(len(requests_of(case))):
            with stage(colour, case, FaultyBackend) as (driver, faulty, calm):
                faulty.inject(faults[0], *[None] * gap, faults[1])
                attempt(driver, case).check(case, calm)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("fault", [Fault.THROTTLE, Fault.UNAVAILABLE], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_faults_without_end_are_told_after_the_last_attempt(case: Case, fault: Fault, colour: Colour) -> None:
    with stage(colour, case, FaultyBackend) as (driver, faulty, calm):
        faulty.inject(*[fault] * 3)
        account = attempt(driver, case, retries=2)
        account.check(case, calm)
        assert isinstance(account.error, TransactionFailedError)
        assert account.error.attempts == account.bodies == 3
        assert getattr(account.error.__cause__, "retryable", False)


# --- conflicts ---------------------------------------------------------------------------------------------


class Refusing:
    """A store that refuses the next writes of transactions with the errors it is given."""

    def __init__(self, inner: Backend) -> None:
        self.inner = inner
        self.errors: list[Callable[[Request[Any]], Exception]] = []

    def send_blocking(self, request: Request[R]) -> R:
        if request.writes and self.errors:
            raise self.errors.pop(0)(request)
        return self.inner.send_blocking(request)

    async def send_awaiting(self, request: Request[R]) -> R:
        return self.send_blocking(request)

    def close(self) -> None:
        self.inner.close()


def conflict(request: Request[Any]) -> Exception:
    return ConflictError("another transaction is at work on it")


def cancel(code: str) -> Callable[[Request[Any]], Exception]:
    """A transaction cancelled because of its last action; a single write is refused in its own way."""

    def error(request: Request[Any]) -> Exception:
        if not isinstance(request, TransactWrite):
            return conflict(request)
        fine = [CancellationReason("None")] * (len(request.actions) - 1)
        return TransactionCanceledError("cancelled", reasons=[*fine, CancellationReason(code)])

    return error


REFUSALS = [
    pytest.param(conflict, id="conflict"),
    pytest.param(cancel("TransactionConflict"), id="cancelled for a conflict"),
    pytest.param(cancel("ThrottlingError"), id="cancelled for its rate"),
    pytest.param(cancel("ProvisionedThroughputExceeded"), id="cancelled for its throughput"),
]


@pytest.mark.parametrize(
    ("case", "refusal", "colour"),
    [
        pytest.param(case, *refusal.values, colour, id=f"{case}-{refusal.id}-{colour}")
        for case in WRITES
        for refusal in REFUSALS
        for colour in in_turn(str(case), str(refusal.id))
    ],
)
def test_conflicts_are_overcome_or_told(
    case: Case, refusal: Callable[[Request[Any]], Exception], colour: Colour
) -> None:
    for times, succeeds in ((2, True), (4, False)):
        with stage(colour, case, Refusing) as (driver, refusing, calm):
            refusing.errors += [refusal] * times
            account = attempt(driver, case, retries=3)
            account.check(case, calm)
            assert (account.error is None) == succeeds
            assert account.bodies == min(times + 1, 4)


# --- reads that are out of date ------------------------------------------------------------------------------


async def update_unsure(tx: Any) -> int:
    thing = await now(tx.get(Thing.key("a"), consistent=False))
    thing.n += 1
    return int(thing.n)


async def create_unsure(tx: Any) -> int:
    """It may seem to be missing."""
    thing = await now(tx.get(Thing.key("b"), consistent=False, create_if_missing=True))
    thing.n += 1
    return int(thing.n)


async def look_unsure(tx: Any) -> int:
    """Two reads, which are verified to have been so at one moment."""
    both = [await now(tx.get(Thing.key(name), consistent=False)) for name in "ab"]
    return sum(0 if thing is None else thing.n for thing in both)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize(
    ("body", "read_only", "result"),
    [(update_unsure, False, 12), (create_unsure, False, 22), (look_unsure, True, 32)],
)
def test_what_an_outdated_read_led_to_is_not_written_and_the_next_attempt_reads_consistently(
    colour: Colour, body: Any, read_only: bool, result: int
) -> None:
    stale = FaultyBackend(Watched(), {Fault.STALE: 1.0})
    with open_driver(colour, stale) as driver:
        driver.db.run(lambda tx: tx.create(Thing, name="a", n=10))
        driver.db.run(lambda tx: setattr(tx.get_one(Thing, "a"), "n", 11))
        driver.db.run(lambda tx: tx.create(Thing, name="b", n=21))
        telling = Case("unsure", lambda tx: None, body, result=result, read_only=read_only)
        account = attempt(driver, telling)
        assert account.error is None
        assert account.result == result
        assert account.bodies == 2
        assert account.handlers == ["committed"]
        assert stale.injected[Fault.STALE] >= 1


# --- many faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("colour", COLOURS)
def test_a_long_life_among_faults_leaves_a_ledger_that_agrees(colour: Colour) -> None:
    """Each transaction writes its number into a ledger and into an item of its own; the sums must agree."""
    random = Random(f"{SEED} {colour}")
    rates = {Fault.THROTTLE: 0.08, Fault.UNAVAILABLE: 0.08, Fault.LOST_BEFORE: 0.04, Fault.LOST_AFTER: 0.04}
    told: dict[str, set[int]] = {"done": set(), "not done": set(), "unknown": set()}
    store = Watched()
    with open_database(store) as calm:
        calm.run(lambda tx: [tx.create(Thing, name=name) for name in "abc"])
        faulty = FaultyBackend(store, rates, seed=random.randrange(2**32))
        troubled = Driver(colour, Database(backend=faulty))
        for number in range(100 * ROUNDS):
            told[_find_outcome(troubled, _entry(number, random))].add(number)
        things = [calm.get_one(Thing, name) for name in "abc"]
        written = [int(word) for thing in things for word in thing.words]
        done = set(written)
        assert len(written) == len(done), "written twice"
        assert sum(thing.n for thing in things) == len(done), "counted twice, or not"
        assert _numbers(calm, 100 * ROUNDS) == done
    assert told["done"] <= done
    assert not told["not done"] & done
    assert told["unknown"] & done, "the fate of some is unknown, and they happened"
    assert told["unknown"] - done, "and of some, and they did not"


def _entry(number: int, random: Random) -> Callable[[Any], Any]:
    name, manner = random.choice("abc"), random.random()

    async def body(tx: Any) -> None:
        thing = await now(tx.get_one(Thing, name))
        thing.words.append(str(number))
        if manner < 0.5:
            thing.n += 1
        else:
            thing.field("n").increment_by(1)
        tx.create(Thing, name=str(number))

    return body


def _find_outcome(driver: Driver, body: Callable[[Any], Any]) -> str:
    try:
        driver.run(body)
    except OutcomeUnknown:
        return "unknown"
    except TransactionFailedError:
        return "not done"
    return "done"


def _numbers(db: Database, count: int) -> set[int]:
    keys = [Thing.key(str(number)) for number in range(count)]
    return {int(thing.name) for thing in db.get_all(keys, consistent=False) if thing is not None}
