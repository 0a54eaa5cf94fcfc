"""The simulation that decides exactly-once: many workers, every kind of write, and a network that loses things.

``HOLDALL_SEED`` repeats a run as far as threads can be repeated; ``HOLDALL_TORTURE_ROUNDS`` makes it longer.
"""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from rig.colour import COLOURS, Colour
from rig.lossy_proxy import Fate, LossyProxy, lossy
from rig.servers import NAMES
from rig.torture import TORTURE
from simulated_rig import ROUNDS, SEED, backend, plain_url, prepare_table, state
from simulated_writes import LATE, Ledger, Send, hear, kinds

from holdall.backends.aws import courier
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.core.port import run
from holdall.core.requests import Request
from holdall.core.settings import SingleWrites

pytestmark = pytest.mark.torture

WORKERS = 6


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between sends a fiftieth as long as usual; how many there may be stays."""
    monkeypatch.setattr(courier, "BASE_SECONDS", courier.BASE_SECONDS / 50)
    monkeypatch.setattr(courier, "LONGEST_PAUSE", courier.LONGEST_PAUSE / 50)


async def work(send: Send, table: str, worker: int, ledger: Ledger) -> None:
    """One worker's day: every kind of write, in an order of its own."""
    order = random.Random(f"{SEED} {worker}")
    for round in range(ROUNDS):
        for kind in order.sample(ledger.kinds, len(ledger.kinds)):
            id = f"{worker}.{round}"
            ledger.note(kind.name, id, await hear(kind.attempt(send, table, id)))


def work_blocking(lossy_backend: DynamoBackend, table: str, ledger: Ledger) -> None:
    async def send(request: Request[Any]) -> Any:
        return lossy_backend.send_blocking(request)

    with ThreadPoolExecutor(WORKERS) as threads:
        for done in [threads.submit(run, work(send, table, worker, ledger)) for worker in range(WORKERS)]:
            done.result()
    lossy_backend.close()


def work_awaiting(lossy_backend: DynamoBackend, table: str, ledger: Ledger) -> None:
    async def all_workers() -> None:
        send = lossy_backend.send_awaiting
        await asyncio.gather(*(work(send, table, worker, ledger) for worker in range(WORKERS)))
        lossy_backend.close()
        await asyncio.sleep(0)  # lets the loop close the connections

    asyncio.run(all_workers())


@pytest.mark.parametrize(
    ("server", "colour", "single_writes"),
    [
        (server, colour, single_writes)
        for number, server in enumerate(NAMES)
        for turn, single_writes in enumerate(["auto", "token"])
        for colour in (COLOURS if TORTURE else [COLOURS[(number + turn) % 2]])  # each manner meets both
    ],
)
def test_what_callers_are_told_is_what_was_done_exactly_once(
    server: str, colour: Colour, single_writes: SingleWrites
) -> None:
    url, ledger = plain_url(server), Ledger(kinds(single_writes))
    with backend(server, url) as direct, prepare_table(direct) as table:
        with (
            lossy(url, f"{SEED} {server} {colour} {single_writes}", late=f'"{LATE}-'.encode()) as proxy,
            backend(server, proxy.url, single_writes) as lossy_backend,
        ):
            (work_blocking if colour == "blocking" else work_awaiting)(lossy_backend, table, ledger)
        ledger.audit(state(direct, table))
    assert_it_was_a_trial(proxy, ledger, single_writes)


def assert_it_was_a_trial(proxy: LossyProxy, ledger: Ledger, single_writes: SingleWrites) -> None:
    """Everything that can go wrong went wrong, and only those were left in the dark who may be."""
    assert set(proxy.fates) == set(Fate)
    assert {"ok", "failed"} <= set(ledger.words())
    assert "unknown" not in ledger.words(*(kind.name for kind in ledger.kinds if kind.repeated))
    assert ("unknown" in ledger.words()) == (single_writes == "auto")
