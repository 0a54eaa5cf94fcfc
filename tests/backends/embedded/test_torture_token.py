"""A transaction that is sent again with its token takes effect exactly once, even if its senders were killed."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from rig.clock import Clock
from rig.store_audit import audit
from rig.torture import ROUNDS, SEED, SEEDED, Child, run_script, strace_missing, trace_command
from token_sender import COUNTERS, increment

from holdall import Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import CreateTable, GetItem, decode_item
from holdall.errors import TokenReusedError

pytestmark = pytest.mark.torture


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "store.db"
    with Database(f"embedded:{file}") as db:
        db.send(CreateTable(COUNTERS))
    return file


def total(file: Path) -> int:
    with Database(f"embedded:{file}") as db:
        item = db.send(GetItem(COUNTERS.name, {"name": {"S": "total"}}, consistent=True)).item
    return 0 if item is None else int(decode_item(item)["count"])


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_an_increment_resent_after_its_sender_was_killed_counts_once(file: Path, durability: str) -> None:
    choice = random.Random(f"{SEED} {durability}")
    for round in range(1, ROUNDS + 1):
        token = str(UUID(int=choice.getrandbits(128)))
        with Child("token_sender.py", file, durability, token) as child:
            assert child.line() == "go"
            for _ in range(choice.randrange(10_000)):  # at most about as long as the transaction takes
                pass
            child.kill_if_alive()
        for _ in range(choice.randrange(1, 3)):  # a caller may have to send it several times
            assert run_script("token_sender.py", file, durability, token) == ["go", "ack"]
        assert total(file) == round, f"token {token} did not count once in round {round} {SEEDED}"
    audit(file, SEEDED)


def test_an_increment_whose_sender_was_killed_at_any_system_call_counts_once(
    file: Path, tmp_path: Path
) -> None:
    reason = strace_missing()
    if reason is not None:
        pytest.skip(reason)
    points = kill_points(file, tmp_path / "trace")
    assert len(points) > 5, "the trace shows too few system calls for a transaction"
    count = total(file)
    choice = random.Random(SEED)
    for call, when in choice.sample(points, min(len(points), 2 * ROUNDS)):
        token = str(UUID(int=choice.getrandbits(128)))
        inject = f"inject={call}:signal=SIGKILL:when={when}"
        prefix = trace_command(tmp_path / "trace", f"trace={call}", inject)
        with Child("token_sender.py", file, "full", token, prefix=prefix) as child:
            child.end()
            assert child.returncode == -9, child.account()
        assert run_script("token_sender.py", file, "full", token) == ["go", "ack"]
        count += 1
        assert total(file) == count, f"killed at {call} {when}: did not count once {SEEDED}"
    audit(file, SEEDED)


def kill_points(file: Path, trace: Path) -> list[tuple[str, int]]:
    """List every system call of a transaction that changes a file: its name, and its number among such calls."""
    run_script(
        "token_sender.py",
        file,
        "full",
        "measure",
        prefix=trace_command(trace, "trace=pwrite64,fdatasync,unlink"),
    )
    calls = Counter(re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.MULTILINE))
    return [(call, when) for call, times in calls.items() for when in range(1, times + 1)]


# --- expiry of tokens -----------------------------------------------------------------------------------


@contextmanager
def restart(file: Path, clock: Clock) -> Iterator[EmbeddedBackend]:
    """Open the store as a new process would."""
    backend = EmbeddedBackend(file, clock=clock)
    try:
        yield backend
    finally:
        backend.close()


def test_a_token_is_known_after_restarts_for_ten_minutes(file: Path) -> None:
    clock = Clock(1_800_000_000)
    for minutes in (0, 1, 5, 9.99):
        clock.set(1_800_000_000 + 60 * minutes)
        with restart(file, clock) as backend:
            backend.send_blocking(increment("one"))
    assert total(file) == 1


def test_a_token_is_forgotten_after_ten_minutes(file: Path) -> None:
    clock = Clock(1_800_000_000)
    with restart(file, clock) as backend:
        backend.send_blocking(increment("one"))
    clock.forward(600)
    with restart(file, clock) as backend:
        backend.send_blocking(increment("one"))
        backend.send_blocking(increment("one"))
    assert total(file) == 2


def test_sending_it_again_does_not_extend_the_life_of_a_token(file: Path) -> None:
    clock = Clock(1_800_000_000)
    with restart(file, clock) as backend:
        backend.send_blocking(increment("one"))
        clock.forward(400)
        backend.send_blocking(increment("one"))
        clock.forward(400)
        backend.send_blocking(increment("one"))
    assert total(file) == 2


def test_a_token_is_known_after_the_clock_is_set_back(file: Path) -> None:
    clock = Clock(1_800_000_000)
    with restart(file, clock) as backend:
        backend.send_blocking(increment("one"))
        clock.forward(-3600)
        backend.send_blocking(increment("one"))
    assert total(file) == 1


def test_a_token_with_another_transaction_is_refused_even_after_a_restart(file: Path) -> None:
    clock = Clock(1_800_000_000)
    with restart(file, clock) as backend:
        backend.send_blocking(increment("one"))
    for other in (increment("one", by=2), increment("one", name="other")):
        with restart(file, clock) as backend, pytest.raises(TokenReusedError):
            backend.send_blocking(other)
    assert total(file) == 1


def test_a_forgotten_token_can_be_used_for_another_transaction(file: Path) -> None:
    clock = Clock(1_800_000_000)
    with restart(file, clock) as backend:
        backend.send_blocking(increment("one"))
        clock.forward(600)
        backend.send_blocking(increment("one", by=2))
        with pytest.raises(TokenReusedError):
            backend.send_blocking(increment("one"))
    assert total(file) == 3
