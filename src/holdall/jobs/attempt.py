"""The job that is running here: what its function can ask about itself.

Pure. It is bound to the task or thread that runs the job, and to what those begin.
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
    """A job in a worker's hands. ``attempt`` is 1 the first time.

    ``lost`` turns true when the worker has no longer a hold on it (its machine was held up, or the job timed out):
    work in a thread cannot be stopped from outside, and does well to look now and then.
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
        self.tokens = {record.lease.token}  # what its lease may have: two while the fate of a beat is unknown

    @property
    @internal
    def context(self) -> Context:
        """The worker's context, for jobs of our own that are flows."""
        assert self._context is not None, "not known in a process of its own"
        return self._context

    @overload
    def database(self, /) -> Any: ...
    @overload
    def database(self, kind: type[D], /) -> D: ...
    def database(self, kind: Any = None, /) -> Any:
        """The worker's database: a `Database` in a plain function, an `AsyncDatabase` in an ``async def`` one.

        ``current_job().database(Database)`` or ``(AsyncDatabase)`` is typed, and refuses the other kind. A job that
        runs in a separate process has none, and opens its own.
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
                hint="use Database in a plain function, AsyncDatabase in an async one; db.aio and db.sync lead across",
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
        """How often it has been begun, this time included."""
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
    """The job that this code runs in; `NoJobError` when it runs in none."""
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
        """The job's end, if it is still ours."""
        self._running.check_lease()
        layout, running = await discover(self._context), self._running
        end_job(change, layout, running.record, is_held_by(running.tokens), self._refuse)

    def _refuse(self, item: Item | None) -> Exception | None:
        """A heartbeat came in between: try again. Another worker has it: leave it to that one."""
        if JobItem.lease.read(item) in self._running.tokens:
            return None
        # otherwise, if what was read is also out of date, the function would run again
        self._running.lost = True
        return self._running.lease_lost()

    async def settle(self, port: Port) -> None:
        """The job is gone with its work done."""
        self._running.ended = True
