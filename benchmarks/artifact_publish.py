"""Publishing a 1 MB artifact, against the package versioned: requests, and the client's CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from benchmarks import peers
from benchmarks.harness import Figure, Paired, from_slices
from benchmarks.ministack import start_ministack
from benchmarks.relay import Relay, open_relay
from benchmarks.wire_race import wire_environment

ROOT = Path(__file__).parents[1]
OURS = {"on_aws": "as on AWS", "on_another_server": "as on another server"}
BAR = 1 / 3
COUNT = 4
PAIRS = 14
WARMUPS = 2


def figures(workshop: Path) -> Iterator[Figure]:
    """Requests and CPU of one publish; all sides use the same server, each with its own table and bucket."""
    with (
        open_relay(start_ministack()) as relay,
        _Publisher("artifact_peers:open_versioned", str(peers.interpreter()), relay) as theirs,
    ):
        for side, where in OURS.items():
            with _Publisher(f"artifact_ours:{side}", sys.executable, relay) as ours:
                cpu = _race(ours, theirs)
                details = ("1 MB", where, "requests", "against versioned")
                note = f"{ours.describe_requests()} against {theirs.describe_requests()}"
                yield Figure("artifact_publish", details, ours.requests, theirs.requests, unit="", note=note)
                details = ("1 MB", where, "CPU", "against versioned")
                yield Figure("artifact_publish", details, cpu.ratio, BAR, note=cpu.each(1))


def _race(ours: _Publisher, theirs: _Publisher) -> Paired:
    slices = []
    for turn in range(WARMUPS + PAIRS):
        if turn % 2:
            second = theirs.slice()
            slices.append((ours.slice(), second))
        else:
            slices.append((ours.slice(), theirs.slice()))
    return from_slices(slices[WARMUPS:])


class _Publisher:
    """A process that runs one side; its requests pass through the relay."""

    def __init__(self, side: str, python: str, relay: Relay) -> None:
        self._side = side
        self._relay = relay
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.artifact_worker", side, relay.url],
            cwd=ROOT,
            env=wire_environment(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._sent: list[tuple[str, ...]] = []

    def __enter__(self) -> Self:
        if self._answer() != "ready":
            raise RuntimeError(f"{self._side} did not start")
        self.slice()  # including requests that a process makes only once
        self._sent.clear()
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    @property
    def requests(self) -> int:
        """The most requests that one publish took."""
        return max(len(each) for each in self._sent)

    def describe_requests(self) -> str:
        """Describe the requests of the publish that took the most, by method."""
        counts = Counter(next(each for each in self._sent if len(each) == self.requests))
        methods = " + ".join(f"{count} {method}" for method, count in sorted(counts.items()))
        return f"{self.requests} ({methods})"

    def slice(self) -> float:
        """Return the mean CPU seconds of a publish, over a few, each with new content."""
        seconds = 0.0
        for _ in range(COUNT):
            self._run("put")
            self._relay.take_methods()
            seconds += self._run("publish")
            self._sent.append(tuple(self._relay.take_methods()))
        self._run("check")
        return seconds / COUNT

    def _run(self, command: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self._side} ended")
        return line.strip()
