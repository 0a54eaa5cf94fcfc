"""The items of the wire benchmarks, as Python values and in DynamoDB's JSON.

This module imports nothing, so that the server and the workers of every environment can share it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["COUNT", "TABLE", "document", "documents", "key", "key_document", "many_values", "values"]

TABLE = "orders"
COUNT = 100
"""Items of a page; writes use the same hundred items in turn."""

Document = dict[str, dict[str, Any]]


def key(number: int) -> dict[str, str]:
    """The key of an item."""
    return {"pk": "customer#000042", "sk": f"order#{number:06}"}


def values(number: int) -> dict[str, Any]:
    """An item with ten attributes of mixed types; its numbers are exact in binary, for peers that read floats."""
    return {
        **key(number),
        "version": number + 1,
        "product": f"Coffee, roast {number % 97}",
        "price": number % 89 + 10.5,
        "paid": number % 3 == 0,
        "status": "shipped",
        "note": "Leave it with the neighbours, please",
        "tags": {"beans", "gift"},
        "address": {"street": f"{number % 211} Mill Lane", "city": "Zürich"},
    }


def key_document(number: int) -> Document:
    """The key in DynamoDB's JSON."""
    return {name: {"S": text} for name, text in key(number).items()}


def document(number: int) -> Document:
    """The same item in DynamoDB's JSON, about 370 bytes."""
    item = values(number)
    address: dict[str, str] = item["address"]
    return {
        **{name: {"S": item[name]} for name in ("pk", "sk", "product", "status", "note")},
        "version": {"N": str(item["version"])},
        "price": {"N": str(item["price"])},
        "paid": {"BOOL": item["paid"]},
        "tags": {"SS": sorted(item["tags"])},
        "address": {"M": {name: {"S": text} for name, text in address.items()}},
    }


def many_values() -> list[dict[str, Any]]:
    """A page of items."""
    return [values(number) for number in range(COUNT)]


def documents() -> list[Document]:
    """The same page in DynamoDB's JSON."""
    return [document(number) for number in range(COUNT)]
