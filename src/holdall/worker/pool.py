"""Threads for jobs that are plain functions.

There are as many threads as functions that run at a time, including timed-out ones that have not returned. They are
daemons: a function that never returns does not keep the program alive, and its job runs again elsewhere.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class Threads:
    """Runs functions in threads beside an event loop, each without waiting for a free thread."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._free = 0
        self._all = 0

    def run(self, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Call a function in a thread; the future belongs to the running event loop."""
        call = _Call(function, args)
        with self._lock:
            if self._free:
                self._free -= 1
            else:
                self._all += 1
                threading.Thread(target=self._serve, name=f"holdall-job-{self._all}", daemon=True).start()
        self._calls.put(call)
        return call.future

    def close(self) -> None:
        """Let each thread end after its current call."""
        with self._lock:
            for _ in range(self._all):
                self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
            del call  # otherwise its arguments would be kept until the next call
            with self._lock:
                self._free += 1


class _Call:
    """One call; its result is delivered to the loop that requested it."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._function = function
        self._args = args
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self._loop.create_future()

    def run(self) -> None:
        try:
            result = self._function(*self._args)
        except BaseException as error:  # noqa: BLE001 - it is raised where the function was called
            self._deliver(None, error)
        else:
            self._deliver(result, None)

    def _deliver(self, result: Any, error: BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:
            if not self._loop.is_closed():  # after that, nothing waits for it any more
                raise

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return  # nothing waits for it any more
        if error is None:
            self.future.set_result(result)
        elif isinstance(error, StopIteration | KeyboardInterrupt | SystemExit):
            failure = RuntimeError(f"the function raised {type(error).__name__}: {error}")
            failure.__cause__ = error  # a future cannot hold this one itself
            self.future.set_exception(failure)
        else:
            self.future.set_exception(error)
