"""A table with shared indexes from the start, because DynamoDB Local takes half a minute or more to add one later."""

from __future__ import annotations

from holdall.core import CreateTable, KeyAttribute, TableSchema
from holdall.core.port import Backend
from holdall.models.indexes import slot_schema

SLOTS = 3
"""Enough for the models of the tests."""


def create_with_slots(backend: Backend, name: str) -> None:
    """Create a database's table, with the shared indexes that its models may need."""
    indexes = tuple(slot_schema(number) for number in range(1, SLOTS + 1))
    backend.send_blocking(CreateTable(TableSchema(name, KeyAttribute("pk"), KeyAttribute("sk"), indexes)))
