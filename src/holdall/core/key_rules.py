"""What items and keys must be: complete, typed, neither empty nor too large.

Pure. Raises `InvalidKeyError`, `InvalidValueError` and `ItemTooLargeError`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from itertools import chain

from holdall.core.expressions import Path
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema
from holdall.core.values import Attribute, Item, canonical_item
from holdall.errors import (
    InvalidExpressionError,
    InvalidKeyError,
    ItemTooLargeError,
)

MAX_ITEM = 400 * 1024
MAX_PARTITION_KEY = 2048
MAX_SORT_KEY = 1024
MAX_KEY = MAX_PARTITION_KEY + MAX_SORT_KEY + 2 * 255  # with the names of its attributes

KEY_TYPES = {"S": "string", "N": "number", "B": "binary"}


def check_item(schema: TableSchema, item: Item) -> tuple[dict[str, Attribute], int]:
    """The item as stored, and its size: values, key attributes, index keys and the 400 KB limit checked."""
    kept, size = canonical_item(item)
    check_item_size(size, schema.name)
    check_keys(schema, schema, kept)
    for index in schema.indexes:
        check_index_key(schema, index, kept)
    return kept, size


def check_key(schema: TableSchema, key: Item) -> dict[str, Attribute]:
    """The key as stored: just the key attributes, of the right types, neither empty nor too long."""
    if len(key) != (1 if schema.sort is None else 2):
        extra = sorted(key.keys() - {part.name for part in schema.keys})
        if extra:
            raise InvalidKeyError(
                f"{', '.join(extra)} is not part of the key of table {schema.name}", hint=_key_hint(schema)
            )
    kept, _ = canonical_item(key)
    check_keys(schema, schema, kept)
    return kept


def check_item_size(size: int, table: str) -> None:
    """`ItemTooLargeError` for an item over 400 KB."""
    if size > MAX_ITEM:
        raise ItemTooLargeError(
            f"an item of {size:,} bytes for table {table}; DynamoDB takes {MAX_ITEM:,}",
            hint="keep large content in files or attachments and only its key in the item",
        )


def check_index_key(schema: TableSchema, index: IndexSchema, item: Item) -> None:
    """An index's key attributes may be absent, but not of another type, empty or too long."""
    for place, part in enumerate(index.keys):
        attribute = item.get(part.name)
        if attribute is not None:
            check_key_attribute(schema, index, part, attribute, MAX_SORT_KEY if place else MAX_PARTITION_KEY)


def check_keys(schema: TableSchema, keyed: TableSchema | IndexSchema, item: Item) -> None:
    """Every key attribute of the table or index is there and fit to be one."""
    for place, part in enumerate(keyed.keys):
        attribute = item.get(part.name)
        if attribute is None:
            raise InvalidKeyError(
                f"key attribute {part.name} of table {schema.name} is missing", hint=_key_hint(schema)
            )
        limit = MAX_SORT_KEY if place else MAX_PARTITION_KEY
        text = attribute.get("S")
        if part.type == "S" and text and len(text) <= limit and text.isascii():
            continue  # the everyday key, without another call
        check_key_attribute(schema, keyed, part, attribute, limit)


def check_key_attribute(
    schema: TableSchema,
    keyed: TableSchema | IndexSchema,
    part: KeyAttribute,
    attribute: Attribute,
    limit: int,
) -> None:
    """A key attribute has its type, is not empty and not too long."""
    content = attribute.get(part.type)
    if content is None:
        raise InvalidKeyError(
            f"key attribute {part.name} of {_owner(schema, keyed)} is {KEY_TYPES[part.type]} ({part.type}), "
            f"not {next(iter(attribute), 'nothing')}",
            hint=_key_hint(keyed),
        )
    if part.type == "N":
        return
    if part.type == "B":
        size = len(b64decode(content))
    else:
        size = len(content) if content.isascii() else len(content.encode())
    if not size:
        raise InvalidKeyError(f"key attribute {part.name} of {_owner(schema, keyed)} is empty")
    if size > limit:
        raise InvalidKeyError(
            f"key attribute {part.name} of {_owner(schema, keyed)} has {size:,} bytes; DynamoDB takes {limit:,}",
            hint="use a digest of the long value as the key",
        )


def _owner(schema: TableSchema, keyed: TableSchema | IndexSchema) -> str:
    return f"table {schema.name}" if keyed is schema else f"index {keyed.name} of table {schema.name}"


def _key_hint(keyed: TableSchema | IndexSchema) -> str:
    parts = ", ".join(f"{part.name} ({part.type})" for part in keyed.keys)
    return f"the key of {keyed.name} is {parts}"


def check_scalar_keys(schema: TableSchema, paths: Sequence[Path]) -> None:
    """No path goes into a key attribute, of the table or of any index: what is there is never a list or map."""
    nested = [path for path in paths if len(path.parts) > 1] if paths else ()
    if not nested:
        return
    parts = chain(schema.keys, *(index.keys for index in schema.indexes))
    keys = {part.name for part in parts}
    for path in nested:
        if path.parts[0] in keys:
            raise InvalidExpressionError(
                f"{path} goes into {path.parts[0]}, which is a key of table {schema.name} or of an index",
                hint="a key has no parts; name it whole",
            )


def canonical_attribute(attribute: Attribute) -> Attribute:
    """One attribute in its stored form."""
    return canonical_item({"key": attribute})[0]["key"]
