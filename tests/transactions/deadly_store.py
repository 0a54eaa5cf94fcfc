"""A store that kills its process at a certain write, for programs whose children must die."""

from __future__ import annotations

import os
import signal
from threading import Lock
from typing import Any

from rig.wrapper import Wrapper

from holdall.core import Request, Scan
from holdall.core.frozen import replace
from holdall.core.port import Backend, Send

PAGE = 3


class KillingStore(Wrapper):
    """A store with small pages that kills the process before or after a given number of writes."""

    def __init__(self, inner: Backend, left: int, when: str) -> None:
        super().__init__(inner)
        self.left = left
        self.when = when
        self._lock = Lock()

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        self._count(request, "before")
        reply = await send(self.inner, _limit_page(request))
        self._count(request, "after")
        return reply

    def _count(self, request: Request[Any], when: str) -> None:
        if request.writes and when == self.when:
            with self._lock:
                self.left -= 1
                if self.left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)


def _limit_page(request: Any) -> Any:
    return replace(request, limit=PAGE) if isinstance(request, Scan) else request
