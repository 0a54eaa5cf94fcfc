"""A store with a job that ends every process that runs it, and workers that are restarted until all jobs have ended.

``jobs_poison.py FILE``: works on the store in one process after the other, until no job waits or runs, and prints the
exit code of each process.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jobs_torture_rig import ENDED_WELL, LEASE, fork, leftovers, until

import holdall
from holdall import Database, Key, Model, SortKey

__all__ = ["HARMLESS", "RETRIES", "Run"]

RETRIES = 2
HARMLESS = 20


class Run(Model):
    """The trace that one run of a job leaves."""

    name: Key[str]
    at: SortKey[str]


class _AtWork:
    db: Database


at_work = _AtWork()


def leave_trace(name: str) -> None:
    running = holdall.current_job()
    with at_work.db.transaction() as tx:
        tx.create(Run, name=name, at=f"{running.id} {running.attempt}")


@holdall.job("poison-exit", retries=RETRIES, backoff=0.01)
def exit_process() -> None:
    leave_trace("exit")
    os._exit(7)


@holdall.job("poison-harmless", retries=20, backoff=0.01)
def harmless() -> None:
    leave_trace("harmless")


def work(file: Path) -> None:
    with Database(f"embedded:{file}", durability="normal") as db:
        at_work.db = db
        with db.worker(lease=LEASE, poll_interval=LEASE / 3, concurrency=3):
            until(lambda: is_over(db), "all jobs had ended", pause=0.02)


def is_over(db: Database) -> bool:
    return all(job.state == "dead" for job in leftovers(db).jobs)


def prepare(file: Path) -> None:
    with Database(f"embedded:{file}", durability="normal") as db:
        for number in range(HARMLESS):
            db.jobs.enqueue(harmless)
            if number == HARMLESS // 2:
                db.jobs.enqueue(exit_process)


def main(file: str) -> None:
    assert fork(prepare, Path(file)) == ENDED_WELL
    for _ in range(2 * RETRIES + 2):  # more than it should need
        code = fork(work, Path(file))
        print(code, flush=True)
        if code == ENDED_WELL:
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
