"""Where the tests of jobs run: every store, both colours, with a clock that a test can move.

A test is written once, as ``async def test(db: Rig)``. In the awaiting colour, the test and the worker run on an event
loop; in the blocking one, the test never suspends, and the worker has a thread. Each test has its own tables.

- ``@everywhere``: in memory, and in a file or on ministack, in turn.
- ``@on_servers``: in memory, and on one of the servers of `rig.servers`, in turn; for tests in which a real service
  might behave differently.
- ``@in_memory``: in memory only, for tests that do not depend on the store.
- ``@in_one_colour``: in memory and sync only, for slow tests that do not depend on the colour either.

Tests don't sleep for a fixed time: `Rig.until` waits for a condition.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from inspect import isawaitable
from typing import Any, TypeAlias, TypeVar, cast
from uuid import uuid4

from holdall import AsyncDatabase, Database, Model
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.port import Port
from holdall.core.requests import Request
from holdall.core.settings import Settings
from holdall.errors import OutcomeUnknown
from holdall.jobs import AsyncJobs, Job, JobRecord
from holdall.jobs.lease import take
from holdall.transactions.enqueued import Enqueued
from holdall.worker import JobEvent, WorkerMetrics
from rig.clock import Clock, TimedPort
from rig.colour import Awaited, Colour, Test, Way, finish_body, here_and_elsewhere, run_in
from rig.database import find_address
from rig.recorder import Recorder
from rig.servers import NAMES

__all__ = [
    "JobClock",
    "Rig",
    "Way",
    "everywhere",
    "in_memory",
    "in_one_colour",
    "lose_after",
    "on_servers",
    "open_rig",
]

R = TypeVar("R")
T = TypeVar("T")
M = TypeVar("M", bound=Model)
AnyJob: TypeAlias = "Job[*tuple[Any, ...]]"

_PATIENCE = 120.0


# --- time -----------------------------------------------------------------------------------------------


class JobClock(Clock):
    """The real time, plus the time that a test added; and the shard of all new jobs, if a test chooses one.

    The clock starts ten seconds into a minute, so that no minute ends in the middle of a test.
    """

    def __init__(self) -> None:
        super().__init__(ticking=True)
        self.shard: str | None = None
        self.forward(70 - self() % 60)

    def new_id(self) -> str:
        id = str(uuid4())
        return id if self.shard is None else self.shard + id[1:]


class WorkerPort(TimedPort):
    """A port with the clock of jobs, on which workers sleep and draw random numbers as usual."""

    def __init__(self, port: Port, clock: JobClock) -> None:
        super().__init__(port, clock)
        self.new_id, self.sleep, self.random = clock.new_id, port.sleep, port.random  # type: ignore[method-assign]


class TimedDatabase(Database):
    clock: JobClock

    @property
    def aio(self) -> AsyncDatabase:
        return set_clock(super().aio, self.clock)


class TimedAsyncDatabase(AsyncDatabase):
    clock: JobClock

    @property
    def sync(self) -> Database:
        return set_clock(super().sync, self.clock)


D = TypeVar("D", Database, AsyncDatabase)


def set_clock(db: D, clock: JobClock) -> D:
    """Give a database and its twin another clock."""
    kind: Any = TimedDatabase if isinstance(db, Database) else TimedAsyncDatabase
    db.__class__ = kind
    db.clock = clock  # type: ignore[attr-defined]
    db._context = replace(db._context, port=cast("Port", WorkerPort(db._context.port, clock)))
    return db


# --- requests -------------------------------------------------------------------------------------------


class SlowRecorder(Recorder):
    """A recorder with slow replies: each takes ``linger`` seconds."""

    linger = 0.0

    async def send_awaiting(self, request: Request[R]) -> R:
        reply = await super().send_awaiting(request)
        if self.linger:
            await asyncio.sleep(self.linger)
        return reply


def lose_after(kind: type[Request[Any]], *, times: int = 1) -> Callable[[Any], None]:
    """A function for `SlowRecorder.after` that loses the replies to the next requests of a kind."""
    left = times

    def lose(request: Any) -> None:
        nonlocal left
        if left and isinstance(request, kind):
            left -= 1
            raise OutcomeUnknown(f"the reply to {kind.__name__} was lost on purpose")

    return lose


# --- the rig --------------------------------------------------------------------------------------------


class Rig:
    """A database in one colour, with a recorder, a clock and the events of its jobs."""

    def __init__(
        self, colour: Colour, clock: JobClock, recorder: SlowRecorder, url: str, **settings: Any
    ) -> None:
        self.colour = colour
        self.clock = clock
        self.recorder = recorder
        kind: Any = Database if colour == "blocking" else AsyncDatabase
        self.db: Any = set_clock(kind(url, backend=recorder, **settings), clock)
        self.events: list[JobEvent] = []

    @property
    def context(self) -> Context:
        found: Context = self.db._context
        return found

    @property
    def jobs(self) -> AsyncJobs:
        """``db.jobs``, awaited in both colours."""
        return cast("AsyncJobs", Awaited(self.db.jobs))

    @property
    def other(self) -> Database:
        """The database as another process opens it; the recorder does not see its requests."""
        settings = _layout_settings(self.context.settings)
        return set_clock(Database("memory:", backend=self.recorder.inner, **settings), self.clock)

    async def now(self, given: Any) -> Any:
        """The given value, awaited if necessary."""
        return await given if isawaitable(given) else given

    async def flow(self, flow: Coroutine[Any, Any, T]) -> T:
        """Run an internal flow to its end."""
        return await flow

    async def get(self, *args: Any, **options: Any) -> Any:
        return await self.now(self.db.get(*args, **options))

    async def create(self, *items: M) -> M:
        """Store items, and return the first."""
        await self.commit(lambda tx: [tx.create(item) for item in items])
        return items[0]

    async def commit(self, body: Callable[[Any], Any], **options: Any) -> Any:
        """Run a transaction with one attempt; the body may be async, and awaits its reads."""
        tx = self.db.transaction(**options)
        if self.colour == "blocking":
            with tx:
                return finish_body(body)(tx)
        async with tx:
            return await self.now(body(tx))

    async def run(self, body: Callable[[Any], Any], **options: Any) -> Any:
        """Call ``db.run`` without pauses between attempts; the body may be async, and awaits its reads."""
        if self.colour == "blocking":
            return self.db.run(finish_body(body), initial_backoff=0.0, **options)

        async def await_body(tx: Any) -> Any:
            return await self.now(body(tx))

        return await self.db.run(await_body, initial_backoff=0.0, **options)

    async def enqueue(self, job: Any, *args: Any, **options: Any) -> Enqueued:
        return await self.jobs.enqueue(job, *args, **options)

    async def list_waiting(self) -> list[JobRecord]:
        return await self.jobs.list(state="waiting")

    async def list_dead(self) -> list[JobRecord]:
        return await self.jobs.list(state="dead")

    async def get_only(self) -> JobRecord:
        """The only job."""
        (record,) = await self.jobs.list()
        return record

    async def take(self, record: JobRecord, seconds: float = 30.0) -> JobRecord | None:
        """Take a job as a worker does; None if the job has changed."""
        return await take(self.context, record, self.context.port.new_id(), seconds)

    def kinds(self, name: str | None = None) -> list[str]:
        """The kinds of events so far, of all jobs or of jobs with a name."""
        return [event.kind for event in self.events if name is None or event.name == name]

    def worker(self, **options: Any) -> Any:
        """A worker that polls quickly, and whose events are recorded."""
        hooks = [self.events.append, *options.pop("hooks", ())]
        return self.db.worker(**{"poll_interval": 0.02, "hooks": hooks, **options})

    async def drain(self, **options: Any) -> WorkerMetrics:
        metrics: WorkerMetrics = await self.now(self.worker(**options).drain())
        return metrics

    @asynccontextmanager
    async def run_worker(self, **options: Any) -> AsyncIterator[Any]:
        """Run a worker while the block runs."""
        worker = self.worker(**options)
        if self.colour == "blocking":
            with worker:
                yield worker
        else:
            async with worker:
                yield worker

    async def until(self, is_so: Callable[[], Any]) -> None:
        """Wait until a condition holds; it may be a coroutine function."""
        deadline = time.monotonic() + _PATIENCE
        while not await self.now(is_so()):
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"the condition did not hold within {_PATIENCE:g} seconds: {self.kinds()}"
                )
            if self.colour == "blocking":
                time.sleep(0.02)
            else:
                await asyncio.sleep(0.02)

    async def until_event(self, kind: str, times: int = 1) -> None:
        """Wait for this many events of a kind."""
        await self.until(lambda: self.kinds().count(kind) >= times)


def _layout_settings(settings: Settings) -> dict[str, Any]:
    names = ("table_name", "partition_key", "sort_key", "manage_table")
    return {name: getattr(settings, name) for name in names}


# --- where a test runs ----------------------------------------------------------------------------------


@contextmanager
def open_rig(way: Way, **given: Any) -> Iterator[Rig]:
    """A rig with a new, empty store."""
    with tempfile.TemporaryDirectory() as directory:
        url, credentials, settings = find_address(way.store, directory, "jobs")
        settings |= given
        store = Database(url, credentials=credentials, **settings)
        with store:
            yield Rig(way.colour, JobClock(), SlowRecorder(store._backend), url, **settings)


def _on(others: list[str]) -> Callable[[Test], Callable[..., None]]:
    return run_in(lambda name: [Way(*way) for way in here_and_elsewhere(others, name)], open_rig)


in_memory = _on([])
in_one_colour = run_in(lambda name: [Way("memory", "blocking")], open_rig)
everywhere = _on(["file", "ministack"])
on_servers = _on(NAMES)
