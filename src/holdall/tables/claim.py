"""Claims of objects' keys, as items of the table: for services that cannot refuse to replace what is there.

A claim is one item, ``holdall#Claim#<service>#<digest of the key>``, which one id holds. It is written before the
object and goes with it. Claiming again with the same id is claiming once, so a lost reply does no harm: a claim is
free, or ours already.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from holdall.core.context import Context
from holdall.core.port import run
from holdall.core.requests import BatchWrite, DeleteItem
from holdall.errors import ConfigurationError
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.flow import discover, fetch_table
from holdall.tables.layout import Address, Layout
from holdall.tables.record import Record, text


class Claim(Record, type="holdall.Claim"):
    """A claimed key, and the id that holds it."""

    id = text("claim_id")
    key = text("claim_key")


class TableClaims:
    """The claims of one service, in both colours; each with a context of its own."""

    def __init__(
        self, service: str, blocking: Callable[[], Context], awaiting: Callable[[], Context]
    ) -> None:
        self._service = service
        self._blocking = blocking
        self._awaiting = awaiting

    def claim_blocking(self, key: str, id: str) -> bool:
        """Whether the key is claimed by the id, now or already before; False when another id has it."""
        return run(claim(self._blocking(), self._service, key, id))

    async def claim_awaiting(self, key: str, id: str) -> bool:
        """The same; the event loop goes on."""
        return await claim(self._awaiting(), self._service, key, id)

    def release_blocking(self, key: str) -> None:
        """The object is deleted: whoever comes next may claim the key."""
        run(release(self._blocking(), self._service, key))

    async def release_awaiting(self, key: str) -> None:
        """The same; the event loop goes on."""
        await release(self._awaiting(), self._service, key)


async def claim(context: Context, service: str, key: str, id: str) -> bool:
    """Claim a key for an id; whether that has it now."""
    address = _locate(await discover(context), service, key)
    change = Change(context)
    change.put(
        Claim.new(address, Claim.id.set(id), Claim.key.set(key)),
        expect=[address.absent | Claim.id.equals(id)],
    )
    return await commit_once(change) is None


async def release(context: Context, service: str, key: str) -> None:
    """Let go of a key, whoever has claimed it; without a table nobody has."""
    try:
        layout = await discover(context)
    except ConfigurationError:
        if await fetch_table(context, context.settings.table_name) is None:
            return  # as in a database of files or artifacts alone
        raise
    address = _locate(layout, service, key)
    # as a batch: where a reply is lost it is sent again, which does no harm here
    await context.port.send(BatchWrite((DeleteItem(address.table, address.key),)))


def _locate(layout: Layout, service: str, key: str) -> Address:
    h = f"holdall#Claim#{service}#{sha256(key.encode()).hexdigest()}"
    return layout.address(h, "#", h)
