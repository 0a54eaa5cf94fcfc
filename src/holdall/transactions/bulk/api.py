"""Bulk writes as users see them, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, TypeVar

from holdall.core.context import Context
from holdall.core.internal import internal
from holdall.core.port import run, wait
from holdall.errors import InvalidRequestError
from holdall.models.keys.key import ModelKey
from holdall.models.model import Model
from holdall.transactions.bulk.batch import Batches, BulkReport

M = TypeVar("M", bound=Model)

Items: TypeAlias = Iterable[M]
"""Items, as any iterable."""

AsyncItems: TypeAlias = Iterable[M] | AsyncIterable[M]
"""Items, as an iterable or an async one."""

Targets: TypeAlias = Iterable[M | ModelKey[M]]
"""Keys, and items that stand for their keys, as any iterable."""

AsyncTargets: TypeAlias = Iterable[M | ModelKey[M]] | AsyncIterable[M | ModelKey[M]]
"""Keys, and items that stand for their keys, as an iterable or an async one."""


class BulkWrites:
    """What the sync and the async form of bulk writes have in common."""

    @internal
    def __init__(self, context: Context, batches: Batches) -> None:
        self._context = context
        self._batches = batches
        self._open = False

    @property
    def report(self) -> BulkReport:
        """How many items are known to be written and deleted so far."""
        return self._batches.report

    def _check_open(self, method: str) -> None:
        if not self._open:
            raise InvalidRequestError(
                f"{method} was called outside a with block, which would send its last batch",
                hint=f"write `with db.bulk(Model) as bulk:` (`async with` for AsyncDatabase), or use {method}_all",
            )


class Bulk(BulkWrites, Generic[M]):
    """Writes and deletes items of a model in batches of 25, without conditions and outside any transaction.

    Nothing is locked: a put replaces whatever is stored under the key, and a later write wins. Writes are sent while
    you add more; the rest is sent at the end of the ``with`` block, or dropped if the block raises an error.
    """

    def put(self, item: M) -> None:
        """Write a new item, ``Order(...)``, replacing any item with its key. It is encoded now and sent later."""
        self._check_open("put")
        if self._batches.put(item):
            run(self._batches.flush(), self._context)

    def delete(self, target: M | ModelKey[M]) -> None:
        """Delete the item under a key, whether or not it exists; an item stands for its key."""
        self._check_open("delete")
        if self._batches.delete(target):
            run(self._batches.flush(), self._context)

    def put_all(self, items: Items[M]) -> BulkReport:
        """Put every item of an iterable, which may be a generator of any length, and send all of them."""
        return self._add_all(self._batches.put, items)

    def delete_all(self, targets: Targets[M]) -> BulkReport:
        """Delete the items under all these keys, and send all deletes."""
        return self._add_all(self._batches.delete, targets)

    def _add_all(self, add: Any, items: Iterable[Any]) -> BulkReport:
        if not self._open:
            with self:
                return self._add_all(add, items)
        for item in items:
            if add(item):
                run(self._batches.flush(), self._context)
        run(self._batches.flush(), self._context)
        return self._batches.report

    def __enter__(self) -> Self:
        run(self._batches.begin(), self._context)
        self._open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        run(self._batches.finish(error), self._context)


class AsyncBulk(BulkWrites, Generic[M]):
    """Writes and deletes items of a model in batches of 25, without conditions and outside any transaction.

    Nothing is locked: a put replaces whatever is stored under the key, and a later write wins. Writes are sent while
    you add more; the rest is sent at the end of the ``async with`` block, or dropped if the block raises an error.
    """

    async def put(self, item: M) -> None:
        """Write a new item, ``Order(...)``, replacing any item with its key. It is encoded now and sent later."""
        self._check_open("put")
        if self._batches.put(item):
            await wait(self._batches.flush(), self._context)

    async def delete(self, target: M | ModelKey[M]) -> None:
        """Delete the item under a key, whether or not it exists; an item stands for its key."""
        self._check_open("delete")
        if self._batches.delete(target):
            await wait(self._batches.flush(), self._context)

    async def put_all(self, items: AsyncItems[M]) -> BulkReport:
        """Put every item of an iterable, sync or async and of any length, and send all of them."""
        return await self._add_all(self._batches.put, items)

    async def delete_all(self, targets: AsyncTargets[M]) -> BulkReport:
        """Delete the items under all these keys, and send all deletes."""
        return await self._add_all(self._batches.delete, targets)

    async def _add_all(self, add: Any, items: Any) -> BulkReport:
        if not self._open:
            async with self:
                return await self._add_all(add, items)
        if isinstance(items, AsyncIterable):
            async for item in items:
                if add(item):
                    await wait(self._batches.flush(), self._context)
        else:
            for item in items:
                if add(item):
                    await wait(self._batches.flush(), self._context)
        await wait(self._batches.flush(), self._context)
        return self._batches.report

    async def __aenter__(self) -> Self:
        await wait(self._batches.begin(), self._context)
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        await wait(self._batches.finish(error), self._context)
