"""The port: the one door between flows and the world, and how a flow is run without an event loop.

Pure; the ports themselves live in `holdall.backends`. A *flow* is an ``async def`` that awaits nothing but
its port (and other flows). Under `AsyncDatabase` it is awaited. Under `Database` the port never suspends, so
`run` finishes it with a single step: no event loop, no thread, no second text of the same logic.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, cast

from holdall.core.frozen import dataclass
from holdall.core.requests import Request
from holdall.core.traceback import shorten_traceback
from holdall.errors import FlowSuspended, HoldallError

if TYPE_CHECKING:
    from holdall.core.context import Context


T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """How one of several parallel flows ended: with a value, or with an error."""

    value: T | None = None
    error: BaseException | None = None

    def result(self) -> T:
        """The value, or the error raised."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


class Turn(Protocol):
    """A turn among this process's contenders."""

    @property
    def names(self) -> frozenset[str]:
        """The names that it is for."""

    @property
    def over(self) -> bool:
        """Whether other contenders no longer wait for it: it was ended, took too long, or never began."""

    def end(self) -> None:
        """Let the next contender go; safe to call twice."""


class Port(Protocol):
    """All that a flow may ask of the world."""

    async def send(self, request: Request[R]) -> R:
        """Send a request to the backend it is for. A write, once sent, is seen through to its reply."""

    async def gather(self, flows: Iterable[Coroutine[Any, Any, T]], limit: int = 8) -> list[Outcome[T]]:
        """Run flows side by side, at most ``limit`` at a time; outcomes in their order.

        A flow that has started runs to its end whatever happens to the others or to the caller.
        """

    async def finish(self, flow: Coroutine[Any, Any, T]) -> T:
        """Run a flow to its end even if the caller is cancelled meanwhile; the cancellation is raised after it."""

    async def read(self, source: Any, size: int) -> bytes:
        """Up to ``size`` bytes of a user's stream; empty at its end."""

    async def call(self, function: Callable[..., Awaitable[T]] | Callable[..., T], *args: Any) -> T:
        """Call a function of the user's."""

    async def offload(self, function: Callable[..., T], *args: Any) -> T:
        """Run blocking work of our own, such as hashing or reading the caller's files, beside the event loop.

        It is over when this returns or raises: if the caller is cancelled, work that has begun ends first.
        """

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def take_turn(self, names: frozenset[str], since: datetime, seconds: float) -> Turn:
        """Wait, at most ``seconds``, until no other contender in this process for one of these names is ahead.

        The contender with the earliest ``since`` goes first. End the turn soon: after a while the others stop waiting
        for it.
        """

    def now(self) -> datetime:
        """The time, in UTC."""

    def new_id(self) -> str:
        """A fresh random id of 36 characters."""

    def random(self) -> float:
        """A random number from 0 up to 1."""


class Backend(Protocol):
    """A store that answers requests in both colours. `holdall.testing` has its contract."""

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request; the calling thread waits."""

    async def send_awaiting(self, request: Request[R]) -> R:
        """Answer the request; the event loop goes on."""

    def close(self) -> None:
        """Let go of everything; further requests raise `StoreClosedError`. Closing twice is harmless."""


def run(flow: Coroutine[Any, Any, T], context: Context | None = None) -> T:
    """Finish a flow whose port never suspends, in this thread, in one step.

    A flow that suspends all the same awaited something that was not its port: it is closed, and named in
    `FlowSuspended`. With a context, the caller is the user's code: a refusal is raised without our frames.
    """
    try:
        flow.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    except HoldallError as error:
        if context is not None:
            shorten_traceback(error, context)
        raise
    try:
        flow.close()
    finally:
        name = getattr(flow, "__qualname__", type(flow).__name__)
        raise FlowSuspended(
            f"the flow {name} awaited something other than its port",
            hint="await port.sleep, port.send, port.read, port.call or port.offload instead",
        )


async def wait(flow: Coroutine[Any, Any, T], context: Context | None = None) -> T:
    """Await a flow. With a context, the caller is the user's code: a refusal is raised without our frames."""
    try:
        return await flow
    except HoldallError as error:
        if context is not None:
            shorten_traceback(error, context)
        raise


Send: TypeAlias = Callable[[Backend, Request[Any]], Coroutine[Any, Any, Any]]
"""Sends a request to a backend, and returns its reply."""


class Layer:
    """A backend that has others answer its requests.

    Pure. What a layer does is one flow, ``_answer``. It awaits nothing but the ``send`` that it is given, which sends a
    request to a backend in the manner of the caller.
    """

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
