"""The demo's tables, and transfers between accounts, for several steps and worker processes."""

from __future__ import annotations

from holdall.core import (
    Add,
    Compare,
    Exists,
    GetItem,
    KeyAttribute,
    Minus,
    Port,
    PutItem,
    Set,
    TableSchema,
    TransactGet,
    TransactWrite,
    Update,
    UpdateItem,
    decode_item,
    encode_item,
    path,
    value,
)
from tour.stage import Metered

ORDERS = TableSchema("orders", KeyAttribute("customer"), KeyAttribute("number", "N"))
ACCOUNTS = TableSchema("accounts", KeyAttribute("owner"))
JOURNAL = TableSchema("journal", KeyAttribute("id"))
COUNTERS = TableSchema("counters", KeyAttribute("name"))

CUSTOMERS = ["ada", "alan", "barbara", "donald", "edsger", "grace", "katherine", "margaret"]
PRODUCTS = ["sidamo", "yirgacheffe", "huila", "kirinyaga", "tarrazu"]


def transfer(port: Port, source: str, target: str, cents: int) -> TransactWrite:
    """A transfer: it debits one account, credits another and adds a line to the journal, all or nothing."""
    token = port.new_id()
    pay = UpdateItem(
        "accounts",
        encode_item({"owner": source}),
        Update((Set(path("cents"), Minus(path("cents"), value(cents))),)),
        condition=Compare(">=", path("cents"), value(cents)),
        item_on_failure=True,
    )
    get = UpdateItem(
        "accounts",
        encode_item({"owner": target}),
        Update((Add(path("cents"), value(cents)),)),
        condition=Exists(path("cents")),
    )
    line = PutItem("journal", encode_item({"id": token, "from": source, "to": target, "cents": cents}))
    return TransactWrite((pay, get, line), token=token)


def read_balances(store: Metered) -> dict[str, int]:
    reads = tuple(GetItem("accounts", encode_item({"owner": owner})) for owner in CUSTOMERS)
    items = store.send(TransactGet(reads)).items
    return {owner: decode_item(item)["cents"] for owner, item in zip(CUSTOMERS, items, strict=True) if item}
