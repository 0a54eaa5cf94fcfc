"""Steps about failures and about the file: lost replies, invalid input, durability, backup, the contract."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from holdall import Database
from holdall.core import (
    Add,
    BatchGet,
    Compare,
    DeleteItem,
    DescribeTable,
    GetItem,
    KeyCondition,
    PutItem,
    Query,
    Request,
    Set,
    TransactWrite,
    Update,
    UpdateItem,
    encode,
    encode_item,
    path,
    value,
)
from holdall.errors import (
    HoldallError,
    OutcomeUnknown,
)
from holdall.testing import Fault, FaultyBackend, checks, run_check
from tour.bank import ACCOUNTS, COUNTERS, JOURNAL, ORDERS
from tour.stage import Metered, Tour, expect, step


@step("Replies that get lost")
def lose_replies(tour: Tour) -> None:
    """A third of all requests or replies is dropped. With a token, a request that is sent again counts once."""
    faults = {Fault.LOST_AFTER: 0.2, Fault.LOST_BEFORE: 0.15}
    rows = []
    for kind in ("with a token", "without"):
        faulty = FaultyBackend(tour.store, faults, seed=7)
        up = UpdateItem("counters", encode_item({"name": kind}), Update((Add(path("n"), value(1)),)))
        sent = 0
        for _ in range(100):
            request: Request[Any] = (
                TransactWrite((up,), tour.store.db.port.new_id()) if kind == "with a token" else up
            )
            while True:
                sent += 1
                try:
                    faulty.send_blocking(request)
                    break
                except OutcomeUnknown:
                    continue
        item = tour.store.send(GetItem("counters", encode_item({"name": kind}))).item
        assert item is not None
        rows.append((kind, 100, sent, item["n"]["N"]))
    tour.voice.table(["increment", "wanted", "sent", "counted"], rows)
    assert rows[0][3] == "100"
    assert rows[1][3] != "100"


@step("Bad input, good messages")
def bad_input(tour: Tour) -> None:
    """DynamoDB's limits hold here too. Each request is refused before anything is written, with a hint."""
    store = tour.store
    order = encode_item({"customer": "ada", "number": 8})
    bad: dict[str, Request[Any]] = {
        "a missing table": GetItem("ordres", order),
        "a key of the wrong type": GetItem("orders", encode_item({"customer": "ada", "number": "one"})),
        "half a key": GetItem("orders", {"customer": {"S": "ada"}}),
        "a Python value that was not encoded": PutItem("accounts", {"owner": "ada"}),  # type: ignore[dict-item]
        "an empty set": PutItem("accounts", {"owner": {"S": "x"}, "tags": {"SS": []}}),
        "half a megabyte": PutItem("accounts", encode_item({"owner": "x", "text": "x" * 500_000})),
        "a sum of text": UpdateItem("orders", order, Update((Add(path("product"), value(1)),))),
        "two overlapping changes": UpdateItem(
            "orders", order, Update((Set(path("a"), value(1)), Set(path("a", "b"), value(2))))
        ),
        "a changed key": UpdateItem("orders", order, Update((Set(path("number"), value(2)),))),
        "one item twice": BatchGet((GetItem("orders", order), GetItem("orders", order))),
        "a missing index": Query("orders", KeyCondition("x", {"S": "y"}), index="by_colour"),
        "a filter on the key": Query(
            "orders", KeyCondition("customer", {"S": "ada"}), filter=Compare(">", path("number"), value(1))
        ),
        "a transaction of 101 actions": TransactWrite(
            tuple(DeleteItem("orders", encode_item({"customer": "x", "number": n})) for n in range(101)), "t"
        ),
    }
    for what, request in bad.items():
        error = expect(HoldallError, store, request)
        tour.voice.refusal(what, error.code, error.message, error.hint)
    for what, thing in {"not a number": [{"price": float("nan")}], "39 digits": 10**38 + 1}.items():
        try:
            encode({"lines": thing})
        except HoldallError as error:
            tour.voice.refusal(what, error.code, error.message, error.hint)


@step("What a commit costs")
def durability(tour: Tour) -> None:
    """durability="full" waits for the disk at each commit; "normal" does not: a power failure may lose some."""
    rows = []
    for choice in ("full", "normal"):
        store = tour.open(durability=choice)
        up = UpdateItem("counters", encode_item({"name": choice}), Update((Add(path("n"), value(1)),)))
        began = time.perf_counter()
        for _ in range(300):
            store.send(up)
        rate = 300 / (time.perf_counter() - began)
        rows.append((f"commits, {choice}", rate, f"{rate:,.0f} per second"))
        store.close()
    read = GetItem("counters", encode_item({"name": "full"}))
    began = time.perf_counter()
    for _ in range(3000):
        tour.store.send(read)
    rate = 3000 / (time.perf_counter() - began)
    rows.append(("point reads", rate, f"{rate:,.0f} per second"))
    tour.voice.bars(rows)


@step("A backup of a file in use")
def backup(tour: Tour) -> None:
    """SQLite makes a consistent copy while the file is in use. The copy is an ordinary database."""
    copy = tour.folder / "backup.db"
    connection = sqlite3.connect(tour.file)
    connection.execute("VACUUM INTO ?", (str(copy),))
    connection.close()
    rows = []
    with Database(f"embedded:{copy}") as restored:
        for schema in (ORDERS, ACCOUNTS, JOURNAL, COUNTERS):
            here = tour.store.send(DescribeTable(schema.name))
            there = restored.send(DescribeTable(schema.name))
            assert (here.item_count, here.size_bytes) == (there.item_count, there.size_bytes)
            rows.append(
                (schema.name, f"{here.item_count:,}", f"{there.item_count:,}", f"{there.size_bytes:,}")
            )
    tour.voice.table(["table", "items here", "items in the backup", "bytes"], rows)


@step("The contract")
def contract(tour: Tour) -> None:
    """Every rule that a backend must keep, checked sync and async. The checks ship with the package."""
    everything = checks()
    for check in everything:
        for colour in ("blocking", "awaiting"):
            with Database("memory:") as db:
                run_check(check, Metered(db, tour.meter), colour)
    tour.voice.say(f"{len(everything)} rules checked, sync and async: all hold.")
    tour.voice.listing("All rules", map(str, everything))
