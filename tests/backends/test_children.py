"""Calls in child processes: results, errors, kills and deaths, in both colours."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdall.backends.port.awaiting import AwaitingPort
from holdall.backends.port.blocking import BlockingPort
from holdall.backends.process import Children, children
from holdall.core.port import run
from holdall.core.work import CallFunction
from holdall.errors import ProcessDiedError, ProcessTimeoutError

HERE = "test_children"


def add(left: int, right: int) -> int:
    return left + right


def refuse(text: str) -> None:
    raise LookupError(text)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang(started: str) -> None:
    Path(started).write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(600)


def wait_for_sign(started: str, path: str) -> str:
    Path(started).touch()
    wait_for(Path(path))
    return "done"


def interrupt_caller() -> str:
    os.kill(os.getppid(), signal.SIGUSR1)
    return "late"


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def own_id() -> int:
    return os.getpid()


def cannot_travel() -> object:
    return lambda: None


def call(function: str, *arguments: object, seconds: float = 60.0) -> CallFunction:
    return CallFunction(f"{HERE}:{function}", arguments, seconds)


@pytest.fixture(scope="module")
def few() -> Iterator[Children]:
    opened = Children(2)
    yield opened
    opened.close()


def test_a_call_runs_in_another_process_that_is_reused_for_the_next_call(few: Children) -> None:
    assert few.call_blocking(call("add", 2, 3)) == 5
    first, second = few.call_blocking(call("own_id")), few.call_blocking(call("own_id"))
    assert first == second != os.getpid()


def test_ports_send_calls_to_children() -> None:
    nowhere: object = None
    assert run(BlockingPort(nowhere).send(call("add", 1, 1))) == 2  # type: ignore[arg-type]

    async def main() -> object:
        return await AwaitingPort(nowhere).send(call("add", 2, 2))  # type: ignore[arg-type]

    assert asyncio.run(main()) == 4
    children.close()


def test_an_error_of_the_function_is_raised_in_the_caller_with_its_traceback(few: Children) -> None:
    with pytest.raises(LookupError, match="gone") as caught:
        few.call_blocking(call("refuse", "gone"))
    assert "in refuse" in caught.value.__notes__[0]
    with pytest.raises(Exception, match="lambda"):
        few.call_blocking(call("cannot_travel"))


def test_a_child_that_dies_fails_only_its_own_call(few: Children) -> None:
    with pytest.raises(ProcessDiedError, match="exit code -9"):
        few.call_blocking(call("die"))
    assert few.call_blocking(call("add", 1, 2)) == 3


def test_a_child_that_dies_between_two_calls_is_replaced(few: Children) -> None:
    first = few.call_blocking(call("own_id"))
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert few.call_blocking(call("own_id")) not in (first, os.getpid())


def test_a_call_that_takes_too_long_is_killed(few: Children, tmp_path: Path) -> None:
    few.call_blocking(call("own_id"))  # start the child before, because that can take a while
    started = tmp_path / "started"
    with pytest.raises(ProcessTimeoutError, match="longer than 3 seconds"):
        few.call_blocking(call("hang", str(started), seconds=3.0))
    assert_gone(started)


def test_cancelling_a_call_kills_its_child(few: Children, tmp_path: Path) -> None:
    started = tmp_path / "started"

    async def main() -> None:
        task = asyncio.ensure_future(few.call_awaiting(call("hang", str(started))))
        while not started.exists() or not started.read_text(encoding="utf-8"):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert_gone(started)
    assert few.call_blocking(call("add", 1, 2)) == 3


def test_a_call_that_is_cancelled_while_it_waits_for_a_child_is_never_made(tmp_path: Path) -> None:
    one = Children(1)
    first, second = tmp_path / "first", tmp_path / "second"

    async def main() -> None:
        running = asyncio.ensure_future(one.call_awaiting(call("hang", str(first))))
        while not first.exists() or not first.read_text(encoding="utf-8"):
            await asyncio.sleep(0.01)
        waiting = asyncio.ensure_future(one.call_awaiting(call("hang", str(second), seconds=5.0)))
        await asyncio.sleep(0)
        for task in (waiting, running):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert one.call_blocking(call("add", 1, 2)) == 3
    assert not second.exists()
    one.close()


def test_cancelling_a_call_that_has_just_ended_leaves_its_child_for_the_next_call(tmp_path: Path) -> None:
    one = Children(1)
    begun, end, begun_too, end_too = (tmp_path / name for name in ("begun", "end", "begun too", "end too"))

    async def main() -> object:
        first = asyncio.ensure_future(one.call_awaiting(call("wait_for_sign", str(begun), str(end))))
        await asyncio.sleep(0)
        wait_for(begun)
        second = asyncio.ensure_future(one.call_awaiting(call("wait_for_sign", str(begun_too), str(end_too))))
        await asyncio.sleep(0)
        end.touch()
        wait_for(begun_too)  # the first call has ended, but the event loop does not know it yet
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        end_too.touch()
        return await second

    assert asyncio.run(main()) == "done"
    one.close()


def test_the_next_call_does_not_receive_the_result_of_an_interrupted_call(few: Children) -> None:
    few.call_blocking(call("own_id"))  # start the child before, because starting one must not be interrupted

    class InterruptError(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise InterruptError

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(InterruptError):
            few.call_blocking(call("interrupt_caller"))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert few.call_blocking(call("add", 1, 2)) == 3


def test_no_more_children_than_the_limit_work_at_once(few: Children) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: few.call_blocking(call("own_id")), range(24)))
    assert 1 <= len(found) <= 2


def test_a_forked_process_has_its_own_children(few: Children) -> None:
    ours = few.call_blocking(call("own_id"))
    near, far = os.pipe()
    forked = os.fork()
    if not forked:
        try:
            os.write(far, b"other" if few.call_blocking(call("own_id")) != ours else b"same")
            few.close()
        finally:
            os._exit(0)
    os.waitpid(forked, 0)
    assert os.read(near, 10) == b"other"
    assert few.call_blocking(call("own_id")) == ours
    os.close(near)
    os.close(far)


def test_a_child_ends_when_its_program_is_killed() -> None:
    program = """
import os, signal
from holdall.backends.process import children
from holdall.core.work import CallFunction
print(children.call_blocking(CallFunction("os:getpid", (), 60.0)), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    # the child inherits the pipe, so this ends when both have ended
    ended = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert int(ended.stdout) > 0


def test_a_child_whose_program_is_killed_during_a_call_ends_without_output() -> None:
    program = """
import os, signal
from holdall.backends.process import children
from holdall.core.work import CallFunction
children.call_blocking(CallFunction("os:kill", (os.getpid(), signal.SIGKILL), 60.0))
"""
    ended = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGKILL, b"")


def assert_gone(started: Path) -> None:
    pid = int(started.read_text(encoding="utf-8"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
