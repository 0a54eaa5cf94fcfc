"""The port for sync code: every method finishes before it returns, so flows never suspend."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextvars import copy_context
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from holdall.backends.clock import find_held
from holdall.backends.port.pool import Pool
from holdall.backends.port.turn import Turn
from holdall.backends.port.world import World, require_bytes
from holdall.core.generator import name_of, refuse_generator
from holdall.core.port import Outcome, run
from holdall.core.requests import Request
from holdall.errors import AwaitableRefused

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")


class BlockingPort(World):
    """Answers flows from the calling thread; only `gather` uses others."""

    async def send(self, request: Request[R]) -> R:
        """Send a request to the store, a service or a child process, depending on its class."""
        if request.destination != "store":
            if request.destination == "process":
                from holdall.backends.process import children

                return children.call_blocking(request)  # type: ignore[arg-type,no-any-return]
            if request.destination == "media":
                from holdall.backends.media.delivery import deliver_blocking

                return deliver_blocking(request)
            if self._services is not None:
                return self._services.send_blocking(request)
        return self._backend.send_blocking(request)

    async def gather(self, flows: Iterable[Coroutine[Any, Any, T]], limit: int = 8) -> list[Outcome[T]]:
        """Run flows concurrently; returns their outcomes in order."""
        return _Gathering(list(flows), limit).outcomes()

    async def finish(self, flow: Coroutine[Any, Any, T]) -> T:
        """Run a flow to its end; nothing here can be cancelled."""
        return await flow

    async def read(self, source: Any, size: int) -> bytes:
        """Up to ``size`` bytes of a user's stream; empty at its end."""
        return require_bytes(_require_plain(source.read(size), source.read), source)

    async def call(self, function: Callable[..., Awaitable[T]] | Callable[..., T], *args: Any) -> T:
        """Call a function that the user passed."""
        result = _require_plain(function(*args), function)
        refuse_generator(result, function)
        return result  # type: ignore[no-any-return]

    async def offload(self, function: Callable[..., T], *args: Any) -> T:
        """Run blocking work: in this thread, because no other work waits for it."""
        return function(*args)

    async def sleep(self, seconds: float) -> None:
        """Wait. If the clock is held, it moves instead."""
        held = find_held()
        if held is None:
            time.sleep(seconds)
        else:
            held.pass_by(seconds)

    async def take_turn(self, names: frozenset[str], since: datetime, seconds: float) -> Turn:
        """Wait until no other contender for one of these names is ahead."""
        began = threading.Event()
        until = time.monotonic() + seconds
        turn = self._turns.join(names, since, began.set)
        try:
            while (wait := self._turns.compute_wait(turn, until)) > 0:
                began.wait(wait)
        except BaseException:
            turn.end()
            raise
        return turn


def _require_plain(result: Any, function: Callable[..., Any]) -> Any:
    """The result, unless it must be awaited."""
    if not isinstance(result, Awaitable):
        return result
    if isinstance(result, Coroutine):
        result.close()
    raise AwaitableRefused(
        f"{name_of(function)} is async, but this is the sync API",
        hint="pass a plain function or stream, or use AsyncDatabase",
    )


class _Gathering:
    """Flows run by the calling thread and, concurrently, by threads of the pool.

    The calling thread always takes part, and uses only helper threads that are free at once. So a gather waits only for
    flows that are running, however deeply gathers are nested and however busy the pool is: there is no deadlock. Before
    each of its own flows, the calling thread looks for helpers that have become free.
    """

    def __init__(self, flows: list[Coroutine[Any, Any, Any]], limit: int) -> None:
        if limit < 1:
            raise ValueError(f"the limit of gather must be 1 or more, not {limit}")
        self._flows = flows
        self._outcomes: list[Any] = [None] * len(flows)
        self._waiting = deque(range(len(flows)))
        self._most_helpers = limit - 1
        self._helpers: list[Future[None]] = []
        self._stopped = False
        self._context = copy_context()  # the caller's context, also for flows in other threads

    def outcomes(self) -> list[Any]:
        try:
            while self._waiting and not self._stopped:
                self._find_helpers()
                self._work_once()
        finally:
            self._stopped = True  # after an interrupt, no more flows are started
            for helper in self._helpers:
                helper.result()
            for place in self._waiting:
                self._flows[place].close()
        return self._outcomes

    def _find_helpers(self) -> None:
        for ended in [each for each in self._helpers if each.done()]:
            self._helpers.remove(ended)
            ended.result()
        while len(self._helpers) < self._most_helpers and len(self._waiting) > 1:  # one is for the caller
            helper = _pool.submit_now(self._help)
            if helper is None:
                return
            self._helpers.append(helper)

    def _help(self) -> None:
        while self._waiting and not self._stopped:
            self._work_once()

    def _work_once(self) -> None:
        try:
            place = self._waiting.popleft()
        except IndexError:
            return  # another thread was faster
        try:
            value = self._context.copy().run(run, self._flows[place])
        except Exception as error:  # noqa: BLE001 - every failure is an outcome for the caller
            self._outcomes[place] = Outcome(error=error)
        else:
            self._outcomes[place] = Outcome(value)


_pool = Pool("holdall-gather", threads=32)
