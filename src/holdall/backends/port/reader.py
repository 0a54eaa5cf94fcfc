"""Reads in threads, for event loops.

Handing a request to a thread and waking an event loop costs more than a small read itself, and threads that read at the
same time contend for the interpreter. So what a loop requests in one step is read in one thread, as long as each read
is quick, and delivered in one wake-up. After a slow read, another thread shares the rest; it also does so while a read
is stuck.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, TypeAlias

from holdall.backends.port.pool import Pool
from holdall.core.port import Outcome

_SLOW = 0.003
_STUCK = 0.02

_Send: TypeAlias = Callable[[Any], Any]
_Waiter: TypeAlias = "asyncio.Future[Any]"
_Batch: TypeAlias = "deque[tuple[_Send, Any, _Waiter]]"


class Reader:
    """Answers reads in up to ``threads`` threads, for any number of callers on any number of loops."""

    def __init__(self, name: str, threads: int) -> None:
        self._pool = Pool(name, threads)
        self._gathered = threading.local()

    async def read(self, send: _Send, request: Any) -> Any:
        """Return what ``send`` returns for the request, or raise its error."""
        loop = asyncio.get_running_loop()
        waiter: _Waiter = loop.create_future()
        batch: _Batch | None = getattr(self._gathered, "batch", None)
        if batch is None or batch[0][2].get_loop() is not loop:
            self._gathered.batch = batch = deque()
            loop.call_soon(self._begin, loop, batch)
        batch.append((send, request, waiter))
        return await waiter

    def close(self) -> None:
        """Let the threads end once they have answered what was requested."""
        self._pool.close()

    def _begin(self, loop: asyncio.AbstractEventLoop, batch: _Batch) -> None:
        """Hand over what was requested in one step of the loop."""
        self._gathered.batch = None
        is_long = len(batch) > 1
        try:
            self._pool.submit(_work, self._pool, loop, batch)
        except RuntimeError as error:  # the interpreter is shutting down
            _settle([(waiter, Outcome(error=error)) for _, _, waiter in batch])
        else:
            if is_long:
                loop.call_later(_STUCK, self._relieve, loop, batch)

    def _relieve(self, loop: asyncio.AbstractEventLoop, batch: _Batch) -> None:
        """Have another thread share what has not begun yet."""
        if batch:
            # while the interpreter shuts down, the threads at work answer the rest
            with suppress(RuntimeError):
                self._pool.submit(_work, self._pool, loop, batch)
                loop.call_later(_STUCK, self._relieve, loop, batch)


def _work(pool: Pool, loop: asyncio.AbstractEventLoop, batch: _Batch) -> None:
    """Answer what has not begun yet."""
    done: list[tuple[_Waiter, Outcome[Any]]] = []
    began = perf_counter()
    while batch:
        try:
            send, request, waiter = batch.popleft()
        except IndexError:  # another thread took the last
            break
        done.append((waiter, _answer(send, request)))
        now = perf_counter()
        if now - began > _SLOW and batch:
            _deliver(loop, done)
            done = []
            with suppress(RuntimeError):  # the interpreter is shutting down: this thread answers the rest
                pool.submit(_work, pool, loop, batch)
        began = now
    _deliver(loop, done)


def _answer(send: _Send, request: Any) -> Outcome[Any]:
    try:
        return Outcome(send(request))
    except BaseException as error:  # noqa: BLE001 - raised where the caller waits
        return Outcome(error=error)


def _deliver(loop: asyncio.AbstractEventLoop, done: Sequence[tuple[_Waiter, Outcome[Any]]]) -> None:
    if done:
        with suppress(RuntimeError):  # the loop is closed, so no caller is left
            loop.call_soon_threadsafe(_settle, done)


def _settle(done: Sequence[tuple[_Waiter, Outcome[Any]]]) -> None:
    for waiter, outcome in done:
        if waiter.done():  # the caller was cancelled
            continue
        if outcome.error is None:
            waiter.set_result(outcome.value)
        else:
            waiter.set_exception(outcome.error)
