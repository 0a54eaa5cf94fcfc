"""Waiting for tables: until nothing about them is under way, and between two attempts at one that others change."""

from __future__ import annotations

from holdall.core.context import Context
from holdall.core.requests import DescribeTable, TableDescription
from holdall.errors import ServiceUnavailableError, TableNotFoundError
from holdall.tables.provision import in_flux

__all__ = ["PATIENCE", "described", "pauses", "settled", "still"]

PATIENCE = 600.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
_ROUNDS = 12


async def described(context: Context, table: str) -> TableDescription | None:
    """The table as it is now; None when there is none."""
    try:
        return await context.port.send(DescribeTable(table))
    except TableNotFoundError:
        return None


async def settled(context: Context, table: str, *, indexes: bool = False) -> TableDescription | None:
    """The table once nothing about it is under way (with ``indexes``, about them too); None when there is none."""
    waited = 0.0
    pause = _FIRST_PAUSE
    while True:
        description = await described(context, table)
        state = None if description is None else in_flux(description, indexes=indexes)
        if state is None:
            return description
        if waited >= PATIENCE:
            raise still(f"table {table} is still {state} after {PATIENCE:g} seconds")
        await context.port.sleep(pause)
        waited += pause
        pause = min(pause * 2, _LONGEST_PAUSE)


def pauses() -> list[float]:
    """How long to wait after each time that others got in between, before giving up."""
    return [min(_FIRST_PAUSE * 2**turn, _LONGEST_PAUSE) for turn in range(_ROUNDS)]


def still(problem: str) -> ServiceUnavailableError:
    """The end of patience."""
    return ServiceUnavailableError(problem, hint="try again later")
