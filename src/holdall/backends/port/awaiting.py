"""The port for async code: every method may suspend, and the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import io
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from contextvars import copy_context
from datetime import datetime
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypeVar

from holdall.backends.clock import find_held
from holdall.backends.port.notice import Notice, current_notice
from holdall.backends.port.pool import Pool
from holdall.backends.port.turn import Turn
from holdall.backends.port.world import World, require_bytes
from holdall.core.generator import refuse_generator
from holdall.core.port import Outcome
from holdall.core.requests import Request
from holdall.errors import OutcomeUnknown

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")


class AwaitingPort(World):
    """Answers flows on the running event loop."""

    async def send(self, request: Request[R]) -> R:
        """Send a request to the store, a service or a child process, depending on its class."""
        backend = self._backend
        if request.destination == "process":
            from holdall.backends.process import children

            return await children.call_awaiting(request)  # type: ignore[arg-type,no-any-return]
        if request.destination == "media":
            from holdall.backends.media.delivery import deliver_awaiting

            return await deliver_awaiting(request)
        if request.destination == "service" and self._services is not None:
            backend = self._services
        if not request.writes or getattr(backend, "sees_through", False):
            return await backend.send_awaiting(request)
        return await see_through(backend.send_awaiting(request))

    async def gather(self, flows: Iterable[Coroutine[Any, Any, T]], limit: int = 8) -> list[Outcome[T]]:
        """Run flows concurrently; returns their outcomes in order."""
        if limit < 1:
            raise ValueError(f"the limit of gather must be 1 or more, not {limit}")
        everything = list(flows)
        outcomes: list[Any] = [None] * len(everything)
        waiting = iter(range(len(everything)))
        running = 0

        async def run_all() -> None:
            over = asyncio.get_running_loop().create_future()

            def begin() -> None:
                """Begin the next flow, if there is one, in a task, which gives it its own context variables."""
                nonlocal running
                for position in waiting:
                    running += 1
                    asyncio.ensure_future(everything[position]).add_done_callback(partial(end, position))
                    return

            def end(position: int, task: asyncio.Task[T]) -> None:
                nonlocal running
                running -= 1
                error = asyncio.CancelledError() if task.cancelled() else task.exception()
                outcomes[position] = Outcome(task.result()) if error is None else Outcome(error=error)
                begin()
                if not running and not over.done():
                    over.set_result(None)

            for _ in range(min(limit, len(everything))):
                begin()
            try:
                if running:
                    await over
            finally:
                begin_no_more()  # the loop ends

        def begin_no_more() -> None:
            for position in waiting:
                everything[position].close()

        await see_through(run_all(), begin_no_more)
        return outcomes

    async def finish(self, flow: Coroutine[Any, Any, T]) -> T:
        """Run a flow to its end, even if the caller is cancelled in the meantime."""
        return await see_through(flow)

    async def read(self, source: Any, size: int) -> bytes:
        """Up to ``size`` bytes of a user's stream; empty at its end."""
        if isinstance(source, io.BytesIO) or iscoroutinefunction(source.read):
            data = source.read(size)
        else:
            data = await asyncio.to_thread(source.read, size)
        if isawaitable(data):
            data = await data
        return require_bytes(data, source)

    async def call(self, function: Callable[..., Awaitable[T]] | Callable[..., T], *args: Any) -> T:
        """Call a function that the user passed."""
        result = function(*args)
        if isawaitable(result):
            result = await result
        refuse_generator(result, function)
        return result

    async def offload(self, function: Callable[..., T], *args: Any) -> T:
        """Run blocking work in a thread; if the caller is cancelled, wait until work that has started ends."""
        job: Future[T] = _pool.submit(copy_context().run, function, *args)
        result = asyncio.wrap_future(job)
        cancellation: asyncio.CancelledError | None = None
        while not result.done():
            try:
                await asyncio.wait([result])
            except asyncio.CancelledError as error:
                if job.cancel():
                    raise
                cancellation = error
        if cancellation is not None:
            result.exception()  # the caller is cancelled, so no other outcome is reported
            raise cancellation
        return result.result()

    async def sleep(self, seconds: float) -> None:
        """Wait. If the clock is held, it moves instead."""
        held = find_held()
        if held is not None:
            held.pass_by(seconds)
        await asyncio.sleep(seconds if held is None else 0)

    async def take_turn(self, names: frozenset[str], since: datetime, seconds: float) -> Turn:
        """Wait until no other contender for one of these names is ahead."""
        loop, began = asyncio.get_running_loop(), asyncio.Event()
        until = time.monotonic() + seconds
        turn = self._turns.join(names, since, lambda: loop.call_soon_threadsafe(began.set))
        try:
            while (wait := self._turns.compute_wait(turn, until)) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await began.wait()
        except BaseException:
            turn.end()
            raise
        return turn


async def see_through(work: Awaitable[T], cancelled: Callable[[], None] = lambda: None) -> T:
    """Wait for the work to end even if this task is cancelled; then be cancelled.

    A write that has been sent cannot be taken back: leaving at once would only hide whether it happened. So the work is
    notified, and ends soon. If it cannot find out by then whether a write happened, its `OutcomeUnknown` is raised,
    with the cancellation as its cause.
    """
    notice = Notice(current_notice.get())
    result: _Result[T] = _Result(notice, cancelled)
    token = current_notice.set(notice)
    try:
        # the task copies the context, and so has the notice
        result.task = asyncio.create_task(_finish(work, result))
    finally:
        current_notice.reset(token)
    try:
        return await result
    except asyncio.CancelledError as cancellation:
        if isinstance(unknown := result.exception(), OutcomeUnknown):
            raise unknown from cancellation
        raise  # the caller is cancelled, so no other outcome is reported
    finally:
        notice.end()
        del result  # an error refers to this frame


class _Result(asyncio.Future[T]):
    """The result of work that ends although its caller is cancelled.

    Cancelling a task cancels the future that it waits for. This one refuses, so the task waits on, and asyncio raises
    the cancellation in it afterwards.
    """

    task: asyncio.Task[None]

    def __init__(self, notice: Notice, cancelled: Callable[[], None]) -> None:
        super().__init__()
        self._notice = notice
        self._cancelled = cancelled

    def cancel(self, msg: Any = None) -> bool:
        """Notify the work; not at once, because a signal handler may have interrupted it."""
        if not self.done():
            self.get_loop().call_soon(self._notify)
        return False

    def _notify(self) -> None:
        self._notice.ring()
        self._cancelled()


async def _finish(work: Awaitable[T], result: _Result[T]) -> None:
    """Await the work and wake its caller at once; a callback of the task would wake it one round of the loop later."""
    try:
        result.set_result(await work)
    except BaseException as error:
        result.set_exception(error)
        del result  # the error refers to this frame
        if not isinstance(error, Exception):
            raise


_pool = Pool("holdall-offload", threads=min(32, (os.cpu_count() or 1) + 4))
