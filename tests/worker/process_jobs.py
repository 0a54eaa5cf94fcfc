"""Jobs that run in child processes; the children of a worker import this module.

Each job writes its results into files in the directory that it gets as an argument.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

from holdall import Key, Model, current_job, job

__all__ = [
    "Crate",
    "ask_database",
    "busy",
    "crash",
    "hang",
    "impatient",
    "measure",
    "measure_async",
    "refuse",
    "sleeper",
    "write_process",
]


class Crate(Model):
    """An item to pass as an argument."""

    name: Key[str]
    weight: int = 0


@job("process-write", process=True, retries=0)
def write_process(directory: str) -> None:
    """Write the process's id, the job's name and the attempt into a file named by the job's id."""
    running = current_job()
    Path(directory, running.id).write_text(f"{os.getpid()} {running.name} {running.attempt}", "utf-8")


@job("process-measure", process=True, retries=0)
def measure(directory: str, crate: Crate, others: list[Any]) -> None:
    """Write the arguments that arrived."""
    arrived = [crate.name, crate.weight, *(repr(other) for other in others)]
    Path(directory, "measured").write_text(repr(arrived), "utf-8")


@job("process-measure-async", process=True, retries=0)
async def measure_async(directory: str, crate: Crate) -> None:
    """The same, as a coroutine."""
    await asyncio.sleep(0)
    Path(directory, "measured").write_text(repr([crate.name, crate.weight]), "utf-8")


@job("process-crash", process=True, retries=1, backoff=60)
def crash(how: str) -> None:
    """End the process."""
    if how == "exit":
        os._exit(5)
    os.kill(os.getpid(), signal.SIGKILL)


@job("process-refuse", process=True, retries=0)
def refuse(word: str) -> None:
    """Fail in another function."""
    _deeper(word)


def _deeper(word: str) -> None:
    raise LookupError(f"nothing is called {word}")


@job("process-hang", process=True, retries=0, timeout=1.5)
def hang(directory: str) -> None:
    """Never end."""
    Path(directory, "hanging").write_text(str(os.getpid()), "utf-8")
    while True:
        time.sleep(60)


@job("process-sleeper", process=True, retries=0)
def sleeper(directory: str) -> None:
    """Run until there is a file ``wake``."""
    Path(directory, "asleep").write_text(str(os.getpid()), "utf-8")
    while not Path(directory, "wake").exists():
        time.sleep(0.01)


@job("process-busy", process=True, retries=0)
def busy(directory: str) -> None:
    """Take longer than the timeout of `impatient`."""
    Path(directory, "busy").touch()
    time.sleep(2.2)


@job("process-impatient", process=True, retries=0, timeout=2)
def impatient() -> None:
    """End at once."""


@job("process-database", process=True, retries=0)
def ask_database() -> None:
    """Ask for the worker's database, which a child process does not have."""
    current_job().database()
