"""Clients in a race: each in its own process, slice against slice, on the same canned server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from benchmarks import peers
from benchmarks.canned_server import serve_canned
from benchmarks.harness import Paired, from_slices
from benchmarks.wire_client import REGION, Operation

__all__ = ["Worker", "one_processor", "race", "wire_environment", "workers"]

HERE = Path(__file__).parent
PAIRS = 12
WARMUPS = 2
SLICE_SECONDS = 0.03
TRIAL = 20


def wire_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a client of the canned server: credentials, a region and no other AWS settings."""
    kept = {name: text for name, text in environment.items() if not name.startswith(("AWS_", "HOLDALL_"))}
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
    return kept | keys


class Worker:
    """A process that runs one client, in the environment that the client's module belongs to."""

    def __init__(self, client: str, endpoint: str) -> None:
        python = sys.executable if client.partition(":")[0].endswith("_ours") else str(peers.interpreter())
        self._client = client
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.peer_worker", client, endpoint],
            cwd=HERE.parent,
            env=wire_environment(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._counts: dict[Operation, int] = {}

    def __enter__(self) -> Self:
        if self._answer() != "ready":
            raise RuntimeError(f"the worker of {self._client} did not start")
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def slice(self, operation: Operation) -> float:
        """Return the mean CPU seconds of one operation over a slice."""
        count = self._counts.get(operation)
        if count is None:
            self.run(operation, TRIAL)
            each = self.run(operation, TRIAL) / TRIAL
            count = self._counts[operation] = max(5, round(SLICE_SECONDS / each))
        return self.run(operation, count) / count

    def run(self, operation: Operation, count: int) -> float:
        """Run an operation ``count`` times; return the CPU seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{operation} {count}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self._client} ended")
        return line.strip()


@contextmanager
def workers(clients: Iterable[str]) -> Iterator[dict[str, Worker]]:
    """Start a worker for each client (``module:function``), all on one server."""
    with ExitStack() as stack:
        stack.enter_context(one_processor())
        endpoint = stack.enter_context(serve_canned())
        started = {client: Worker(client, endpoint) for client in clients}
        yield {client: stack.enter_context(worker) for client, worker in started.items()}


@contextmanager
def one_processor() -> Iterator[None]:
    """Keep the processes that are started in the block on one processor.

    Only one of them works at a time; on several processors, the cost of waking a process would depend on its processor.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def race(ours: Worker, theirs: Worker, operation: Operation) -> Paired:
    """Measure one operation's CPU time on both sides, slice by slice; the side that goes first alternates."""
    slices = []
    for turn in range(WARMUPS + PAIRS):
        if turn % 2:
            second = theirs.slice(operation)
            slices.append((ours.slice(operation), second))
        else:
            slices.append((ours.slice(operation), theirs.slice(operation)))
    return from_slices(slices[WARMUPS:])
