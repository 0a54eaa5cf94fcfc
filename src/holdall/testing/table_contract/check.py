"""What a check is, what it gets, and how it is run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from uuid import uuid4

from holdall.backends.port.awaiting import AwaitingPort
from holdall.backends.port.blocking import BlockingPort
from holdall.core.cursor import PageCursor
from holdall.core.expressions import Condition, KeyCondition, Update, UpdateAction
from holdall.core.port import Backend, Port, run
from holdall.core.requests import (
    CreateTable,
    DeleteItem,
    DeleteTable,
    Done,
    GetItem,
    Page,
    PutItem,
    Query,
    Request,
    Returns,
    Scan,
    TransactAction,
    TransactWrite,
    UpdateItem,
)
from holdall.core.schema import IndexSchema, KeyAttribute, KeyType, TableSchema
from holdall.core.values import decode_item, encode, encode_item
from holdall.errors import HoldallError

Capability: TypeAlias = Literal[
    "add_index", "capacity", "immediate_indexes", "multi_attribute_keys", "remove_index", "ttl"
]
"""Capabilities that a backend may lack: to add an index to a table, to report what a request cost, to read an index
right after a write, to have indexes with several attributes in a key, to remove an index, to expire items."""

Calls: TypeAlias = Literal["blocking", "awaiting"]
"""The two ways of waiting."""

R = TypeVar("R")
E = TypeVar("E", bound=HoldallError)


@dataclass(frozen=True)
class Check:
    """One rule of the contract."""

    flow: Callable[[Store], Awaitable[None]]
    requires: frozenset[Capability] = frozenset()

    def __str__(self) -> str:
        subject = self.flow.__module__.rpartition(".")[2]
        return f"{subject}: {self.flow.__name__.replace('_', ' ')}"


def check(*requires: Capability) -> Callable[[Callable[[Store], Awaitable[None]]], Check]:
    """Decorator that makes a check out of a flow; it needs these capabilities."""
    return lambda flow: Check(flow, frozenset(requires))


class Store:
    """A backend under test: its port, tables for one check alone, and shortcuts for common requests."""

    def __init__(self, port: Port) -> None:
        self.port = port
        self._tables: list[str] = []

    async def table(
        self,
        partition: KeyType = "S",
        sort: KeyType | None = None,
        indexes: Iterable[IndexSchema] = (),
    ) -> str:
        """A new table with key attributes ``pk`` and, if wanted, ``sk``."""
        name = f"holdall-contract-{uuid4().hex}"
        range_key = None if sort is None else KeyAttribute("sk", sort)
        schema = TableSchema(name, KeyAttribute("pk", partition), range_key, tuple(indexes))
        await self.port.send(CreateTable(schema))
        self._tables.append(name)
        return name

    async def drop_tables(self) -> None:
        """Delete the tables of this check."""
        while self._tables:
            await self.port.send(DeleteTable(self._tables.pop()))

    def forget(self, table: str) -> None:
        """Do not delete this table in the end, because the check deleted it itself."""
        self._tables.remove(table)

    async def send(self, request: Request[R]) -> R:
        """Send a request."""
        return await self.port.send(request)

    async def put(self, table: str, condition: Condition | None = None, /, **values: Any) -> None:
        """Put an item, given as Python values."""
        await self.port.send(PutItem(table, encode_item(values), condition))

    async def get(self, table: str, /, **key: Any) -> dict[str, Any] | None:
        """The item as Python values, read consistently."""
        item = (await self.port.send(GetItem(table, encode_item(key), consistent=True))).item
        return None if item is None else decode_item(item)

    async def delete(self, table: str, condition: Condition | None = None, /, **key: Any) -> None:
        """Delete an item."""
        await self.port.send(DeleteItem(table, encode_item(key), condition))

    async def update(
        self,
        table: str,
        key: dict[str, object],
        *actions: UpdateAction,
        condition: Condition | None = None,
        returns: Returns = "new",
    ) -> dict[str, Any] | None:
        """Update an item; return what the request returns, as Python values."""
        request = UpdateItem(table, encode_item(key), Update(actions), condition, returns)
        item = (await self.port.send(request)).item
        return None if item is None else decode_item(item)

    async def transact(self, *actions: TransactAction) -> Done:
        """Carry out actions in one transaction, with a new token."""
        return await self.port.send(TransactWrite(actions, self.port.new_id()))

    async def query(
        self,
        table: str,
        partition: object,
        sort: Any = None,
        *,
        by: str = "pk",
        **options: Any,
    ) -> list[dict[str, Any]]:
        """All items of a query, as Python values."""
        key = KeyCondition(by, encode(partition), sort)
        pages = await self.pages(Query(table, key, **options))
        return [decode_item(item) for page in pages for item in page.items]

    async def pages(self, request: Query | Scan) -> list[Page]:
        """All pages of a query or scan."""
        cursor = PageCursor(self.port, request)
        pages = []
        while (page := await cursor.next_page()) is not None:
            pages.append(page)
        return pages


class refused(Generic[E]):  # noqa: N801 - reads as part of a sentence
    """``with refused(InvalidKeyError) as refusal:`` requires that the block raises exactly this, with a message."""

    def __init__(self, kind: type[E]) -> None:
        self._kind = kind
        self._error: E | None = None

    @property
    def error(self) -> E:
        """The error that was raised."""
        assert self._error is not None
        return self._error

    def __enter__(self) -> refused[E]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            raise AssertionError(f"this should have been refused with {self._kind.__name__}")
        if not isinstance(error, self._kind):
            return False
        assert str(error).strip()
        self._error = error
        return True


def run_check(check: Check, backend: Backend, calls: Calls) -> None:
    """Run one check on a backend, with blocking (sync) or awaiting (async) calls; raise if it breaks the contract."""
    if calls == "blocking":
        run(_run_check(check, Store(BlockingPort(backend))))
    else:
        asyncio.run(_run_check(check, Store(AwaitingPort(backend))))


async def _run_check(check: Check, store: Store) -> None:
    try:
        await check.flow(store)
    finally:
        await store.drop_tables()
