"""Child processes that run jobs: for work that keeps the interpreter busy, or may bring a process down.

A child runs one job at a time and stays for the next. One that dies, or is killed because its job takes too long, takes
only that job's attempt with it. Children are spawned, not forked: they import the module that declares the job, and
with it whatever database that opens. Arguments are pickled on their way.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from holdall.core.generator import refuse_generator
from holdall.errors import JobProcessError
from holdall.jobs.attempt import RunningJob, current
from holdall.jobs.declaration import Job, declared_jobs
from holdall.jobs.record import JobRecord


class Children:
    """Up to ``limit`` child processes, started when they are needed."""

    def __init__(self, limit: int) -> None:
        self._room = asyncio.Semaphore(limit)
        self._idle: list[_Child] = []
        self._all: set[_Child] = set()
        self._threads = ThreadPoolExecutor(limit, thread_name_prefix="holdall-child")

    async def run(
        self,
        job: Job[*tuple[Any, ...]],
        record: JobRecord,
        arguments: Sequence[object],
        begun: asyncio.Future[None],
    ) -> None:
        """Run a job's function in a child; `JobProcessError` when it failed there. To be cancelled is to kill it.

        ``begun`` is settled when there is a child for it: the wait for one is not the job's own time.
        """
        async with self._room:
            loop = asyncio.get_running_loop()
            child = self._idle_child()
            if child is None:
                child = await loop.run_in_executor(self._threads, _Child)
            self._all.add(child)
            begun.set_result(None)
            message = (job.function.__module__, job.name, record, list(arguments))
            try:
                problem = await loop.run_in_executor(self._threads, child.run_job, message)
            except BaseException as error:
                self._all.discard(child)
                child.kill()
                if isinstance(error, EOFError | OSError):
                    raise JobProcessError(
                        f"the process of the job {job.name} died{child.describe_end()}",
                        hint="it may have used too much memory, or crashed in native code",
                    ) from None
                raise
            self._idle.append(child)
        if problem is not None:
            raise JobProcessError(problem)

    def _idle_child(self) -> _Child | None:
        """A child that waits for work; one that has died meanwhile is no job's fault."""
        while self._idle:
            child = self._idle.pop()
            if child.is_alive():
                return child
            self._all.discard(child)
            child.kill()
        return None

    def close(self) -> None:
        """End all children."""
        for child in self._all:
            child.kill()
        self._threads.shutdown(wait=False)


class _Child:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, far = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(far,), name="holdall-job", daemon=True)
        self._process.start()
        far.close()

    def run_job(self, message: object) -> str | None:
        """Hand over a job and wait for its end: None, or what went wrong."""
        self._pipe.send(message)
        problem: str | None = self._pipe.recv()
        return problem

    def is_alive(self) -> bool:
        """Whether it can be given work."""
        return self._process.is_alive()

    def kill(self) -> None:
        """End it now."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def describe_end(self) -> str:
        """How it ended."""
        code = self._process.exitcode
        return "" if code is None else f" (exit code {code})"


def _serve(pipe: Connection) -> None:
    """What a child does: job after job, until nobody is at the other end any more."""
    for number in (signal.SIGINT, signal.SIGTERM):  # both often go to all processes of a service or terminal
        signal.signal(number, signal.SIG_IGN)  # they are for the worker, which lets jobs end
    while True:
        try:
            message = pipe.recv_bytes()
        except EOFError:
            return
        pipe.send(_run_message(message))


def _run_message(message: bytes) -> str | None:
    """What went wrong with a job; None when nothing did."""
    try:
        module, name, record, arguments = pickle.loads(message)  # which imports the classes of the arguments
        if module != "__main__":  # that one has been imported, under another name
            import_module(module)
        current.set(RunningJob(record))
        function = declared_jobs()[name].function
        result = function(*arguments)
        refuse_generator(asyncio.run(result) if asyncio.iscoroutine(result) else result, function)
    except BaseException as error:  # noqa: BLE001 - it is reported to the worker
        return "".join(traceback.format_exception(error))
    return None
