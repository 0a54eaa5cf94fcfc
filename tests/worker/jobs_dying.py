"""Workers and enqueuers that kill themselves before or after a request, and a worker that finishes the rest.

``jobs_dying.py DIRECTORY SCENARIO...``: each scenario has its own store. For each request of the scenario, the script
starts a process that dies right after it. Under torture it starts another that dies right before it, which leaves the
same state as one that died after the previous request. Then one worker does the remaining work. For each process the
script prints a line of JSON: how the process died, and the state before and after the worker's work. Other lines show
that the script is alive.

Queries are not counted: a process that dies around one leaves the same state as after its previous write.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from jobs_scenarios import SCENARIOS, Effect, Order, Scenario, Tally, at_work, declare_recurring
from jobs_torture_rig import ENDED_WELL, LEASE, WHENS, fork, leftovers, until
from rig.wrapper import Wrapper

from holdall import Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.core.port import Backend, Send
from holdall.core.requests import DescribeTable, DescribeTtl, Query, Request, Scan

TOO_MANY = 100
UNCOUNTED = (DescribeTable, DescribeTtl, Query, Scan)


class DyingBackend(Wrapper):
    """A backend that kills its process before or after a given request."""

    def __init__(self, inner: Backend, step: int, when: str) -> None:
        super().__init__(inner)
        self._step, self._when = step, when
        self._numbers = count()

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        number = -1 if isinstance(request, UNCOUNTED) else next(self._numbers)
        self._die_at(number, "before")
        try:
            return await send(self.inner, request)
        finally:
            self._die_at(number, "after")

    def _die_at(self, number: int, when: str) -> None:
        if (number, when) == (self._step, self._when):
            os.kill(os.getpid(), signal.SIGKILL)


def open_db(file: Path) -> Database:
    return Database(f"embedded:{file}", durability="normal")


def act(file: Path, scenario: Scenario, queue: str, step: int, when: str) -> None:
    store = DyingBackend(EmbeddedBackend(file, durability="normal"), step, when)
    scenario.prepare(Database(backend=store.inner), queue)
    with Database(backend=store) as db:
        at_work.db = db
        (scenario.act or work)(db, queue)


def work(db: Database, *queues: str, waiting: int = 0) -> None:
    """Work until no job runs and the given number of jobs waits in each queue."""

    def is_done() -> bool:
        found = leftovers(db)
        counts = map(found.of, queues)
        return all((count["waiting"], count["running"]) == (waiting, 0) for count in counts)

    with db.worker(queues=queues, lease=LEASE, poll_interval=LEASE / 3, concurrency=4):
        until(is_done, f"the jobs of {queues} were done", pause=0.06)


def rescue(file: Path, scenario: Scenario, queues: Sequence[str], deaths: Sequence[dict[str, Any]]) -> None:
    """Do the remaining work, and print the state before and after it."""
    with open_db(file) as db:
        at_work.db = db
        before = [state(db, scenario, queue) for queue in queues]
        if scenario.act is not None and scenario.waiting:
            for queue in queues:
                declare_recurring(queue)
        work(db, *queues, waiting=scenario.waiting)
        after = [state(db, scenario, queue) for queue in queues]
        for queue, line, *states in zip(queues, deaths, before, after, strict=True):
            again = None
            if scenario.again is not None:
                again = db.jobs.enqueue(scenario.again[0], queue=queue, key=queue).added
            print(json.dumps({**line, "before": states[0], "after": states[1], "again": again}))


def state(db: Database, scenario: Scenario, queue: str) -> dict[str, Any]:
    found = leftovers(db)
    tallies = [db.get(Tally, queue + end) for end in scenario.tallies]
    return {
        "jobs": found.of(queue),
        "held": [name for name in found.held if f"#{queue}" in name],
        "effects": len(db.query(Effect, queue=queue).all()),
        "tallies": [0 if tally is None else tally.count for tally in tallies],
        "ordered": db.get(Order, queue) is not None,
    }


def main(directory: str, *names: str) -> None:
    with Database("memory:") as db:
        work(db, "nothing")  # so that the children find all modules imported
    for name in names:
        scenario, file = SCENARIOS[name], Path(directory, f"{name}.db")
        queues, deaths = [], []
        for step in range(TOO_MANY):
            codes = []
            for when in WHENS:
                queue = f"{step}-{when}"
                code = fork(act, file, scenario, queue, step, when)
                print(json.dumps({"scenario": name, "alive": queue}), flush=True)
                queues.append(queue)
                codes.append(code)
                deaths.append({"scenario": name, "step": step, "when": when, "code": code})
            if codes == [ENDED_WELL] * len(WHENS):
                break
        if fork(rescue, file, scenario, queues, deaths) != ENDED_WELL:
            print(json.dumps({"scenario": name, "stuck": True}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
