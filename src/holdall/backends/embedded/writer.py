"""The thread that writes for event loops: one request after the other, as SQLite has one writer.

To hand a call to a thread and to wake an event loop costs about as much as a small write. So the thread goes on for as
long as there is something to do, and answers that are ready when the loop has time are delivered together. A write that
was handed over is seen through: a caller that is cancelled meanwhile waits for its end, and is cancelled then.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["Writer"]


class Writer:
    """Calls a function in a thread of its own, for any number of callers on any number of loops."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="holdall-write")
        self._lock = threading.Lock()
        self._calls: deque[_Call] = deque()
        self._is_working = False
        self._answered: dict[asyncio.AbstractEventLoop, deque[_Call]] = {}

    async def call(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """The function's answer, or its error, even when we are cancelled meanwhile; then be cancelled."""
        call = _Call(function, argument)
        with self._lock:
            if not self._is_working:
                self._pool.submit(self._work)  # raises if the writer is closed
                self._is_working = True
            self._calls.append(call)
        cancellation: asyncio.CancelledError | None = None
        while not call.is_done:
            try:
                await call.wait()
            except asyncio.CancelledError as error:
                cancellation = error
        if cancellation is not None:
            raise cancellation
        return call.answer()

    def close(self) -> None:
        """Take no more calls; those that were taken are made."""
        self._pool.shutdown(wait=False)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._calls:
                    self._is_working = False
                    return
                call = self._calls.popleft()
            call.make()
            self._deliver(call)

    def _deliver(self, call: _Call) -> None:
        """Have a call's loop look at its answer; one that has yet to look at others will see this one too."""
        with self._lock:
            waiting = self._answered.get(call.loop)
            if waiting is not None:
                waiting.append(call)
                return
            self._answered[call.loop] = deque([call])
        try:
            call.loop.call_soon_threadsafe(self._settle, call.loop)
        except RuntimeError:  # it is closed, and no caller is left
            with self._lock:
                del self._answered[call.loop]

    def _settle(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            calls = self._answered.pop(loop)
        for call in calls:
            call.settle()


class _Call:
    """One call, and the loop on which its caller waits."""

    __slots__ = ("_argument", "_error", "_function", "_result", "_waiter", "is_done", "loop")

    def __init__(self, function: Callable[[Any], Any], argument: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._function = function
        self._argument = argument
        self._waiter: asyncio.Future[None] | None = None

    def make(self) -> None:
        """Call the function, in the writer's thread."""
        try:
            self._result = self._function(self._argument)
        except BaseException as error:  # noqa: BLE001 - it is raised where the caller waits
            self._error = error

    def wait(self) -> asyncio.Future[None]:
        """A future that is done when the answer is here; cancelling it changes nothing."""
        self._waiter = self.loop.create_future()
        return self._waiter

    def answer(self) -> Any:
        """What the function gave, or raised."""
        error, self._error = self._error, None  # its traceback has this call in it
        try:
            if error is not None:
                raise error
            return self._result
        finally:
            del error

    def settle(self) -> None:
        """Let the caller have the answer, on its loop."""
        self.is_done = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
