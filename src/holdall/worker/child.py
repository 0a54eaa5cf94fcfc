"""Jobs in child processes, for work that keeps the interpreter busy or may crash it.

A child that dies, or is killed because its job takes too long, ends only that attempt of that job. Children import the
module that declares the job, and with it any database that the module opens. Arguments are pickled.
"""

from __future__ import annotations

import asyncio
import pickle
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from holdall.backends.process import Children
from holdall.core.generator import refuse_generator
from holdall.core.traceback import remove_frames
from holdall.core.work import CallFunction
from holdall.errors import JobProcessError, JobTimeoutError, ProcessDiedError, ProcessTimeoutError
from holdall.jobs.attempt import RunningJob, current
from holdall.jobs.declaration import Job, declared_jobs
from holdall.jobs.record import JobRecord


async def run_in_child(
    children: Children,
    job: Job[*tuple[Any, ...]],
    record: JobRecord,
    arguments: Sequence[object],
    *,
    short: bool,
) -> None:
    """Run a job's function in a child; `JobProcessError` if it fails there. Cancelling this call kills the child.

    The time spent waiting for a free child does not count as the job's own. ``short`` is whether Holdall's frames are
    removed from the traceback of an error that Holdall raised.
    """
    message = pickle.dumps((job.function.__module__, job.name, record, list(arguments), short))
    call = CallFunction("holdall.worker.child:run_message", (message,), job.options.timeout)
    try:
        problem = await children.call_awaiting(call)
    except ProcessTimeoutError:
        raise JobTimeoutError(f"the job {job.name} took more than {job.options.timeout:g} seconds") from None
    except ProcessDiedError as error:
        raise JobProcessError(
            f"the process of the job {job.name} died: {error.message}", hint=error.hint
        ) from None
    if problem is not None:
        raise JobProcessError(problem)


def run_message(message: bytes) -> str | None:
    """Run a job in the child; returns the traceback of its error, None if it succeeded."""
    short = True
    try:
        # this imports the classes of the arguments
        module, name, record, arguments, short = pickle.loads(message)
        if module != "__main__":  # already imported, under another name
            import_module(module)
        current.set(RunningJob(record))
        function = declared_jobs()[name].function
        result = function(*arguments)
        refuse_generator(asyncio.run(result) if asyncio.iscoroutine(result) else result, function)
    except BaseException as error:  # noqa: BLE001 - it is reported to the worker
        if short:
            remove_frames(error)
        return "".join(traceback.format_exception(error))
    return None
