"""We measure transactions as DynamoDB Local does, to the byte. AWS makes both that server and DynamoDB.

The other local server measures the JSON of the request instead.
"""

from __future__ import annotations

from uuid import uuid4

import pytest
from differential_pair import open_unchecked_wire

from holdall.core.expressions import (
    Add,
    Compare,
    Exists,
    In,
    Not,
    NotExists,
    Or,
    Set,
    Update,
    path,
    value,
)
from holdall.core.measure import item_size
from holdall.core.requests import (
    ConditionCheck,
    CreateTable,
    DeleteItem,
    DeleteTable,
    PutItem,
    TransactAction,
    TransactWrite,
    UpdateItem,
)
from holdall.core.rules.payload import MAX_SUBSTITUTIONS, MAX_TRANSACTION, payload_size
from holdall.core.rules.validation import check
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.core.values import Item, encode_item
from holdall.errors import InvalidExpressionError, TransactionTooLarge

SERVER = "DynamoDB Local"
LARGE = value("x" * 380_000)


def key(name: str) -> Item:
    return encode_item({"pk": name})


def mix(table: str) -> list[TransactAction]:
    """Actions and values of every kind, with conditions that hold in an empty table."""
    new = Or((NotExists(path("pk")), Compare("=", path("größe"), LARGE)))
    odd = {
        "n": -12.5,
        "b": b"\x00\x01",
        "s": {"a", "bb"},
        "ns": {1, 22},
        "l": [None, True, {"ü": 1}],
        "e": "",
    }
    return [
        PutItem(table, encode_item({"pk": "put", **odd}), new),
        UpdateItem(
            table,
            key("update"),
            Update((Set(path("größe"), value(odd)), Add(path("count"), value(1234567890)))),
            Or((NotExists(path("größe")), Compare("=", path("count"), value(0.001)))),
        ),
        DeleteItem(table, key("delete"), new),
        *[ConditionCheck(table, key(f"check {number}"), new) for number in range(7)],
    ]


def test_a_transaction_has_the_size_that_the_server_measures() -> None:
    table = f"holdall-sizes-{uuid4().hex}"
    schema = TableSchema(table, KeyAttribute("pk"))
    actions = mix(table)
    room = MAX_TRANSACTION - sum(map(payload_size, actions))
    empty = item_size(encode_item({"pk": "1", "x": ""}))

    def request(size: int) -> TransactWrite:
        halves = size // 3, size // 3, size - 2 * (size // 3)
        padding = [
            PutItem(table, encode_item({"pk": str(number), "x": "y" * (half - empty)}))
            for number, half in enumerate(halves)
        ]
        return TransactWrite((*actions, *padding), str(uuid4()))

    with open_unchecked_wire(SERVER) as send:
        send(CreateTable(schema))
        try:
            with pytest.raises(TransactionTooLarge, match="payload size cannot exceed 4MB"):
                send(request(room + 1))
            with pytest.raises(TransactionTooLarge):
                check(request(room + 1), {table: schema}.__getitem__)
            check(request(room), {table: schema}.__getitem__)
            send(request(room))
        finally:
            send(DeleteTable(table))


def test_stored_items_do_not_count_towards_the_size_of_a_transaction() -> None:
    table = f"holdall-sizes-{uuid4().hex}"
    schema = TableSchema(table, KeyAttribute("pk"))
    small = Update((Set(path("n"), value(1)),))
    updates = tuple(UpdateItem(table, key(str(number)), small, Exists(path("x"))) for number in range(11))
    with open_unchecked_wire(SERVER) as send:
        send(CreateTable(schema))
        try:
            for number in range(11):
                send(PutItem(table, {**key(str(number)), "x": LARGE.attribute}))
            request = TransactWrite(updates, str(uuid4()))
            check(request, {table: schema}.__getitem__)
            send(request)
        finally:
            send(DeleteTable(table))


def test_the_names_and_values_of_a_write_have_the_size_that_the_server_measures() -> None:
    """The server refuses so large a condition anyway; its reason shows whether names and values exceeded the limit."""
    table = f"holdall-sizes-{uuid4().hex}"
    schema = TableSchema(table, KeyAttribute("pk"))

    def write(size: int) -> PutItem:
        texts = ["a" * (size // 2), "b" * (size - size // 2)]
        return PutItem(table, key("a"), Not(In(path("größe"), tuple(map(value, texts)))))

    most = MAX_SUBSTITUTIONS - len("#0größe".encode()) - 2 * len(":0")
    with open_unchecked_wire(SERVER) as send:
        send(CreateTable(schema))
        try:
            with pytest.raises(TransactionTooLarge, match="ExpressionAttributeValues exceeds max size"):
                send(write(most + 1))
            with pytest.raises(TransactionTooLarge):
                check(write(most + 1), {table: schema}.__getitem__)
            with pytest.raises(InvalidExpressionError, match="Expression size has exceeded"):
                send(write(most))
            check(write(most), {table: schema}.__getitem__)
        finally:
            send(DeleteTable(table))
