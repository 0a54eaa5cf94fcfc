"""Faults at each request of a transaction: the transaction happens once or not at all, and the caller knows which.

The rule for every case, every request, and every fault:

- no error: done exactly once, and the commit handlers ran once;
- `OutcomeUnknown`: done at most once; no handlers ran, and the body did not run again;
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
from rig.wrapper import Wrapper
from transactions_rig import (
    COLOURS,
    Colour,
    Driver,
    RecordedStore,
    Thing,
    open_database,
    open_driver,
    resolve,
)

from holdall import Database
from holdall.core.port import Backend, Send
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

B = TypeVar("B", bound=Backend)
ROUNDS = int(os.environ.get("HOLDALL_TORTURE_ROUNDS", "2"))
SEED = os.environ.get("HOLDALL_SEED", "20261115")
FAULTS = [Fault.THROTTLE, Fault.UNAVAILABLE, Fault.LOST_BEFORE, Fault.LOST_AFTER]
LOST = {Fault.LOST_BEFORE, Fault.LOST_AFTER}
SHORT = FAULTS if TORTURE else [Fault.THROTTLE, *LOST]
"""For combinations of faults: throttling and unavailability are handled alike."""


@dataclass
class Outcome:
    """What the caller of a transaction can observe."""

    bodies: int = 0
    handlers: list[str] = field(default_factory=list)
    result: Any = None
    error: BaseException | None = None

    def check(self, case: Case, db: Database) -> None:
        """Check the rule."""
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


def attempt(driver: Driver, case: Case, **options: Any) -> Outcome:
    """Run a case as its caller would."""
    outcome = Outcome()

    async def body(tx: Any) -> Any:
        outcome.bodies += 1
        tx.after_commit(outcome.handlers.append, "committed")
        tx.after_failure(lambda error: outcome.handlers.append("failed"))
        return await case.body(tx)

    try:
        outcome.result = driver.run(body, read_only=case.read_only, **options)
    except Exception as error:  # noqa: BLE001 - checked by the rule
        outcome.error = error
    return outcome


@contextmanager
def stage(colour: Colour, case: Case, wrap: Callable[[Backend], B]) -> Iterator[tuple[Driver, B, Database]]:
    """Open a driver on a wrapped store, and yield it with the wrapper and a database on the plain store."""
    store = RecordedStore()
    with open_database(store) as calm:
        calm.run(case.start)
        wrapper = wrap(store)
        troubled = Database(backend=wrapper)
        troubled.get(Thing, "any key")  # finds the table, so that faults affect only the transaction
        yield Driver(colour, troubled), wrapper, calm


@cache
def list_requests(case: Case) -> list[Request[Any]]:
    """Return the requests of a case without faults."""
    watched = RecordedStore()
    with open_database(watched) as db:
        db.run(case.start)
        begun = len(watched.requests)
        attempt(Driver("blocking", db), case)
        return watched.requests[begun:]


def list_places() -> list[Any]:
    """List every request of every case."""
    return [
        pytest.param(case, place, id=f"{case}-{place}-{type(request).__name__}")
        for case in CASES
        for place, request in enumerate(list_requests(case))
    ]


PLACES = list_places()


@pytest.mark.parametrize(
    ("case", "place", "fault", "colour"),
    [
        pytest.param(*place.values, fault, colour, id=f"{place.id}-{fault}-{colour}")
        for place in PLACES
        for fault in FAULTS
        for colour in in_turn(str(place.id), str(fault))
    ],
)
def test_the_rule_holds_for_one_fault(case: Case, place: int, fault: Fault, colour: Colour) -> None:
    with stage(colour, case, FaultyBackend) as (driver, faulty, calm):
        faulty.inject(*[None] * place, fault)
        outcome = attempt(driver, case)
        outcome.check(case, calm)
        assert faulty.injected[fault] == 1
        # the lost reply was a refusal, so nothing was done
        refused = case in REPLANNED and place == 0 and fault is Fault.LOST_AFTER
        if refused:
            assert (outcome.error, outcome.bodies) == (None, 1)
        elif fault in LOST and list_requests(case)[place].writes:
            assert isinstance(outcome.error, OutcomeUnknown)
            assert outcome.bodies == 1
            assert case.done is not None
            assert case.done(calm) == (fault is Fault.LOST_AFTER)
        else:
            assert outcome.error is None
            assert outcome.bodies == 2


# the test of one fault runs in both colours; a normal run of this one only in the awaiting one
@pytest.mark.parametrize("colour", COLOURS if TORTURE else ["awaiting"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rule_holds_for_any_two_faults(case: Case, colour: Colour) -> None:
    for faults in product(SHORT, repeat=2):
        for gap in range(len(list_requests(case))):
            with stage(colour, case, FaultyBackend) as (driver, faulty, calm):
                faulty.inject(faults[0], *[None] * gap, faults[1])
                attempt(driver, case).check(case, calm)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("fault", [Fault.THROTTLE, Fault.UNAVAILABLE], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_endless_faults_fail_the_transaction_after_the_last_attempt(
    case: Case, fault: Fault, colour: Colour
) -> None:
    with stage(colour, case, FaultyBackend) as (driver, faulty, calm):
        faulty.inject(*[fault] * 3)
        outcome = attempt(driver, case, retries=2)
        outcome.check(case, calm)
        assert isinstance(outcome.error, TransactionFailedError)
        assert outcome.error.attempts == outcome.bodies == 3
        assert getattr(outcome.error.__cause__, "retryable", False)


# --- conflicts --------------------------------------------------------------------------------------------


class Refusing(Wrapper):
    """A store that refuses the next writes with given errors."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.errors: list[Callable[[Request[Any]], Exception]] = []

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        if request.writes and self.errors:
            raise self.errors.pop(0)(request)
        return await send(self.inner, request)


def conflict(request: Request[Any]) -> Exception:
    return ConflictError("another transaction is using the item")


def cancel(code: str) -> Callable[[Request[Any]], Exception]:
    """Cancel a transaction because of its last action; a single write is refused with a conflict instead."""

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
def test_the_rule_holds_for_conflicts(
    case: Case, refusal: Callable[[Request[Any]], Exception], colour: Colour
) -> None:
    for times, succeeds in ((2, True), (4, False)):
        with stage(colour, case, Refusing) as (driver, refusing, calm):
            refusing.errors += [refusal] * times
            outcome = attempt(driver, case, retries=3)
            outcome.check(case, calm)
            assert (outcome.error is None) == succeeds
            assert outcome.bodies == min(times + 1, 4)


# --- stale reads ------------------------------------------------------------------------------------------


async def update_after_stale_read(tx: Any) -> int:
    thing = await resolve(tx.get(Thing.key("a"), consistent=False))
    thing.n += 1
    return int(thing.n)


async def create_after_stale_read(tx: Any) -> int:
    """Read an item that a stale read shows as missing."""
    thing = await resolve(tx.get(Thing.key("b"), consistent=False, create_if_missing=True))
    thing.n += 1
    return int(thing.n)


async def read_twice(tx: Any) -> int:
    """Read two items; the commit verifies that both values existed at one moment."""
    both = [await resolve(tx.get(Thing.key(name), consistent=False)) for name in "ab"]
    return sum(0 if thing is None else thing.n for thing in both)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize(
    ("body", "read_only", "result"),
    [(update_after_stale_read, False, 12), (create_after_stale_read, False, 22), (read_twice, True, 32)],
)
def test_after_a_stale_read_the_next_attempt_reads_consistently(
    colour: Colour, body: Any, read_only: bool, result: int
) -> None:
    stale = FaultyBackend(RecordedStore(), {Fault.STALE: 1.0})
    with open_driver(colour, stale) as driver:
        driver.db.run(lambda tx: tx.create(Thing, name="a", n=10))
        driver.db.run(lambda tx: setattr(tx.get_one(Thing, "a"), "n", 11))
        driver.db.run(lambda tx: tx.create(Thing, name="b", n=21))
        case = Case("stale read", lambda tx: None, body, result=result, read_only=read_only)
        outcome = attempt(driver, case)
        assert outcome.error is None
        assert outcome.result == result
        assert outcome.bodies == 2
        assert outcome.handlers == ["committed"]
        assert stale.injected[Fault.STALE] >= 1


# --- many faults ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("colour", COLOURS)
def test_many_transactions_with_random_faults_leave_a_consistent_ledger(colour: Colour) -> None:
    """Each transaction writes its number into a ledger and creates an item of its own; both must agree."""
    random = Random(f"{SEED} {colour}")
    rates = {Fault.THROTTLE: 0.08, Fault.UNAVAILABLE: 0.08, Fault.LOST_BEFORE: 0.04, Fault.LOST_AFTER: 0.04}
    outcomes: dict[str, set[int]] = {"done": set(), "not done": set(), "unknown": set()}
    store = RecordedStore()
    with open_database(store) as calm:
        calm.run(lambda tx: [tx.create(Thing, name=name) for name in "abc"])
        faulty = FaultyBackend(store, rates, seed=random.randrange(2**32))
        troubled = Driver(colour, Database(backend=faulty))
        for number in range(100 * ROUNDS):
            outcomes[_find_outcome(troubled, _make_entry(number, random))].add(number)
        things = [calm.get_one(Thing, name) for name in "abc"]
        written = [int(word) for thing in things for word in thing.words]
        done = set(written)
        assert len(written) == len(done), "written twice"
        assert sum(thing.n for thing in things) == len(done), "counted twice, or not at all"
        assert _list_numbers(calm, 100 * ROUNDS) == done
    assert outcomes["done"] <= done
    assert not outcomes["not done"] & done
    assert outcomes["unknown"] & done, "some transactions with an unknown outcome were committed"
    assert outcomes["unknown"] - done, "and some were not"


def _make_entry(number: int, random: Random) -> Callable[[Any], Any]:
    name, chance = random.choice("abc"), random.random()

    async def body(tx: Any) -> None:
        thing = await resolve(tx.get_one(Thing, name))
        thing.words.append(str(number))
        if chance < 0.5:
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


def _list_numbers(db: Database, count: int) -> set[int]:
    keys = [Thing.key(str(number)) for number in range(count)]
    return {int(thing.name) for thing in db.get_all(keys, consistent=False) if thing is not None}
