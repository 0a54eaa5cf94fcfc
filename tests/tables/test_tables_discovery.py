"""The layout is discovered once per database, however many callers need it; a failure is not remembered."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from tables_rig import ScriptedStore, description

from holdall import AsyncDatabase, Database
from holdall.core import CreateTable, DescribeTable, KeyAttribute, Request, TableDescription, TableSchema
from holdall.errors import ConfigurationError, ServiceUnavailableError

R = TypeVar("R")

UNMANAGED: dict[str, Any] = {"table_name": "app", "manage_table": False}


def make_store(*schemas: TableSchema) -> ScriptedStore:
    store = ScriptedStore()
    for schema in schemas:
        store.send_blocking(CreateTable(schema))
    return store


STRINGS = TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk"))


def test_the_table_is_described_once() -> None:
    store = make_store(STRINGS)
    with Database(backend=store, **UNMANAGED) as db:
        layouts = {id(db.table.layout()) for _ in range(5)}
        assert len(layouts) == 1
        assert store.sent["DescribeTable"] == 1


def test_the_table_is_not_described_before_the_layout_is_needed() -> None:
    store = make_store(STRINGS)
    with Database(backend=store, **UNMANAGED) as db:
        assert db.table.name == "app"
        assert store.sent["DescribeTable"] == 0


def test_a_failure_is_not_remembered() -> None:
    store = make_store(STRINGS)
    store.script(DescribeTable, ServiceUnavailableError("down"))
    with Database(backend=store, **UNMANAGED) as db:
        with pytest.raises(ServiceUnavailableError):
            db.table.layout()
        assert db.table.layout().mode == "A"


def test_without_management_a_missing_table_is_refused_and_not_created() -> None:
    store = make_store()
    with Database(backend=store, **UNMANAGED) as db:
        with pytest.raises(ConfigurationError, match="there is no table app"):
            db.table.layout()
        assert store.sent["CreateTable"] == 0
        store.inner.send_blocking(CreateTable(STRINGS))
        assert db.table.layout().mode == "A"


def test_without_management_a_missing_index_is_refused_and_not_created() -> None:
    store = make_store(TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk", "N")))
    with Database(backend=store, **UNMANAGED) as db:
        with pytest.raises(ConfigurationError, match="needs the index"):
            db.table.layout()
        assert store.sent["AddIndex"] == 0


def test_with_management_a_missing_table_or_index_is_created_when_it_is_first_needed() -> None:
    with Database("memory:") as db:
        assert not db.table.exists()
        assert db.table.layout().mode == "A"
        assert db.table.exists()
        db.table.delete()
        db.send(CreateTable(TableSchema("holdall", KeyAttribute("id"), KeyAttribute("version", "N"))))
        assert db.table.layout().mode == "B"


def test_after_create_and_delete_the_layout_is_discovered_again() -> None:
    with Database("memory:", manage_table=False) as db:
        db.table.create()
        assert db.table.layout().mode == "A"
        db.table.delete()
        with pytest.raises(ConfigurationError):
            db.table.layout()
        db.table.create(mode="B")
        assert db.table.layout().mode == "B"


def test_sync_and_async_share_the_discovered_layout() -> None:
    store = make_store(STRINGS)
    with Database(backend=store, **UNMANAGED) as db:
        found = db.table.layout()
        assert asyncio.run(db.aio.table.layout()) is found
        assert db.aio.sync.table.layout() is found
        assert store.sent["DescribeTable"] == 1


# --- concurrent callers ---


class Gate:
    """A store whose descriptions wait until the test opens the gate."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.asked = 0
        self.answers: list[TableDescription | Exception] = [description()]

    def send_blocking(self, request: Request[R]) -> R:
        assert isinstance(request, DescribeTable)
        self.asked += 1
        self.entered.set()
        assert self.open.wait(30)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    async def send_awaiting(self, request: Request[R]) -> R:
        return await asyncio.to_thread(self.send_blocking, request)

    def close(self) -> None:
        pass


def run_in_threads(count: int, work: Callable[[], object], gate: Gate) -> list[object]:
    """Run the work in several threads, all started before the gate opens; return what each returned or raised."""
    results: list[object] = []
    about_to = threading.Semaphore(0)

    def body() -> None:
        about_to.release()
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001 - the test inspects it
            results.append(error)

    threads = [threading.Thread(target=body) for _ in range(count)]
    for thread in threads:
        thread.start()
    for _ in threads:
        about_to.acquire()
    assert gate.entered.wait(30)
    gate.open.set()
    for thread in threads:
        thread.join()
    return results


def test_many_threads_describe_the_table_once() -> None:
    gate = Gate()
    db = Database(backend=gate, **UNMANAGED)
    results = run_in_threads(16, db.table.layout, gate)
    assert len({id(found) for found in results}) == 1
    assert gate.asked == 1


def test_many_tasks_describe_the_table_once() -> None:
    gate = Gate()
    gate.open.set()

    async def work() -> set[int]:
        db = AsyncDatabase(backend=gate, **UNMANAGED)
        return {id(found) for found in await asyncio.gather(*(db.table.layout() for _ in range(16)))}

    assert len(asyncio.run(work())) == 1
    assert gate.asked == 1


def test_many_tasks_share_a_failure_and_the_next_call_tries_again() -> None:
    gate = Gate()
    gate.answers = [ServiceUnavailableError("down"), description()]
    gate.open.set()

    async def work() -> None:
        db = AsyncDatabase(backend=gate, **UNMANAGED)
        results = await asyncio.gather(*(db.table.layout() for _ in range(16)), return_exceptions=True)
        assert {type(result) for result in results} == {ServiceUnavailableError}
        assert gate.asked == 1
        assert (await db.table.layout()).mode == "A"
        assert gate.asked == 2

    asyncio.run(work())


def test_cancelling_the_first_caller_does_not_fail_the_others() -> None:
    gate = Gate()

    async def work() -> None:
        db = AsyncDatabase(backend=gate, **UNMANAGED)
        first = asyncio.create_task(db.table.layout())
        others = [asyncio.create_task(db.table.layout()) for _ in range(3)]
        await asyncio.to_thread(gate.entered.wait, 30)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        gate.open.set()
        assert {layout.mode for layout in await asyncio.gather(*others)} == {"A"}
        assert gate.asked == 2

    asyncio.run(work())


def test_event_loops_do_not_wait_for_each_other() -> None:
    gate = Gate()
    db = AsyncDatabase(backend=gate, **UNMANAGED)

    async def nest() -> str:
        task = asyncio.create_task(db.table.layout())
        await asyncio.to_thread(gate.entered.wait, 30)
        gate.open.set()
        # this thread's loop runs the test, so its request cannot finish now: the other loop must send its own
        other = await asyncio.to_thread(lambda: asyncio.run(db.table.layout()))
        assert db.sync.table.layout().mode == other.mode
        return (await task).mode

    assert asyncio.run(nest()) == "A"


def test_a_description_requested_before_a_change_is_not_kept_after_it() -> None:
    gate = Gate()
    gate.answers = [description(), description("pk:S", None)]
    db = Database(backend=gate, **UNMANAGED)

    def forget() -> None:
        assert gate.entered.wait(30)
        db._context.forget_tables()
        gate.open.set()

    changer = threading.Thread(target=forget)
    changer.start()
    assert db.table.layout().mode == "A"
    changer.join()
    with pytest.raises(ConfigurationError, match="no sort key"):
        db.table.layout()


def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent() -> None:
    script = """
import os, sys, threading, warnings
from holdall import Database
from holdall.core import KeyAttribute, TableDescription, TableSchema

entered, leave = threading.Event(), threading.Event()
parent = os.getpid()
schema = TableSchema("app", KeyAttribute("pk"), KeyAttribute("sk"))

class Store:
    def send_blocking(self, request):
        if os.getpid() == parent:
            entered.set()
            leave.wait(60)
        return TableDescription(schema, "ACTIVE", {}, 0, 0)
    def close(self): pass

db = Database(backend=Store(), table_name="app", manage_table=False)
thread = threading.Thread(target=db.table.layout)
thread.start()
entered.wait(60)
warnings.simplefilter("ignore")  # the test forks beside a thread on purpose
child = os.fork()
if child == 0:
    os._exit(0 if db.table.layout().mode == "A" else 1)
_, status = os.waitpid(child, 0)
leave.set()
thread.join()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
