"""The one thread that writes for event loops, because SQLite has one writer.

Handing a request to a thread, committing it and waking an event loop costs more than a small write itself. So the
thread keeps running while there is work, writes waiting requests together, and delivers all answers that are ready in
one wake-up of a loop. A write that was handed over runs to its end: a caller that is cancelled in the meantime waits
for that, and is then cancelled.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from holdall.core.port import Outcome

_MOST_TOGETHER = 32
"""The most requests that are written together; other processes wait meanwhile."""


class Writer:
    """Answers requests in a separate thread, for any number of callers on any number of loops.

    ``send`` answers one request; ``send_together`` answers several, in their order.
    """

    def __init__(
        self, send: Callable[[Any], Any], send_together: Callable[[Sequence[Any]], Sequence[Outcome[Any]]]
    ) -> None:
        self._send = send
        self._send_together = send_together
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="holdall-write")
        self._lock = threading.Lock()
        self._calls: deque[_Call] = deque()
        self._is_working = False
        self._answered: dict[asyncio.AbstractEventLoop, deque[_Call]] = {}

    async def write(self, request: Any) -> Any:
        """Return the answer or raise the error; if the caller is cancelled, wait for the end first."""
        call = _Call(request)
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
        """Take no more requests; answer those already taken."""
        self._pool.shutdown(wait=False)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._calls:
                    self._is_working = False
                    return
                calls = [self._calls.popleft() for _ in range(min(len(self._calls), _MOST_TOGETHER))]
            for call, outcome in zip(calls, self._answer(calls), strict=True):
                call.outcome = outcome
                self._deliver(call)

    def _answer(self, calls: Sequence[_Call]) -> Sequence[Outcome[Any]]:
        try:
            if len(calls) > 1:
                return self._send_together([call.request for call in calls])
            return [Outcome(self._send(calls[0].request))]
        except BaseException as error:  # noqa: BLE001 - raised where the callers wait
            return [Outcome(error=error)] * len(calls)

    def _deliver(self, call: _Call) -> None:
        """Wake a call's loop to collect its answer; a loop that was woken but has not collected yet gets this one,
        too."""
        with self._lock:
            waiting = self._answered.get(call.loop)
            if waiting is not None:
                waiting.append(call)
                return
            self._answered[call.loop] = deque([call])
        try:
            call.loop.call_soon_threadsafe(self._settle, call.loop)
        except RuntimeError:  # the loop is closed, so no caller is left
            with self._lock:
                del self._answered[call.loop]

    def _settle(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            calls = self._answered.pop(loop)
        for call in calls:
            call.settle()


class _Call:
    """One request; its answer is delivered to the loop on which its caller waits."""

    __slots__ = ("_waiter", "is_done", "loop", "outcome", "request")

    def __init__(self, request: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_done = False
        self.request = request
        self.outcome: Outcome[Any] | None = None
        self._waiter: asyncio.Future[None] | None = None

    def wait(self) -> asyncio.Future[None]:
        """A future that is done when the answer is here; cancelling it changes nothing."""
        self._waiter = self.loop.create_future()
        return self._waiter

    def answer(self) -> Any:
        """Return the answer or raise the error."""
        outcome, self.outcome = self.outcome, None  # an error's traceback has this call in it
        assert outcome is not None
        try:
            return outcome.result()
        finally:
            del outcome

    def settle(self) -> None:
        """Deliver the answer to the caller, on its loop."""
        self.is_done = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
