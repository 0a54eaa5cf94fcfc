"""Holdall as a client of the canned server: sync and async, with raw attributes or Python values."""

from __future__ import annotations

from typing import Any

from benchmarks.wire_client import REGION, Client
from benchmarks.wire_items import COUNT, TABLE, document, key, key_document, values
from holdall import AsyncDatabase, Database
from holdall.core import (
    Compare,
    GetItem,
    KeyCondition,
    NotExists,
    PutItem,
    Query,
    Set,
    TransactWrite,
    Update,
    UpdateItem,
    Value,
    decode_item,
    encode,
    encode_item,
    path,
    value,
)

_DOCUMENTS = [document(number) for number in range(COUNT)]
_VALUES = [values(number) for number in range(COUNT)]
_PARTITION = key(0)["pk"]

_VERSION, _PRODUCT = path("version"), path("product")
_NEW = NotExists(path("pk"))


def _url(endpoint: str) -> str:
    return f"dynamodb://{TABLE}?endpoint={endpoint}&region={REGION}"


class _Raw:
    """Requests with raw attributes."""

    @staticmethod
    def get(number: int) -> GetItem:
        return GetItem(TABLE, key_document(number))

    @staticmethod
    def put(number: int) -> PutItem:
        unchanged = Compare("=", _VERSION, Value({"N": str(number)}))
        return PutItem(TABLE, _DOCUMENTS[number % COUNT], unchanged)

    @staticmethod
    def update(number: int) -> UpdateItem:
        changes = (
            Set(_PRODUCT, Value({"S": "Tea"})),
            Set(_VERSION, Value({"N": str(number + 1)})),
        )
        unchanged = Compare("=", _VERSION, Value({"N": str(number)}))
        return UpdateItem(TABLE, key_document(number), Update(changes), unchanged)

    @staticmethod
    def transact(number: int, token: str) -> TransactWrite:
        put = PutItem(TABLE, _DOCUMENTS[(number + 1) % COUNT], _NEW)
        return TransactWrite((_Raw.update(number), put), token)

    @staticmethod
    def query() -> Query:
        return Query(TABLE, KeyCondition("pk", {"S": _PARTITION}))


class _Python:
    """Requests with Python values."""

    @staticmethod
    def get(number: int) -> GetItem:
        return GetItem(TABLE, encode_item(key(number)))

    @staticmethod
    def put(number: int) -> PutItem:
        unchanged = Compare("=", _VERSION, value(number))
        return PutItem(TABLE, encode_item(_VALUES[number % COUNT]), unchanged)

    @staticmethod
    def update(number: int) -> UpdateItem:
        changes = (Set(_PRODUCT, value("Tea")), Set(_VERSION, value(number + 1)))
        unchanged = Compare("=", _VERSION, value(number))
        return UpdateItem(TABLE, encode_item(key(number)), Update(changes), unchanged)

    @staticmethod
    def transact(number: int, token: str) -> TransactWrite:
        put = PutItem(TABLE, encode_item(_VALUES[(number + 1) % COUNT]), _NEW)
        return TransactWrite((_Python.update(number), put), token)

    @staticmethod
    def query() -> Query:
        return Query(TABLE, KeyCondition("pk", encode(_PARTITION)))


def open_blocking_raw(endpoint: str) -> Client:
    """Open a sync client; raw attributes in and out."""
    db = Database(_url(endpoint))
    send, new_id = db.send, db.port.new_id
    return Client(
        {
            "get": lambda number: send(_Raw.get(number)).item,
            "put": lambda number: send(_Raw.put(number)),
            "update": lambda number: send(_Raw.update(number)),
            "transact": lambda number: send(_Raw.transact(number, new_id())),
            "query": lambda number: send(_Raw.query()).items,
        },
        plain=_to_list,
        close=db.close,
    )


def open_blocking(endpoint: str) -> Client:
    """Open a sync client; Python values in and out."""
    db = Database(_url(endpoint))
    send, new_id = db.send, db.port.new_id

    def get(number: int) -> dict[str, Any]:
        item = send(_Python.get(number)).item
        assert item is not None
        return decode_item(item)

    return Client(
        {
            "get": get,
            "put": lambda number: send(_Python.put(number)),
            "update": lambda number: send(_Python.update(number)),
            "transact": lambda number: send(_Python.transact(number, new_id())),
            "query": lambda number: [decode_item(item) for item in send(_Python.query()).items],
        },
        close=db.close,
    )


async def open_awaiting(endpoint: str) -> Client:
    """Open an async client; Python values in and out."""
    db = AsyncDatabase(_url(endpoint))
    send, new_id = db.send, db.port.new_id

    async def get(number: int) -> dict[str, Any]:
        item = (await send(_Python.get(number))).item
        assert item is not None
        return decode_item(item)

    async def query(number: int) -> list[dict[str, Any]]:
        return [decode_item(item) for item in (await send(_Python.query())).items]

    return Client(
        {
            "get": get,
            "put": lambda number: send(_Python.put(number)),
            "update": lambda number: send(_Python.update(number)),
            "transact": lambda number: send(_Python.transact(number, new_id())),
            "query": query,
        },
        close=db.close,
    )


def _to_list(read: Any) -> Any:
    return list(read) if isinstance(read, tuple) else read
