"""One base for the backends that tests put around a backend: they override one method for both colours."""

from __future__ import annotations

from typing import Any

from holdall.core.port import Backend, Layer, Send
from holdall.core.requests import Request

__all__ = ["Wrapper"]


class Wrapper(Layer):
    """A backend around a backend, which passes every request on; a test overrides `_answer`."""

    def __init__(self, inner: Backend) -> None:
        self.inner = inner

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        return await send(self.inner, request)

    def close(self) -> None:
        self.inner.close()
