"""The stored form of Python values: which attribute each value becomes, and how an attribute is read without a type.

Pure; imports the core. This table must never change, because stored items contain these forms:

==========================  =======  =========================================================================
Python                      stored   as
==========================  =======  =========================================================================
str                         S
bool                        BOOL
int, float, Decimal         N        canonical decimal text, 38 digits; NaN and infinity are refused
bytes                       B
datetime with a zone        S        ``2026-01-31T09:30:00.000000Z``: UTC, fixed width, so texts sort as times
datetime without            S        the same without the ``Z``
date, time                  S        ISO 8601: ``2026-01-31``, ``09:30:00``, ``09:30:00.000001+02:00``
timedelta                   N        seconds, exactly: ``1.5``
UUID                        S        with hyphens, lower case
Enum, Literal               –        as its value
None                        NULL
list, tuple                 L        also a NamedTuple
dict                        M        a key that is not a str: its text (``7``, ``2026-01-31``, ``true``)
set, frozenset              SS NS BS if every member is stored as S, as N, as B; sorted
an empty set                L        an empty list, because DynamoDB has no empty set
any other set               L        in a fixed order
model, dataclass            M        also a TypedDict; names are aliases; computed fields are omitted
anything else               –        as its JSON form in pydantic
==========================  =======  =========================================================================

`encode_value` needs only the value. `plain` reads an attribute without a type: a number becomes an int if it is whole,
otherwise a float if that is exact, otherwise a Decimal. The codec decides which type a value must have when it is read.
All raise `InvalidValueError`, which names the place inside the value.
"""

from __future__ import annotations

import sys
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from holdall.core.frozen import dataclass
from holdall.core.measure import name_size
from holdall.core.numbers import canonical_number, number_text
from holdall.core.values import Attribute, decode, encode
from holdall.errors import InvalidValueError


@dataclass(frozen=True, slots=True)
class Scalar:
    """How one unstructured type is stored; ``read`` turns the content under ``kind`` back into a value.

    ``read_odd`` is tried on content that ``read`` refuses. ``safe`` checks quickly, for most values, that ``write``
    accepts them; None if it accepts all. A value of ``accepts`` that is not one of ``refuses`` becomes a value of the
    type with ``convert``.
    """

    kind: str
    noun: str
    write: Callable[[Any], Attribute]
    read: Callable[[Any], Any] | None
    read_odd: Callable[[Any], Any] | None = None
    safe: Callable[[Any], bool] | None = None
    accepts: tuple[type, ...] = ()
    refuses: tuple[type, ...] = ()
    convert: Callable[[Any], Any] | None = None


def show(value: object) -> str:
    """Return a value for a message, cut to about sixty characters."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - a user's __repr__ may raise anything
        text = f"<{type(value).__name__} whose repr fails: {type(error).__name__}>"
    return text if len(text) <= 60 else f"{text[:45]}…{text[-14:]}"


# --- value → attribute ----------------------------------------------------------------------------------


def encode_value(value: object) -> Attribute:
    """Return the attribute of a value of any type."""
    form = _FORMS.get(value.__class__) or _find_form(value)
    return form(value)


def _find_form(value: object) -> Callable[[Any], Attribute]:
    for kind, form in _INHERITED:
        if isinstance(value, kind):
            return form
    return _encode_uuid if isinstance(value, _uuid_types()) else _encode_foreign


def _uuid_types() -> tuple[type, ...]:
    module = sys.modules.get("uuid")  # slow to load; if it is not loaded, the value cannot be a UUID
    return () if module is None else (module.UUID,)


def _encode_enum(member: Enum) -> Attribute:
    return encode_value(member.value)


def _encode_uuid(value: object) -> Attribute:
    return {"S": str(value)}


def _encode_moment(moment: datetime) -> Attribute:
    if moment.utcoffset() is None:
        return {"S": datetime.isoformat(moment.replace(tzinfo=None), timespec="microseconds")}
    try:
        moment = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    except OverflowError:
        raise InvalidValueError(f"{moment} is outside the years 1 to 9999 in UTC") from None
    return {"S": datetime.isoformat(moment, timespec="microseconds").removesuffix("+00:00") + "Z"}


def _encode_date(day: date) -> Attribute:
    return {"S": date.isoformat(day)}


def _encode_time(clock: time) -> Attribute:
    offset = clock.utcoffset()
    if offset is not None and offset % timedelta(minutes=1):
        raise InvalidValueError(f"the UTC offset of a time must be in whole minutes, not {offset}")
    return {"S": time.isoformat(clock)}


def _encode_seconds(length: timedelta) -> Attribute:
    micros = (length.days * 86400 + length.seconds) * 1_000_000 + length.microseconds
    whole, rest = divmod(abs(micros), 1_000_000)
    return {"N": canonical_number(f"{'-' if micros < 0 else ''}{whole}.{rest:06d}")}


def _encode_list(members: Iterable[object]) -> Attribute:
    parts = []
    for position, member in enumerate(members):
        try:
            parts.append(encode_value(member))
        except InvalidValueError as error:
            raise error.inside(f"[{position}]") from None
    return {"L": parts}


def _encode_map(members: Mapping[Any, object]) -> Attribute:
    parts: dict[str, Attribute] = {}
    for key, member in members.items():
        name = key if key.__class__ is str else _name(key)
        if not (name and name.isascii()):
            name_size(name)
        if name in parts:
            raise InvalidValueError(f"two keys of the map would both be stored as {show(name)}")
        try:
            parts[name] = encode_value(member)
        except InvalidValueError as error:
            raise error.inside(name) from None
    return {"M": parts}


def _name(key: object) -> str:
    attribute = encode_value(key)
    for kind in ("S", "N"):
        if kind in attribute:
            return str(attribute[kind])
    if "BOOL" in attribute:
        return "true" if attribute["BOOL"] else "false"
    raise InvalidValueError(
        f"a value of type {type(key).__name__} cannot be the key of a map",
        hint="use str, a number, a date or an Enum; or store a list of pairs",
    )


def _encode_set(members: Iterable[object]) -> Attribute:
    attributes = [encode_value(member) for member in members]
    kinds = {kind for attribute in attributes for kind in attribute}
    if len(kinds) == 1 and kinds <= _SET_ORDERS.keys():
        (kind,) = kinds
        contents = dict.fromkeys(attribute[kind] for attribute in attributes)
        return {f"{kind}S": sorted(contents, key=_SET_ORDERS[kind])}
    return {"L": sorted(attributes, key=order_of)}


_SET_ORDERS: dict[str, Callable[[str], Any] | None] = {"S": None, "N": Decimal, "B": b64decode}


def order_of(attribute: Attribute) -> str:
    """Return a text that is the same for equal attributes, whatever the order of the names in their maps."""
    from json import dumps

    return dumps(attribute, sort_keys=True)


def _encode_foreign(value: object) -> Attribute:
    """Encode a value of any other type as its JSON form. The codec checks that it can be read back."""
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return encode_value(to_jsonable_python(value, fallback=_by_its_type))
    except (PydanticSerializationError, ValueError) as error:  # ValueError: it contains itself
        if isinstance(error, InvalidValueError):
            raise
        raise InvalidValueError(f"a value of type {type(value).__name__} cannot be stored") from None


def _by_its_type(value: object) -> object:
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(type(value)).dump_python(value, mode="json")
    except PydanticUserError:
        raise InvalidValueError(f"a value of type {type(value).__name__} cannot be stored") from None


_FORMS: dict[type, Callable[[Any], Attribute]] = {
    **dict.fromkeys((str, bool, int, float, Decimal, bytes, type(None)), encode),
    datetime: _encode_moment,
    date: _encode_date,
    time: _encode_time,
    timedelta: _encode_seconds,
    list: _encode_list,
    tuple: _encode_list,
    dict: _encode_map,
    set: _encode_set,
    frozenset: _encode_set,
}

_INHERITED: list[tuple[Any, Callable[[Any], Attribute]]] = [
    (Enum, _encode_enum),  # before str and int, from which it may also derive
    *((kind, form) for kind, form in _FORMS.items()),  # datetime comes before date, bool before int
    (deque, _encode_list),
    (Mapping, _encode_map),
    (AbstractSet, _encode_set),
]


# --- attribute → value ----------------------------------------------------------------------------------


def plain(attribute: Attribute) -> Any:
    """Read an attribute without a type: as None, bool, int, float, Decimal, str, bytes, list, dict or set."""
    try:
        return _plain(attribute)
    except (KeyError, ValueError, AttributeError, TypeError, ArithmeticError):
        decode(attribute)  # raises an error that names the place
        raise


def _plain(attribute: Attribute) -> Any:
    [kind] = attribute
    content = attribute[kind]
    return content if kind == "S" or kind == "BOOL" else _PLAIN[kind](content)


def _plain_number(text: str) -> int | float | Decimal:
    if text.removeprefix("-").isdigit():
        return int(text)
    number = float(text)
    if float.__repr__(number) == text and not number.is_integer():
        return number
    exact = Decimal(text)
    if exact == exact.to_integral_value():
        return int(exact)
    return number if number_text(number) == canonical_number(text) else exact


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "N": _plain_number,
    "B": b64decode,
    "NULL": lambda content: None,
    "L": lambda content: [_plain(member) for member in content],
    "M": lambda content: {name: _plain(member) for name, member in content.items()},
    "SS": set,
    "NS": lambda content: set(map(_plain_number, content)),
    "BS": lambda content: set(map(b64decode, content)),
}


# --- the unstructured types -----------------------------------------------------------------------------


def _read_whole(text: str) -> int:
    number = Decimal(text)  # other programs may write 5 as 5.0 or 5E0
    if number != number.to_integral_value():
        raise ValueError
    return int(number)


def _read_seconds(text: str) -> timedelta:
    # by moving the point in the text, because arithmetic would round to the caller's decimal context
    return timedelta(microseconds=int(Decimal(f"{canonical_number(text)}E6").to_integral_value()))


def _write_text(text: str) -> Attribute:
    return {"S": text} if text.isascii() else encode(text)


def _write_flag(flag: bool) -> Attribute:
    return {"BOOL": flag}


def _write_number(number: Any) -> Attribute:
    return {"N": number_text(number)}


def _safe_integer(number: int) -> bool:
    return number.bit_length() < 127  # 38 digits at most


def _safe_float(number: float) -> bool:
    return 1e-100 < number < 1e100 or -1e100 < number < -1e-100 or number == 0


def _safe_decimal(number: Decimal) -> bool:
    return number.is_finite() and -100 < number.adjusted() < 100 and len(number.as_tuple().digits) <= 38


def _safe_moment(moment: datetime) -> bool:
    return 1 < moment.year < 9999


_TEXT = Scalar(
    "S", "a valid string", _write_text, None, safe=str.isascii, convert=str.__str__, accepts=(str,)
)
_FLAG = Scalar("BOOL", "a valid boolean", _write_flag, None, accepts=(bool,))
_SCALARS: dict[type, Scalar] = {
    str: _TEXT,
    bool: _FLAG,
    int: Scalar("N", "a valid integer", _write_number, int, _read_whole, _safe_integer, (int,), (bool,), int),
    float: Scalar(
        "N", "a valid number", _write_number, float, None, _safe_float, (float, int), (bool,), float
    ),
    Decimal: Scalar("N", "a Decimal", _write_number, Decimal, None, _safe_decimal, (Decimal,)),
    bytes: Scalar("B", "bytes", encode, b64decode, accepts=(bytes,), convert=bytes),
    datetime: Scalar(
        "S", "a valid datetime", _encode_moment, datetime.fromisoformat, None, _safe_moment, (datetime,)
    ),
    date: Scalar("S", "a valid date", _encode_date, date.fromisoformat, accepts=(date,), refuses=(datetime,)),
    time: Scalar(
        "S", "a valid time", _encode_time, time.fromisoformat, safe=lambda clock: False, accepts=(time,)
    ),
    timedelta: Scalar("N", "a valid timedelta", _encode_seconds, _read_seconds, accepts=(timedelta,)),
}


def scalar_of(kind: object) -> Scalar | None:
    """Return how values of an unstructured type are stored; None for any other type."""
    if not isinstance(kind, type):
        return None
    if kind in _uuid_types():
        return Scalar("S", "a valid UUID", _encode_uuid, kind, accepts=(kind,))
    return _SCALARS.get(kind)
