"""The definition of the database's table, and definitions as text for AWS's own tools.

Pure. The texts are parameters of CreateTable, UpdateTable and UpdateTimeToLive, so users can paste them.
"""

from __future__ import annotations

import json
from typing import Literal, TypeAlias

from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema, define_addition, define_table
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError

Mode: TypeAlias = Literal["A", "B"]
"""How a table is organized. ``A``: its sort key is a string, and queries read the table itself. ``B``: its sort key is
a number, and queries read an index with two string keys."""

RESERVED = frozenset(
    {
        "as_id",
        "as_key",
        "as_filename",
        "as_content_type",
        "as_byte_size",
        "as_checksum",
        "as_metadata",
        "as_service_name",
        "as_created_at",
        "as_attachments_count",
        "as_record_type",
        "as_record_id",
        "as_name",
        "as_blob_id",
        "as_variation_digest",
        "as_entity",
    }
)
"""The attributes of attachments. A key attribute cannot have one of these names, because it would hold two values."""


def plan_schema(settings: Settings, mode: Mode = "A") -> TableSchema:
    """Return the schema of the table that the settings describe."""
    partition = KeyAttribute(_free(settings.partition_key, "partition_key") or "pk")
    sort = KeyAttribute(_free(settings.sort_key, "sort_key") or "sk", "S" if mode == "A" else "N")
    indexes = () if mode == "A" else (plan_index(settings),)
    return TableSchema(settings.table_name, partition, sort, indexes)


def plan_index(settings: Settings) -> IndexSchema:
    """Return the schema of the index that mode B needs, with the names from the settings."""
    partition = _free(settings.index_partition_key, "index_partition_key") or "as_index_pk"
    sort = _free(settings.index_sort_key, "index_sort_key") or "as_index_sk"
    return IndexSchema(settings.index_name, KeyAttribute(partition), KeyAttribute(sort))


def _free(name: str | None, setting: str) -> str | None:
    if name in RESERVED:
        raise ConfigurationError(
            f"{setting} is {name!r}, a name that is reserved for attachments",
            hint=f"choose another name; these are reserved: {', '.join(sorted(RESERVED))}",
        )
    return name


def create_table_text(schema: TableSchema) -> str:
    """Return the input of ``aws dynamodb create-table --cli-input-json``."""
    return json.dumps(define_table(schema), indent=2)


def update_table_text(table: str, index: IndexSchema) -> str:
    """Return the input of ``aws dynamodb update-table --cli-input-json`` that adds an index."""
    return json.dumps(define_addition(table, index), indent=2)


def update_ttl_text(table: str, attribute: str) -> str:
    """Return the input of ``aws dynamodb update-time-to-live --cli-input-json``."""
    specification = {"AttributeName": attribute, "Enabled": True}
    return json.dumps({"TableName": table, "TimeToLiveSpecification": specification}, indent=2)
