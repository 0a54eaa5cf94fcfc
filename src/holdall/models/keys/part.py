"""The stored parts of keys: what the components of a partition key or a sort key become in a table.

Pure. In the database's table, the partition key is ``<root>#seg#seg`` and the sort key an order-preserving text (``#``
if the model has none). These forms must never change, because stored items contain them; see
``docs/decisions/0006-model-keys.md``. `foreign` describes the keys in a model's own table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from holdall.core.keys import SortPart, sort_text
from holdall.core.numbers import number_text
from holdall.core.values import Attribute, encode
from holdall.errors import InvalidFieldError, InvalidKeyError, InvalidRequestError, InvalidValueError

if TYPE_CHECKING:
    from holdall.models.fields.field import Field
    from holdall.models.keys.foreign import Kind

KeyPart: TypeAlias = "str | int | float | Decimal"
"""A stored key: a text, or a number in a model's own table if the key is a single number."""

NO_SORT_KEY = "#"
"""The stored sort key of an item whose model has no sort key."""


def partition_text(root: str, keys: Sequence[Field[Any]], components: Mapping[str, Any]) -> str:
    """Return the partition key in the database's table."""
    text = root
    for key in keys:
        text = f"{text}#{segment(key, components[key.name])}"
    return text


def join_sort_text(fields: Sequence[Field[Any]], values: Mapping[str, Any]) -> str:
    """Return the order-preserving text of several components."""
    if len(fields) == 1 and type(text := values[fields[0].name]) is str and text.isascii():
        return text
    try:
        return sort_text(*(_part(field, values[field.name]) for field in fields))
    except (InvalidKeyError, InvalidValueError) as error:
        raise _refuse(fields[0], error) from None


def sort_piece(field: Field[Any], value: Any, *, alone: bool) -> str:
    """Return the text of one component in a sort key."""
    part = _part(field, value)
    try:
        return sort_text(part) if alone else sort_text(part, "")[:-1]
    except (InvalidKeyError, InvalidValueError) as error:
        raise _refuse(field, error) from None


_PARTS = {str, int, float, Decimal, bool, datetime, bytes}
_ESCAPES = {character: f"%{character:02X}" for character in (*range(0x20), 0x7F, ord("%"), ord("#"))}


def segment(field: Field[Any], value: Any) -> str:
    """Return the text of one component in a partition key; separators in it are percent-encoded."""
    text = value if type(value) is str else _canonical(field, value)
    if text.isascii() and text.isprintable() and "%" not in text and "#" not in text:
        return text  # the usual case, with nothing to encode
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise field.refusal("a string with a lone surrogate cannot be part of a key") from None
    return text.translate(_ESCAPES)


def _canonical(field: Field[Any], value: Any) -> str:
    if field.codec.kind not in ("S", "N", "BOOL", "B", None):
        return _json(field, value)
    try:
        part = _part(field, value)
        if isinstance(part, int | float | Decimal) and not isinstance(part, bool):
            return number_text(part)
        return sort_text(part)
    except (InvalidKeyError, InvalidValueError) as error:
        raise _refuse(field, error) from None


def _json(field: Field[Any], value: Any) -> str:
    from holdall.models.codec.ecmascript import stable_json
    from holdall.models.codec.stored_form import plain

    try:
        return stable_json(plain(field.codec.encode(value)))
    except InvalidValueError as error:
        raise _refuse(field, error) from None


def _part(field: Field[Any], value: Any) -> SortPart:
    """Return a component as a value of a type that order-preserving texts support."""
    if type(value) in _PARTS or _is_uuid(value):
        return value  # type: ignore[no-any-return]
    from holdall.models.codec.stored_form import plain

    if isinstance(value, time) and value.tzinfo is not None:
        raise field.refusal(
            "a time with a UTC offset cannot be part of a key, because its text does not sort like the time",
            hint="use a time without an offset, or a datetime",
        )
    stored = plain(field.codec.encode(value))  # an enum's value, a date's text
    if not isinstance(stored, str | int | float | Decimal | bytes):
        raise field.refusal(f"a value of type {type(value).__name__} cannot be part of a key")
    return stored


def _is_uuid(value: object) -> bool:
    return type(value).__name__ == "UUID" and hasattr(value, "hex")


def foreign_part(
    fields: Sequence[Field[Any]], components: Mapping[str, Any], *, numeric: bool = True
) -> KeyPart:
    """Return a key in a model's own table; without ``numeric``, a single number is stored as text, as in old tables."""
    from holdall.models.codec.ecmascript import MAX_SAFE_INTEGER
    from holdall.models.keys.foreign import encode_key

    try:
        values = {field.stored: own_part(field, components[field.name]) for field in fields}
        part = encode_key(values, _kinds(fields), numeric=numeric)
    except (InvalidKeyError, InvalidValueError) as error:
        named = [field for field in fields if error.message.startswith(f"{field.stored}:")]
        raise _refuse((named or fields)[0], error) from None
    if isinstance(part, int) and abs(part) > MAX_SAFE_INTEGER:
        raise fields[0].refusal(
            f"{part} is beyond 2^53 - 1, the largest whole number that JavaScript reads exactly"
        )
    return part


def part_attribute(part: KeyPart) -> Attribute:
    """Return the attribute that stores a part of a key."""
    return {"S": part} if isinstance(part, str) else {"N": number_text(part)}


def own_part(field: Field[Any], value: Any) -> Any:
    """Return a field's own stored value, for a key text or as the key of an index.

    A float stays a float: its stored form would turn 1e25 into an int.
    """
    if type(value) is float:
        return value
    from holdall.models.codec.stored_form import plain

    return plain(field.codec.encode(value))


def decode_components(fields: Sequence[Field[Any]], stored: KeyPart) -> dict[str, Any]:
    """Decode a stored key of a model's own table into its components."""
    from holdall.models.keys.foreign import decode_key

    values = decode_key(stored, _kinds(fields))
    return {field.name: _component(field, values[field.stored]) for field in fields}


def _component(field: Field[Any], value: object) -> Any:
    if isinstance(value, int) and field.codec.annotation is float:
        value = float(value)  # the integer may have more digits than DynamoDB allows
    return field.decode(encode(value))


def _refuse(field: Field[Any], error: InvalidRequestError) -> InvalidFieldError:
    """Turn an error about the text of a key into one that names the field."""
    return field.refusal(error.message.removeprefix(f"{field.stored}: "), hint=error.hint)


def numeric_part(fields: Sequence[Field[Any]]) -> bool:
    """Whether a key is a single number, which a model's own table stores as a number."""
    return len(fields) == 1 and fields[0].codec.kind == "N"


def _kinds(fields: Sequence[Field[Any]]) -> dict[str, Kind]:
    kinds: dict[str | None, Kind] = {"S": "text", "N": "number"}
    return {field.stored: kinds.get(field.codec.kind, "json") for field in fields}
