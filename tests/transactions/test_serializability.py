"""Transactions that write, and read-only ones, are serializable: random ones at once, and no anomaly in what they saw.

`histories` judges. The order it finds also agrees with time: what had ended before something began comes before it. A
store that breaks its promises is found out by the same means, so the histories are sharp enough to tell.
``HOLDALL_SEED`` repeats a run as far as threads can be repeated, ``HOLDALL_TORTURE_ROUNDS`` makes it longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TypeAlias, TypeVar, cast

import pytest
from expiring_workload import Clock, Leases, Punctual, keep_time, swept
from foreign_writer import ForeignWriter
from histories import Outcome, Transaction, check
from list_lives import unfold
from rig.colour import elsewhere
from rig.lossy_proxy import lossy
from rig.servers import NAMES, start_server
from rig.torture import ROUNDS, SEED, SEEDED, Child
from serial_stores import NAMED, STORES, Colour, Store, fresh_store
from serial_workload import (
    READS,
    STALE,
    ImpatientWorker,
    SpreadLists,
    Worker,
    final_read,
    in_tasks,
    in_threads,
    restore,
)

from holdall import Database
from holdall.backends.aws import courier
from holdall.core.frozen import replace
from holdall.core.port import Backend
from holdall.core.requests import (
    BatchGetReply,
    ConditionCheck,
    Done,
    PutItem,
    Request,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.testing import Fault, FaultyBackend

pytestmark = pytest.mark.torture

R = TypeVar("R")

REPEATS = [f"{SEED} {number}" for number in range(max(1, ROUNDS // 4))]
LONG = ROUNDS >= 8

Ways: TypeAlias = "Callable[[Callable[..., None]], Callable[..., None]]"


def in_ways(name: str, *stores: Sequence[str]) -> Ways:
    """In memory, and on one store of each list, in one colour; under torture on all, in both."""
    ways = [
        (kind, NAMED[colour])
        for kinds in (["memory"], *stores)
        for kind, colour in elsewhere(kinds, name, *kinds)
    ]
    return pytest.mark.parametrize(("kind", "colour"), ways)


WORKERS = 4
TRIALS = 20
"""How often to try, until chance has let the workers meet."""


def times(kind: str) -> int:
    """How many transactions each worker does; more would make the lists long rather than the test sharp."""
    return 10 if kind in NAMES and not LONG else 36


def run_workers(
    db: Database,
    colour: Colour,
    workers: Sequence[Worker],
    times: int,
    beside: Callable[[], object] = lambda: None,
) -> list[Transaction]:
    """What the workers record in that colour; ``beside`` is called again and again meanwhile."""
    if colour == "threads":
        return _in_threads(db, workers, times, beside)
    return asyncio.run(_in_tasks(db, workers, times, beside))


def _in_threads(
    db: Database, workers: Sequence[Worker], times: int, beside: Callable[[], object]
) -> list[Transaction]:
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(0.003):
            beside()

    other = threading.Thread(target=repeat)
    other.start()
    try:
        return in_threads(db, workers, times)
    finally:
        ended.set()
        other.join()


async def _in_tasks(
    db: Database, workers: Sequence[Worker], times: int, beside: Callable[[], object]
) -> list[Transaction]:
    async def repeat() -> None:
        while True:
            await asyncio.sleep(0.003)
            beside()

    twin = db.aio
    twin.port.now = db.port.now  # type: ignore[method-assign]
    other = asyncio.create_task(repeat())
    try:
        return await in_tasks(twin, workers, times)
    finally:
        other.cancel()
        await asyncio.wait([other])


def spread(store: Store) -> SpreadLists:
    """Lists in every layout, with their tables."""
    store.plain.table.create(models=SpreadLists.models)
    return SpreadLists()


def judge(history: list[Transaction], final: Transaction, *, least: float) -> Counter[Outcome]:
    """Assert that nothing is wrong, and that at least so many committed; how it all ended."""
    found = check(history, final)
    assert not found, "\n".join([SEEDED, *map(str, found)])
    outcomes = Counter(it.outcome for it in history)
    assert outcomes[Outcome.COMMITTED] >= least, f"{outcomes} {SEEDED}"
    return outcomes


# --- serializable ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", REPEATS)
@in_ways("at once", *([kind] for kind in STORES[1:]))
def test_transactions_at_once_are_serializable(kind: str, colour: Colour, seed: str, tmp_path: Path) -> None:
    for attempt in range(TRIALS):
        with fresh_store(kind, tmp_path) as store:
            lists = spread(store)
            workers = [Worker(number, f"{seed} {attempt}", lists) for number in range(WORKERS)]
            history = run_workers(store.plain, colour, workers, times(kind))
            outcomes = judge(history, final_read(store.plain, lists), least=3 * times(kind))
        assert outcomes[Outcome.UNKNOWN] == 0
        if outcomes[Outcome.ABORTED]:
            return
    raise AssertionError("the transactions never contended")


@pytest.mark.parametrize("seed", REPEATS)
def test_transactions_of_several_processes_are_serializable(seed: str, tmp_path: Path) -> None:
    with fresh_store("file", tmp_path) as store:
        file = store.url.removeprefix("embedded:")
        with contextlib.ExitStack() as stack:
            children = [
                stack.enter_context(Child("serial_workload.py", file, seed, first, 2, times("file")))
                for first in range(0, 6, 2)
            ]
            assert [child.line() for child in children] == ["ready"] * len(children)
            for child in children:
                child.tell("start")
            history = [restore(line) for child in children for line in child.finish()]
        outcomes = judge(history, final_read(store.plain), least=4 * times("file"))
    assert outcomes[Outcome.ABORTED] > 0, "the transactions never contended"


@pytest.mark.parametrize("seed", REPEATS)
@in_ways("forms of others", NAMES)
def test_values_in_the_forms_of_others_change_nothing(
    kind: str, colour: Colour, seed: str, tmp_path: Path
) -> None:
    with fresh_store(kind, tmp_path) as store:
        foreign = [ForeignWriter(number, seed, table=store.table) for number in range(2)]
        workers = [*foreign, *(Worker(number, seed) for number in range(2, WORKERS))]
        history = run_workers(store.plain, colour, workers, times(kind))
        judge(history, final_read(store.plain), least=2 * times(kind))


@pytest.mark.parametrize("seed", REPEATS)
@pytest.mark.parametrize("kind", ["memory", *NAMES])
def test_transactions_that_are_cancelled_change_nothing(kind: str, seed: str, tmp_path: Path) -> None:
    with fresh_store(kind, tmp_path) as store:
        workers = [ImpatientWorker(number, seed) for number in range(WORKERS)]
        history = run_workers(store.plain, "tasks", workers, times(kind))
        judge(history, final_read(store.plain), least=2 * times(kind))
    assert any(it.outcome is Outcome.UNKNOWN for it in history), "none was ever cancelled"


FAULTS = {
    Fault.THROTTLE: 0.04,
    Fault.UNAVAILABLE: 0.04,
    Fault.LOST_BEFORE: 0.04,
    Fault.LOST_AFTER: 0.04,
    Fault.STALE: 0.2,
}


@pytest.mark.parametrize("seed", REPEATS)
@in_ways("faults", NAMES)
def test_faults_change_nothing(kind: str, colour: Colour, seed: str, tmp_path: Path) -> None:
    with fresh_store(kind, tmp_path) as store:
        faulty, lists = (
            FaultyBackend(store.backend, FAULTS, seed=Random(seed).randrange(2**32)),
            spread(store),
        )
        workers = [Worker(number, seed, lists, reads=(*READS, *STALE)) for number in range(WORKERS)]
        history = run_workers(store.behind(faulty), colour, workers, times(kind))
        judge(history, final_read(store.plain, lists), least=2 * times(kind))
    assert faulty.injected[Fault.LOST_BEFORE] + faulty.injected[Fault.LOST_AFTER] > 0


@pytest.mark.parametrize("seed", REPEATS)
@pytest.mark.parametrize(
    ("kind", "colour"),
    [(kind, NAMED[colour]) for name in NAMES for kind, colour in elsewhere([name], "network", name)],
)
def test_a_network_that_loses_things_changes_nothing(
    kind: str, colour: Colour, seed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "BASE_SECONDS", courier.BASE_SECONDS / 50)
    monkeypatch.setattr(courier, "LONGEST_PAUSE", courier.LONGEST_PAUSE / 50)
    if not start_server(kind).startswith("http://"):
        pytest.skip(f"{kind} speaks TLS, which the lossy proxy cannot read")
    with fresh_store(kind, tmp_path) as store:
        with lossy(start_server(kind), f"{seed} {colour}", 0.3) as proxy:
            backend, lists = store.open_backend(endpoint=proxy.url), spread(store)
            workers = [Worker(number, seed, lists) for number in range(WORKERS)]
            history = run_workers(store.behind(backend), colour, workers, times(kind))
            backend.close()
        judge(history, final_read(store.plain, lists), least=2 * times(kind))


@pytest.mark.parametrize("seed", REPEATS)
@in_ways("expiry", NAMES)
def test_expiry_changes_nothing(kind: str, colour: Colour, seed: str, tmp_path: Path) -> None:
    clock, random = Clock(), Random(seed)

    def time_goes_by() -> None:
        if clock.tick(random.choice([5, 20, 45])) and random.random() < 0.3:
            swept(store.plain, clock, store.table)

    with fresh_store(kind, tmp_path) as store:
        keep_time(store.plain, clock)
        db = store.behind(Punctual(store.backend, clock))
        keep_time(db, clock)
        lists = Leases(clock)
        # several lists in one request are seen as of one moment, but found to be over only after that
        workers = [Worker(number, seed, lists, reads=("get", "gather")) for number in range(WORKERS)]
        history = run_workers(db, colour, workers, times(kind), time_goes_by)
        told, final = unfold(history, final_read(store.plain, lists), clock.reached)
        judge(told, final, least=2 * times(kind))
    assert any(it.process.startswith("expiry") for it in told), "nothing ever expired"


# --- and would be found out if they were not --------------------------------------------------------------------------


class Liar:
    """A backend that does not keep one of its promises."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def send_blocking(self, request: Request[R]) -> R:
        return self._backend.send_blocking(request)

    async def send_awaiting(self, request: Request[R]) -> R:
        raise NotImplementedError("the liars only talk to threads")

    def close(self) -> None:
        self._backend.close()


class ForgetsChecks(Liar):
    """Does not look at items that a transaction only read."""

    def send_blocking(self, request: Request[R]) -> R:
        if isinstance(request, TransactWrite):
            kept = tuple(action for action in request.actions if not isinstance(action, ConditionCheck))
            request = cast("Request[R]", replace(request, actions=kept))
        return self._backend.send_blocking(request)


class ForgetsConditions(Liar):
    """Writes whatever it is told to, as long as it is alone."""

    def send_blocking(self, request: Request[R]) -> R:
        if isinstance(request, PutItem | UpdateItem):
            request = cast("Request[R]", replace(request, condition=None, item_on_failure=False))
        return self._backend.send_blocking(request)


class ReadsOneByOne(Liar):
    """Reads several items at several moments, though they were asked for as of one."""

    def send_blocking(self, request: Request[R]) -> R:
        if isinstance(request, TransactGet):
            items = []
            for read in request.reads:
                items.append(self._backend.send_blocking(read).item)
                time.sleep(0.005)  # others have their turn
            return cast("R", BatchGetReply(tuple(items)))
        return self._backend.send_blocking(request)


class LosesWrites(Liar):
    """Now and then says that a transaction is done when it is not."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._count = 0

    def send_blocking(self, request: Request[R]) -> R:
        self._count += request.writes
        if isinstance(request, TransactWrite) and self._count % 20 == 0:
            return cast("R", Done())
        return self._backend.send_blocking(request)


@pytest.mark.parametrize("liar", [ForgetsChecks, ForgetsConditions, ReadsOneByOne, LosesWrites])
def test_a_store_that_breaks_a_promise_is_found_out(liar: type[Liar], tmp_path: Path) -> None:
    for attempt in range(60):  # chance decides when it shows
        with fresh_store("memory", tmp_path) as store:
            workers = [Worker(number, f"{SEED} {attempt}") for number in range(WORKERS)]
            history = run_workers(store.behind(liar(store.backend)), "threads", workers, times("memory"))
            if check(history, final_read(store.plain)):
                return
    raise AssertionError(f"{liar.__name__} was not found out {SEEDED}")
