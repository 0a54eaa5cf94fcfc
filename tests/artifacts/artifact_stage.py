"""A stage on which a test interleaves flows by hand, one request at a time, so that it can try every schedule.

An `Actor` is a flow on a port that stops before each request; `Actor.step` sends that request. Nothing sleeps, and
there are no threads: the same schedule has the same result. `ContentEtags` is a service like S3, whose etags identify
the bytes but not the put that wrote them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from datetime import datetime
from inspect import isawaitable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from artifact_rig import Rig, Store
from rig.clock import Clock

from holdall.artifacts import AsyncArtifacts
from holdall.artifacts.home import Home
from holdall.backends.memory import MemoryService
from holdall.backends.port.world import World
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.objects import DescribeService, HeadObject, ObjectInfo, ObjectPage, ObjectRange
from holdall.core.port import Outcome, Port
from holdall.core.requests import Request
from holdall.errors import HoldallError, ObjectNotFoundError, PreconditionFailedError

__all__ = ["Actor", "ContentEtags", "Death", "Flow", "Scene", "Stage"]

R = TypeVar("R")
T = TypeVar("T")
MOST_STEPS = 2000


class Death(BaseException):  # must not be caught
    """The process died."""


class _Pause:
    """Return control to the stage."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class StepPort(World):
    """A port that stops before each request, and when a flow sleeps."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.dead = False
        self.sent: list[Any] = []

    async def send(self, request: Request[R]) -> R:
        backend = self._store.service if request.destination == "service" else self._store.table
        if not isinstance(request, DescribeService):
            await self._pause()
            self.sent.append(request)
        return backend.send_blocking(request)

    async def _pause(self) -> None:
        if not self.dead:
            await _Pause()
        if self.dead:
            raise Death

    async def gather(self, flows: Iterable[Coroutine[Any, Any, T]], limit: int = 8) -> list[Outcome[T]]:
        outcomes: list[Outcome[T]] = []
        waiting = list(flows)
        try:
            while waiting:
                try:
                    outcomes.append(Outcome(await waiting.pop(0)))
                except HoldallError as error:
                    outcomes.append(Outcome(error=error))
        finally:
            for flow in waiting:
                flow.close()
        return outcomes

    async def finish(self, flow: Coroutine[Any, Any, T]) -> T:
        return await flow

    async def read(self, source: Any, size: int) -> bytes:
        return cast("bytes", source.read(size))

    async def call(self, function: Callable[..., Awaitable[T]] | Callable[..., T], *args: Any) -> T:
        result = function(*args)
        return cast("T", await result if isawaitable(result) else result)

    async def offload(self, function: Callable[..., T], *args: Any) -> T:
        return function(*args)

    async def sleep(self, seconds: float) -> None:
        self._clock.forward(seconds)
        await self._pause()

    def now(self) -> datetime:
        return self._clock.now()


class Actor:
    """A flow under way; ``result`` or ``error`` shows how it ended."""

    def __init__(self, port: StepPort, flow: Coroutine[Any, Any, Any]) -> None:
        self.port = port
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        self._flow = flow
        self._advance()

    def step(self) -> None:
        """Send the request that the flow stopped before, and continue to the next."""
        if not self.done:
            self._advance()

    def _advance(self) -> None:
        try:
            self._flow.send(None)
        except StopIteration as stop:
            self.done, self.result = True, stop.value
        except (HoldallError, Death) as error:
            self.done, self.error = True, error

    def run(self, steps: int = MOST_STEPS, patience: float | None = None) -> None:
        """Take this many steps, or run to the end, or until the flow has waited this many seconds."""
        began = self.port.now()
        for _ in range(steps):
            if self.done:
                return
            if patience is not None and (self.port.now() - began).total_seconds() > patience:
                return
            self.step()
        assert steps < MOST_STEPS, "the flow never ends"

    def kill(self) -> None:
        """Stop the flow for good: no cleanup of its own sends anything."""
        if not self.done:
            self.port.dead = True
            self._advance()


class Scene(NamedTuple):
    """The arguments of a flow: the artifacts, the context under them, and a directory with trees to put."""

    artifacts: AsyncArtifacts
    context: Context
    directory: Path


Flow: TypeAlias = Callable[[Scene], Coroutine[Any, Any, Any]]


class Stage:
    """A store, and flows on it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.rig = Rig("blocking", store, clock)
        self.rig.db.artifacts.put("warm", b"up")  # creates the table and caches its layout
        self.rig.db.artifacts.purge("warm")

    @property
    def home(self) -> Home:
        return self.rig.home

    @property
    def now(self) -> Any:
        """The artifacts, for calls that run to their end at once."""
        return self.rig.db.artifacts

    def context(self) -> tuple[Context, StepPort]:
        port = StepPort(self.store, self.clock)
        return replace(self.rig.context, port=cast("Port", port)), port

    def enter(self, flow: Flow) -> Actor:
        """Start a flow, and stop it before its first request."""
        context, port = self.context()
        return Actor(port, flow(Scene(AsyncArtifacts(context), context, self.store.directory)))


class ContentEtags:
    """A service like S3: equal bytes have equal etags, and times are whole seconds."""

    def __init__(self) -> None:
        self._service = MemoryService()

    def send_blocking(self, request: Request[R]) -> R:
        asked: Any = request
        if getattr(request, "if_match", None) is not None:
            asked = replace(asked, if_match=self._etag(asked))
        reply: Any = self._service.send_blocking(asked)
        if isinstance(reply, ObjectInfo):
            reply = _like_s3(reply)
        elif isinstance(reply, ObjectRange):
            reply = replace(reply, info=_like_s3(reply.info))
        elif isinstance(reply, ObjectPage):
            assert not isinstance(request, HeadObject)
        return cast("R", reply)

    def _etag(self, request: Any) -> str:
        """The inner service's etag for the content etag in the request."""
        try:
            info = self._service.send_blocking(
                HeadObject(request.service, getattr(request, "source", request.key))
            )
        except ObjectNotFoundError:
            return "none"
        if info.md5 != request.if_match:
            raise PreconditionFailedError("the object there has other bytes")
        return info.etag

    async def send_awaiting(self, request: Request[R]) -> R:
        return self.send_blocking(request)

    def close(self) -> None:
        self._service.close()


def _like_s3(info: ObjectInfo) -> ObjectInfo:
    assert info.md5 is not None
    return replace(info, etag=info.md5, modified=info.modified.replace(microsecond=0))
