"""The sync and the async port: concurrent flows, the user's functions, and cancellation."""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import pytest

from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.port.awaiting import AwaitingPort
from holdall.backends.port.blocking import BlockingPort
from holdall.core import (
    CreateTable,
    GetItem,
    KeyAttribute,
    Port,
    PutItem,
    Request,
    TableSchema,
    encode_item,
    run,
)
from holdall.errors import AwaitableRefused, FlowSuspended

T = TypeVar("T")
Runner = Callable[[Callable[[Port], Coroutine[Any, Any, T]]], T]


class Meeting:
    """A barrier for flows: each waits until ``size`` of them have arrived."""

    def __init__(self, size: int) -> None:
        self._barrier = threading.Barrier(size)
        self._arrived = 0

    async def attend(self, port: Port) -> None:
        if isinstance(port, BlockingPort):
            self._barrier.wait(120)
            return
        self._arrived += 1
        async with asyncio.timeout(120):
            while self._arrived < self._barrier.parties:
                await asyncio.sleep(0)


@pytest.fixture(params=["blocking", "awaiting"])
def in_colour(request: pytest.FixtureRequest) -> Iterator[Runner[Any]]:
    """Return a function that runs a flow with a sync or an async port."""
    backend = EmbeddedBackend(None)
    if request.param == "blocking":
        yield lambda flow: run(flow(BlockingPort(backend)))
    else:
        yield lambda flow: asyncio.run(flow(AwaitingPort(backend)))
    backend.close()


def test_gather_keeps_the_order_of_its_flows(in_colour: Runner[Any]) -> None:
    async def flow(port: Port) -> list[int]:
        async def slow_first(number: int) -> int:
            await port.sleep(0.002 * (10 - number))
            return number

        return [o.result() for o in await port.gather([slow_first(n) for n in range(10)], limit=4)]

    assert in_colour(flow) == list(range(10))


def test_gather_finishes_every_flow_and_returns_errors_as_outcomes(in_colour: Runner[Any]) -> None:
    async def flow(port: Port) -> list[str]:
        async def one(number: int) -> int:
            if number % 2:
                raise ValueError(f"no {number}")
            return number

        return [
            str(outcome.error or outcome.value)
            for outcome in await port.gather([one(number) for number in range(5)], limit=2)
        ]

    assert in_colour(flow) == ["0", "no 1", "2", "no 3", "4"]


def test_gather_runs_at_most_its_limit_at_once(in_colour: Runner[Any]) -> None:
    running = 0
    most = 0
    lock = threading.Lock()

    async def flow(port: Port) -> None:
        async def one() -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            await port.sleep(0.005)
            with lock:
                running -= 1

        for outcome in await port.gather([one() for _ in range(12)], limit=3):
            outcome.result()

    in_colour(flow)
    assert 1 < most <= 3


def test_gather_inside_gather_does_not_deadlock(in_colour: Runner[Any]) -> None:
    async def flow(port: Port) -> int:
        async def leaf() -> int:
            await port.sleep(0)
            return 1

        async def branch() -> int:
            return sum(o.result() for o in await port.gather([leaf() for _ in range(5)], limit=5))

        outcomes = await port.gather([branch() for _ in range(60)], limit=40)
        return sum(outcome.result() for outcome in outcomes)

    assert in_colour(flow) == 300


def test_gathers_inside_gathers_run_concurrently(in_colour: Runner[Any]) -> None:
    meeting = Meeting(3 * 3)

    async def flow(port: Port) -> int:
        async def leaf() -> int:
            await meeting.attend(port)
            return 1

        async def branch() -> int:
            return sum(o.result() for o in await port.gather([leaf() for _ in range(3)], limit=3))

        outcomes = await port.gather([branch() for _ in range(3)], limit=3)
        return sum(outcome.result() for outcome in outcomes)

    assert in_colour(flow) == 9


def test_deeply_nested_gathers_with_more_flows_than_threads_do_not_deadlock(in_colour: Runner[Any]) -> None:
    async def flow(port: Port) -> int:
        async def nest(depth: int) -> int:
            if not depth:
                await port.sleep(0)
                return 1
            outcomes = await port.gather([nest(depth - 1) for _ in range(4)], limit=4)
            return sum(outcome.result() for outcome in outcomes)

        return await nest(5)

    before = threading.active_count()
    assert in_colour(flow) == 4**5
    assert threading.active_count() <= before + 32


def test_system_exit_in_a_helper_thread_is_raised() -> None:
    port = BlockingPort(SlowBackend())
    meeting = Meeting(2)

    async def one() -> None:
        await meeting.attend(port)
        if threading.current_thread() is not threading.main_thread():
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        run(port.gather([one(), one()], limit=2))


def test_system_exit_in_a_helper_thread_that_has_ended_is_raised_too() -> None:
    port = BlockingPort(SlowBackend())
    meeting = Meeting(2)

    async def one() -> None:
        await meeting.attend(port)
        if threading.current_thread() is not threading.main_thread():
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        run(port.gather([one(), one(), *(port.sleep(0.001) for _ in range(50))], limit=2))


def test_a_helper_thread_starts_no_more_flows_once_the_caller_is_interrupted() -> None:
    port = BlockingPort(SlowBackend())
    meeting = Meeting(2)
    begun: list[int] = []

    async def one(number: int) -> None:
        begun.append(number)
        if number < 2:
            await meeting.attend(port)
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        await port.sleep(0.02)

    with pytest.raises(KeyboardInterrupt):
        run(port.gather([one(number) for number in range(100)], limit=2))
    assert len(begun) < 100


def test_threads_that_become_free_help_a_running_gather() -> None:
    port = BlockingPort(SlowBackend())
    busy, meeting, gate = Meeting(34), Meeting(2), threading.Event()

    async def wait() -> None:
        await busy.attend(port)
        gate.wait(120)

    async def free_threads() -> None:
        await busy.attend(port)  # all 32 threads are busy now, so none can help this gather
        gate.set()
        other.join()

    other = threading.Thread(target=lambda: run(port.gather([wait() for _ in range(33)], limit=33)))
    other.start()
    flows = [free_threads(), meeting.attend(port), meeting.attend(port)]
    for outcome in run(port.gather(flows, limit=3)):
        outcome.result()


def test_gather_without_flows_returns_no_outcomes(in_colour: Runner[Any]) -> None:
    assert in_colour(lambda port: port.gather([])) == []


def test_gather_refuses_a_limit_of_zero(in_colour: Runner[Any]) -> None:
    with pytest.raises(ValueError, match="limit"):
        in_colour(lambda port: port.gather([], limit=0))


VARIABLE: ContextVar[int] = ContextVar("variable", default=0)


def test_each_gathered_flow_has_its_own_context_variables(in_colour: Runner[Any]) -> None:
    async def flow(port: Port) -> tuple[list[int], int]:
        before = VARIABLE.set(7)

        async def one(number: int) -> int:
            inherited = VARIABLE.get()
            VARIABLE.set(number)
            await port.sleep(0.001)
            return inherited + VARIABLE.get()

        outcomes = await port.gather([one(number) for number in range(6)], limit=3)
        mine = VARIABLE.get()
        VARIABLE.reset(before)
        return [outcome.result() for outcome in outcomes], mine

    assert in_colour(flow) == ([7, 8, 9, 10, 11, 12], 7)


def test_the_users_sync_functions_and_streams_work(in_colour: Runner[Any]) -> None:
    async def flow(port: Port) -> tuple[int, bytes, bytes]:
        stream = io.BytesIO(b"abc")
        return await port.call(max, 1, 2), await port.read(stream, 2), await port.read(stream, 2)

    assert in_colour(flow) == (2, b"ab", b"c")


def test_a_stream_of_text_is_refused(in_colour: Runner[Any]) -> None:
    with pytest.raises(TypeError, match=r"StringIO\.read must return bytes, not str"):
        in_colour(lambda port: port.read(io.StringIO("text"), 2))


def test_a_plain_file_is_read(in_colour: Runner[Any], tmp_path: Any) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with (tmp_path / "file").open("rb") as file:
        assert in_colour(lambda port: port.read(file, 100)) == b"content"


class SlowStream:
    """A stream whose reads block their thread until the event loop has gone on."""

    def __init__(self) -> None:
        self.gone_on = threading.Event()

    def read(self, size: int) -> bytes:
        return b"x" * size if self.gone_on.wait(60) else b""


def test_a_stream_that_blocks_does_not_block_the_event_loop() -> None:
    backend, stream = EmbeddedBackend(None), SlowStream()

    async def flow() -> bytes:
        reading = asyncio.ensure_future(AwaitingPort(backend).read(stream, 3))
        await asyncio.sleep(0)  # the read begins
        stream.gone_on.set()
        return await reading

    assert asyncio.run(flow()) == b"xxx"
    backend.close()


class AsyncStream:
    async def read(self, size: int) -> bytes:
        await asyncio.sleep(0)
        return b"x" * size


async def double(number: int) -> int:
    return number * 2


def test_the_async_port_awaits_async_functions_and_streams() -> None:
    async def flow(port: Port) -> tuple[int, bytes]:
        return await port.call(double, 4), await port.read(AsyncStream(), 3)

    backend = EmbeddedBackend(None)
    assert asyncio.run(flow(AwaitingPort(backend))) == (8, b"xxx")
    backend.close()


def test_the_sync_port_refuses_async_functions_and_streams_by_name() -> None:
    backend = EmbeddedBackend(None)
    port = BlockingPort(backend)
    awaited: Coroutine[Any, Any, int] = port.call(double, 4)
    with pytest.raises(AwaitableRefused, match="double"):
        run(awaited)
    with pytest.raises(AwaitableRefused, match=r"AsyncStream\.read"):
        run(port.read(AsyncStream(), 3))
    backend.close()


def test_a_sync_flow_that_suspends_is_closed_and_named_in_the_error() -> None:
    closed = []

    async def suspend() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            closed.append(True)

    with pytest.raises(FlowSuspended, match="suspend"):
        run(suspend())
    assert closed == [True]


def test_the_port_provides_the_time_ids_and_random_numbers(in_colour: Runner[Any]) -> None:
    async def flow(port: Port) -> None:
        assert port.now().utcoffset() is not None
        assert len(port.new_id()) == 36
        assert port.new_id() != port.new_id()
        assert 0 <= port.random() < 1

    in_colour(flow)


class SlowBackend:
    """A backend whose requests wait until `let_through` is set."""

    def __init__(self) -> None:
        self.let_through = asyncio.Event()
        self.written = 0

    async def send_awaiting(self, request: Request[Any]) -> Any:
        await self.let_through.wait()
        self.written += 1

    def send_blocking(self, request: Request[Any]) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        pass


def test_a_cancelled_write_is_completed_before_its_task_ends() -> None:
    async def scenario() -> tuple[bool, int]:
        backend = SlowBackend()
        task = asyncio.ensure_future(AwaitingPort(backend).send(PutItem("t", {})))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        still_waiting = not task.done()
        backend.let_through.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return still_waiting, backend.written

    assert asyncio.run(scenario()) == (True, 1)


def test_a_cancelled_read_ends_at_once() -> None:
    async def scenario() -> int:
        backend = SlowBackend()
        task = asyncio.ensure_future(AwaitingPort(backend).send(GetItem("t", {})))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return backend.written

    assert asyncio.run(scenario()) == 0


def test_a_cancelled_gather_finishes_its_running_flows_and_starts_no_more() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def scenario() -> None:
        gate = asyncio.Event()

        async def one(number: int) -> None:
            begun.append(number)
            await gate.wait()
            ended.append(number)

        port = AwaitingPort(SlowBackend())
        task = asyncio.ensure_future(port.gather([one(number) for number in range(6)], limit=2))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0.01)
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert begun == ended == [0, 1]


def test_an_interrupted_gather_starts_no_more_flows() -> None:
    backend = EmbeddedBackend(None)
    port = BlockingPort(backend)
    begun: list[int] = []

    async def one(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise KeyboardInterrupt

    flows = [one(number) for number in range(50)]
    with pytest.raises(KeyboardInterrupt):
        run(port.gather(flows, limit=1))
    assert begun == [0]
    backend.close()


def divide(number: int, by: int) -> tuple[float, int]:
    return number / by, VARIABLE.get()


def test_offload_returns_the_result_or_raises_the_error_of_a_function(in_colour: Runner[Any]) -> None:
    async def flow(port: Port) -> Any:
        before = VARIABLE.set(3)
        try:
            return await port.offload(divide, 6, 4)
        finally:
            VARIABLE.reset(before)

    assert in_colour(flow) == (1.5, 3)
    with pytest.raises(ZeroDivisionError):
        in_colour(lambda port: port.offload(divide, 1, 0))


def test_sync_offloaded_work_runs_in_the_callers_thread() -> None:
    port = BlockingPort(SlowBackend())
    assert run(port.offload(threading.get_ident)) == threading.get_ident()


def test_offloaded_work_does_not_block_the_event_loop_and_uses_few_threads() -> None:
    gate = threading.Event()
    names = set()

    def work() -> None:
        names.add(threading.current_thread().name)
        assert gate.wait(10)

    async def scenario() -> None:
        port = AwaitingPort(SlowBackend())
        tasks = [asyncio.ensure_future(port.offload(work)) for _ in range(100)]
        async with asyncio.timeout(30):
            while len(names) < 2:  # the loop keeps running while the work begins in several threads
                await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(scenario())
    assert 1 < len(names) <= 32
    assert all(name.startswith("holdall-offload") for name in names)


def test_cancelled_work_that_has_begun_is_finished_and_other_cancelled_work_never_begins() -> None:
    begun, gate = threading.Semaphore(0), threading.Event()
    ended: list[str] = []

    def work(name: str) -> None:
        begun.release()
        assert gate.wait(10)
        ended.append(name)

    async def scenario() -> None:
        port = AwaitingPort(SlowBackend())
        tasks = [asyncio.ensure_future(port.offload(work, "begun")) for _ in range(40)]
        await asyncio.to_thread(begun.acquire)
        waiting = asyncio.ensure_future(port.offload(work, "waiting"))
        for task in (*tasks[:1], waiting):
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not tasks[0].done()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        await asyncio.gather(*tasks[1:])

    asyncio.run(scenario())
    assert ended == ["begun"] * 40


def test_a_forked_child_gathers_and_offloads_with_its_own_threads() -> None:
    async def gather_two(port: Port) -> int:
        meeting = Meeting(2)
        return len([o.result() for o in await port.gather([meeting.attend(port) for _ in range(2)])])

    def use_both() -> int:
        offloaded: int = asyncio.run(AwaitingPort(SlowBackend()).offload(max, 1, 2))
        return run(gather_two(BlockingPort(SlowBackend()))) + offloaded

    assert use_both() == 4
    child = os.fork()
    if not child:
        status = 1
        try:
            status = 0 if use_both() == 4 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_many_tasks_share_one_store() -> None:
    async def scenario() -> int:
        backend = EmbeddedBackend(None)
        port = AwaitingPort(backend)
        await port.send(CreateTable(TableSchema("things", KeyAttribute("pk"))))

        async def one(number: int) -> None:
            await port.send(PutItem("things", encode_item({"pk": f"k{number}", "n": number})))

        await asyncio.gather(*(one(number) for number in range(100)))
        found = 0
        for number in range(100):
            reply = await port.send(GetItem("things", encode_item({"pk": f"k{number}"})))
            found += reply.item is not None
        backend.close()
        return found

    assert asyncio.run(scenario()) == 100
