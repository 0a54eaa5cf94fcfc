"""The table we would make, and tables as DynamoDB's own tools write them down.

Pure. The texts are what CreateTable, UpdateTable and CloudFormation take, so a person can paste them.
"""

from __future__ import annotations

import json
from typing import Literal, TypeAlias

from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema, define_addition, define_table
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError

Mode: TypeAlias = Literal["A", "B"]
"""How items lie in a table. ``A``: its sort key is a string, and items are listed in the table itself. ``B``: its
sort key is a number, and items are listed in an index with two string keys."""

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
"""Attributes of attachments. No key may have such a name: it would have to hold two things."""


def plan_schema(settings: Settings, mode: Mode = "A") -> TableSchema:
    """The table that the settings ask for."""
    partition = KeyAttribute(_free(settings.partition_key, "partition_key") or "pk")
    sort = KeyAttribute(_free(settings.sort_key, "sort_key") or "sk", "S" if mode == "A" else "N")
    indexes = () if mode == "A" else (plan_index(settings),)
    return TableSchema(settings.table_name, partition, sort, indexes)


def plan_index(settings: Settings) -> IndexSchema:
    """The index that mode B needs, as the settings name it."""
    partition = _free(settings.index_partition_key, "index_partition_key") or "as_index_pk"
    sort = _free(settings.index_sort_key, "index_sort_key") or "as_index_sk"
    return IndexSchema(settings.index_name, KeyAttribute(partition), KeyAttribute(sort))


def _free(name: str | None, setting: str) -> str | None:
    if name in RESERVED:
        raise ConfigurationError(
            f"{setting} is {name!r}, which attachments keep for themselves",
            hint=f"choose another; these are taken: {', '.join(sorted(RESERVED))}",
        )
    return name


def create_table_text(schema: TableSchema) -> str:
    """What CreateTable takes: ``aws dynamodb create-table --cli-input-json``."""
    return json.dumps(define_table(schema), indent=2)


def update_table_text(table: str, index: IndexSchema) -> str:
    """What UpdateTable takes to add an index: ``aws dynamodb update-table --cli-input-json``."""
    return json.dumps(define_addition(table, index), indent=2)


def update_ttl_text(table: str, attribute: str) -> str:
    """What UpdateTimeToLive takes: ``aws dynamodb update-time-to-live --cli-input-json``."""
    specification = {"AttributeName": attribute, "Enabled": True}
    return json.dumps({"TableName": table, "TimeToLiveSpecification": specification}, indent=2)
