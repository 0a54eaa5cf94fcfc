"""A transfer that is cancelled at any moment leaves all or nothing: no partial object and no unfinished upload."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest
from rig.files import PART, Rig, Way, open_rig, pattern

from holdall.core.objects import BeginUpload, CompleteUpload, GetObject, UploadPart

SEED = int(os.environ["HOLDALL_SEED"])
ROUNDS = 200 if os.environ.get("HOLDALL_TORTURE") else 25
DATA = pattern(11 * PART + 3)
WAYS = [Way("memory", "awaiting", 1), Way("memory", "awaiting", 3), Way("disk", "awaiting", 3)]


class Steps:
    """Counts the moments at which the event loop can switch tasks, and cancels a task at one of them."""

    def __init__(self) -> None:
        self.count = 0
        self.task: asyncio.Task[Any] | None = None
        self.at: int | None = None

    async def __call__(self, request: Any) -> None:
        for _ in range(2):
            self.count += 1
            if self.task is not None and self.count == self.at:
                self.task.cancel()
            await asyncio.sleep(0)


async def cancel_everywhere(
    files: Rig, flow: Callable[[], Coroutine[Any, Any, Any]], check: Callable[[], Coroutine[Any, Any, None]]
) -> set[str]:
    """Run a flow repeatedly, cancelling it at another moment each time; return the ways in which it ended."""
    steps = files.service.before = files.service.after = Steps()
    await flow()
    moments = steps.count
    random = Random(SEED)
    ends = set()
    for at in sorted({random.randint(1, moments) for _ in range(ROUNDS)} | {1, moments}):
        steps.count, steps.at = 0, at
        steps.task = asyncio.ensure_future(flow())
        try:
            await steps.task
        except asyncio.CancelledError:
            ends.add("cancelled")
        else:
            ends.add("done")
        steps.task = None
        await check()
    return ends


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("kind", ["bytes", "file", "stream"])
def test_a_put_cancelled_at_any_moment_leaves_all_or_nothing_and_no_upload(way: Way, kind: str) -> None:
    async def main(files: Rig) -> None:
        path = files.file(DATA)

        async def put() -> None:
            source: Any = {"bytes": DATA, "file": path, "stream": io.BufferedReader(io.BytesIO(DATA))}[kind]
            await files.db.files.put("it", source)

        async def check() -> None:
            assert files.uploads_now() == ()
            if await files.db.files.exists("it"):
                assert await files.db.files.get("it") == DATA
            await files.db.files.delete("it")

        assert "cancelled" in await cancel_everywhere(files, put, check)

    with open_rig(way) as files:
        asyncio.run(main(files))


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_composition_cancelled_at_any_moment_leaves_all_or_nothing_and_no_upload(way: Way) -> None:
    parts = [pattern(5 * 1024 * 1024), b"between", pattern(5 * 1024 * 1024 + 1)]

    async def main(files: Rig) -> None:
        files.service.traits = None
        for number, data in enumerate(parts):
            await files.db.files.put(f"source/{number}", data)

        async def compose() -> None:
            await files.db.files.compose([f"source/{number}" for number in range(3)], "it")

        async def check() -> None:
            assert files.uploads_now() == ()
            if await files.db.files.exists("it"):
                assert await files.db.files.get("it") == b"".join(parts)
            await files.db.files.delete("it")

        assert "cancelled" in await cancel_everywhere(files, compose, check)

    with open_rig(way) as files:
        asyncio.run(main(files))


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_download_cancelled_at_any_moment_leaves_all_or_nothing(way: Way) -> None:
    async def main(files: Rig) -> None:
        await files.db.files.put("it", DATA)
        target = files.directory / "target"

        async def download() -> None:
            await files.db.files.download("it", target)

        async def check() -> None:
            left = [path.name for path in files.directory.iterdir() if "target" in path.name]
            assert left in ([], ["target"])
            if left:
                assert target.read_bytes() == DATA
                target.unlink()

        assert "cancelled" in await cancel_everywhere(files, download, check)

    with open_rig(way) as files:
        asyncio.run(main(files))


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_cancelled_put_starts_no_further_parts(way: Way) -> None:
    async def main(files: Rig) -> None:
        task = asyncio.ensure_future(files.db.files.put("it", pattern(500 * PART)))

        def cancel(request: Any) -> None:
            if isinstance(request, UploadPart) and request.number == 2:
                task.cancel()

        files.service.before = cancel
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(files.service.list_sent(UploadPart)) <= 2 + (way.parallel or 1)
        assert not files.service.list_sent(CompleteUpload)
        assert files.uploads_now() == ()

    with open_rig(way) as files:
        asyncio.run(main(files))


def test_an_upload_that_begins_while_the_caller_is_cancelled_is_aborted() -> None:
    async def main(files: Rig) -> None:
        task = asyncio.ensure_future(files.db.files.put("it", DATA))
        began = asyncio.Event()

        async def wait(request: Any) -> None:
            if isinstance(request, BeginUpload):
                task.cancel()
                began.set()
                await asyncio.sleep(0)  # the reply arrives after the task was cancelled

        files.service.before = wait
        with pytest.raises(asyncio.CancelledError):
            await task
        assert began.is_set()
        assert files.uploads_now() == ()

    with open_rig(Way("memory", "awaiting", 1)) as files:
        asyncio.run(main(files))


def test_a_cancelled_transfer_leaves_nothing_in_a_bucket() -> None:
    async def main(files: Rig) -> None:
        data = pattern(30_000_000)
        for number in (1, 3):
            task = asyncio.ensure_future(files.db.files.put("it", data))

            def cancel(request: Any, number: int = number, task: Any = task) -> None:
                if isinstance(request, UploadPart) and request.number == number:
                    task.cancel()

            files.service.before = cancel
            with pytest.raises(asyncio.CancelledError):
                await task
            files.service.before = lambda request: None
            assert await files.uploads() == ()
            assert await files.keys() == []
        await files.db.files.put("it", data)

        def cancel_it(request: Any) -> None:
            if isinstance(request, GetObject) and request.start:
                reading.cancel()

        reading = asyncio.ensure_future(files.db.files.download("it", files.directory / "target"))
        files.service.before = cancel_it
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert [path for path in files.directory.iterdir() if "target" in path.name] == []

    with open_rig(Way("S3", "awaiting")) as files:
        asyncio.run(main(files))


def test_a_put_is_aborted_when_its_time_limit_expires() -> None:
    class Slow:
        """A stream that never ends and lets other tasks run between reads."""

        async def read(self, size: int) -> bytes:
            await asyncio.sleep(0)
            return bytes(PART)

    async def main(files: Rig) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await files.db.files.put("it", Slow())
        assert files.uploads_now() == ()
        assert await files.keys() == []

    with open_rig(Way("memory", "awaiting", 1)) as files:
        asyncio.run(main(files))
