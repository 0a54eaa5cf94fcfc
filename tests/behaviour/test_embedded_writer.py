"""The embedded engine's writes on event loops: in order, seen through, and delivered to the loop that asked."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.embedded.writer import Writer
from holdall.core import GetItem, NotExists, PutItem
from holdall.core import Path as AttributePath
from holdall.core.requests import CreateTable
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.errors import ConditionFailedError, StoreClosedError

TABLE = TableSchema("table", KeyAttribute("k", "S"))


def put(name: str, **more: Any) -> PutItem:
    return PutItem("table", {"k": {"S": name}}, **more)


def test_many_writes_of_several_loops_are_each_answered(tmp_path: Path) -> None:
    backend = EmbeddedBackend(tmp_path / "store.db", durability="normal")
    backend.send_blocking(CreateTable(TABLE))
    new = NotExists(AttributePath(("k",)))

    async def write(loop: int) -> int:
        names = [f"{loop}-{n // 2}" for n in range(40)]  # each twice: the second is refused
        answers = await asyncio.gather(
            *(backend.send_awaiting(put(name, condition=new)) for name in names), return_exceptions=True
        )
        return sum(isinstance(answer, ConditionFailedError) for answer in answers)

    refused: list[int] = []
    threads = [threading.Thread(target=lambda n=n: refused.append(asyncio.run(write(n)))) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == [20, 20, 20]
    backend.close()


def test_a_write_whose_caller_is_cancelled_is_seen_through() -> None:
    backend = EmbeddedBackend(None)
    backend.send_blocking(CreateTable(TABLE))
    begun, go_on = threading.Event(), threading.Event()
    ends: list[str] = []

    async def main() -> None:
        writer = Writer()

        def write(request: Any) -> Any:
            begun.set()
            assert go_on.wait(30)
            return backend.send_blocking(request)

        async def caller() -> None:
            try:
                await writer.call(write, put("a"))
            finally:
                ends.append(
                    "over" if backend.send_blocking(GetItem("table", {"k": {"S": "a"}})).item else "early"
                )

        task = asyncio.ensure_future(caller())
        await asyncio.to_thread(begun.wait, 30)
        for _ in range(2):  # a second one does not make it leave either
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        writer.close()

    asyncio.run(main())
    assert ends == ["over"]
    backend.close()


def test_a_closed_store_takes_no_more_writes() -> None:
    backend = EmbeddedBackend(None)
    backend.send_blocking(CreateTable(TABLE))
    asyncio.run(backend.send_awaiting(put("a")))
    backend.close()
    with pytest.raises(StoreClosedError):
        asyncio.run(backend.send_awaiting(put("b")))
