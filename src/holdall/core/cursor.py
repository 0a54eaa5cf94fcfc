"""Paged reads without generators: a cursor returns page after page, and the shells iterate over it.

Pure. Nothing stays open between two pages: a cursor is nothing but its next request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Generic, Protocol, TypeVar

from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.port import Port, run, wait
from holdall.core.requests import Page, Query, Scan

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Cursor(Protocol[T_co]):
    """Something that is read page by page."""

    async def next_page(self) -> T_co | None:
        """Return the next page; None after the last."""


class PageCursor:
    """The pages of a query or scan."""

    def __init__(self, port: Port, request: Query | Scan) -> None:
        self._port = port
        self._next: Query | Scan | None = request

    async def next_page(self) -> Page | None:
        """Return the next page; None after the last."""
        if self._next is None:
            return None
        page = await self._port.send(self._next)
        more = page.last_key is not None
        self._next = replace(self._next, start_after=page.last_key) if more else None
        return page


async def has_items(port: Port, request: Query | Scan) -> bool:
    """Whether a query or scan finds anything; with a filter, its first pages may be empty."""
    cursor = PageCursor(port, request)
    while (page := await cursor.next_page()) is not None:
        if page.items:
            return True
    return False


class BlockingPages(Iterator[T], Generic[T]):
    """Iterates over the pages of a cursor in sync code."""

    def __init__(self, cursor: Cursor[T], context: Context | None = None) -> None:
        self._cursor = cursor
        self._context = context

    def __next__(self) -> T:
        page = run(self._cursor.next_page(), self._context)
        if page is None:
            raise StopIteration
        return page


class AwaitingPages(AsyncIterator[T], Generic[T]):
    """Iterates over the pages of a cursor in async code."""

    def __init__(self, cursor: Cursor[T], context: Context | None = None) -> None:
        self._cursor = cursor
        self._context = context

    async def __anext__(self) -> T:
        page = await wait(self._cursor.next_page(), self._context)
        if page is None:
            raise StopAsyncIteration
        return page
