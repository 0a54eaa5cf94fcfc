"""Async writes of the embedded engine: in order, completed in spite of cancellation, each answered on its own loop."""

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.embedded.writer import Writer
from holdall.core import Done, GetItem, NotExists, PutItem, Scan, TransactWrite, WriteReply
from holdall.core import Path as AttributePath
from holdall.core.requests import CreateTable
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.errors import ConditionFailedError, ItemTooLargeError, StoreClosedError

TABLE = TableSchema("table", KeyAttribute("k", "S"))


def put(name: str, more: dict[str, Any] | None = None, **options: Any) -> PutItem:
    return PutItem("table", {"k": {"S": name}, **({} if more is None else {"more": more})}, **options)


def test_many_writes_of_several_loops_are_each_answered(tmp_path: Path) -> None:
    backend = EmbeddedBackend(tmp_path / "store.db", durability="normal")
    backend.send_blocking(CreateTable(TABLE))
    new = NotExists(AttributePath(("k",)))

    async def write(loop: int) -> int:
        names = [f"{loop}-{n // 2}" for n in range(40)]  # each twice; the second write is refused
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


def test_waiting_writes_share_a_commit_and_each_gets_its_own_outcome(tmp_path: Path) -> None:
    backend = EmbeddedBackend(tmp_path / "store.db", durability="normal")
    backend.send_blocking(CreateTable(TABLE))
    statements: list[str] = []
    backend._connections.read(lambda connection: connection.set_trace_callback(statements.append))
    rival = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    new = NotExists(AttributePath(("k",)))
    two = (put("pair-a"), put("pair-b", condition=new))

    async def main() -> list[Any]:
        rival.execute("BEGIN IMMEDIATE")  # the first write waits for this, and the others wait for the first
        requests: list[Any] = [put("first"), put("a", condition=new), put("a", condition=new)]
        requests += [put("too large", more={"S": "x" * 410_000}), TransactWrite(two, "token-of-the-pair")]
        requests += [put("pair-b", condition=new), *(put(f"more-{n}") for n in range(10))]
        waiting = [asyncio.ensure_future(backend.send_awaiting(request)) for request in requests[:1]]
        while not statements or not statements[-1].startswith("BEGIN"):
            await asyncio.sleep(0)
        waiting += [asyncio.ensure_future(backend.send_awaiting(request)) for request in requests[1:]]
        await asyncio.sleep(0)
        rival.execute("COMMIT")
        return await asyncio.gather(*waiting, return_exceptions=True)

    answers = asyncio.run(main())
    kinds = [type(answer) for answer in answers]
    assert kinds[:6] == [
        WriteReply,
        WriteReply,
        ConditionFailedError,
        ItemTooLargeError,
        Done,
        ConditionFailedError,
    ]
    assert set(kinds[6:]) == {WriteReply}
    stored = {item["k"]["S"] for item in backend.send_blocking(Scan("table")).items}
    assert stored == {"first", "a", "pair-a", "pair-b", *(f"more-{n}" for n in range(10))}
    rival.close()
    backend.close()


def test_requests_that_are_sent_together_share_one_commit(tmp_path: Path) -> None:
    backend = EmbeddedBackend(tmp_path / "store.db", durability="normal")
    backend.send_blocking(CreateTable(TABLE))
    statements: list[str] = []
    backend._connections.read(lambda connection: connection.set_trace_callback(statements.append))
    new = NotExists(AttributePath(("k",)))
    outcomes = backend.send_together([put("a"), put("a", condition=new), put("b")])
    assert [type(outcome.error) for outcome in outcomes] == [type(None), ConditionFailedError, type(None)]
    assert statements.count("COMMIT") == 1
    backend.close()


def test_a_write_whose_caller_is_cancelled_is_completed() -> None:
    backend = EmbeddedBackend(None)
    backend.send_blocking(CreateTable(TABLE))
    begun, resume = threading.Event(), threading.Event()
    ends: list[str] = []

    async def main() -> None:
        def write(request: Any) -> Any:
            begun.set()
            assert resume.wait(30)
            return backend.send_blocking(request)

        writer = Writer(write, backend.send_together)

        async def caller() -> None:
            try:
                await writer.write(put("a"))
            finally:
                ends.append(
                    "over" if backend.send_blocking(GetItem("table", {"k": {"S": "a"}})).item else "early"
                )

        task = asyncio.ensure_future(caller())
        await asyncio.to_thread(begun.wait, 30)
        for _ in range(2):  # a second cancellation does not end the task early either
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        resume.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        writer.close()

    asyncio.run(main())
    assert ends == ["over"]
    backend.close()


def test_a_closed_store_refuses_writes() -> None:
    backend = EmbeddedBackend(None)
    backend.send_blocking(CreateTable(TABLE))
    asyncio.run(backend.send_awaiting(put("a")))
    backend.close()
    with pytest.raises(StoreClosedError):
        asyncio.run(backend.send_awaiting(put("b")))
