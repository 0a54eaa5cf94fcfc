"""The rules for table schemas: names, keys, indexes, projections.

Pure. Raises `ConfigurationError` and `IndexExistsError`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdall.core.frozen import replace
from holdall.core.rules.key import KEY_TYPES
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema
from holdall.errors import ConfigurationError, IndexExistsError

MAX_INDEXES = 20
MAX_LOCAL_INDEXES = 5
MAX_KEY_ATTRIBUTES = 4
MAX_PROJECTED = 100
MAX_PROJECTED_PER_INDEX = 20

_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")


def check_table_name(name: str) -> None:
    """Check the name of a table against DynamoDB's rule."""
    _check_name(name, "a table")


def check_index_name(name: str) -> None:
    """Check the name of an index against DynamoDB's rule."""
    _check_name(name, "an index")


def _check_name(name: str, owner: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r:.300} cannot be the name of {owner}",
            hint="use 3 to 255 of the characters A-Z a-z 0-9 _ - .",
        )


def check_schema(schema: TableSchema) -> None:
    """Check a table's schema against DynamoDB's rules."""
    check_table_name(schema.name)
    types: dict[str, str] = {}
    names: set[str] = set()
    _check_key_pair(schema.name, schema.keys, types)
    local = sum(index.local for index in schema.indexes)
    for count, most, kind in (
        (len(schema.indexes) - local, MAX_INDEXES, "indexes"),
        (local, MAX_LOCAL_INDEXES, "local indexes"),
    ):
        if count > most:
            raise ConfigurationError(f"table {schema.name} has {count} {kind}; DynamoDB allows {most}")
    if sum(len(index.projection.names) for index in schema.indexes) > MAX_PROJECTED:
        raise ConfigurationError(
            f"the indexes of table {schema.name} project more than {MAX_PROJECTED} attributes"
        )
    for index in schema.indexes:
        check_index_name(index.name)
        if index.name in names:
            raise ConfigurationError(f"table {schema.name} defines index {index.name} twice")
        names.add(index.name)
        _check_key_pair(index.name, index.keys, types)
        _check_counts(index)
        if index.local:
            _check_local(schema, index)
        if (index.projection.kind == "INCLUDE") != bool(index.projection.names):
            raise ConfigurationError(
                f"index {index.name}: an INCLUDE projection must name attributes, and no other projection can"
            )
        if len(index.projection.names) > MAX_PROJECTED_PER_INDEX:
            raise ConfigurationError(
                f"index {index.name} projects more than {MAX_PROJECTED_PER_INDEX} attributes"
            )
        if not all(1 <= len(name.encode()) <= 255 for name in index.projection.names):
            raise ConfigurationError(
                f"index {index.name}: the name of a projected attribute must have 1 to 255 bytes"
            )
        if len(set(index.projection.names)) != len(index.projection.names):
            raise ConfigurationError(f"index {index.name} projects an attribute twice")


def check_added_index(schema: TableSchema, index: IndexSchema) -> None:
    """Check that the index can be added to the table."""
    if any(index.name == other.name for other in schema.indexes):
        raise IndexExistsError(f"table {schema.name} already has an index {index.name}")
    if index.local:
        raise ConfigurationError(
            f"{index.name}: a local index can only be created together with its table",
            hint=f"use a global index, or create another table with the index and move the items of {schema.name}",
        )
    check_schema(replace(schema, indexes=(*schema.indexes, index)))


def check_removed_index(schema: TableSchema, name: str) -> None:
    """Check that the index can be removed from the table."""
    if schema.index(name).local:
        raise ConfigurationError(
            f"index {name} of table {schema.name} is local and cannot be removed",
            hint="create another table without the index and move the items",
        )


def _check_counts(index: IndexSchema) -> None:
    for kind, keys in (("partition", index.partitions), ("sort", index.sorts)):
        most = 1 if index.local else MAX_KEY_ATTRIBUTES
        if len(keys) > most:
            raise ConfigurationError(
                f"{index.name}: the {kind} key of a {'local' if index.local else 'global'} index can have "
                f"{most} attribute{'s' if most > 1 else ''}, not {len(keys)}"
            )
    if index.more_sort and index.sort is None:
        raise ConfigurationError(f"{index.name}: the attributes of its sort key begin with more_sort")


def _check_local(schema: TableSchema, index: IndexSchema) -> None:
    if schema.sort is None:
        raise ConfigurationError(
            f"{index.name}: a local index needs a table with a sort key, and {schema.name} has none"
        )
    if index.partition != schema.partition or index.sort is None:
        raise ConfigurationError(
            f"{index.name}: a local index has the table's partition key ({schema.partition.name}) and a sort key",
        )


def _check_key_pair(owner: str, keys: Sequence[KeyAttribute], types: dict[str, str]) -> None:
    if len({part.name for part in keys}) != len(keys):
        raise ConfigurationError(f"{owner}: an attribute is twice in the key")
    for part in keys:
        if part.type not in KEY_TYPES:
            raise ConfigurationError(f"{owner}: the type of a key must be S, N or B, not {part.type}")
        if not 1 <= len(part.name.encode()) <= 255:
            raise ConfigurationError(f"{owner}: the name of a key attribute must have 1 to 255 bytes")
        if types.setdefault(part.name, part.type) != part.type:
            raise ConfigurationError(f"{owner}: attribute {part.name} is defined with two types")
