"""Writes per second of 1, 4 and 50 processes on one embedded file, durability full: fifty against four."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from benchmarks.embedded_store import TABLE, document
from benchmarks.harness import Figure
from holdall import Database
from holdall.core import CreateTable, KeyAttribute, PutItem, TableSchema

BAR = 0.5
CROWDS = (1, 4, 50)
TURNS = 5
SECONDS = 1.5

_fork = multiprocessing.get_context("fork")


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure: the rate of fifty processes against that of four; the rate of one is in the note."""
    file = workshop / "crowd.db"
    with Database(f"embedded:{file}") as db:
        db.send(CreateTable(TableSchema(TABLE, KeyAttribute("pk"), KeyAttribute("sk"))))
    turns = [{count: _measure_rate(file, count) for count in CROWDS} for _ in range(TURNS)]
    one, four, fifty = (median(turn[count] for turn in turns) for count in CROWDS)
    ratio = median(turn[50] / turn[4] for turn in turns)
    note = f"writes/s: 1 process {one:,.0f}, 4 processes {four:,.0f}, 50 processes {fifty:,.0f}"
    yield Figure("embedded_crowd", ("50 processes against 4",), ratio, BAR, "≥", note=note)


def _measure_rate(file: Path, count: int) -> float:
    """Return how many writes per second are acknowledged to ``count`` processes."""
    pipes = [_fork.Pipe() for _ in range(count)]
    writers = [_fork.Process(target=_write, args=(file, theirs)) for _, theirs in pipes]
    for writer in writers:
        writer.start()
    for ours, _ in pipes:
        ours.recv()
    stop = time.monotonic() + SECONDS
    for ours, _ in pipes:
        ours.send(stop)
    written: int = sum(ours.recv() for ours, _ in pipes)
    taken = SECONDS + time.monotonic() - stop
    for writer in writers:
        writer.join()
    return written / taken


def _write(file: Path, pipe: Connection) -> None:
    """Put items until it is time to stop, then send their number."""
    first = multiprocessing.current_process().pid or 0
    written = 0
    with Database(f"embedded:{file}", durability="full") as db:
        db.send(PutItem(TABLE, document(first, 1)))
        pipe.send("ready")
        stop = pipe.recv()
        while time.monotonic() < stop:
            db.send(PutItem(TABLE, document(first + written % 100, 1)))
            written += 1
        pipe.send(written)
