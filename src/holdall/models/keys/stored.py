"""Decodes a stored key of the database's table into its components.

Pure. A stored item has the components as attributes, but a stream record may hold only the key. `decode_key`
reads exactly what `key` writes: a text that is not exactly the key of its components is not accepted.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from holdall.core.keys import number_order, sort_parts
from holdall.core.numbers import canonical_number, number_text
from holdall.core.values import Attribute, encode
from holdall.models.keys.form import SharedForm
from holdall.models.keys.key import ModelKey

if TYPE_CHECKING:
    from holdall.models.fields.field import Field
    from holdall.models.schema import ModelSchema


def decode_key(schema: ModelSchema, partition: str, sort: str) -> ModelKey[Any] | None:
    """Return the key that is stored like this; None if it is not a key of the model."""
    form = schema.form
    head, *segments = partition.split("#")
    if (
        not isinstance(form, SharedForm)
        or head != form.head
        or len(segments) != len(schema.keys)
        or not sort.startswith(form.sort_head)
    ):
        return None
    fields = (*schema.keys, *schema.sort_keys)
    try:
        texts = [*map(unquote, segments), *_sort_texts(schema, sort[len(form.sort_head) :])]
        components = {field.name: _value(field, text) for field, text in zip(fields, texts, strict=True)}
        key: ModelKey[Any] = ModelKey(schema, components)
    except (ValueError, KeyError, RecursionError):  # Holdall's errors for invalid values are ValueErrors too
        return None
    return key if key.encoded == (partition, sort) else None


def _sort_texts(schema: ModelSchema, sort: str) -> tuple[str, ...]:
    kinds = [str] * len(schema.sort_keys)
    return sort_parts(sort, *kinds) if kinds else ()


def _value(field: Field[Any], text: str) -> Any:
    """Return the component with this text."""
    read = _READERS.get(field.codec.kind or "", _json)
    return field.decode(read(field, text))


def _number(field: Field[Any], text: str) -> Attribute:
    return {"N": number_text(number_order(text)) if field.is_sort_key else canonical_number(text)}


def _text(field: Field[Any], text: str) -> Attribute:
    return {"S": text}


def _flag(field: Field[Any], text: str) -> Attribute:
    return {"BOOL": {"0": False, "1": True}[text]}


def _bytes(field: Field[Any], text: str) -> Attribute:
    return {"B": b64encode(bytes.fromhex(text)).decode("ascii")}


def _json(field: Field[Any], text: str) -> Attribute:
    import json

    return encode(json.loads(text))


_READERS: dict[str, Callable[[Field[Any], str], Attribute]] = {
    "N": _number,
    "S": _text,
    "BOOL": _flag,
    "B": _bytes,
}
"""The readers by the component's stored type; any other type is written as JSON."""
