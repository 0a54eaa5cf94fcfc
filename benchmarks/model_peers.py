"""The orders as a PynamoDB model, and PynamoDB's side of the races. Only the peers' environment has PynamoDB."""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import Any

from benchmarks.model_items import BULK, COUNT, FIELDS, documents, rows, values
from benchmarks.model_worker import Side
from benchmarks.wire_client import REGION

__all__ = ["open_pynamodb_batch_writer", "open_pynamodb_decoder", "open_pynamodb_querier"]

_read_all = attrgetter(*FIELDS)


def _make_model(endpoint: str, table: str = "orders") -> Any:
    """Make the model; the key of its table is the customer and the order's number."""
    attributes = import_module("pynamodb.attributes")
    return type(
        "Order",
        (import_module("pynamodb.models").Model,),
        {
            "Meta": type("Meta", (), {"table_name": table, "region": REGION, "host": endpoint}),
            "customer": attributes.UnicodeAttribute(hash_key=True),
            "number": attributes.UnicodeAttribute(range_key=True),
            "product": attributes.UnicodeAttribute(),
            "quantity": attributes.NumberAttribute(),
            "price": attributes.NumberAttribute(),
            "paid": attributes.BooleanAttribute(),
            "placed_at": attributes.UTCDateTimeAttribute(),
            "note": attributes.UnicodeAttribute(null=True),
            "tags": attributes.ListAttribute(of=attributes.UnicodeAttribute),
            "address": attributes.MapAttribute(),
        },
    )


def _plain(read: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(*row[:-1], row[-1].as_dict()) for row in read]


def open_pynamodb_decoder(endpoint: str) -> Side:
    """Open the decoding that its query does with the items of a reply."""
    order, items = _make_model(endpoint), documents()
    return Side(lambda: [_read_all(order.from_raw_data(item)) for item in items], _plain)


def open_pynamodb_querier(endpoint: str) -> Side:
    """Open a query on a server, in a table that is created and filled first."""
    order = _make_model(endpoint, "queried-orders")
    order.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
    with order.batch_write() as batch:
        for number in range(COUNT):
            batch.save(order(**values(number)))
    customer = rows()[0][0]
    return Side(lambda: [_read_all(row) for row in order.query(customer, consistent_read=True)], _plain)


def open_pynamodb_batch_writer(endpoint: str) -> Side:
    """Open a batch of new orders to the canned server, after a check on ministack that reads the orders back."""
    canned, server = map(_make_model, endpoint.split())
    orders = [values(number) for number in range(BULK)]
    customer = rows()[0][0]

    def write(order: Any) -> list[tuple[Any, ...]]:
        with order.batch_write() as batch:
            for each in orders:
                batch.save(order(**each))
        return []

    def read_back() -> list[tuple[Any, ...]]:
        server.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        write(server)
        return _plain([_read_all(row) for row in server.query(customer, consistent_read=True)])

    return Side(lambda: write(canned), lambda written: read_back())
