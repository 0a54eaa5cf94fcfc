"""Transactions that write, and read-only ones, are serializable: concurrent random ones have no anomalies.

`histories` checks them. The serial order also respects real time: a transaction that ended before another began comes
first. The same check detects stores that break their guarantees, which shows that the histories are sensitive enough.
``HOLDALL_SEED`` repeats a run as far as threads can be repeated; ``HOLDALL_TORTURE_ROUNDS`` makes it longer.
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
from expiring_workload import Clock, Leases, PunctualBackend, sweep_expired, use_clock
from foreign_writer import ForeignWriter
from histories import Outcome, Transaction, check
from list_lives import unfold
from rig.colour import elsewhere
from rig.lossy_proxy import lossy
from rig.servers import NAMES, start_server
from rig.torture import ROUNDS, SEED, SEEDED, Child
from serial_stores import CONCURRENT, STORES, Colour, Store, fresh_store
from serial_workload import (
    READS,
    STALE,
    ImpatientWorker,
    SpreadLists,
    Worker,
    parse_transaction,
    read_final_state,
    work_in_tasks,
    work_in_threads,
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
    """Run a test in memory and on one store of each list, in one colour; under torture, on all stores in both."""
    ways = [
        (kind, CONCURRENT[colour])
        for kinds in (["memory"], *stores)
        for kind, colour in elsewhere(kinds, name, *kinds)
    ]
    return pytest.mark.parametrize(("kind", "colour"), ways)


WORKERS = 4
TRIALS = 20
"""The maximum number of trials until the workers contend."""


def count_transactions(kind: str) -> int:
    """Return the number of transactions of each worker; more would only make the lists longer."""
    return 10 if kind in NAMES and not LONG else 36


def run_workers(
    db: Database,
    colour: Colour,
    workers: Sequence[Worker],
    times: int,
    beside: Callable[[], object] = lambda: None,
) -> list[Transaction]:
    """Run the workers in a colour, call ``beside`` repeatedly meanwhile, and return the recorded transactions."""
    if colour == "threads":
        return _run_in_threads(db, workers, times, beside)
    return asyncio.run(_run_in_tasks(db, workers, times, beside))


def _run_in_threads(
    db: Database, workers: Sequence[Worker], times: int, beside: Callable[[], object]
) -> list[Transaction]:
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(0.003):
            beside()

    other = threading.Thread(target=repeat)
    other.start()
    try:
        return work_in_threads(db, workers, times)
    finally:
        ended.set()
        other.join()


async def _run_in_tasks(
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
        return await work_in_tasks(twin, workers, times)
    finally:
        other.cancel()
        await asyncio.wait([other])


def spread_lists(store: Store) -> SpreadLists:
    """Create the tables of lists in every layout, and return the lists."""
    store.plain.table.create(models=SpreadLists.models)
    return SpreadLists()


def check_history(history: list[Transaction], final: Transaction, *, least: float) -> Counter[Outcome]:
    """Check that there are no anomalies and at least this many commits, and return the number of each outcome."""
    found = check(history, final)
    assert not found, "\n".join([SEEDED, *map(str, found)])
    outcomes = Counter(it.outcome for it in history)
    assert outcomes[Outcome.COMMITTED] >= least, f"{outcomes} {SEEDED}"
    return outcomes


# --- serializable -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", REPEATS)
@in_ways("at once", *([kind] for kind in STORES[1:]))
def test_concurrent_transactions_are_serializable(
    kind: str, colour: Colour, seed: str, tmp_path: Path
) -> None:
    for attempt in range(TRIALS):
        with fresh_store(kind, tmp_path) as store:
            lists = spread_lists(store)
            workers = [Worker(number, f"{seed} {attempt}", lists) for number in range(WORKERS)]
            history = run_workers(store.plain, colour, workers, count_transactions(kind))
            outcomes = check_history(
                history, read_final_state(store.plain, lists), least=3 * count_transactions(kind)
            )
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
                stack.enter_context(
                    Child("serial_workload.py", file, seed, first, 2, count_transactions("file"))
                )
                for first in range(0, 6, 2)
            ]
            assert [child.line() for child in children] == ["ready"] * len(children)
            for child in children:
                child.write_line("start")
            history = [parse_transaction(line) for child in children for line in child.finish()]
        outcomes = check_history(history, read_final_state(store.plain), least=4 * count_transactions("file"))
    assert outcomes[Outcome.ABORTED] > 0, "the transactions never contended"


@pytest.mark.parametrize("seed", REPEATS)
@in_ways("foreign forms", NAMES)
def test_values_in_foreign_forms_do_not_break_serializability(
    kind: str, colour: Colour, seed: str, tmp_path: Path
) -> None:
    with fresh_store(kind, tmp_path) as store:
        foreign = [ForeignWriter(number, seed, table=store.table) for number in range(2)]
        workers = [*foreign, *(Worker(number, seed) for number in range(2, WORKERS))]
        history = run_workers(store.plain, colour, workers, count_transactions(kind))
        check_history(history, read_final_state(store.plain), least=2 * count_transactions(kind))


@pytest.mark.parametrize("seed", REPEATS)
@pytest.mark.parametrize("kind", ["memory", *NAMES])
def test_cancelled_transactions_do_not_break_serializability(kind: str, seed: str, tmp_path: Path) -> None:
    with fresh_store(kind, tmp_path) as store:
        workers = [ImpatientWorker(number, seed) for number in range(WORKERS)]
        history = run_workers(store.plain, "tasks", workers, count_transactions(kind))
        check_history(history, read_final_state(store.plain), least=2 * count_transactions(kind))
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
def test_faults_do_not_break_serializability(kind: str, colour: Colour, seed: str, tmp_path: Path) -> None:
    with fresh_store(kind, tmp_path) as store:
        faulty, lists = (
            FaultyBackend(store.backend, FAULTS, seed=Random(seed).randrange(2**32)),
            spread_lists(store),
        )
        workers = [Worker(number, seed, lists, reads=(*READS, *STALE)) for number in range(WORKERS)]
        history = run_workers(store.open_database(faulty), colour, workers, count_transactions(kind))
        check_history(history, read_final_state(store.plain, lists), least=2 * count_transactions(kind))
    assert faulty.injected[Fault.LOST_BEFORE] + faulty.injected[Fault.LOST_AFTER] > 0


@pytest.mark.parametrize("seed", REPEATS)
@pytest.mark.parametrize(
    ("kind", "colour"),
    [(kind, CONCURRENT[colour]) for name in NAMES for kind, colour in elsewhere([name], "network", name)],
)
def test_a_lossy_network_does_not_break_serializability(
    kind: str, colour: Colour, seed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "BASE_SECONDS", courier.BASE_SECONDS / 50)
    monkeypatch.setattr(courier, "LONGEST_PAUSE", courier.LONGEST_PAUSE / 50)
    if not start_server(kind).startswith("http://"):
        pytest.skip(f"{kind} speaks TLS, which the lossy proxy cannot read")
    with fresh_store(kind, tmp_path) as store:
        with lossy(start_server(kind), f"{seed} {colour}", 0.3) as proxy:
            backend, lists = store.open_backend(endpoint=proxy.url), spread_lists(store)
            workers = [Worker(number, seed, lists) for number in range(WORKERS)]
            history = run_workers(store.open_database(backend), colour, workers, count_transactions(kind))
            backend.close()
        check_history(history, read_final_state(store.plain, lists), least=2 * count_transactions(kind))


@pytest.mark.parametrize("seed", REPEATS)
@in_ways("expiry", NAMES)
def test_expiry_does_not_break_serializability(kind: str, colour: Colour, seed: str, tmp_path: Path) -> None:
    clock, random = Clock(), Random(seed)

    def advance_clock() -> None:
        if clock.tick(random.choice([5, 20, 45])) and random.random() < 0.3:
            sweep_expired(store.plain, clock, store.table)

    with fresh_store(kind, tmp_path) as store:
        use_clock(store.plain, clock)
        db = store.open_database(PunctualBackend(store.backend, clock))
        use_clock(db, clock)
        lists = Leases(clock)
        # get_all is left out: it reads several lists at one moment, but judges their expiry only afterwards
        workers = [Worker(number, seed, lists, reads=("get", "gather")) for number in range(WORKERS)]
        history = run_workers(db, colour, workers, count_transactions(kind), advance_clock)
        unfolded, final = unfold(history, read_final_state(store.plain, lists), clock.reached)
        check_history(unfolded, final, least=2 * count_transactions(kind))
    assert any(it.process.startswith("expiry") for it in unfolded), "nothing ever expired"


# --- broken stores are detected ---------------------------------------------------------------------------


class BrokenBackend:
    """A backend that breaks one of its guarantees."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def send_blocking(self, request: Request[R]) -> R:
        return self._backend.send_blocking(request)

    async def send_awaiting(self, request: Request[R]) -> R:
        raise NotImplementedError("only threads use the broken backends")

    def close(self) -> None:
        self._backend.close()


class ForgetsChecks(BrokenBackend):
    """Drops the checks of items that a transaction only read."""

    def send_blocking(self, request: Request[R]) -> R:
        if isinstance(request, TransactWrite):
            kept = tuple(action for action in request.actions if not isinstance(action, ConditionCheck))
            request = cast("Request[R]", replace(request, actions=kept))
        return self._backend.send_blocking(request)


class ForgetsConditions(BrokenBackend):
    """Drops the conditions of single writes."""

    def send_blocking(self, request: Request[R]) -> R:
        if isinstance(request, PutItem | UpdateItem):
            request = cast("Request[R]", replace(request, condition=None, item_on_failure=False))
        return self._backend.send_blocking(request)


class ReadsOneByOne(BrokenBackend):
    """Reads the items of one request at different moments."""

    def send_blocking(self, request: Request[R]) -> R:
        if isinstance(request, TransactGet):
            items = []
            for read in request.reads:
                items.append(self._backend.send_blocking(read).item)
                time.sleep(0.005)  # let other transactions run
            return cast("R", BatchGetReply(tuple(items)))
        return self._backend.send_blocking(request)


class LosesWrites(BrokenBackend):
    """Sometimes reports a transaction as done without writing it."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._count = 0

    def send_blocking(self, request: Request[R]) -> R:
        self._count += request.writes
        if isinstance(request, TransactWrite) and self._count % 20 == 0:
            return cast("R", Done())
        return self._backend.send_blocking(request)


@pytest.mark.parametrize("broken", [ForgetsChecks, ForgetsConditions, ReadsOneByOne, LosesWrites])
def test_a_store_that_breaks_a_guarantee_is_detected(broken: type[BrokenBackend], tmp_path: Path) -> None:
    for attempt in range(60):  # the anomaly shows at random
        with fresh_store("memory", tmp_path) as store:
            workers = [Worker(number, f"{SEED} {attempt}") for number in range(WORKERS)]
            history = run_workers(
                store.open_database(broken(store.backend)), "threads", workers, count_transactions("memory")
            )
            if check(history, read_final_state(store.plain)):
                return
    raise AssertionError(f"{broken.__name__} was not detected {SEEDED}")
