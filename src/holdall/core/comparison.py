"""Compares attributes: which are equal, and which have an order.

Pure. As in DynamoDB, values of different types are neither equal nor ordered, numbers compare by value, strings by
their UTF-8 bytes (the same order as Python's), sets without order.
"""

from __future__ import annotations

from base64 import b64decode
from decimal import Decimal
from typing import Any

from holdall.core.values import Attribute


def equal(left: Attribute, right: Attribute) -> bool:
    """Whether two attributes are the same value: numbers by value, sets without order."""
    if left == right:
        return True
    ((kind, mine),) = left.items()
    ((other, yours),) = right.items()
    if kind != other:
        return False
    if kind == "N":
        return Decimal(mine) == Decimal(yours)
    if kind == "B":
        return b64decode(mine) == b64decode(yours)
    if kind == "SS":
        return set(mine) == set(yours)
    if kind == "BS":
        return set(map(b64decode, mine)) == set(map(b64decode, yours))
    if kind == "NS":
        return set(map(Decimal, mine)) == set(map(Decimal, yours))
    if kind == "L":
        return len(mine) == len(yours) and all(map(equal, mine, yours))
    if kind == "M":
        return mine.keys() == yours.keys() and all(equal(mine[name], yours[name]) for name in mine)
    return False


def order(attribute: Attribute) -> tuple[str, Any] | None:
    """Return the attribute's type and a sortable value; None if its type has no order."""
    ((kind, content),) = attribute.items()
    if kind == "S":
        return kind, content
    if kind == "N":
        return kind, Decimal(content)
    return (kind, b64decode(content)) if kind == "B" else None
