"""A worker that stops at SIGTERM, as in a user's program.

``jobs_stopping.py FILE GRACE``: prints ``begun NAME`` when a job starts, ``process PID`` for a job in a child process,
``stopping`` at SIGTERM, and finally its metrics as JSON. Its jobs end once there is a file ``go`` beside the store.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from uuid import uuid4

import holdall
from holdall import Database, Key, Model, SortKey, Transaction
from holdall.worker import JobEvent

__all__ = ["JOBS", "LEASE", "Ended"]

LEASE = 600.0
"""Seconds; so long that no lease ends during a test."""


class Ended(Model):
    """A job creates one when it runs to its end."""

    name: Key[str]
    id: SortKey[str]


@holdall.job("stopping-called")
def end_called(file: str) -> None:
    wait(file)
    with Database(f"embedded:{file}") as db, db.transaction() as tx:
        tx.create(Ended, name="called", id=str(uuid4()))


@holdall.job("stopping-awaited")
async def end_awaited(file: str) -> None:
    while not Path(file).with_name("go").exists():
        await asyncio.sleep(0.01)
    with Database(f"embedded:{file}") as db, db.transaction() as tx:
        tx.create(Ended, name="awaited", id=str(uuid4()))


@holdall.job("stopping-counted", transactional=True)
def end_counted(tx: Transaction, file: str) -> None:
    wait(file)
    tx.create(Ended, name="counted", id=str(uuid4()))


@holdall.job("stopping-in-process", process=True)
def in_process(file: str) -> None:
    print(f"process {os.getpid()}", flush=True)
    wait(file)
    with Database(f"embedded:{file}") as db, db.transaction() as tx:
        tx.create(Ended, name="in process", id=str(uuid4()))


JOBS = (end_called, end_awaited, end_counted, in_process)


def wait(file: str) -> None:
    while not Path(file).with_name("go").exists():
        time.sleep(0.01)


def print_start(event: JobEvent) -> None:
    if event.kind == "started":
        print(f"begun {event.name}", flush=True)


async def main(file: str, grace: str) -> None:
    async with Database(f"embedded:{file}").aio as db:
        worker = db.worker(
            lease=LEASE, poll_interval=0.02, grace=float(grace), processes=1, hooks=[print_start]
        )

        def stop() -> None:
            worker.stop()
            print("stopping", flush=True)

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
        await worker.run()
    print(json.dumps(worker.metrics.as_dict()), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
