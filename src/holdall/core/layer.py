"""Layers: backends around backends, whose answer is written once for sync and async.

Pure. What a layer does is one flow, ``_answer``. It awaits nothing but the ``send`` that it is given, which sends a
request to a backend in the manner of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar, cast

from holdall.core.port import Backend, run
from holdall.core.requests import Request

R = TypeVar("R")

Send: TypeAlias = Callable[[Backend, Request[Any]], Coroutine[Any, Any, Any]]
"""Sends a request to a backend, and returns its reply."""


class Layer:
    """A backend that has others answer its requests."""

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request; the calling thread waits."""
        return cast("R", run(self._answer(_send_blocking, request)))

    async def send_awaiting(self, request: Request[R]) -> R:
        """Answer the request; the event loop goes on."""
        return cast("R", await self._answer(_send_awaiting, request))

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        """The reply to a request."""
        raise NotImplementedError


async def _send_blocking(backend: Backend, request: Request[Any]) -> Any:
    return backend.send_blocking(request)


async def _send_awaiting(backend: Backend, request: Request[Any]) -> Any:
    return await backend.send_awaiting(request)
