"""Makes each request of each change fail, lose its reply or kill its sender: nothing is lost, nothing is left over.

After each fault the audit must hold, before and after LATEST is read. Repeating the change must lead to the state of a
change without a fault. Once all marks have expired, the next publish and purge must remove everything left over.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from itertools import product
from typing import Any, NamedTuple
from zlib import crc32

import pytest
from artifact_audit import Seen, State, audit
from artifact_rig import Colour, Kind, Rig, Way, open_rig
from artifact_scenarios import NAME, OTHER, SCENARIOS, Scenario, trees

from holdall.core.port import run
from holdall.core.requests import BatchWrite, TransactWrite
from holdall.errors import (
    ArtifactNotFoundError,
    CancellationReason,
    ContentionError,
    OutcomeUnknown,
    ServiceUnavailableError,
    TransactionCanceledError,
)

pytestmark = pytest.mark.torture  # slow, so it must be among the first to run

TWO_DAYS = 2 * 24 * 3600.0


class Death(BaseException):  # must not be caught
    """The process died."""


def refuse(rig: Rig, at: int) -> None:
    """Refuse the request with this number: it is not executed."""

    def before(request: Any) -> None:
        if len(rig.watch.requests) == at:
            raise ServiceUnavailableError("refused on purpose")

    rig.watch.before = before


def lose_reply(rig: Rig, at: int) -> None:
    """Lose the reply to the request with this number, after it was executed."""
    met: list[Any] = []

    def before(request: Any) -> None:
        if len(rig.watch.requests) == at:
            met.append(request)

    def after(request: Any) -> None:
        if met and request is met[-1]:
            met.clear()
            if request.writes and not isinstance(request, BatchWrite):
                raise OutcomeUnknown("lost on purpose")
            raise ServiceUnavailableError("lost on purpose")

    rig.watch.before, rig.watch.after = before, after


def cancel_transaction(rig: Rig, at: int) -> None:
    """Cancel the first transaction from the request with this number on, with a conflict on its first item."""
    met: list[Any] = []

    def before(request: Any) -> None:
        if len(rig.watch.requests) >= at and isinstance(request, TransactWrite) and not met:
            met.append(request)
            reasons = [CancellationReason("TransactionConflict"), *[CancellationReason("None")] * 2]
            raise TransactionCanceledError("collided on purpose", reasons=reasons[: len(request.actions)])

    rig.watch.before = before


def die(rig: Rig, at: int) -> None:
    """Let the process die after the request with this number."""

    def before(request: Any) -> None:
        if len(rig.watch.requests) > at:
            raise Death

    def after(request: Any) -> None:
        if len(rig.watch.requests) >= at:
            raise Death

    rig.watch.before, rig.watch.after = before, after


Fault = Callable[[Rig, int], None]


class Case(NamedTuple):
    """A kind of store, a fault, and the requests to try it at: every one, every second, ..."""

    way: Way
    fault: Fault
    stride: int = 1

    def __str__(self) -> str:
        return f"{self.way}, {self.fault.__name__}"


KINDS: tuple[Kind, ...] = ("memory", "disk")
COLOURS: tuple[Colour, ...] = ("blocking", "awaiting")
EVERY_CASE = [
    Case(Way(kind, colour), fault)
    for kind, colour, fault in product(KINDS, COLOURS, (refuse, lose_reply, die))
]
CASES = [
    Case(Way("memory", "blocking"), lose_reply, 5),
    Case(Way("memory", "awaiting"), refuse, 11),
    Case(Way("disk", "blocking"), die, 13),
    Case(Way("disk", "awaiting"), lose_reply, 17),
]
DEATHS = [Case(Way("memory", "blocking"), die, 11)]
TORTURE = bool(os.environ.get("HOLDALL_TORTURE"))


def cases_of(place: int) -> list[Case]:
    """Every case under torture; otherwise the first, and one of the others, in turn from scenario to scenario."""
    return EVERY_CASE if TORTURE else [CASES[0], CASES[1 + place % (len(CASES) - 1)]]


@pytest.mark.parametrize(
    ("scenario", "case"),
    [(scenario, case) for place, scenario in enumerate(SCENARIOS) for case in cases_of(place)],
    ids=str,
)
def test_after_a_fault_at_any_request_nothing_is_lost_and_the_change_can_be_repeated(
    scenario: Scenario, case: Case
) -> None:
    wanted: list[State] = []

    async def repeat_change(rig: Rig, scenario: Scenario, seen: Seen) -> None:
        await heal_latest(rig)
        audit(rig.store, rig.home, seen=seen)
        await scenario.change(rig.artifacts, rig.store.directory)
        state = audit(rig.store, rig.home, seen=seen)
        wanted.append(state)  # the first run is without a fault
        assert state.latest == wanted[0].latest
        assert (state.versions, state.aliases) == (wanted[0].versions, wanted[0].aliases)
        if TORTURE or len(wanted) % 4 == 1:
            await check_clean(rig, seen)

    fault_each_request(scenario, case, repeat_change)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
@pytest.mark.parametrize("case", EVERY_CASE if TORTURE else DEATHS, ids=str)
def test_after_a_fault_at_any_request_a_purge_frees_all_bytes(scenario: Scenario, case: Case) -> None:
    async def purge_all(rig: Rig, scenario: Scenario, seen: Seen) -> None:
        rig.clock.forward(TWO_DAYS)
        await rig.artifacts.purge(NAME, drop_aliases=True)
        audit(rig.store, rig.home, seen=seen, settled=True)
        await rig.artifacts.purge(OTHER)
        assert not rig.store.objects()

    fault_each_request(scenario, case, purge_all)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_conflict_at_any_transaction_is_retried(scenario: Scenario) -> None:
    wanted: list[State] = []

    async def compare_states(rig: Rig, scenario: Scenario, seen: Seen) -> None:
        await heal_latest(rig)
        wanted.append(audit(rig.store, rig.home, seen=seen))
        assert wanted[-1] == wanted[0]
        numbers = sorted(int(number) for name, number in seen if name == NAME)
        assert numbers == list(range(1, len(numbers) + 1))
        await check_clean(rig, seen)

    fault_each_request(
        scenario, Case(Way("memory", "blocking"), cancel_transaction, 1 if TORTURE else 13), compare_states
    )


Then = Callable[[Rig, Scenario, Seen], Coroutine[Any, Any, None]]


def fault_each_request(scenario: Scenario, case: Case, then: Then) -> None:
    """Make a change without a fault, then with one at the first request, at the second, and so on to the last."""
    at = 0
    met = True
    while met:
        with open_rig(case.way) as rig:
            flow = run_with_fault(rig, scenario, case.fault, at, then)
            met = run(flow) if case.way.colour == "blocking" else asyncio.run(flow)
        at += case.stride if at else 1 + crc32(str(scenario).encode()) % case.stride


async def run_with_fault(rig: Rig, scenario: Scenario, fault: Fault, at: int, then: Then) -> bool:
    """Make a change with a fault at a request, 0 for none; return whether the change has so many requests."""
    place, seen = rig.store.directory, Seen()
    trees(place)
    await rig.artifacts.put(OTHER, place / "first" if "director" in scenario.name else b"other")
    await scenario.before(rig.artifacts, place)
    audit(rig.store, rig.home, seen=seen)
    failing = rig.fresh()
    await failing.names()  # the layout of the table is now cached
    failing.watch.requests.clear()
    met = True
    if at:
        fault(failing, at)
    try:
        await scenario.change(failing.artifacts, place)
        met = len(failing.watch.requests) >= at
    except (ServiceUnavailableError, OutcomeUnknown, Death):
        pass
    audit(rig.store, rig.home, seen=seen, healed=False)
    await then(rig.fresh(), scenario, seen)
    return met


async def heal_latest(rig: Rig) -> None:
    """Read LATEST; if it is being purged, wait until the purge has ended."""
    try:
        await rig.artifacts.get(NAME, deleted=True)
    except ArtifactNotFoundError:
        pass
    except ContentionError:
        rig.clock.forward(150)
        with pytest.raises(ArtifactNotFoundError):
            await rig.artifacts.get(NAME, deleted=True)


async def check_clean(rig: Rig, seen: Seen) -> None:
    """Check that the next publish removes all marks once they have expired, and a purge frees all bytes."""
    rig.clock.forward(TWO_DAYS)
    await rig.artifacts.put(NAME, b"the last")
    await rig.artifacts.publish(NAME, force=True)
    await rig.artifacts.purge(NAME, "999999")
    audit(rig.store, rig.home, seen=seen, settled=True)
    await rig.artifacts.purge(NAME, drop_aliases=True)
    await rig.artifacts.purge(OTHER)
    assert not rig.store.objects()
