"""Quick encoders for everyday values: text, ordinary numbers, booleans, times in UTC, lists and dicts of text.

Pure. An encoder recognizes most values of its type by their class, without calling the type's validation, and returns
exactly the attribute that the thorough way would. It passes every other value on to the thorough way. `compile_encoder`
combines the encoders of many fields in one function, for callers that encode many items.

The generated code contains only names of attributes and fields, each as a string literal, and names made up here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from holdall.core.values import Attribute

if TYPE_CHECKING:
    from holdall.models.fields.field import Field

Encoder: TypeAlias = Callable[[Any], Attribute]

ItemEncoder: TypeAlias = Callable[[Mapping[str, Any], dict[str, Attribute]], None]
"""Adds the attributes of an item's values, by field name, to the item."""

_LARGEST = 10**38
_repr_int, _repr_float = int.__repr__, float.__repr__
_isoformat = datetime.isoformat


def make_quick(base: Any, thorough: Encoder) -> Encoder:
    """An encoder of values of a type; ``thorough`` itself if there is no quicker way."""
    make = _MAKERS.get(base)
    return thorough if make is None else make(thorough)


def _of_text(thorough: Encoder) -> Encoder:
    def encode(value: Any) -> Attribute:
        if value.__class__ is str and (value.isascii() or _is_unicode(value)):
            return {"S": value}
        return thorough(value)

    return encode


def _is_unicode(text: str) -> bool:
    """Whether the text can be written as UTF-8: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_flag(thorough: Encoder) -> Encoder:
    def encode(value: Any) -> Attribute:
        return {"BOOL": value} if value is True or value is False else thorough(value)

    return encode


def _of_integer(thorough: Encoder) -> Encoder:
    def encode(value: Any) -> Attribute:
        if value.__class__ is int and -_LARGEST < value < _LARGEST:
            return {"N": _repr_int(value)}
        return thorough(value)

    return encode


def _of_float(thorough: Encoder) -> Encoder:
    def encode(value: Any) -> Attribute:
        if value.__class__ is float and (1e-4 <= value < 1e15 or -1e15 < value <= -1e-4):
            return {"N": _repr_float(value).removesuffix(".0")}  # in this range, without an exponent
        return thorough(value)

    return encode


def _of_moment(thorough: Encoder) -> Encoder:
    def encode(value: Any) -> Attribute:
        if value.__class__ is datetime and value.tzinfo is UTC:
            return {"S": f"{_isoformat(value, 'T', 'microseconds')[:-6]}Z"}  # instead of +00:00
        return thorough(value)

    return encode


def _of_texts(thorough: Encoder) -> Encoder:
    def encode(value: Any) -> Attribute:
        if value.__class__ is not list:
            return thorough(value)
        members = []
        for member in value:
            if member.__class__ is not str or not (member.isascii() or _is_unicode(member)):
                return thorough(value)
            members.append({"S": member})
        return {"L": members}

    return encode


def _of_named_texts(thorough: Encoder) -> Encoder:
    def encode(value: Any) -> Attribute:
        if value.__class__ is not dict:
            return thorough(value)
        members = {}
        for name, member in value.items():
            if member.__class__ is not str or name.__class__ is not str or not name or not name.isascii():
                return thorough(value)
            if not (member.isascii() or _is_unicode(member)):
                return thorough(value)
            members[name] = {"S": member}
        return {"M": members}

    return encode


_MAKERS: dict[Any, Callable[[Encoder], Encoder]] = {
    str: _of_text,
    bool: _of_flag,
    int: _of_integer,
    float: _of_float,
    datetime: _of_moment,
    list[str]: _of_texts,
    dict[str, str]: _of_named_texts,
}


def compile_encoder(fields: Iterable[Field[Any]]) -> ItemEncoder:
    """A function that encodes these fields of an item.

    It fails in any way if a value is missing or invalid; the caller then encodes field by field, to find the reason.
    """
    names: dict[str, Any] = {"LARGEST": _LARGEST}
    lines = ["def encode(values, item):"]
    for number, field in enumerate(fields):
        if field.shared_set:
            names[f"encode_{number}"] = field.encode
            lines.append(f" if (found := encode_{number}(values[{field.name!r}])) is not None:")
            lines.append(f"  item[{field.stored!r}] = found")
            continue
        encode: Any = field.encode if field.foreign else field.codec.encode_checked
        names[f"encode_{number}"] = encode
        everyday = next((code for make, code in _INLINE.items() if _is_made_by(make, encode)), "")
        lines.append(f" value = values[{field.name!r}]")
        lines.append(
            f" {'if value is not None: ' if field.codec.nullable else ''}"
            f"item[{field.stored!r}] = {everyday}encode_{number}(value)"
        )
    exec("\n".join([*lines, " return None"]), names)
    found: ItemEncoder = names["encode"]
    return found


_INLINE: dict[Callable[[Encoder], Encoder], str] = {
    _of_text: "{'S': value} if value.__class__ is str and value.isascii() else ",
    _of_flag: "{'BOOL': value} if value is True or value is False else ",
    _of_integer: "{'N': f'{value}'} if value.__class__ is int and -LARGEST < value < LARGEST else ",
}
"""The code of the simplest encoders, without a call."""


def _is_made_by(make: Callable[[Encoder], Encoder], encode: Encoder) -> bool:
    return getattr(encode, "__qualname__", "") == f"{make.__name__}.<locals>.encode"
