"""Threads for jobs that are plain functions.

There are as many as run at a time, and more while functions do not end that were given up on. They are daemons: one
that never ends does not keep the program from ending, and its job is run again elsewhere.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class Threads:
    """Runs functions beside an event loop, each at once."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._free = 0
        self._all = 0

    def run(self, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Call a function in a thread; the future is of the running event loop."""
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
        """Let each thread end with what it is doing."""
        with self._lock:
            for _ in range(self._all):
                self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
            del call  # or it would keep its arguments until the next
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
            if not self._loop.is_closed():  # otherwise nothing waits for it any more
                raise

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return  # given up on
        if error is None:
            self.future.set_result(result)
        elif isinstance(error, StopIteration | KeyboardInterrupt | SystemExit):
            failure = RuntimeError(f"the function raised {type(error).__name__}: {error}")
            failure.__cause__ = error  # which no future can hold itself
            self.future.set_exception(failure)
        else:
            self.future.set_exception(error)
