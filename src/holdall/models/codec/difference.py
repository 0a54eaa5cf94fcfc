"""Differences between a value and what would be read back from its stored form.

Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from decimal import Decimal
from typing import Any

from holdall.errors import InvalidValueError
from holdall.models.codec.stored_form import encode_value, show

Difference = tuple[str, object, object]
"""A place inside two values, and the part that each of them has there."""


def difference(old: object, new: object, *, types_only: bool = False, place: str = "") -> Difference | None:
    """Return the first place where two values differ in type or in content; None if they are the same.

    Numbers are the same if they are equal, datetimes if they are the same moment. With ``types_only``, the parts at a
    place need only have the same type.
    """
    if types_only and (old is GONE or new is GONE):
        return None
    numbers = (int, float, Decimal)
    if not (type(old) in numbers and type(new) in numbers):
        if type(old) is not type(new):
            return place, old, new
        parts = list(_parts(old, new))
        for name, one, other in parts:
            found = difference(one, other, types_only=types_only, place=f"{place}{name}")
            if found is not None:
                return found
        if parts:
            return None
    return None if types_only or old == new or _same_moment(old, new) else (place, old, new)


def explain_change(found: Difference) -> InvalidValueError:
    """Return the error of a value that would be read back as another."""
    place, value, back = found
    kinds = "" if type(value) is type(back) else f" ({type(back).__name__}, not {type(value).__name__})"
    return InvalidValueError(
        f"{show(value)} would be read back from the database as {show(back)}{kinds}",
        hint="use a narrower type, so that the stored value can be read back in only one way",
        place=place.removeprefix("."),
    )


def _same_moment(old: object, new: object) -> bool:
    """Compare two datetimes by their moment: in Python, an hour that clocks repeat never equals one in another zone."""
    return isinstance(old, datetime) and isinstance(new, datetime) and encode_value(old) == encode_value(new)


class _Gone:
    def __repr__(self) -> str:
        return "nothing"


GONE = _Gone()
"""Stands for a part that one of two values lacks."""


def _parts(old: Any, new: Any) -> Iterator[tuple[str, object, object]]:
    """Yield the members of two values of the same type in pairs; nothing for values without members."""
    if isinstance(old, Mapping):
        yield from _entries(old, new)
    elif isinstance(old, Sequence | deque) and not isinstance(old, str | bytes):
        for position in range(max(len(old), len(new))):
            one, other = (side[position] if position < len(side) else GONE for side in (old, new))
            yield f"[{position}]", one, other
    elif isinstance(old, AbstractSet):
        twins = {member: member for member in new}
        for member in old:
            yield "", member, twins.pop(member, GONE)
        for member in twins:
            yield "", GONE, member
    elif hasattr(old, "__dataclass_fields__"):
        for name in old.__dataclass_fields__:
            yield f".{name}", getattr(old, name, GONE), getattr(new, name, GONE)
    elif hasattr(old, "__pydantic_fields_set__"):
        for side in ("__dict__", "__pydantic_extra__"):
            yield from _entries(getattr(old, side, None) or {}, getattr(new, side, None) or {})


def _entries(old: Mapping[Any, object], new: Mapping[Any, object]) -> Iterator[tuple[str, object, object]]:
    twins = {key: key for key in new}
    for key, value in old.items():
        twin = twins.pop(key, GONE)
        yield f".{key}", value, new[key] if type(twin) is type(key) else GONE
    for key in twins:
        yield f".{key}", GONE, new[key]
