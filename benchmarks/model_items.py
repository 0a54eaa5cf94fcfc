"""The orders that the benchmarks of models read and write, as Python values and in their stored form.

This module imports only the standard library, so that the workers of every environment can share it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = ["BULK", "COUNT", "FIELDS", "TABLE", "documents", "key_document", "rows", "values"]

TABLE = "holdall"
COUNT = 100
"""Orders of one customer, which a query returns."""

BULK = 500
"""Orders in one round of a bulk write."""

FIELDS = (
    *("customer", "number", "product", "quantity", "price"),
    *("paid", "placed_at", "note", "tags", "address"),
)

Document = dict[str, dict[str, Any]]

_FIRST = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def values(number: int) -> dict[str, Any]:
    """An order with ten fields; its price is exact in binary, for peers that read floats."""
    return {
        "customer": f"customer-{number // COUNT:04}",
        "number": f"{number % COUNT:06}",
        "product": f"Coffee, roast {number % 97}",
        "quantity": number % 7 + 1,
        "price": number % 89 + 10.5,
        "paid": number % 3 == 0,
        "placed_at": _FIRST + timedelta(minutes=number),
        "note": "Leave it with the neighbours, please" if number % 2 else None,
        "tags": ["beans", "gift"],
        "address": {"street": f"{number % 211} Mill Lane", "city": "Zürich"},
    }


def rows() -> list[tuple[Any, ...]]:
    """Every field of one customer's orders, as each library must return them."""
    return [tuple(values(number).values()) for number in range(COUNT)]


def key_document(number: int) -> Document:
    """The key of an order in the database's table."""
    order = values(number)
    return {"pk": {"S": f"Order#{order['customer']}"}, "sk": {"S": order["number"]}}


def documents(first: int = 0) -> list[Document]:
    """One customer's orders as Holdall stores them, except for the time, which has PynamoDB's form.

    PynamoDB reads no other form; Holdall reads both. ``first`` is the number of the first order.
    """
    return [_document(number) for number in range(first, first + COUNT)]


def _document(number: int) -> Document:
    order = values(number)
    address: dict[str, str] = order["address"]
    stored: Document = {
        **key_document(number),
        "_type": {"S": "Order"},
        **{name: {"S": order[name]} for name in ("customer", "number", "product", "note") if order[name]},
        **{name: {"N": str(order[name])} for name in ("quantity", "price")},
        "paid": {"BOOL": order["paid"]},
        "placed_at": {"S": order["placed_at"].strftime("%Y-%m-%dT%H:%M:%S.%f+0000")},
        "tags": {"L": [{"S": tag} for tag in order["tags"]]},
        "address": {"M": {name: {"S": text} for name, text in address.items()}},
    }
    return stored
