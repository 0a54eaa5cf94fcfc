"""Reads in threads for event loops: which reads share a thread, and that no read waits for a stuck one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from holdall.backends.port import reader as module
from holdall.backends.port.reader import Reader


def run(scenario: Any) -> None:
    """Run a scenario with a reader of four threads."""
    reader = Reader("test-read", 4)

    async def main() -> None:
        await scenario(reader)

    asyncio.run(main())
    reader.close()


def test_quick_reads_that_begin_together_share_a_thread_and_a_wake_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_SLOW", 600)
    monkeypatch.setattr(module, "_STUCK", 600)

    async def scenario(reader: Reader) -> None:
        loop, woken = asyncio.get_running_loop(), list[Any]()
        wake = loop.call_soon_threadsafe

        def record(*arguments: Any) -> None:
            woken.append(arguments)
            wake(*arguments)

        monkeypatch.setattr(loop, "call_soon_threadsafe", record)
        reads = (reader.read(lambda _: threading.get_ident(), number) for number in range(50))
        (thread,) = set(await asyncio.gather(*reads))
        assert thread != threading.get_ident()
        assert len(woken) == 1

    run(scenario)


@pytest.mark.parametrize("slow", [True, False], ids=["slow", "stuck"])
def test_other_threads_take_over_reads_that_a_slow_or_stuck_read_would_delay(
    slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SLOW" if slow else "_STUCK", 0)
    monkeypatch.setattr(module, "_STUCK" if slow else "_SLOW", 600)
    last = threading.Event()

    def send(number: int) -> int:
        if number == 3:
            last.set()
        if number == (1 if slow else 0):
            assert last.wait(30), "a later read is waiting for this one"
        return number

    async def scenario(reader: Reader) -> None:
        assert await asyncio.gather(*(reader.read(send, number) for number in range(4))) == [0, 1, 2, 3]

    run(scenario)


def test_an_error_reaches_the_caller_that_caused_it_and_no_other() -> None:
    def send(number: int) -> float:
        return 1 / number

    async def scenario(reader: Reader) -> None:
        reads = [asyncio.ensure_future(reader.read(send, number)) for number in (1, 0, 2, 4)]
        await asyncio.sleep(0)
        reads[2].cancel()
        outcomes = await asyncio.gather(*reads, return_exceptions=True)
        assert [type(each) for each in outcomes] == [float, ZeroDivisionError, asyncio.CancelledError, float]

    run(scenario)


def test_a_reader_serves_one_loop_after_another_even_after_it_was_closed() -> None:
    reader = Reader("test-read", 1)

    async def leave() -> None:
        asyncio.ensure_future(reader.read(str, 1))  # noqa: RUF006 - cancelled with its loop
        await asyncio.sleep(0)

    for number in range(3):
        asyncio.run(leave())
        assert asyncio.run(reader.read(str, number)) == str(number)
        reader.close()


AT_THE_END = """
import asyncio, sys, threading, time
from holdall.backends.port import reader as module

slow = sys.argv[1] == "slow"
module._SLOW, module._STUCK = (-1, 600) if slow else (600, 0)
reader, begun = module.Reader("test-read", 1), threading.Event()

def send(number):
    begun.set()
    try:
        while number == 0:
            reader._pool.submit(int)  # refused as soon as the interpreter is shutting down
            time.sleep(0.001)
    except RuntimeError:
        slow or time.sleep(0.1)  # gives the loop time to look for another thread
    return number

async def read(*numbers):
    reads = (reader.read(send, number) for number in numbers)
    print(*[type(each).__name__ for each in await asyncio.gather(*reads, return_exceptions=True)])

async def main():
    await read(0, 1, 2)
    await read(3, 4)
    await asyncio.sleep(0.1)

threading.Thread(target=asyncio.run, args=[main()]).start()
begun.wait()
"""


@pytest.mark.parametrize("trouble", ["slow", "stuck"])
def test_waiting_reads_are_answered_without_other_threads_at_the_end_of_the_interpreter(trouble: str) -> None:
    command = [sys.executable, "-c", AT_THE_END, trouble]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.splitlines() == ["int int int", "RuntimeError RuntimeError"]
    assert ended.stderr == ""
