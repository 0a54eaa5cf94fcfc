"""What JavaScript can read back from a model's own table, whose other reader it may be. Pure."""

from __future__ import annotations

from decimal import Decimal

from holdall.core.values import Attribute
from holdall.errors import InvalidValueError

__all__ = ["MAX_SAFE_INTEGER", "check_safe"]

MAX_SAFE_INTEGER = 2**53 - 1


def check_safe(attribute: Attribute) -> None:
    """Refuse whole numbers beyond ±(2^53 - 1), wherever they are: JavaScript would read another number."""
    ((kind, content),) = attribute.items()
    if kind == "N":
        if len(content) > 15 and "." not in content and abs(Decimal(content)) > MAX_SAFE_INTEGER:
            raise InvalidValueError(
                f"{content} is beyond 2^53 - 1, the whole numbers that JavaScript can read",
                hint="store it as a string, or keep the model in the database's own table",
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
