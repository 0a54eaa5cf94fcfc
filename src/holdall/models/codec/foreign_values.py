"""Checks that JavaScript programs, which may share a model's own table, can read its values. Pure."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from holdall.core.values import Attribute
from holdall.errors import InvalidValueError
from holdall.models.codec.ecmascript import MAX_SAFE_INTEGER


def check_safe(attribute: Attribute) -> None:
    """Raise an error for numbers anywhere in a value that JavaScript would read as another number."""
    ((kind, content),) = attribute.items()
    if kind == "N":
        if len(content) > 15 and "." not in content and abs(Decimal(content)) > MAX_SAFE_INTEGER:
            raise InvalidValueError(
                f"{content} is beyond 2^53 - 1, the largest whole number that JavaScript reads exactly",
                hint="store it as a string, or remove table= to keep the model in the database's table",
            )
        if len(content) > 15 and Decimal(repr(float(content))) != Decimal(content):
            raise InvalidValueError(
                f"{content} has more digits than JavaScript can read",
                hint="round it, or store it as a string",
            )
    elif kind == "L":
        for member in content:
            check_safe(member)
    elif kind == "M":
        for member in content.values():
            check_safe(member)
    elif kind == "NS":
        for number in content:
            check_safe({"N": number})


def without_nulls(attribute: Attribute, decode: Callable[[Attribute], Any]) -> Attribute:
    """Omit null members of maps if they are read back as None without it.

    The JavaScript library omits undefined members, and treats null as a value of the wrong type.
    """
    lean = _lean(attribute)
    if lean == attribute:
        return attribute
    try:
        return lean if decode(lean) == decode(attribute) else attribute
    except InvalidValueError:
        return attribute


def _lean(attribute: Attribute) -> Attribute:
    ((kind, content),) = attribute.items()
    if kind == "L":
        return {"L": [_lean(member) for member in content]}
    if kind == "M":
        return {"M": {name: _lean(member) for name, member in content.items() if "NULL" not in member}}
    return attribute
