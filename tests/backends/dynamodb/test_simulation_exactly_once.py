"""The simulation of exactly-once: many workers, every kind of write, and a network that loses requests and replies.

``HOLDALL_SEED`` repeats a run, except for the scheduling of threads; ``HOLDALL_TORTURE_ROUNDS`` sets its length.
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
from simulated_rig import ROUNDS, SEED, open_backend, plain_url, prepare_table, read_contents
from simulated_writes import LATE, Ledger, Send, await_result, kinds

from holdall.backends.aws import courier
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.core.port import run
from holdall.core.requests import Request
from holdall.core.settings import SingleWrites

pytestmark = pytest.mark.torture

WORKERS = 6


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pauses between attempts fifty times shorter, and keep their number."""
    monkeypatch.setattr(courier, "BASE_SECONDS", courier.BASE_SECONDS / 50)
    monkeypatch.setattr(courier, "LONGEST_PAUSE", courier.LONGEST_PAUSE / 50)


async def work(send: Send, table: str, worker: int, ledger: Ledger) -> None:
    """Run one worker: every kind of write in each round, in random order."""
    order = random.Random(f"{SEED} {worker}")
    for round in range(ROUNDS):
        for kind in order.sample(ledger.kinds, len(ledger.kinds)):
            id = f"{worker}.{round}"
            ledger.record(kind.name, id, await await_result(kind.attempt(send, table, id)))


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
        for colour in (COLOURS if TORTURE else [COLOURS[(number + turn) % 2]])  # each manner runs in both
    ],
)
def test_every_write_takes_effect_as_reported_and_at_most_once(
    server: str, colour: Colour, single_writes: SingleWrites
) -> None:
    url, ledger = plain_url(server), Ledger(kinds(single_writes))
    with open_backend(server, url) as direct, prepare_table(direct) as table:
        with (
            lossy(url, f"{SEED} {server} {colour} {single_writes}", late=f'"{LATE}-'.encode()) as proxy,
            open_backend(server, proxy.url, single_writes) as lossy_backend,
        ):
            (work_blocking if colour == "blocking" else work_awaiting)(lossy_backend, table, ledger)
        ledger.audit(read_contents(direct, table))
    check_coverage(proxy, ledger, single_writes)


def check_coverage(proxy: LossyProxy, ledger: Ledger, single_writes: SingleWrites) -> None:
    """Check that every kind of failure occurred, and that only writes which are not repeated have unknown outcomes."""
    assert set(proxy.fates) == set(Fate)
    assert {"ok", "failed"} <= set(ledger.list_results())
    assert "unknown" not in ledger.list_results(*(kind.name for kind in ledger.kinds if kind.repeated))
    assert ("unknown" in ledger.list_results()) == (single_writes == "auto")
