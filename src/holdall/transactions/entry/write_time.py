"""The times of a write: values of fields that Holdall keeps (``field(now=...)``). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdall.models.fields.field import Field
from holdall.models.schema import ModelSchema
from holdall.transactions.entry.field_change import FieldChange

Times = Mapping[Field[Any], Any]
"""Fields and their values, exactly as they will be read back."""


def find_times(schema: ModelSchema, now: datetime, *, new: Mapping[str, Any] | None = None) -> Times:
    """The times that a write at ``now`` stores.

    ``new`` are the values of a whole item; a time of creation that is among them is kept.
    """
    if not schema.timed:
        return {}
    return {
        field: _read_back(field, now)
        for field in schema.timed
        if field.now == "update" or (new is not None and new.get(field.name) is None)
    }


def name_times(times: Times) -> dict[str, Any]:
    """The times by the names of their fields."""
    return {field.name: value for field, value in times.items()}


def list_time_changes(times: Times) -> list[FieldChange]:
    """The times as changes of fields whose old values do not matter."""
    return [(field, None, field.encode(value)) for field, value in times.items()]


def _read_back(field: Field[Any], now: datetime) -> Any:
    """The time as the field stores it, which may be less precise; numbers are whole seconds since 1970."""
    value = now if field.codec.is_time else int(now.timestamp())
    attribute = field.encode(field.validate(value))
    assert attribute is not None
    return field.decode(attribute)
