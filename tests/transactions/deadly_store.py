"""A store that kills its process at a certain write, for programs whose children must die."""

from __future__ import annotations

import os
import signal
from threading import Lock
from typing import Any, TypeVar

from holdall.core import Request, Scan
from holdall.core.frozen import replace
from holdall.core.port import Backend

R = TypeVar("R")
PAGE = 3


class KillingStore:
    """A store with small pages that kills the process before or after a given number of writes."""

    def __init__(self, inner: Backend, left: int, when: str) -> None:
        self.inner = inner
        self.left = left
        self.when = when
        self._lock = Lock()

    def send_blocking(self, request: Request[R]) -> R:
        self._count(request, "before")
        reply: R = self.inner.send_blocking(_limit_page(request))
        self._count(request, "after")
        return reply

    async def send_awaiting(self, request: Request[R]) -> R:
        self._count(request, "before")
        reply: R = await self.inner.send_awaiting(_limit_page(request))
        self._count(request, "after")
        return reply

    def _count(self, request: Request[Any], when: str) -> None:
        if request.writes and when == self.when:
            with self._lock:
                self.left -= 1
                if self.left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

    def close(self) -> None:
        self.inner.close()


def _limit_page(request: Any) -> Any:
    return replace(request, limit=PAGE) if isinstance(request, Scan) else request
