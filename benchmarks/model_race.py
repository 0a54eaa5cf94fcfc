"""Holdall's models against PynamoDB's: each side in its own process, slice against slice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

from benchmarks import peers
from benchmarks.harness import Paired, from_slices
from benchmarks.wire_race import wire_environment

__all__ = ["race"]

ROOT = Path(__file__).parents[1]
PAIRS = 20
WARMUPS = 2
SLICE_SECONDS = 0.03


def race(ours: str, theirs: str, endpoint: str = "") -> Paired:
    """Return the CPU times of one round on both sides (``module:function``); the side that goes first alternates."""
    slices = []
    with (
        _Racer(ours, sys.executable, endpoint) as one,
        _Racer(theirs, str(peers.interpreter()), endpoint) as other,
    ):
        for turn in range(WARMUPS + PAIRS):
            if turn % 2:
                second = other.slice()
                slices.append((one.slice(), second))
            else:
                slices.append((one.slice(), other.slice()))
    return from_slices(slices[WARMUPS:])


class _Racer:
    def __init__(self, side: str, python: str, endpoint: str) -> None:
        self._side = side
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.model_worker", side, endpoint],
            cwd=ROOT,
            env=wire_environment(os.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._rounds = 0

    def __enter__(self) -> Self:
        if self._answer() != "ready":
            raise RuntimeError(f"{self._side} did not start")
        self._run(2)
        self._rounds = max(1, round(SLICE_SECONDS / (self._run(5) / 5)))
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def slice(self) -> float:
        """Return the mean CPU seconds of one round, over a slice of many."""
        return self._run(self._rounds) / self._rounds

    def _run(self, rounds: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{rounds}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self._side} ended")
        return line.strip()
