"""Steps about many items: pages, indexes, segments, expiry."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from holdall.core import (
    AddIndex,
    BatchWrite,
    BeginsWith,
    Between,
    Compare,
    IndexSchema,
    KeyAttribute,
    KeyCondition,
    Projection,
    PutItem,
    Query,
    Scan,
    Set,
    SetTtl,
    Update,
    UpdateItem,
    decode_item,
    encode_item,
    path,
    value,
)
from tour.bank import CUSTOMERS, PRODUCTS
from tour.stage import Tour, step


@step("Two thousand orders, in pages")
def pages(tour: Tour) -> None:
    """Batches write; queries read a partition in order, page by page. Nothing stays open between pages."""
    orders = [
        {
            "customer": CUSTOMERS[number % 8],
            "number": number,
            "product": PRODUCTS[number // 3 % 5],
            "placed_at": (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number)).isoformat(),
            "quantity": 1 + number % 4,
        }
        for number in range(1, 2001)
    ]
    units = 0.0
    for start in range(0, len(orders), 25):
        batch = tuple(PutItem("orders", encode_item(order)) for order in orders[start : start + 25])
        units += tour.store.send(BatchWrite(batch)).capacity
    tour.voice.say(f"Written in {len(orders) // 25} batches for {units:,.0f} write units.")

    middle = Between(path("number"), value(500), value(1200))
    query = Query("orders", KeyCondition("customer", {"S": "grace"}, middle), limit=30)
    found = list(tour.store.pages(query))
    tour.voice.table(
        ["page", "items", "first", "last", "read units"],
        [
            (place, p.count, p.items[0]["number"]["N"], p.items[-1]["number"]["N"], p.capacity)
            for place, p in enumerate(found, start=1)
        ],
    )
    numbers = [int(item["number"]["N"]) for p in found for item in p.items]
    assert numbers == [
        o["number"] for o in orders if o["customer"] == "grace" and 500 <= int(str(o["number"])) <= 1200
    ]
    backwards = Query("orders", KeyCondition("customer", {"S": "grace"}), reverse=True, limit=1)
    newest = decode_item(tour.store.send(backwards).items[0])
    tour.voice.say(f"Backwards, the first is the newest: number {newest['number']}, {newest['product']}.")


@step("An index, added live")
def live_index(tour: Tour) -> None:
    """An index is added to a table with items. It is complete when the call returns."""
    by_product = IndexSchema("by_product", KeyAttribute("product"), KeyAttribute("placed_at"))
    began = time.perf_counter()
    described = tour.store.send(AddIndex("orders", by_product))
    seconds = time.perf_counter() - began
    tour.voice.say(
        f"Filled with {described.item_count:,} items in {seconds * 1000:.0f} ms: {dict(described.index_status)}."
    )
    february = BeginsWith(path("placed_at"), value("2026-02-1"))
    query = Query(
        "orders",
        KeyCondition("product", {"S": "huila"}, february),
        index="by_product",
        filter=Compare(">=", path("quantity"), value(2)),
        limit=25,
    )
    found = list(tour.store.pages(query))
    tour.voice.table(
        ["", ""],
        [
            ("pages", len(found)),
            ("read", sum(p.scanned for p in found)),
            ("passed the filter", sum(p.count for p in found)),
            ("read units", sum(p.capacity for p in found)),
        ],
    )
    moments = [item["placed_at"]["S"] for p in found for item in p.items]
    assert moments
    assert moments == sorted(moments)

    keys_only = IndexSchema("sold_out", KeyAttribute("sold_out"), projection=Projection("KEYS_ONLY"))
    tour.store.send(AddIndex("orders", keys_only))
    key = encode_item({"customer": "grace", "number": 5})
    marked = UpdateItem("orders", key, Update((Set(path("sold_out"), value("yes")),)))
    tour.store.send(marked)
    few = tour.store.send(Scan("orders", index="sold_out"))
    tour.voice.say(
        f"A sparse index holds only the items that have its attribute: {few.count} of {described.item_count:,}."
    )
    assert few.count == 1


@step("Scans in segments")
def segments(tour: Tour) -> None:
    """A scan reads every item. Segments are disjoint, so threads can share the work."""

    def count(segment: int) -> tuple[int, int, float]:
        scan = Scan("orders", segment=segment, segments=4, count_only=True)
        found = list(tour.store.pages(scan))
        return segment, sum(p.count for p in found), sum(p.capacity for p in found)

    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(count, range(4)))
    tour.voice.table(["segment", "items", "read units"], rows)
    assert sum(row[1] for row in rows) == 2000


@step("Items that expire")
def expiry(tour: Tour) -> None:
    """A TTL attribute holds the time after which an item may be deleted. A later write deletes it."""
    tour.store.send(SetTtl("journal", "expires"))
    now = int(time.time())
    for name, moment in {
        "an hour ago": now - 3600,
        "in an hour": now + 3600,
        "ten years ago": now - 315_360_000,
    }.items():
        tour.store.send(PutItem("journal", encode_item({"id": f"session, {name}", "expires": moment})))
    sessions = Scan("journal", filter=BeginsWith(path("id"), value("session")))
    before = sorted(decode_item(item)["id"] for p in tour.store.pages(sessions) for item in p.items)
    tour.store.close()  # the engine deletes expired items with the first write after opening, then once a minute
    tour.store = tour.open()
    tour.store.send(PutItem("journal", encode_item({"id": "some write"})))
    after = sorted(decode_item(item)["id"] for p in tour.store.pages(sessions) for item in p.items)
    tour.voice.table(
        ["item", "before", "after"], [(i, "there", "there" if i in after else "gone") for i in before]
    )
    tour.voice.say("As in DynamoDB, items whose time is more than five years past are not deleted.")
    assert after == ["session, in an hour", "session, ten years ago"]


@step("The one table, and its command")
def one_table(tour: Tour) -> None:
    """Your application's table: created if it is missing, described, and exported for CloudFormation."""
    table = tour.store.db.table
    table.create()
    layout = table.layout()
    tour.voice.say(f"Table {layout.table} is laid out in mode {layout.mode}: both keys are strings.")
    described = [sys.executable, "-m", "holdall", "--url", tour.url, "table", "describe"]
    shown = subprocess.run(described, capture_output=True, text=True, check=True).stdout
    tour.voice.show("$ holdall table describe\n" + shown.rstrip())
    template = json.loads(table.export())
    resources = [(name, part["Type"]) for name, part in template["Resources"].items()]
    tour.voice.table(["resource for production", "its type"], resources)
    assert table.exists()
