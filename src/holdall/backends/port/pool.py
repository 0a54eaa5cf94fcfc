"""A limited number of threads, started when first needed; a forked child starts with none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from holdall.backends.fork import call_after_fork

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")


class Pool:
    """A pool that lives as long as the process; each is created by the module that uses it."""

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._threads = threads
        self._executor: ThreadPoolExecutor | None = None
        self._reset()
        call_after_fork(self._reset)

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Call a function in one of the threads, when one is free."""
        with self._lock:
            if self._executor is None:
                from concurrent.futures import ThreadPoolExecutor  # slow to load, and many programs need none

                self._executor = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
            return self._executor.submit(function, *args)

    def submit_now(self, function: Callable[..., T], *args: Any) -> Future[T] | None:
        """Call a function in a thread that is free now; None if none is. Use one of the two methods, not both."""
        free = self._free
        if not free.acquire(blocking=False):
            return None

        def work() -> T:
            try:
                return function(*args)
            finally:
                free.release()

        return self.submit(work)

    def close(self) -> None:
        """Let the threads end once they have nothing to do; a later call starts others."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False)

    def _reset(self) -> None:
        """Start afresh in a forked child, which has neither the parent's threads nor the holder of its lock."""
        self._executor = None
        self._lock = threading.Lock()
        self._free = threading.Semaphore(self._threads)
