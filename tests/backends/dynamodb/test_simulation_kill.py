"""Workers behind a lossy network are killed at work: every result that they reported is true."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from rig.lossy_proxy import lossy
from rig.servers import ENVIRONMENT, GIVEN, NAMES
from rig.torture import TORTURE, Child
from simulated_rig import ROUNDS, SEED, open_backend, plain_url, prepare_table, read_contents
from simulated_writes import LATE, Ledger, Result, kinds

from holdall.core.settings import SingleWrites

pytestmark = pytest.mark.torture


def worker(server: str, *arguments: str) -> Child:
    """Start a worker in its own process; it is killed after the block at the latest."""
    return Child("simulated_worker.py", *arguments, settings={} if server == GIVEN else ENVIRONMENT)


def record_lines(ledger: Ledger, lines: Iterable[str]) -> None:
    """Record the results that a worker printed; the outcome of its last, unfinished attempt is unknown."""
    for line in lines:
        result, kind, id = line.split()
        ledger.record(kind, id, "unknown" if result == "try" else parse_result(result))


def parse_result(text: str) -> Result:
    for result in ("ok", "failed", "unknown"):
        if text == result:
            return result
    raise AssertionError(f"a worker printed {text!r}")


MANNERS: tuple[SingleWrites, ...] = ("auto", "token")


@pytest.mark.parametrize(
    ("server", "single_writes"),
    [
        (server, manner)
        for number, server in enumerate(NAMES)
        for manner in (MANNERS if TORTURE else MANNERS[number % 2 :][:1])
    ],
)
def test_the_results_that_a_killed_worker_received_are_true(server: str, single_writes: SingleWrites) -> None:
    url, ledger = plain_url(server), Ledger(kinds(single_writes))
    choice = random.Random(f"{SEED} {server} {single_writes}")
    with open_backend(server, url) as direct, prepare_table(direct) as table:
        with lossy(url, f"{SEED} kill", late=f'"{LATE}-'.encode()) as proxy:
            for round in range(ROUNDS // 2):
                with (
                    worker(server, proxy.url, table, f"ada{round}", single_writes) as ada,
                    worker(server, proxy.url, table, f"bob{round}", single_writes) as bob,
                ):
                    for process in (ada, bob):
                        record_lines(
                            ledger, read_until_killed(process, choice.randrange(1, 4 * len(ledger.kinds)))
                        )
        ledger.audit(read_contents(direct, table))
    assert {"ok", "unknown"} <= set(ledger.list_results())


def read_until_killed(process: Child, count: int) -> Iterator[str]:
    """Read ``count`` lines, kill the process, and read its remaining complete lines."""
    for _ in range(count):
        yield process.line()
    yield from process.kill()
