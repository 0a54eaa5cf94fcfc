"""Steps about many at once: threads, processes, tasks, and flows in both colours."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from holdall import AsyncDatabase
from holdall.core import (
    Add,
    GetItem,
    KeyCondition,
    Port,
    Query,
    Scan,
    Update,
    UpdateItem,
    decode_item,
    encode_item,
    path,
    run,
    value,
)
from holdall.errors import (
    FlowSuspended,
)
from tour.bank import CUSTOMERS, balances
from tour.stage import Metered, Tour, step

DEMO = Path(__file__).resolve().parents[1] / "demo.py"


@step("Eight threads")
def threads(tour: Tour) -> None:
    """One database object serves all threads. Nobody's count is lost."""
    key = encode_item({"name": "threads"})
    up = UpdateItem("counters", key, Update((Add(path("n"), value(1)),)))
    read = GetItem("counters", key)

    def work(_: int) -> None:
        for _ in range(40):
            tour.store.send(up)
            tour.store.send(read)

    began = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    seconds = time.perf_counter() - began
    item = tour.store.send(GetItem("counters", key, consistent=True)).item
    assert item is not None
    assert item["n"] == {"N": "320"}
    tour.voice.say(
        f"320 increments and 320 reads by 8 threads in {seconds:.2f} s. The counter says {item['n']['N']}."
    )


@step("Processes that are killed")
def processes(tour: Tour) -> None:
    """Three processes move money in one file. Each is killed with SIGKILL in the middle of it."""
    before = balances(tour.store)
    lines = tour.store.send(Scan("journal", count_only=True)).count
    command = [sys.executable, str(DEMO), "--transfer", tour.url]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    acknowledged = 0
    for place, worker in enumerate(workers):
        assert worker.stdout is not None
        for _ in range(60 if place == 0 else 150):
            acknowledged += bool(worker.stdout.readline())
        worker.kill()
        acknowledged += len(worker.stdout.readlines())  # what it had said before it died
        worker.wait()
        worker.stdout.close()
    after = balances(tour.store)
    booked = tour.store.send(Scan("journal", count_only=True)).count - lines
    tour.voice.table(
        ["", ""],
        [
            ("transfers that were acknowledged", acknowledged),
            ("transfers in the journal", booked),
            ("cents before", sum(before.values())),
            ("cents after", sum(after.values())),
        ],
    )
    tour.voice.say("Nothing acknowledged is missing, nothing is half done: not a cent was made or lost.")
    assert sum(after.values()) == sum(before.values())
    assert acknowledged <= booked <= acknowledged + len(workers)  # a last one may be done and not yet said


@step("The same in async")
def in_async(tour: Tour) -> None:
    """The same requests, awaited. A cancelled write is seen through: you never wonder whether it happened."""

    async def visit() -> tuple[int, int]:
        async with AsyncDatabase(tour.url) as db:
            metered = Metered(db.sync, tour.meter)
            key = encode_item({"name": "tasks"})
            up = UpdateItem("counters", key, Update((Add(path("n"), value(1)),)))
            await asyncio.gather(*(metered.send_awaiting(up) for _ in range(100)))
            impatient = asyncio.create_task(metered.send_awaiting(up))
            await asyncio.sleep(0)  # it has begun
            impatient.cancel()
            try:
                await impatient
                raise AssertionError("the task was not cancelled")
            except asyncio.CancelledError:
                pass
            reply = await metered.send_awaiting(GetItem("counters", key, consistent=True))
            assert reply.item is not None
            seen = 0
            async for found in db.pages(Query("orders", KeyCondition("customer", {"S": "ada"}), limit=100)):
                seen += found.count
            return decode_item(reply.item)["n"], seen

    total, seen = asyncio.run(visit())
    tour.voice.say(f"A hundred tasks, then one cancelled after it was sent: the counter says {total}.")
    tour.voice.say(f"Pages are iterated with async for: {seen} orders of ada's.")
    assert total == 101


@step("One text, two colours")
def flows(tour: Tour) -> None:
    """A flow awaits only its port. Blocking code runs it in one step, without an event loop."""

    async def richest(port: Port) -> str:
        owners = [GetItem("accounts", encode_item({"owner": owner})) for owner in CUSTOMERS]
        outcomes = await port.gather([port.send(read) for read in owners], limit=4)
        items = [decode_item(outcome.result().item or {}) for outcome in outcomes]
        best = max(items, key=lambda account: account["cents"])
        return f"{best['owner']} with {best['cents']:,} cents"

    async def careless(port: Port) -> None:
        await asyncio.sleep(0)

    db = tour.store.db
    blocking, awaited = run(richest(db.port)), asyncio.run(richest(db.aio.port))
    rounds = 2000

    async def nothing(port: Port) -> None: ...

    began = time.perf_counter()
    for _ in range(rounds):
        run(nothing(db.port))
    cost = (time.perf_counter() - began) / rounds
    tour.voice.table(["colour", "richest"], [("blocking", blocking), ("awaiting", awaited)])
    tour.voice.say(f"Running a flow that does nothing takes {cost * 1e6:.2f} µs.")
    assert blocking == awaited
    try:
        run(careless(db.port))
    except FlowSuspended as error:
        tour.voice.refusal("a flow that awaits asyncio.sleep", error.code, error.message, error.hint)
