"""Claims of objects' keys, stored in the table, for file services that cannot refuse to replace an object.

A claim is one item, ``holdall#Claim#<service>#<digest of the key>``, held by one id. It is written before the
object, and deleted with it. Claiming a key again with the same id only changes its time, so a lost reply does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from typing import Any

from holdall.core.context import Context
from holdall.core.port import run
from holdall.errors import ConfigurationError
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.flow import discover, fetch_table
from holdall.tables.layout import Address, Layout
from holdall.tables.record import Record, delete_all
from holdall.tables.record_column import RecordColumn, text

_CLAIM = "holdall#Claim#"


class Claim(Record, type="holdall.Claim"):
    """A claimed key, the id that holds it, and when it was claimed."""

    id = text("claim_id")
    key = text("claim_key")
    at: RecordColumn[Any] = text("claim_at", None).through(datetime.isoformat, datetime.fromisoformat)


class TableClaims:
    """The claims of one service, sync and async; each side has its own context."""

    def __init__(
        self, service: str, blocking: Callable[[], Context], awaiting: Callable[[], Context]
    ) -> None:
        self._service = service
        self._blocking = blocking
        self._awaiting = awaiting

    def claim_blocking(self, key: str, id: str) -> bool:
        """Claim a key for an id; return False if another id holds it."""
        return run(claim(self._blocking(), self._service, key, id))

    async def claim_awaiting(self, key: str, id: str) -> bool:
        """Claim a key for an id; return False if another id holds it."""
        return await claim(self._awaiting(), self._service, key, id)

    def release_blocking(self, key: str) -> None:
        """Release the key of a deleted object, so that it can be claimed again."""
        run(release(self._blocking(), self._service, key))

    async def release_awaiting(self, key: str) -> None:
        """Release the key of a deleted object, so that it can be claimed again."""
        await release(self._awaiting(), self._service, key)


async def claim(context: Context, service: str, key: str, id: str) -> bool:
    """Claim a key for an id; return whether the id holds it."""
    address = _locate(await discover(context), service, key)
    change = Change(context)
    change.put(
        Claim.new(address, Claim.id.set(id), Claim.key.set(key), Claim.at.set(context.port.now())),
        expect=[address.absent | Claim.id.equals(id)],
    )
    return await commit_once(change) is None


async def release(context: Context, service: str, key: str) -> None:
    """Release a key, whichever id holds it. Without a table there is nothing to release."""
    try:
        layout = await discover(context)
    except ConfigurationError:
        if await fetch_table(context, context.settings.table_name) is None:
            return  # a database with only files or artifacts
        raise
    await delete_all(context.port, [Claim(_locate(layout, service, key))])


def _locate(layout: Layout, service: str, key: str) -> Address:
    h = f"{_CLAIM}{service}#{sha256(key.encode()).hexdigest()}"
    return layout.address(h, "#", h)


def service_of(h: str) -> str:
    """The service of a claim, from the list that it is in."""
    return h.removeprefix(_CLAIM).rpartition("#")[0]
