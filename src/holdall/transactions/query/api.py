"""Queries and scans as users see them, sync and async: rows, which are fetched as the caller iterates."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from holdall.core.context import Context
from holdall.core.internal import internal
from holdall.core.port import run, wait
from holdall.models.model import Model
from holdall.transactions.query.cursor import (
    RowCursor,
    RowPage,
    fetch_all,
    fetch_first,
    fetch_only,
    fetch_row_page,
    list_page,
)
from holdall.transactions.query.question import Question
from holdall.transactions.query.row import FoundItem
from holdall.transactions.query.scan import (
    ScanCursor,
    ScanQuestion,
    count_rows,
    fetch_all_rows,
    fetch_first_row,
)
from holdall.transactions.unit import Unit

M = TypeVar("M", bound=Model)


class Unfetched:
    """The base of queries and scans, which are fetched only when iterated and therefore have no truth value."""

    @internal
    def __init__(self, context: Context, unit: Unit | None, question: Any) -> None:
        self._context = context
        self._unit = unit
        self._question = question

    def __bool__(self) -> bool:
        raise TypeError(
            "a query or scan has no truth value, because nothing is read yet: use .exists(), .first() or .all()"
        )

    if not TYPE_CHECKING:  # type checkers know that it has no length

        def __len__(self):
            raise TypeError(
                "a query or scan has no length, because nothing is read yet: use .count(), or len(.all())"
            )


class Rows(Unfetched, Generic[M]):
    """The items of a query. Pages are fetched as you iterate; each iteration starts from the beginning."""

    _question: Question

    def __iter__(self) -> Iterator[M]:
        cursor: RowCursor[M] = RowCursor(self._context, self._unit, self._question)
        while (items := run(cursor.next_page(), self._context)) is not None:
            yield from items
            del items  # before the next are fetched

    def page(self, size: int, *, after: str | None = None, secret: str | None = None) -> RowPage[M]:
        """Return up to ``size`` items, and a token; pass it as ``after`` to get the next page.

        The token is signed with ``secret``, or without it with the database's secret.
        """
        return run(
            fetch_row_page(self._context, self._unit, self._question, size, after, secret), self._context
        )

    def list_page(
        self, size: int, *, after: str | None = None, secret: str | None = None
    ) -> tuple[list[FoundItem], str | None]:
        """Return a page like `page`, of a `FoundItem` each; an item that cannot be read is listed with its error."""
        return run(list_page(self._context, self._question, size, after, secret), self._context)

    def first(self) -> M | None:
        """Return the first item, or None if there is none."""
        return run(fetch_first(self._context, self._unit, self._question), self._context)  # type: ignore[no-any-return]

    def one(self) -> M:
        """Return the only item; `RecordNotFound` if there is none, `InvalidOptionsError` if there are several."""
        return run(fetch_only(self._context, self._unit, self._question), self._context)  # type: ignore[no-any-return]

    def all(self) -> list[M]:
        """Return all items in a list."""
        return run(fetch_all(self._context, self._unit, self._question), self._context)

    def count(self) -> int:
        """Return how many items there are, at most ``limit``; the store counts them without sending them.

        In a transaction this neither locks nor verifies anything, unless the query has ``lock="rows"``: then the rows
        are read.
        """
        return run(RowCursor(self._context, self._unit, self._question).count(), self._context)

    def exists(self) -> bool:
        """Return whether there is at least one item."""
        return run(fetch_first(self._context, self._unit, self._question), self._context) is not None


class AsyncRows(Unfetched, Generic[M]):
    """The items of a query. Pages are fetched as you iterate; each iteration starts from the beginning."""

    _question: Question

    async def __aiter__(self) -> AsyncIterator[M]:
        cursor: RowCursor[M] = RowCursor(self._context, self._unit, self._question)
        while (items := await wait(cursor.next_page(), self._context)) is not None:
            for item in items:
                yield item
            del items  # before the next are fetched

    async def page(self, size: int, *, after: str | None = None, secret: str | None = None) -> RowPage[M]:
        """Return up to ``size`` items, and a token; pass it as ``after`` to get the next page.

        The token is signed with ``secret``, or without it with the database's secret.
        """
        return await wait(
            fetch_row_page(self._context, self._unit, self._question, size, after, secret), self._context
        )

    async def list_page(
        self, size: int, *, after: str | None = None, secret: str | None = None
    ) -> tuple[list[FoundItem], str | None]:
        """Return a page like `page`, of a `FoundItem` each; an item that cannot be read is listed with its error."""
        return await wait(list_page(self._context, self._question, size, after, secret), self._context)

    async def first(self) -> M | None:
        """Return the first item, or None if there is none."""
        return await wait(fetch_first(self._context, self._unit, self._question), self._context)

    async def one(self) -> M:
        """Return the only item; `RecordNotFound` if there is none, `InvalidOptionsError` if there are several."""
        return await wait(fetch_only(self._context, self._unit, self._question), self._context)

    async def all(self) -> list[M]:
        """Return all items in a list."""
        return await wait(fetch_all(self._context, self._unit, self._question), self._context)

    async def count(self) -> int:
        """Return how many items there are, at most ``limit``; the store counts them without sending them.

        In a transaction this neither locks nor verifies anything, unless the query has ``lock="rows"``: then the rows
        are read.
        """
        return await wait(RowCursor(self._context, self._unit, self._question).count(), self._context)

    async def exists(self) -> bool:
        """Return whether there is at least one item."""
        return await wait(fetch_first(self._context, self._unit, self._question), self._context) is not None


class ScanRows(Unfetched, Generic[M]):
    """The items of a scan, in no order. Pages are fetched as you iterate; each iteration starts from the beginning."""

    _question: ScanQuestion

    def _cursor(self, limit: int | None = None) -> ScanCursor[M]:
        return ScanCursor(self._context, self._unit, self._question, limit)

    def __iter__(self) -> Iterator[M]:
        cursor = self._cursor()
        try:
            while (rows := run(cursor.next_rows(), self._context)) is not None:
                yield from rows
                del rows  # before the next are fetched
        finally:
            cursor.end()

    def list_found(self) -> Iterator[FoundItem]:
        """Iterate over a `FoundItem` for each item; an item that cannot be read is listed with its error."""
        cursor = self._cursor()
        try:
            while (found := run(cursor.next_found(), self._context)) is not None:
                yield from found
        finally:
            cursor.end()

    def all(self) -> list[M]:
        """Return all items in a list."""
        return run(fetch_all_rows(self._cursor()), self._context)

    def first(self) -> M | None:
        """Return the item that is found first, or None if there is none."""
        return run(fetch_first_row(self._cursor(1)), self._context)

    def count(self) -> int:
        """Return how many items there are, at most ``limit``; the store counts them without sending them.

        In a transaction this neither locks nor verifies anything, unless the scan has ``lock="rows"``: then the rows
        are read.
        """
        return run(count_rows(self._cursor()), self._context)

    def exists(self) -> bool:
        """Return whether there is at least one item."""
        return run(count_rows(self._cursor(1)), self._context) > 0


class AsyncScanRows(Unfetched, Generic[M]):
    """The items of a scan, in no order. Pages are fetched as you iterate; each iteration starts from the beginning."""

    _question: ScanQuestion

    def _cursor(self, limit: int | None = None) -> ScanCursor[M]:
        return ScanCursor(self._context, self._unit, self._question, limit)

    async def __aiter__(self) -> AsyncIterator[M]:
        cursor = self._cursor()
        try:
            while (rows := await wait(cursor.next_rows(), self._context)) is not None:
                for row in rows:
                    yield row
                del rows  # before the next are fetched
        finally:
            cursor.end()

    async def list_found(self) -> AsyncIterator[FoundItem]:
        """Iterate over a `FoundItem` for each item; an item that cannot be read is listed with its error."""
        cursor = self._cursor()
        try:
            while (found := await wait(cursor.next_found(), self._context)) is not None:
                for each in found:
                    yield each
        finally:
            cursor.end()

    async def all(self) -> list[M]:
        """Return all items in a list."""
        return await wait(fetch_all_rows(self._cursor()), self._context)

    async def first(self) -> M | None:
        """Return the item that is found first, or None if there is none."""
        return await wait(fetch_first_row(self._cursor(1)), self._context)

    async def count(self) -> int:
        """Return how many items there are, at most ``limit``; the store counts them without sending them.

        In a transaction this neither locks nor verifies anything, unless the scan has ``lock="rows"``: then the rows
        are read.
        """
        return await wait(count_rows(self._cursor()), self._context)

    async def exists(self) -> bool:
        """Return whether there is at least one item."""
        return await wait(count_rows(self._cursor(1)), self._context) > 0
