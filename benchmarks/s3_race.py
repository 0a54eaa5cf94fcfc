"""Clients of S3 in a race: each in its own process, slice against slice, on the same server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from benchmarks import peers
from benchmarks.s3_client import S3Operation
from benchmarks.s3_server import serve_bucket
from benchmarks.wire_race import wire_environment

__all__ = ["S3Worker", "Seconds", "s3_workers", "time_slices"]

HERE = Path(__file__).parent
WARMUPS = 2


class Seconds(NamedTuple):
    """The times of one operation."""

    cpu: float
    wall: float


class S3Worker:
    """A process that runs one client, in the environment that the client's module belongs to."""

    def __init__(self, client: str, endpoint: str, directory: Path) -> None:
        python = sys.executable if client.startswith("s3_ours:") else str(peers.interpreter())
        self._client = client
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.s3_worker", client, endpoint, str(directory)],
            cwd=HERE.parent,
            env=wire_environment(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        if self._answer() != "ready":
            raise RuntimeError(f"the worker of {self._client} did not start")
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def slice(self, operation: S3Operation, count: int) -> Seconds:
        """Return the mean times of one operation over a slice."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{operation} {count}\n")
        self._process.stdin.flush()
        cpu, wall = self._answer().split()
        return Seconds(float(cpu) / count, float(wall) / count)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self._client} ended")
        return line.strip()


@contextmanager
def s3_workers(
    clients: Iterable[str], directory: Path, *, one_processor: bool
) -> Iterator[dict[str, S3Worker]]:
    """Start a worker for each client (``module:function``) on one server, optionally all on one processor."""
    before = os.sched_getaffinity(0)
    if one_processor:  # otherwise the cost of waking a process would depend on its processor
        os.sched_setaffinity(0, {max(before)})
    try:
        with ExitStack() as stack:
            endpoint = stack.enter_context(serve_bucket())
            # one after another, because their checks of large objects would disturb each other
            yield {client: stack.enter_context(S3Worker(client, endpoint, directory)) for client in clients}
    finally:
        os.sched_setaffinity(0, before)


def time_slices(
    ours: S3Worker, theirs: S3Worker, operation: S3Operation, count: int, pairs: int
) -> list[tuple[Seconds, Seconds]]:
    """Return the times of both sides, slice by slice; the side that goes first alternates."""
    slices = []
    for turn in range(WARMUPS + pairs):
        if turn % 2:
            second = theirs.slice(operation, count)
            slices.append((ours.slice(operation, count), second))
        else:
            slices.append((ours.slice(operation, count), theirs.slice(operation, count)))
    return slices[WARMUPS:]
