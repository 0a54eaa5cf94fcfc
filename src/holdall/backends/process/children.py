"""The child processes of this one: started when they are needed, at most one for each core."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from typing import Any

from holdall.backends.port.pool import Pool
from holdall.backends.process.child import Child
from holdall.core.work import CallFunction


class Children:
    """Up to ``limit`` children; a call waits for one that is free. A forked process starts with none."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._threads = Pool("holdall-child", limit)
        self._idle: list[Child] = []
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def call_blocking(self, request: CallFunction) -> Any:
        """Make a call; the calling thread waits."""
        return self._call(request, _Fate())

    async def call_awaiting(self, request: CallFunction) -> Any:
        """Make a call; the event loop goes on. To be cancelled is to kill the child that makes it."""
        fate = _Fate()
        work = self._threads.submit(self._call, request, fate)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            fate.end()
            raise

    def _call(self, request: CallFunction, fate: _Fate) -> Any:
        with self._room:
            child = self._take()
            try:
                if not fate.meet(child):
                    return None  # the caller left before there was a child for it
                return child.call(request)
            finally:
                with self._lock:
                    if child.is_alive():
                        self._idle.append(child)

    def _take(self) -> Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.is_alive():
                    return child
        return Child()

    def close(self) -> None:
        """End the children that wait for work."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.kill()

    def _forget(self) -> None:
        self._idle = []
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(self._limit)


class _Fate:
    """A call that its caller may give up, before or after a child has it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._ended = False

    def meet(self, child: Child) -> bool:
        """Whether the call is still wanted; from now on this child makes it."""
        with self._lock:
            self._child = child
            return not self._ended

    def end(self) -> None:
        """The caller has left."""
        with self._lock:
            self._ended = True
            if self._child is not None:
                self._child.kill()


children = Children(os.cpu_count() or 1)
"""Those of this process; they are its own, whichever database asks."""

atexit.register(children.close)
