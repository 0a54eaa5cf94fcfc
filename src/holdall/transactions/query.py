"""Queries: the items of one partition, in the order of their sort key, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Generic, TypeVar

from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.expressions import KeyCondition
from holdall.core.port import run
from holdall.core.requests import Page, Query
from holdall.core.values import Item
from holdall.errors import InvalidFieldError, InvalidOptionsError
from holdall.models.model import Model
from holdall.models.schema import ModelSchema
from holdall.transactions.binding import Binding, bind
from holdall.transactions.expiry import expired
from holdall.transactions.unit import Unit, frozen

__all__ = ["AsyncRows", "Rows", "RowCursor"]

M = TypeVar("M", bound=Model)


class RowCursor(Generic[M]):
    """Gives the items of a query, a page at a time; nothing stays open in between."""

    def __init__(
        self,
        context: Context,
        unit: Unit | None,
        schema: ModelSchema,
        components: Mapping[str, Any],
        *,
        limit: int | None,
        reverse: bool,
        consistent: bool,
    ) -> None:
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidOptionsError(f"limit is {limit!r}, and has to be a whole number from 1 up")
        self._context = context
        self._unit = unit
        self._schema = schema
        self._partition = _partition(schema, components)
        self._left = limit
        self._reverse = reverse
        self._consistent = consistent or (unit is not None and unit.insist)
        self._pages: PageCursor | None = None
        self._binding: Binding | None = None

    async def next_page(self) -> list[M] | None:
        """The next items; None when there are no more."""
        if self._left == 0:
            return None
        if self._unit is not None:
            self._unit.check_open()
        if self._pages is None:
            self._binding = await bind(self._context, self._schema)
            self._pages = PageCursor(self._context.port, self._request(self._binding))
        page = await self._pages.next_page()
        if page is None:
            return None
        if self._unit is not None:
            self._unit.requests += 1
        items = await self._items(page)
        if self._left is not None:
            items = items[: self._left]
            self._left -= len(items)
        return items

    def _request(self, binding: Binding) -> Query:
        equals = binding.partition_key(self._partition)
        return Query(
            binding.table,
            KeyCondition(binding.partition.name, equals),
            limit=self._left,
            reverse=self._reverse,
            consistent=self._consistent,
        )

    async def _items(self, page: Page) -> list[M]:
        found = []
        for raw in page.items:
            item = await self._item(raw)
            if item is not None:
                found.append(item)
        return found

    async def _item(self, raw: Item) -> Any:
        binding = self._binding
        assert binding is not None
        if binding.ttl in raw and expired(binding, raw, self._context.port.now()):
            return None
        if self._schema.of(raw, binding.sort_of(raw) if binding.own else None) is None:
            return None  # of another model that shares the key
        hydrator = self._schema.hydrator
        stored = raw if hydrator is None else await hydrator.hydrate(self._context.port, raw)
        if self._unit is None:
            return frozen(binding, stored, None)
        return self._unit.receive(binding, raw, stored, None)


def _partition(schema: ModelSchema, components: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in schema.keys}
    for name in components:
        if name not in names:
            problem = (
                "it is not part of the partition key" if name in schema.fields else "there is no such field"
            )
            hint = f"a query names all of: {', '.join(sorted(names))}"
            raise InvalidFieldError(schema.name, name, problem, hint=hint)
    missing = [field for field in schema.keys if field.name not in components]
    if missing:
        raise missing[0].refusal("a query needs the whole partition key, and it is missing")
    return {field.name: field.validated(components[field.name]) for field in schema.keys}


class Rows(Generic[M]):
    """The items of a query; fetched as they are iterated, from the start each time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._arguments = arguments
        self._options = options
        self._cursor()  # what is wrong with it shows now

    def _cursor(self) -> RowCursor[M]:
        return RowCursor(*self._arguments, **self._options)

    def __iter__(self) -> Iterator[M]:
        cursor = self._cursor()
        while (items := run(cursor.next_page())) is not None:
            yield from items

    def all(self) -> list[M]:
        """All of them, in a list."""
        return list(self)


class AsyncRows(Generic[M]):
    """The items of a query; fetched as they are iterated, from the start each time."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._arguments = arguments
        self._options = options
        self._cursor()  # what is wrong with it shows now

    def _cursor(self) -> RowCursor[M]:
        return RowCursor(*self._arguments, **self._options)

    async def __aiter__(self) -> AsyncIterator[M]:
        cursor = self._cursor()
        while (items := await cursor.next_page()) is not None:
            for item in items:
                yield item

    async def all(self) -> list[M]:
        """All of them, in a list."""
        return [item async for item in self]
