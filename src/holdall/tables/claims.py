"""Claims of objects' keys, as items of the table: for services that cannot refuse to replace what is there.

A claim is one item, ``holdall#Claim#<service>#<digest of the key>``, which one id holds. It is written before the
object and goes with it. Claiming again with the same id is claiming once, so a lost reply does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from holdall.core.context import Context
from holdall.core.expressions import Compare, NotExists, Or, Path, Value
from holdall.core.port import run
from holdall.core.requests import BatchWrite, DeleteItem, PutItem, TransactWrite
from holdall.errors import ConfigurationError, TransactionCanceledError
from holdall.tables.flow import discover
from holdall.tables.waiting import described

__all__ = ["TableClaims"]

_HOLDER = Path(("claim_id",))


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
    layout = await discover(context)
    item = {
        **layout.attributes(*_place(service, key)),
        "_type": {"S": "holdall.Claim"},
        "claim_id": {"S": id},
        "claim_key": {"S": key},
    }
    free = Or((NotExists(_HOLDER), Compare("=", _HOLDER, Value({"S": id}))))
    try:
        await context.port.send(TransactWrite((PutItem(layout.table, item, free),), context.port.new_id()))
    except TransactionCanceledError as error:
        if error.retryable:
            raise
        return False
    return True


async def release(context: Context, service: str, key: str) -> None:
    """Let go of a key, whoever has claimed it; without a table nobody has."""
    try:
        layout = await discover(context)
    except ConfigurationError:
        if await described(context, context.settings.table_name) is None:
            return  # as in a database of files or artifacts alone
        raise
    place = layout.key(*_place(service, key))
    # as a batch: where a reply is lost it is sent again, which does no harm here
    await context.port.send(BatchWrite((DeleteItem(layout.table, place),)))


def _place(service: str, key: str) -> tuple[str, str, str]:
    h = f"holdall#Claim#{service}#{sha256(key.encode()).hexdigest()}"
    return h, "#", h
