"""Steps about async code, and about functions that run both sync and async."""

from __future__ import annotations

import asyncio
import time

from holdall import AsyncDatabase
from holdall.core import (
    Add,
    GetItem,
    KeyCondition,
    Port,
    Query,
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
from tour.bank import CUSTOMERS
from tour.stage import Metered, Tour, step


@step("The same in async")
def in_async(tour: Tour) -> None:
    """The same requests, awaited. A write that was sent finishes even if its task is cancelled."""

    async def count_and_read() -> tuple[int, int]:
        async with AsyncDatabase(tour.url) as db:
            metered = Metered(db.sync, tour.meter)
            key = encode_item({"name": "tasks"})
            up = UpdateItem("counters", key, Update((Add(path("n"), value(1)),)))
            await asyncio.gather(*(metered.send_awaiting(up) for _ in range(100)))
            impatient = asyncio.create_task(metered.send_awaiting(up))
            await asyncio.sleep(0)  # lets the task begin
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

    total, seen = asyncio.run(count_and_read())
    tour.voice.say(f"A hundred tasks, then one cancelled after it was sent: the counter says {total}.")
    tour.voice.say(f"async for iterates over pages: ada has {seen} orders.")
    assert total == 101


@step("One function, sync and async")
def flows(tour: Tour) -> None:
    """A function that awaits only its port runs in sync code too, without an event loop."""

    async def find_richest(port: Port) -> str:
        owners = [GetItem("accounts", encode_item({"owner": owner})) for owner in CUSTOMERS]
        outcomes = await port.gather([port.send(read) for read in owners], limit=4)
        items = [decode_item(outcome.result().item or {}) for outcome in outcomes]
        best = max(items, key=lambda account: account["cents"])
        return f"{best['owner']} with {best['cents']:,} cents"

    async def careless(port: Port) -> None:
        await asyncio.sleep(0)

    db = tour.store.db
    blocking, awaited = run(find_richest(db.port)), asyncio.run(find_richest(db.aio.port))
    rounds = 2000

    async def do_nothing(port: Port) -> None: ...

    began = time.perf_counter()
    for _ in range(rounds):
        run(do_nothing(db.port))
    cost = (time.perf_counter() - began) / rounds
    tour.voice.table(["", "richest"], [("sync", blocking), ("async", awaited)])
    tour.voice.say(f"Running an empty function this way takes {cost * 1e6:.2f} µs.")
    assert blocking == awaited
    try:
        run(careless(db.port))
    except FlowSuspended as error:
        tour.voice.refusal("a function that awaits asyncio.sleep", error.code, error.message, error.hint)
