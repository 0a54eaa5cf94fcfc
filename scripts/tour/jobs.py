"""Steps about jobs: one per key, retried after a failure, and restarted after a kill."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import holdall
from holdall import Database
from holdall.worker import JobEvent
from tour.stage import Tour, step

DONE: list[str] = []


@holdall.job("reindex")
def reindex(shelf: str) -> None:
    DONE.append(f"index of {shelf}")


@holdall.job("ask-customs", retries=2, backoff=0.01)
def ask_customs() -> None:
    if holdall.current_job().attempt < 3:
        raise ConnectionError("customs are closed")
    DONE.append("customs said yes")


@holdall.job("call-moon", retries=0)
def call_moon() -> None:
    raise ConnectionError("no answer")


def open_database(tour: Tour) -> Database:
    return Database(backend=tour.store, manage_table=True)


@step("Jobs: one per key, retried, and kept when they fail for good")
def keys_and_failures(tour: Tour) -> None:
    """Only one job per key waits. A failed job is retried; when its retries run out, it is kept for inspection."""
    db = open_database(tour)
    added = [db.jobs.enqueue(reindex, "north", key="north").added for _ in range(50)]
    events: list[tuple[Any, ...]] = []

    def watch(event: JobEvent) -> None:
        if event.kind != "started":
            error = "" if event.error is None else str(event.error)
            events.append((event.name, event.attempt, event.kind, error))

    db.jobs.enqueue(ask_customs)
    db.jobs.enqueue(call_moon)
    while db.jobs.list(state="waiting"):
        db.worker(jobs=[reindex, ask_customs, call_moon], hooks=[watch]).drain()
    tour.voice.say(f"50 calls to enqueue with one key added {sum(map(bool, added))} job.")
    tour.voice.table(["job", "attempt", "event", "error"], sorted(events))
    (dead,) = db.jobs.list(state="dead")
    tour.voice.say(f"{dead.name} is kept with its error; `holdall jobs retry` would try it again.")
    db.jobs.purge()
    assert (DONE.count("index of north"), DONE.count("customs said yes")) == (1, 1)


APPLICATION = """
import sys, holdall

@holdall.job("pack", queue="depot")
def pack(number):
    print("packing", number, "attempt", holdall.current_job().attempt, file=sys.stderr, flush=True)
    if holdall.current_job().attempt == 1:
        sys.stdin.read()  # until it is killed

@holdall.job("count", queue="counting")
def count(number):
    pass
"""


@step("A worker that is killed")
def kill_worker(tour: Tour) -> None:
    """SIGKILL ends a worker in the middle of a job. The next worker waits for the lease and runs it again."""
    (tour.folder / "depot").mkdir()
    (tour.folder / "depot" / "depot.py").write_text(APPLICATION)
    with Database(tour.url) as db:
        db.jobs.enqueue("pack", 7, queue="depot")
        command = [sys.executable, "-m", "holdall", "--url", tour.url, "worker", "depot", "--queue", "depot"]
        first = start([*command, "--lease", "1"], tour.folder / "depot")
        assert first.stderr is not None
        line = next(line for line in first.stderr if line.startswith("packing"))
        first.kill()
        first.communicate()
        tour.voice.show(f"$ holdall worker depot --queue depot --lease 1\n{line.rstrip()}\nKilled")
        second = start([*command, "--poll-interval", "0.1"], tour.folder / "depot")
        while db.jobs.list(queue="depot"):
            time.sleep(0.02)
        second.send_signal(signal.SIGTERM)
        _, stderr = second.communicate(timeout=60)
        tour.voice.show(f"$ holdall worker depot --queue depot\n{stderr.rstrip()}")
    assert second.returncode == 0
    assert "packing 7 attempt 2" in stderr


def start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@step("A thousand jobs, two workers")
def many_jobs(tour: Tour) -> None:
    """Two worker processes share one file. Each job is run by one of them, and none is left."""
    url = f"{tour.url}?durability=normal"
    total = 1000
    with Database(url) as db:
        for first in range(0, total, 100):
            with db.transaction() as tx:
                for number in range(first, first + 100):
                    tx.enqueue("count", number, queue="counting")
        command = [sys.executable, "-m", "holdall", "--url", url, "worker", "depot"]
        drain = [*command, "--queue", "counting", "--drain", "--json"]
        workers = [start(drain, tour.folder / "depot") for _ in range(2)]
        rows = [make_row(place, worker) for place, worker in enumerate(workers, 1)]
        tour.voice.table(["worker", "jobs", "taken by the other worker"], rows)
        assert sum(row[1] for row in rows) == total
        assert db.jobs.counts(queue="counting")["counting"] == (0, 0, 0, 0)
    shutil.rmtree(tour.folder / "depot")


def make_row(place: int, worker: subprocess.Popen[str]) -> tuple[int, int, int]:
    output, _ = worker.communicate(timeout=120)
    assert worker.returncode == 0
    metrics = json.loads(output)
    return place, metrics["succeeded"], metrics["collisions"]
