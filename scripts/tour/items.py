"""Steps about one item or a few: types, numbers, conditions, updates, transactions."""

from __future__ import annotations

import json
from decimal import Decimal

from holdall.core import (
    Add,
    ConditionCheck,
    CreateTable,
    Delete,
    DeleteItem,
    Exists,
    GetItem,
    IfNotExists,
    ListAppend,
    NotExists,
    Plus,
    PutItem,
    Set,
    TransactWrite,
    Update,
    UpdateItem,
    decode_item,
    encode_item,
    item_size,
    path,
    value,
)
from holdall.errors import (
    ConditionFailedError,
    TransactionCanceledError,
)
from tour.bank import ACCOUNTS, COUNTERS, CUSTOMERS, JOURNAL, ORDERS, read_balances, transfer
from tour.stage import Tour, expect, step


@step("Open a file, create tables")
def open_a_file(tour: Tour) -> None:
    """No server and no setup: a path is a database. A table is a name and a key."""
    rows = []
    for schema in (ORDERS, ACCOUNTS, JOURNAL, COUNTERS):
        created = tour.store.send(CreateTable(schema))
        keys = ", ".join(f"{part.name} ({part.type})" for part in created.schema.keys)
        rows.append((schema.name, keys, created.status))
    tour.voice.table(["table", "key", "status"], rows)
    files = "\n".join(
        f"{file.name:14} {file.stat().st_size:>9,} bytes" for file in sorted(tour.folder.iterdir())
    )
    tour.voice.show(files)


@step("The ten types")
def ten_types(tour: Tour) -> None:
    """Every type that DynamoDB stores, from Python and back, exactly, with the bytes that DynamoDB bills."""
    everything: dict[str, object] = {
        "string": "naïve café",
        "number": Decimal("3.14159265358979323846264338327950288420"),
        "binary": b"\x00\x01\xfe\xff",
        "boolean": True,
        "null": None,
        "list": [1, "two", [3]],
        "map": {"city": "London", "zip": "NW1"},
        "string set": {"a", "b"},
        "number set": {1, Decimal("2.5")},
        "binary set": {b"\x00", b"\x01"},
    }
    item = {"owner": "types", **everything}
    tour.store.send(PutItem("accounts", encode_item(item)))
    back = tour.store.send(GetItem("accounts", encode_item({"owner": "types"}), consistent=True)).item
    assert back is not None
    assert decode_item(back) == item
    rows = [
        (name, repr(plain), json.dumps(back[name], ensure_ascii=False), item_size({"x": back[name]}) - 1)
        for name, plain in everything.items()
    ]
    tour.voice.table(["type", "Python", "stored as", "bytes"], rows)
    tour.voice.say(f"The whole item is {item_size(back):,} bytes, and was read back unchanged.")
    tour.store.send(DeleteItem("accounts", encode_item({"owner": "types"})))


@step("Numbers are exact")
def exact_numbers(tour: Tour) -> None:
    """38 digits, decimal, no rounding. A counter that adds 0.1 ten times shows one."""
    key = encode_item({"name": "tenths"})
    tenth = UpdateItem("counters", key, Update((Add(path("sum"), value(0.1)),)), returns="new")
    for _ in range(10):
        last = tour.store.send(tenth).item
    assert last is not None
    big = 10**38 - 2
    huge = UpdateItem("counters", key, Update((Set(path("big"), value(big)),)))
    tour.store.send(huge)
    more = Update((Set(path("big"), Plus(path("big"), value(1))),))
    after = tour.store.send(UpdateItem("counters", key, more, returns="new")).item
    assert after is not None
    assert decode_item(after)["big"] == big + 1
    python = sum([0.1] * 10)
    tour.voice.table(
        ["", "result"],
        [
            ("ten times 0.1, Python's floats", python),
            ("ten times 0.1, stored", last["sum"]["N"]),
            ("38 nines, by adding one", after["big"]["N"]),
        ],
    )
    assert last["sum"] == {"N": "1"}


@step("Only if it is new")
def conditional(tour: Tour) -> None:
    """A write can carry a condition. If it does not hold, nothing is written, and the error explains why."""
    account = encode_item({"owner": "ada", "cents": 10_000})
    create = PutItem("accounts", account, condition=NotExists(path("owner")), item_on_failure=True)
    cost = tour.store.send(create).capacity
    tour.voice.say(f"Ada's account is created, for {cost:g} write unit. The same again:")
    error = expect(ConditionFailedError, tour.store, create)
    tour.voice.refusal("create ada, again", error.code, error.message, error.hint)
    tour.voice.say(f"The error carries the stored item: {decode_item(error.item)}.")
    for owner in CUSTOMERS[1:]:
        tour.store.send(PutItem("accounts", encode_item({"owner": owner, "cents": 10_000})))


@step("Counters, lists and sets")
def updates(tour: Tour) -> None:
    """An update changes an item in place. All its steps read the values from before the update."""
    key = encode_item({"name": "page"})
    steps: dict[str, Set | Add | Delete] = {
        "count up from nothing": Add(path("views"), value(1)),
        "append to a list that may be missing": Set(
            path("log"), ListAppend(IfNotExists(path("log"), value([])), value(["seen"]))
        ),
        "add members to a set": Add(path("tags"), value({"new", "hot"})),
        "set a map": Set(path("author"), value({"name": "ada", "posts": 1})),
        "add inside the map": Set(path("author", "posts"), Plus(path("author", "posts"), value(1))),
        "remove a member": Delete(path("tags"), value({"new"})),
    }
    rows = []
    for what, action in steps.items():
        reply = tour.store.send(UpdateItem("counters", key, Update((action,)), returns="new"))
        assert reply.item is not None
        name = str(action.path.parts[0])
        rows.append((what, name, decode_item(reply.item).get(name), reply.capacity))
    tour.voice.table(["step", "attribute", "afterwards", "units"], rows)


@step("All or nothing")
def transactions(tour: Tour) -> None:
    """A transaction of up to 100 actions succeeds or fails as a whole. Its token makes it safe to send again."""
    before = read_balances(tour.store)
    rent = transfer(tour.store.db.port, "ada", "grace", 2_500)
    first = tour.store.send(rent)
    again = tour.store.send(rent)
    after = read_balances(tour.store)
    tour.voice.table(
        ["account", "before", "after the transfer, sent twice"],
        [(owner, before[owner], after[owner]) for owner in ("ada", "grace")],
    )
    assert after == {**before, "ada": 7_500, "grace": 12_500}
    tour.voice.say(
        f"The first request cost {first.capacity:g} write units. The second had no effect: {again}."
    )

    check = ConditionCheck("accounts", encode_item({"owner": "alan"}), Exists(path("owner")))
    greedy = transfer(tour.store.db.port, "grace", "ada", 1_000_000)
    refused = TransactWrite((check, *greedy.actions), token=greedy.token)
    error: TransactionCanceledError = expect(TransactionCanceledError, tour.store, refused)
    tour.voice.refusal("a million from grace to ada", error.code, error.message, error.hint)
    tour.voice.table(
        ["action", "kind", "reason", "stored item"],
        [
            (place, type(action).__name__, reason.code, decode_item(reason.item) if reason.item else "")
            for place, (action, reason) in enumerate(zip(refused.actions, error.reasons, strict=True))
        ],
    )
    assert read_balances(tour.store) == after
