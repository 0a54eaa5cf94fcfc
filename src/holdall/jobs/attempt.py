"""The running job, as its own function sees it.

Pure. It is bound to the task or thread that runs the job, and to the tasks that those start.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar, overload

from holdall.core.context import Context
from holdall.core.internal import internal
from holdall.core.port import Port
from holdall.core.values import Item
from holdall.errors import InvalidOptionsError, LeaseLostError, NoJobError
from holdall.jobs.lease import end_job, is_held_by
from holdall.jobs.record import JobItem, JobRecord
from holdall.tables.commit.change import Change, Participant
from holdall.tables.flow import discover

D = TypeVar("D")


class RunningJob:
    """A job that a worker is running. ``attempt`` is 1 the first time.

    ``lost`` becomes true when the worker no longer holds the job, because the worker was held up or the job timed out.
    A function that runs in a thread cannot be stopped from outside, so a long one should check it now and then.
    """

    __slots__ = ("_context", "_database", "ended", "lost", "record", "tokens")

    @internal
    def __init__(
        self, record: JobRecord, context: Context | None = None, database: Callable[[], Any] | None = None
    ) -> None:
        self._context = context
        self._database = database
        assert record.lease is not None
        self.record = record
        self.lost = False
        self.ended = False  # by the commit of its own transaction
        # the tokens that its lease may have: two while a heartbeat's outcome is unknown
        self.tokens = {record.lease.token}

    @property
    @internal
    def context(self) -> Context:
        """The worker's context, for Holdall's own jobs, which are flows."""
        assert self._context is not None, "a job in a separate process has no context"
        return self._context

    @overload
    def database(self, /) -> Any: ...
    @overload
    def database(self, kind: type[D], /) -> D: ...
    def database(self, kind: Any = None, /) -> Any:
        """The worker's database: a `Database` in a plain function, an `AsyncDatabase` in an ``async def`` one.

        ``current_job().database(Database)`` or ``(AsyncDatabase)`` is typed, and refuses the other kind. A job that
        runs in a separate process has no database of the worker's, and opens one itself.
        """
        if self._database is None:
            raise NoJobError(
                f"the job {self.name} runs in a separate process, which does not have the worker's database",
                hint="open a database in that process",
            )
        found = self._database()
        if kind is not None and not isinstance(found, kind):
            raise InvalidOptionsError(
                f"the database of the job {self.name} is of type {type(found).__name__}, not {kind.__name__}",
                hint="pass Database in a plain function, AsyncDatabase in an async one, or use its .aio or .sync",
            )
        return found

    @property
    def id(self) -> str:
        """The job's id, the same in each attempt."""
        return self.record.id

    @property
    def name(self) -> str:
        """The job's name."""
        return self.record.name

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self.record.queue

    @property
    def attempt(self) -> int:
        """The number of this attempt: 1 for the first."""
        return self.record.attempts

    def check_lease(self) -> None:
        """Raise if the worker has lost the lease."""
        if self.lost:
            raise self.lease_lost()

    @internal
    def lease_lost(self) -> LeaseLostError:
        """The error for work that this worker may no longer commit."""
        return LeaseLostError(
            f"the lease on the job {self.name} {self.id} was lost, so its work is not committed"
        )

    def __repr__(self) -> str:
        return f"<running {self.name} {self.id}, attempt {self.attempt}>"


current: ContextVar[RunningJob | None] = ContextVar("holdall.job", default=None)


def current_job() -> RunningJob:
    """The job whose function is running; `NoJobError` outside a job."""
    running = current.get()
    if running is None:
        raise NoJobError("no job is running here", hint="call this inside a job's function")
    return running


class Ending(Participant):
    """The participant that ends a job in the transaction of its own work: both happen, or neither."""

    def __init__(self, context: Context, running: RunningJob) -> None:
        self._context = context
        self._running = running

    async def state(self, change: Change) -> None:
        """Add the job's end to the commit, if this worker still holds it."""
        self._running.check_lease()
        layout, running = await discover(self._context), self._running
        end_job(change, layout, running.record, is_held_by(running.tokens), self._refuse)

    def _refuse(self, item: Item | None) -> Exception | None:
        """Explain a refusal: after a heartbeat in between, try again; if another worker holds the job, give up."""
        if JobItem.lease.read(item) in self._running.tokens:
            return None
        # marked as lost, because the function would run again if its reads were also out of date
        self._running.lost = True
        return self._running.lease_lost()

    async def settle(self, port: Port) -> None:
        """Note that the job was deleted together with the commit of its work."""
        self._running.ended = True
