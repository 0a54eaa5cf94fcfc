"""Batches: many independent reads or writes in one request."""

from __future__ import annotations

from holdall.core.expressions import Exists, path
from holdall.core.requests import BatchGet, BatchWrite, DeleteItem, GetItem, PutItem
from holdall.core.values import encode_item
from holdall.errors import (
    BatchTooLargeError,
    DuplicateItemError,
    InvalidKeyError,
    InvalidRequestError,
)
from holdall.testing.table_contract.check import Store, check, refused


@check()
async def batch_reads_keep_the_callers_order(store: Store) -> None:
    first, second = await store.table(), await store.table("N", "S")
    await store.put(first, pk="a", n=1)
    await store.put(first, pk="b", n=2)
    await store.put(second, pk=1, sk="x", n=3)
    reads = (
        GetItem(second, encode_item({"pk": 1, "sk": "x"})),
        GetItem(first, encode_item({"pk": "b"}), consistent=True),
        GetItem(first, encode_item({"pk": "missing"}), consistent=True),
        GetItem(second, encode_item({"pk": 1, "sk": "y"})),
        GetItem(first, encode_item({"pk": "a"}), consistent=True),
    )
    reply = await store.send(BatchGet(reads))
    assert [item and item["n"] for item in reply.items] == [
        {"N": "3"},
        {"N": "2"},
        None,
        None,
        {"N": "1"},
    ]


@check()
async def batch_reads_can_be_projected(store: Store) -> None:
    table = await store.table()
    for pk in "ab":
        await store.put(table, pk=pk, n=1, m={"x": pk})
    reads = tuple(GetItem(table, encode_item({"pk": pk}), True, (path("m", "x"),)) for pk in "ba")
    reply = await store.send(BatchGet(reads))
    assert reply.items == (encode_item({"m": {"x": "b"}}), encode_item({"m": {"x": "a"}}))


@check()
async def a_hundred_large_items_come_back_complete(store: Store) -> None:
    table = await store.table()
    blob = "x" * 200_000  # more than 16 MB together, which does not fit into one reply of the service
    for number in range(100):
        await store.put(table, pk=f"k{number}", blob=blob)
    reads = tuple(GetItem(table, encode_item({"pk": f"k{number}"})) for number in range(100))
    reply = await store.send(BatchGet(reads))
    assert [item is not None and len(item["blob"]["S"]) for item in reply.items] == [200_000] * 100


@check()
async def batch_writes_put_and_delete(store: Store) -> None:
    first, second = await store.table(), await store.table()
    await store.put(first, pk="gone")
    await store.send(
        BatchWrite(
            (
                PutItem(first, encode_item({"pk": "a", "n": 1})),
                DeleteItem(first, encode_item({"pk": "gone"})),
                DeleteItem(first, encode_item({"pk": "never there"})),
                PutItem(second, encode_item({"pk": "a", "n": 2})),
            )
        )
    )
    assert await store.get(first, pk="a") == {"pk": "a", "n": 1}
    assert await store.get(first, pk="gone") is None
    assert await store.get(second, pk="a") == {"pk": "a", "n": 2}


@check()
async def batches_over_the_limits_are_refused_whole(store: Store) -> None:
    table = await store.table()
    puts = tuple(PutItem(table, encode_item({"pk": f"k{number}"})) for number in range(26))
    with refused(BatchTooLargeError):
        await store.send(BatchWrite(puts))
    assert await store.get(table, pk="k0") is None
    reads = tuple(GetItem(table, encode_item({"pk": f"k{number}"})) for number in range(101))
    with refused(BatchTooLargeError):
        await store.send(BatchGet(reads))


@check()
async def batches_with_invalid_parts_are_refused_whole(store: Store) -> None:
    table = await store.table()
    good = PutItem(table, encode_item({"pk": "good"}))
    with refused(InvalidRequestError):
        await store.send(BatchWrite(()))
    with refused(InvalidRequestError):
        await store.send(BatchGet(()))
    with refused(DuplicateItemError):
        await store.send(BatchWrite((good, DeleteItem(table, encode_item({"pk": "good"})))))
    with refused(InvalidRequestError):
        await store.send(BatchWrite((good, PutItem(table, encode_item({"pk": "x"}), Exists(path("pk"))))))
    with refused(InvalidKeyError):
        await store.send(BatchWrite((good, PutItem(table, encode_item({"pk": 5})))))
    assert await store.get(table, pk="good") is None
    read = GetItem(table, encode_item({"pk": "good"}))
    with refused(DuplicateItemError):
        await store.send(BatchGet((read, read)))
    with refused(InvalidRequestError):
        await store.send(BatchGet((read, GetItem(table, encode_item({"pk": "x"}), consistent=True))))
