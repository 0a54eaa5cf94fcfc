"""Jobs that run in processes of their own: what the children of a worker import.

What they do shows in files, each job's in a directory that it is given.
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
    "tell",
]


class Crate(Model):
    """Something to hand over."""

    name: Key[str]
    weight: int = 0


@job("process-tell", process=True, retries=0)
def tell(directory: str) -> None:
    """Leave the number of the process, under the job's id."""
    running = current_job()
    Path(directory, running.id).write_text(f"{os.getpid()} {running.name} {running.attempt}", "utf-8")


@job("process-measure", process=True, retries=0)
def measure(directory: str, crate: Crate, others: list[Any]) -> None:
    """Leave what arrived."""
    told = [crate.name, crate.weight, *(repr(other) for other in others)]
    Path(directory, "measured").write_text(repr(told), "utf-8")


@job("process-measure-async", process=True, retries=0)
async def measure_async(directory: str, crate: Crate) -> None:
    """The same, as a coroutine."""
    await asyncio.sleep(0)
    Path(directory, "measured").write_text(repr([crate.name, crate.weight]), "utf-8")


@job("process-crash", process=True, retries=1, backoff=60)
def crash(how: str) -> None:
    """Die."""
    if how == "exit":
        os._exit(5)
    os.kill(os.getpid(), signal.SIGKILL)


@job("process-refuse", process=True, retries=0)
def refuse(word: str) -> None:
    """Fail, somewhere below."""
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
    """Go on until there is a file."""
    Path(directory, "asleep").write_text(str(os.getpid()), "utf-8")
    while not Path(directory, "wake").exists():
        time.sleep(0.01)


@job("process-busy", process=True, retries=0)
def busy(directory: str) -> None:
    """Take longer than `impatient` may."""
    Path(directory, "busy").touch()
    time.sleep(2.2)


@job("process-impatient", process=True, retries=0, timeout=2)
def impatient() -> None:
    """Be quick."""


@job("process-database", process=True, retries=0)
def ask_database() -> None:
    """Ask for what it cannot have."""
    current_job().database()
