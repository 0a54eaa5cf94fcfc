"""Progress starts at zero, only grows, and ends at the size, in every kind of transfer."""

from __future__ import annotations

import asyncio
import io
import time
from typing import Any

import pytest
from rig.files import PART, Rig, everywhere, in_memory, in_small_parts, pattern

from holdall.core.objects import ServiceTraits
from holdall.errors import AwaitableRefused

Call = tuple[int, int | None]


class Calls(list[Call]):
    """A progress function that records its calls."""

    def __call__(self, done: int, total: int | None) -> None:
        self.append((done, total))


@in_small_parts
async def test_a_put_reports_progress_from_zero_to_the_size(files: Rig) -> None:
    for size in (0, 1, 2 * PART, 9 * PART + 1):
        calls = Calls()
        await files.files.put("it", pattern(size), progress=calls)
        assert calls[0] == (0, size)
        assert calls[-1] == (size, size)
        assert calls == sorted(set(calls)), "the numbers only grow"
        assert {total for _, total in calls} == {size}
        if files.way.parallel == 1 and size > 2 * PART:
            assert [done for done, _ in calls] == [*range(0, size, PART), size]


@in_small_parts
async def test_the_total_of_a_stream_is_reported_only_if_the_caller_passed_its_size(files: Rig) -> None:
    for size in (None, 5 * PART):
        calls = Calls()
        stream = io.BufferedReader(io.BytesIO(pattern(5 * PART)))
        await files.files.put("it", stream, size=size, progress=calls)
        assert calls == [(done, size) for done in range(0, 5 * PART + 1, PART)]


@in_memory
async def test_calls_for_parallel_parts_never_overlap_and_never_go_back(files: Rig) -> None:
    """The first call after the start blocks until other parts have more to report."""
    files.service.traits = ServiceTraits(10, 10, 8)
    calls = Calls()
    inside = 0

    def enter(done: int, total: int | None) -> bool:
        nonlocal inside
        inside += 1
        assert inside == 1, "two calls overlap"
        calls(done, total)
        return len(calls) == 2  # the first call after the start

    def leave() -> None:
        nonlocal inside
        inside -= 1

    def report(done: int, total: int | None) -> None:
        parts = len(files.service.requests)
        if enter(done, total):
            until = time.monotonic() + 30
            while len(files.service.requests) < parts + 3 and time.monotonic() < until:
                time.sleep(0)
        leave()

    async def report_async(done: int, total: int | None) -> None:
        parts = len(files.service.requests)
        if enter(done, total):
            while len(files.service.requests) < parts + 3:
                await asyncio.sleep(0)
        leave()

    await files.files.put(
        "it", pattern(8_000), progress=report if files.colour == "blocking" else report_async
    )
    assert calls[0] == (0, 8_000)
    assert calls[-1] == (8_000, 8_000)
    assert calls == sorted(set(calls))


@in_small_parts
async def test_an_async_progress_function_is_awaited_in_async_code_and_refused_in_sync_code(
    files: Rig,
) -> None:
    calls = Calls()

    async def report(done: int, total: int | None) -> None:
        calls.append((done, total))

    for size in (PART, 5 * PART):
        if files.colour == "blocking":
            with pytest.raises(AwaitableRefused):
                await files.files.put("it", pattern(size), progress=report)
            assert await files.is_clean(), "the function is refused before anything is sent"
        else:
            calls.clear()
            await files.files.put("it", pattern(size), progress=report)
            assert (calls[0], calls[-1]) == ((0, size), (size, size))
            calls.clear()
            await files.files.download("it", files.directory / "target", progress=report)
            assert (calls[0], calls[-1]) == ((0, size), (size, size))


@in_small_parts
async def test_a_failing_progress_function_ends_the_transfer_and_nothing_is_left(files: Rig) -> None:
    def report(done: int, total: int | None) -> None:
        if done:
            raise ZeroDivisionError("the bar broke")

    with pytest.raises(ZeroDivisionError):
        await files.files.put("it", pattern(5 * PART), progress=report)
    assert await files.is_clean()
    await files.files.put("it", pattern(5 * PART))
    with pytest.raises(ZeroDivisionError):
        await files.files.download("it", files.directory / "target", progress=report)
    assert [path.name for path in files.directory.iterdir() if "target" in path.name] == []


@everywhere
async def test_a_download_reports_progress_from_zero_to_the_size(files: Rig) -> None:
    for size in (0, 1, 9_000_000):
        await files.files.put("it", pattern(size))
        for target in (files.directory / "target", io.BytesIO()):
            given: Any = target
            calls = Calls()
            await files.files.download("it", given, progress=calls)
            assert (calls[0], calls[-1]) == ((0, size), (size, size))
            assert calls == sorted(set(calls))
