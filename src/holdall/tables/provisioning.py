"""What is missing of a table. Pure: decides, sends nothing. Nothing is ever dropped."""

from __future__ import annotations

from collections.abc import Set

from holdall.core.requests import AddIndex, CreateTable, TableDescription
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError
from holdall.tables.definition import Mode, wanted_index, wanted_schema
from holdall.tables.layout import base_mode

__all__ = ["in_flux", "next_step"]

_FLUX: Set[str] = {"CREATING", "UPDATING", "DELETING"}


def next_step(
    description: TableDescription | None, settings: Settings, mode: Mode | None
) -> CreateTable | AddIndex | None:
    """The next thing to create; None when nothing is missing.

    ``mode`` is for a table that is made anew. One that is there has its mode; `ConfigurationError` when that is not
    the one asked for, or when its key is unfit for either.
    """
    if description is None:
        return CreateTable(wanted_schema(settings, mode or "A"))
    found = base_mode(description, settings)
    if mode not in (None, found):
        raise ConfigurationError(
            f"table {settings.table_name} is there and of mode {found}, not {mode}",
            hint="a table's key cannot be changed: use it as it is, or another table_name",
        )
    if found == "B" and all(index.name != settings.index_name for index in description.schema.indexes):
        return AddIndex(settings.table_name, wanted_index(settings))
    return None


def in_flux(description: TableDescription, *, indexes: bool) -> str | None:
    """The state to wait for the end of: the table's, or one of its indexes'."""
    if description.status in _FLUX:
        return description.status
    states = description.index_status.values() if indexes else ()
    return next((state for state in states if state in _FLUX), None)
