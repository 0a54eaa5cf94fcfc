"""Running a flow without an event loop: it ends in one step, or is closed and named in an error."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Generator

import pytest

from holdall.core.port import Outcome, run
from holdall.errors import FlowSuspended, StoreBusyError


class _Pause:
    """An awaitable that suspends, unlike a port."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def _double(number: int) -> int:
    return number * 2


def test_run_returns_the_result_of_a_flow_that_never_suspends() -> None:
    async def flow() -> int:
        return await _double(await _double(1)) + 1

    assert run(flow()) == 5


@pytest.mark.parametrize("outcome", [None, (), StopIteration, 0])
def test_any_value_can_be_returned(outcome: object) -> None:
    async def flow() -> object:
        return outcome

    assert run(flow()) is outcome


def test_an_error_of_the_flow_is_raised_in_the_caller() -> None:
    async def flow() -> None:
        raise StoreBusyError("locked")

    with pytest.raises(StoreBusyError, match="locked"):
        run(flow())


def test_a_flow_runs_in_the_callers_thread_without_an_event_loop() -> None:
    async def flow() -> None:
        asyncio.get_running_loop()

    with pytest.raises(RuntimeError, match="no running event loop"):
        run(flow())


def test_a_flow_that_suspends_is_closed_and_named() -> None:
    steps: list[str] = []

    async def wander() -> None:
        try:
            steps.append("begun")
            await _Pause()
            steps.append("continued")
        finally:
            steps.append("cleaned up")

    flow = wander()
    with pytest.raises(
        FlowSuspended, match=r"wander runs without an event loop, and awaited something"
    ) as caught:
        run(flow)
    assert steps == ["begun", "cleaned up"]
    assert inspect.getcoroutinestate(flow) == inspect.CORO_CLOSED
    assert "port.sleep" in str(caught.value.hint)


def test_a_suspension_in_a_nested_flow_closes_every_flow() -> None:
    steps: list[str] = []

    async def inner() -> None:
        try:
            await _Pause()
        finally:
            steps.append("inner")

    async def outer() -> None:
        try:
            await inner()
        finally:
            steps.append("outer")

    with pytest.raises(FlowSuspended, match="outer"):
        run(outer())
    assert steps == ["inner", "outer"]


def test_asyncio_sleep_is_refused() -> None:
    async def flow() -> None:
        await asyncio.sleep(0)

    with pytest.raises(FlowSuspended):
        run(flow())


def test_a_flow_that_fails_while_it_is_closed_is_still_named() -> None:
    async def flow() -> None:
        try:
            await _Pause()
        finally:
            raise StoreBusyError("while closing")

    with pytest.raises(FlowSuspended) as caught:
        run(flow())
    assert isinstance(caught.value.__context__, StoreBusyError)


def test_a_flow_that_refuses_to_be_closed_is_still_named() -> None:
    async def stubborn() -> None:
        try:
            await _Pause()
        finally:
            await _Pause()

    flow = stubborn()
    with pytest.raises(FlowSuspended, match="stubborn"):
        run(flow)
    flow.close()  # the second call closes it


def test_an_outcome_is_a_value_or_an_error() -> None:
    assert Outcome(5).result() == 5
    nothing: Outcome[None] = Outcome()
    assert nothing.result() is None
    error = StoreBusyError("locked")
    failed: Outcome[int] = Outcome(error=error)
    with pytest.raises(StoreBusyError) as caught:
        failed.result()
    assert caught.value is error
