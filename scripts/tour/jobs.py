"""Steps about jobs: with their transaction or not at all, tried again, once per key, and begun anew after a kill."""

from __future__ import annotations

import json
import logging
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import holdall
from holdall import Database, Key, Model, Transaction
from holdall.worker import JobEvent
from tour.stage import Tour, step

DONE: list[str] = []
logging.getLogger("holdall.worker").addHandler(logging.NullHandler())  # the tour tells of failures itself


class Parcel(Model):
    number: Key[int]
    stamps: int = 0


@holdall.job("print-label")
def print_label(parcel: Parcel) -> None:
    DONE.append(f"label of {parcel.number}")


@holdall.job("stamp", transactional=True)
def stamp(tx: Transaction, parcel: Parcel) -> None:
    parcel.stamps += 1


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
    raise ConnectionError("nobody lives there")


def opened(tour: Tour) -> Database:
    return Database(backend=tour.store, manage_table=True)


@step("Jobs: with their transaction, or not at all")
def outbox(tour: Tour) -> None:
    """A job is one more item of the transaction. What did not commit left no job; what did is done."""
    db = opened(tour)

    def send(tx: Transaction, number: int) -> None:
        parcel = tx.create(Parcel, number=number)
        tx.enqueue(print_label, parcel)
        tx.enqueue(stamp, parcel)
        if number == 3:
            raise ValueError("no room for a third")

    for number in (1, 2, 3):
        try:
            db.run(send, number)
        except ValueError as error:
            tour.voice.say(f"Parcel {number} was not sent: {error}.")
    waiting = db.jobs.counts()["default"].waiting
    metrics = db.worker(jobs=[print_label, stamp]).drain()
    stamps = [db.get_one(Parcel, number).stamps for number in (1, 2)]
    tour.voice.say(f"{waiting} jobs waited, {metrics.succeeded} were run: {', '.join(sorted(DONE))}.")
    tour.voice.say(f"Stamps, counted in the jobs' own transactions: {stamps}.")
    assert (waiting, metrics.succeeded, stamps) == (4, 4, [1, 1])


@step("Jobs: one per key, again after a failure, dead in the end")
def keys_and_failures(tour: Tour) -> None:
    """A key lets one job wait, not two. A failure is tried again; one that never succeeds is kept for you."""
    db = opened(tour)
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
    tour.voice.say(f"Of 50 times that the shelf was to be indexed, {sum(map(bool, added))} made a job.")
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
        sys.stdin.read()  # until somebody kills it

@holdall.job("count", queue="counting")
def count(number):
    pass
"""


@step("A worker that is killed")
def killed_worker(tour: Tour) -> None:
    """A worker is killed in the middle of a job, with SIGKILL. The next one waits for its lease, and begins again."""
    (tour.folder / "depot").mkdir()
    (tour.folder / "depot" / "depot.py").write_text(APPLICATION)
    with Database(tour.url) as db:
        db.jobs.enqueue("pack", 7, queue="depot")
        command = [sys.executable, "-m", "holdall", "--url", tour.url, "worker", "depot", "--queue", "depot"]
        first = begun([*command, "--lease", "1"], tour.folder / "depot")
        assert first.stderr is not None
        said = next(line for line in first.stderr if line.startswith("packing"))
        first.kill()
        first.communicate()
        tour.voice.show(f"$ holdall worker depot --queue depot --lease 1\n{said.rstrip()}\nKilled")
        second = begun([*command, "--poll-interval", "0.1"], tour.folder / "depot")
        while db.jobs.list(queue="depot"):
            time.sleep(0.02)
        second.send_signal(signal.SIGTERM)
        _, told = second.communicate(timeout=60)
        tour.voice.show(f"$ holdall worker depot --queue depot\n{told.rstrip()}")
    assert second.returncode == 0
    assert "packing 7 attempt 2" in told


def begun(command: list[str], folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@step("A thousand jobs, two workers")
def many_jobs(tour: Tour) -> None:
    """Two worker processes share one file. Each job is taken by one of them; none is left."""
    url = f"{tour.url}?durability=normal"
    total = 1000
    with Database(url) as db:
        for first in range(0, total, 100):
            with db.transaction() as tx:
                for number in range(first, first + 100):
                    tx.enqueue("count", number, queue="counting")
        command = [sys.executable, "-m", "holdall", "--url", url, "worker", "depot"]
        drain = [*command, "--queue", "counting", "--drain", "--json"]
        workers = [begun(drain, tour.folder / "depot") for _ in range(2)]
        rows = [worker_row(place, worker) for place, worker in enumerate(workers, 1)]
        tour.voice.table(["worker", "jobs", "another was faster"], rows)
        assert sum(row[1] for row in rows) == total
        assert db.jobs.counts(queue="counting")["counting"] == (0, 0, 0)
    shutil.rmtree(tour.folder / "depot")


def worker_row(place: int, worker: subprocess.Popen[str]) -> tuple[int, int, int]:
    told, _ = worker.communicate(timeout=120)
    assert worker.returncode == 0
    metrics = json.loads(told)
    return place, metrics["succeeded"], metrics["collisions"]
