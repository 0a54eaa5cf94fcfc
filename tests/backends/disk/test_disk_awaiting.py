"""Async calls of the service on disk: a cancelled call still finishes its work."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from disk_rig import NAME, Disk

from holdall.core.objects import BeginUpload, CompleteUpload, PutObject, UploadPart


class Gate:
    """A system call that waits until the test opens the gate."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.reached.set()
        assert self.opened.wait(30)
        return self._function(*arguments, **options)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate(os.link)
    monkeypatch.setattr(os, "link", gate)
    return gate


async def cancel_at(gate: Gate, work: asyncio.Task[Any]) -> None:
    """Cancel a task while it works, and check that it still finishes the work."""
    await asyncio.to_thread(gate.reached.wait, 30)
    for _ in range(3):
        work.cancel()
        await asyncio.sleep(0)
        assert not work.done()
    gate.opened.set()
    with pytest.raises(asyncio.CancelledError):
        await work


def test_a_cancelled_put_is_completed(tmp_path: Path, gate: Gate) -> None:
    disk = Disk(tmp_path)

    async def main() -> None:
        put = disk.service.send_awaiting(PutObject(NAME, "key", b"words"))
        await cancel_at(gate, asyncio.ensure_future(put))
        assert disk.get("key").body == b"words"

    asyncio.run(main())


def test_a_cancelled_completion_of_an_upload_is_completed(tmp_path: Path, gate: Gate) -> None:
    disk = Disk(tmp_path)

    async def main() -> None:
        upload = await disk.service.send_awaiting(BeginUpload(NAME, "key"))
        part = await disk.service.send_awaiting(UploadPart(NAME, upload, 1, b"words"))
        complete = disk.service.send_awaiting(CompleteUpload(NAME, upload, (part,)))
        await cancel_at(gate, asyncio.ensure_future(complete))
        assert disk.get("key").body == b"words"
        assert len(disk.files()) == 2

    asyncio.run(main())


def test_an_event_loop_that_ends_waits_for_a_put_that_has_begun(tmp_path: Path, gate: Gate) -> None:
    disk = Disk(tmp_path)

    async def main() -> None:
        put = asyncio.ensure_future(disk.service.send_awaiting(PutObject(NAME, "key", b"words")))
        await asyncio.to_thread(gate.reached.wait, 30)
        assert not put.done()
        asyncio.get_running_loop().call_soon(gate.opened.set)

    asyncio.run(main())
    assert disk.get("key").body == b"words"
