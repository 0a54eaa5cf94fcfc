"""The rules for items and keys: complete, of the right types, neither empty nor too large.

Pure. Raises `InvalidKeyError`, `InvalidValueError` and `ItemTooLargeError`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from itertools import chain

from holdall.core.expressions import Path
from holdall.core.measure import canonical_item
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidExpressionError, InvalidKeyError, ItemTooLargeError

MAX_ITEM = 400 * 1024
MAX_PARTITION_KEY = 2048
MAX_SORT_KEY = 1024
MAX_KEY = MAX_PARTITION_KEY + MAX_SORT_KEY + 2 * 255  # including the names of its attributes

KEY_TYPES = {"S": "string", "N": "number", "B": "binary"}


def check_item(schema: TableSchema, item: Item) -> tuple[dict[str, Attribute], int]:
    """Check an item's values, keys, index keys and size; return it as it is stored, with its size in bytes."""
    kept, size = canonical_item(item)
    if size > MAX_ITEM:
        check_item_size(size, schema, kept)
    check_keys(schema, schema, kept)
    for index in schema.indexes:
        check_index_key(schema, index, kept)
    return kept, size


def check_key(schema: TableSchema, key: Item) -> dict[str, Attribute]:
    """Check a key (only key attributes, of the right types, neither empty nor too long); return it as it is stored."""
    if len(key) != (1 if schema.sort is None else 2):
        extra = sorted(key.keys() - {part.name for part in schema.keys})
        if extra:
            raise InvalidKeyError(
                f"the key of table {schema.name} does not include {', '.join(extra)}", hint=_key_hint(schema)
            )
    kept, _ = canonical_item(key)
    check_keys(schema, schema, kept)
    return kept


def check_item_size(size: int, schema: TableSchema, item: Item) -> None:
    """Raise `ItemTooLargeError` if an item is larger than 400 KB."""
    if size > MAX_ITEM:
        key = ", ".join(
            f"{part.name}={value!r:.80}" for part in schema.keys for value in item.get(part.name, {}).values()
        )
        raise ItemTooLargeError(
            f"the item {key} of table {schema.name} has {size:,} bytes; DynamoDB allows {MAX_ITEM:,}",
            hint="store large content as a file or an attachment, and only its key in the item",
        )


def check_index_key(schema: TableSchema, index: IndexSchema, item: Item) -> None:
    """Check that an index's key attributes, if present, have the right type and are neither empty nor too long."""
    for keys, limit in ((index.partitions, MAX_PARTITION_KEY), (index.sorts, MAX_SORT_KEY)):
        for part in keys:
            attribute = item.get(part.name)
            if attribute is not None:
                check_key_attribute(schema, index, part, attribute, limit)


def check_keys(schema: TableSchema, keyed: TableSchema | IndexSchema, item: Item) -> None:
    """Check that every key attribute of the table or index is present and valid."""
    first = 1 if keyed is schema else len(keyed.partitions)
    for position, part in enumerate(keyed.keys):
        attribute = item.get(part.name)
        if attribute is None:
            raise InvalidKeyError(
                f"key attribute {part.name} of table {schema.name} is missing", hint=_key_hint(schema)
            )
        limit = MAX_PARTITION_KEY if position < first else MAX_SORT_KEY
        text = attribute.get("S")
        if part.type == "S" and text and len(text) <= limit and text.isascii():
            continue  # an ordinary key, without another call
        check_key_attribute(schema, keyed, part, attribute, limit)


def check_key_attribute(
    schema: TableSchema,
    keyed: TableSchema | IndexSchema,
    part: KeyAttribute,
    attribute: Attribute,
    limit: int,
) -> None:
    """Check that a key attribute has the right type and is neither empty nor too long."""
    content = attribute.get(part.type)
    if content is None:
        raise InvalidKeyError(
            f"key attribute {part.name} of {_owner(schema, keyed)} must be of type "
            f"{KEY_TYPES[part.type]} ({part.type}), not {next(iter(attribute), 'nothing')}",
            hint=_key_hint(keyed),
        )
    if part.type == "N":
        return
    if part.type == "B":
        size = len(b64decode(content))
    else:
        size = len(content) if content.isascii() else len(content.encode())
    if not size:
        raise InvalidKeyError(
            f"key attribute {part.name} of {_owner(schema, keyed)} is empty",
            hint=None
            if keyed is schema
            else "leave out the attribute (in a model, None); the index skips the item",
        )
    if size > limit:
        raise InvalidKeyError(
            f"key attribute {part.name} of {_owner(schema, keyed)} has {size:,} bytes; DynamoDB allows {limit:,}",
            hint="use a digest of the long value as the key",
        )


def _owner(schema: TableSchema, keyed: TableSchema | IndexSchema) -> str:
    return f"table {schema.name}" if keyed is schema else f"index {keyed.name} of table {schema.name}"


def _key_hint(keyed: TableSchema | IndexSchema) -> str:
    parts = ", ".join(f"{part.name} ({part.type})" for part in keyed.keys)
    return f"the key of {keyed.name} is {parts}"


def check_scalar_keys(schema: TableSchema, paths: Sequence[Path]) -> None:
    """Check that no path leads into a key attribute of the table or an index: a key is never a list or map."""
    nested = [path for path in paths if len(path.parts) > 1] if paths else ()
    if not nested:
        return
    parts = chain(schema.keys, *(index.keys for index in schema.indexes))
    keys = {part.name for part in parts}
    for path in nested:
        if path.parts[0] in keys:
            raise InvalidExpressionError(
                f"{path} leads into {path.parts[0]}, which is a key of table {schema.name} or of an index",
                hint=f"a key has no parts; use the path {path.parts[0]}",
            )


def canonical_attribute(attribute: Attribute) -> Attribute:
    """Return an attribute in its stored form."""
    return canonical_item({"key": attribute})[0]["key"]
