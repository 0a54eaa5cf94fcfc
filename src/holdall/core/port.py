"""The port, through which flows do all their I/O, and `run`, which runs a flow without an event loop.

Pure; the ports themselves are in `holdall.backends`. A *flow* is an ``async def`` that awaits nothing but
its port and other flows. `AsyncDatabase` awaits it. The port of `Database` never suspends, so `run` finishes a flow
in a single step, without an event loop, a thread, or a second copy of the same logic.
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
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


class Turn(Protocol):
    """A caller's turn, while other callers in this process that contend for the same names wait."""

    @property
    def names(self) -> frozenset[str]:
        """The names that the turn is for."""

    @property
    def over(self) -> bool:
        """Whether other callers no longer wait for this turn: it was ended, took too long, or never began."""

    def end(self) -> None:
        """Let the next caller proceed; safe to call twice."""


class Port(Protocol):
    """Everything outside the program that a procedure may use: requests, streams, time, random numbers."""

    async def send(self, request: Request[R]) -> R:
        """Send a request to its backend. Once a write was sent, its reply is always awaited."""

    async def gather(self, flows: Iterable[Coroutine[Any, Any, T]], limit: int = 8) -> list[Outcome[T]]:
        """Run procedures concurrently, at most ``limit`` at a time; return their outcomes in the same order.

        A procedure that has started runs to its end, even if another fails or the caller is cancelled.
        """

    async def finish(self, flow: Coroutine[Any, Any, T]) -> T:
        """Run a procedure to its end even if the caller is cancelled; the cancellation is raised afterwards."""

    async def read(self, source: Any, size: int) -> bytes:
        """Read up to ``size`` bytes from a user's stream; empty at its end."""

    async def call(self, function: Callable[..., Awaitable[T]] | Callable[..., T], *args: Any) -> T:
        """Call a user's function, and await its result if it is awaitable."""

    async def offload(self, function: Callable[..., T], *args: Any) -> T:
        """Run blocking work, such as hashing or reading the caller's files, without blocking the event loop.

        The work has ended when this returns or raises: if the caller is cancelled, work that has begun ends first.
        """

    async def sleep(self, seconds: float) -> None:
        """Wait for some seconds."""

    async def take_turn(self, names: frozenset[str], since: datetime, seconds: float) -> Turn:
        """Wait, for at most ``seconds``, until no earlier caller in this process holds a turn for one of these names.

        The caller with the earliest ``since`` goes first. End the turn soon: after a while, other callers stop waiting
        for it.
        """

    def now(self) -> datetime:
        """Return the current time in UTC."""

    def new_id(self) -> str:
        """Return a new random id of 36 characters."""

    def random(self) -> float:
        """Return a random number from 0 up to 1."""


class Backend(Protocol):
    """A store that answers requests, sync and async. `holdall.testing` contains tests for backends."""

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request; the calling thread waits."""

    async def send_awaiting(self, request: Request[R]) -> R:
        """Answer the request without blocking the event loop."""

    def close(self) -> None:
        """Release all resources; later requests raise `StoreClosedError`. Closing twice is harmless."""


def run(flow: Coroutine[Any, Any, T], context: Context | None = None) -> T:
    """Run an ``async def`` procedure without an event loop, in this thread. It may await only a port of `Database`.

    A procedure that awaits anything else is closed, and `FlowSuspended` names it. With a context, the caller is the
    user's code: errors are raised without Holdall's internal frames.
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
            f"{name} runs without an event loop, and awaited something other than its port",
            hint="await port.sleep, port.send, port.read, port.call or port.offload instead",
        )


async def wait(flow: Coroutine[Any, Any, T], context: Context | None = None) -> T:
    """Await a flow. With a context, the caller is the user's code: errors are raised without Holdall's frames."""
    try:
        return await flow
    except HoldallError as error:
        if context is not None:
            shorten_traceback(error, context)
        raise


Send: TypeAlias = Callable[[Backend, Request[Any]], Coroutine[Any, Any, Any]]
"""Sends a request to a backend and returns its reply."""


class Layer:
    """A backend that passes its requests on to other backends.

    Pure. A layer implements one flow, ``_answer``, which awaits nothing but its argument ``send``. That sends a request
    to a backend, sync or async like the caller.
    """

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request; the calling thread waits."""
        return cast("R", run(self._answer(_send_blocking, request)))

    async def send_awaiting(self, request: Request[R]) -> R:
        """Answer the request without blocking the event loop."""
        return cast("R", await self._answer(_send_awaiting, request))

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        """Return the reply to a request."""
        raise NotImplementedError


async def _send_blocking(backend: Backend, request: Request[Any]) -> Any:
    return backend.send_blocking(request)


async def _send_awaiting(backend: Backend, request: Request[Any]) -> Any:
    return await backend.send_awaiting(request)
