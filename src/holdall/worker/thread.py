"""A worker for sync code: it runs in a thread with its own event loop."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from holdall.core.internal import internal
from holdall.worker.event import WorkerMetrics
from holdall.worker.worker import Worker, WorkerArguments

if TYPE_CHECKING:
    from holdall.database import Database


class WorkerThread:
    """`holdall.worker.Worker` for a `Database`. In a ``with`` block it runs jobs in the background, until the end."""

    @internal
    def __init__(self, db: Database, **options: Unpack[WorkerArguments]) -> None:
        self._db = db
        self._worker = Worker(db.aio, **options)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun = threading.Event()
        self._error: BaseException | None = None

    @property
    def metrics(self) -> WorkerMetrics:
        """What it has done so far."""
        return self._worker.metrics

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that it works on, in order of priority."""
        return self._worker.queues

    def drain(self) -> WorkerMetrics:
        """Run all jobs that are due, and those that they enqueue without a delay; return what was done."""
        return asyncio.run(self._worker.drain())

    def run(self) -> None:
        """Run jobs in this thread until `stop` is called in another."""
        asyncio.run(self._run())

    def stop(self) -> None:
        """Take no more jobs; running ones are finished, for up to ``grace`` seconds."""
        self._worker.stopping = True  # also if it has not started yet
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._worker.stop)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begun.set()
        await self._worker.run()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._beside, name="holdall-worker", daemon=True)
        self._thread.start()
        self._begun.wait()
        return self

    def _beside(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 - it is raised where the block ends
            self._error = error
        finally:
            self._begun.set()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        assert self._thread is not None
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error
