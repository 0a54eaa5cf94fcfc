"""Helpers of the torture tests of jobs: waiting, forking, and reading what a store holds of jobs."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from urllib.parse import unquote

from rig.store_audit import audit, scan_table
from rig.torture import ROUNDS, SEED, SEEDED, Child, run_script

from holdall import Database
from holdall.jobs.record import JobRecord, decode_job

__all__ = [
    "ENDED_WELL",
    "LEASE",
    "PATIENCE",
    "ROUNDS",
    "SEED",
    "SEEDED",
    "WHENS",
    "Child",
    "Leftovers",
    "audit",
    "fork",
    "leftovers",
    "run_script",
    "terminate",
    "until",
    "until_empty",
]

LEASE = 0.3
"""Seconds; short, so that workers soon take over the jobs of dead ones."""

ENDED_WELL = 0
WHENS = ("before", "after") if os.environ.get("HOLDALL_TORTURE") else ("after",)

PATIENCE = 120.0
"""Seconds without progress after which a wait fails."""


def until(
    happened: Callable[[], object],
    what: str,
    *,
    pause: float = 0.005,
    progress: Callable[[], int] = lambda: 0,
) -> None:
    """Wait until a condition holds, checking after each pause; fail if it does not hold and nothing changes for long.

    ``progress`` returns a number that changes as long as there is progress.
    """
    before, deadline = progress(), time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() >= deadline:
            now = progress()
            assert now != before, f"it never happened that {what} {SEEDED}"
            before, deadline = now, time.monotonic() + PATIENCE
        time.sleep(pause)


def until_empty(db: Database, *, pause: float = 0.05) -> None:
    """Wait until all jobs are done."""
    left = partial(count_jobs, db)
    until(lambda: not left(), "all were done", pause=pause, progress=left)


def count_jobs(db: Database) -> int:
    """The number of jobs that are still stored."""
    return len(leftovers(db).jobs)


def fork(function: Callable[..., None], *arguments: object) -> int:
    """Call a function in a child process and return the child's exit code."""
    child = os.fork()
    if child == 0:
        try:
            function(*arguments)
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001 - the child must not continue as its parent would
            traceback.print_exc()
            os._exit(1)
        os._exit(ENDED_WELL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def terminate(child: Child) -> None:
    """Send SIGTERM to a process."""
    child._process.terminate()


class Leftovers(NamedTuple):
    """The stored jobs, and the keys that are taken."""

    jobs: list[JobRecord]
    held: dict[str, str]
    """The id of the job that holds a key, by job name and key."""
    remembered: dict[str, str]
    """The id of the job for which a key is remembered, by job name and key."""

    def of(self, queue: str) -> Counter[str]:
        """The number of jobs of a queue in each state."""
        return Counter(record.state for record in self.jobs if record.queue == queue)


def leftovers(db: Database) -> Leftovers:
    """Find all stored jobs and keys by reading the whole table."""
    layout = db.table.layout()
    found = Leftovers([], {}, {})
    for item in scan_table(db, layout.table):
        place = layout.logical(item)[0]
        if place.startswith(("holdall#Job#", "holdall#DeadJob#")):
            found.jobs.append(decode_job(layout, item))
        elif place.startswith("holdall#JobKey#"):
            guards = found.remembered if "job_until" in item else found.held
            guards[unquote(place.removeprefix("holdall#JobKey#"))] = item["job_id"]["S"]
    return found
