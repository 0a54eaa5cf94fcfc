"""Workers killed in the middle of their work, behind a lossy network: what they had been told is what was done."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from rig.lossy_proxy import lossy
from rig.servers import ENVIRONMENT, GIVEN, NAMES
from rig.torture import TORTURE, Child
from simulated_rig import ROUNDS, SEED, backend, plain_url, prepare_table, state
from simulated_writes import LATE, Ledger, Word, kinds

from holdall.core.settings import SingleWrites

pytestmark = pytest.mark.torture


def worker(server: str, *arguments: str) -> Child:
    """A worker in a process of its own; it is dead after the block, whatever happens."""
    return Child("simulated_worker.py", *arguments, settings={} if server == GIVEN else ENVIRONMENT)


def hear(ledger: Ledger, lines: Iterable[str]) -> None:
    """Note what a worker said; what it was about when it died has an unknown fate."""
    for line in lines:
        word, kind, id = line.split()
        ledger.note(kind, id, "unknown" if word == "try" else as_word(word))


def as_word(text: str) -> Word:
    for word in ("ok", "failed", "unknown"):
        if text == word:
            return word
    raise AssertionError(f"a worker said {text!r}")


MANNERS: tuple[SingleWrites, ...] = ("auto", "token")


@pytest.mark.parametrize(
    ("server", "single_writes"),
    [
        (server, manner)
        for number, server in enumerate(NAMES)
        for manner in (MANNERS if TORTURE else MANNERS[number % 2 :][:1])
    ],
)
def test_a_killed_worker_had_been_told_the_truth(server: str, single_writes: SingleWrites) -> None:
    url, ledger = plain_url(server), Ledger(kinds(single_writes))
    choice = random.Random(f"{SEED} {server} {single_writes}")
    with backend(server, url) as direct, prepare_table(direct) as table:
        with lossy(url, f"{SEED} kill", late=f'"{LATE}-'.encode()) as proxy:
            for round in range(ROUNDS // 2):
                with (
                    worker(server, proxy.url, table, f"ada{round}", single_writes) as ada,
                    worker(server, proxy.url, table, f"bob{round}", single_writes) as bob,
                ):
                    for process in (ada, bob):
                        hear(ledger, until_killed(process, choice.randrange(1, 4 * len(ledger.kinds))))
        ledger.audit(state(direct, table))
    assert {"ok", "unknown"} <= set(ledger.words())


def until_killed(process: Child, count: int) -> Iterator[str]:
    """So many lines, then those that it had said by the time it was killed; one cut off by that does not count."""
    for _ in range(count):
        yield process.line()
    yield from process.kill()
