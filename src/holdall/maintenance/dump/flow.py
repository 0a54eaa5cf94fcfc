"""Flows that dump the items of tables as lines, a page at a time, and load lines into tables, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from holdall.core.batch import make_batches
from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.requests import BatchWrite, PutItem, Scan
from holdall.core.rules.key import check_item
from holdall.core.schema import KeyAttribute, NeedsTable, TableSchema
from holdall.core.values import Item
from holdall.errors import (
    ConfigurationError,
    InvalidOptionsError,
    InvalidRequestError,
    InvalidValueError,
    TableNotFoundError,
)
from holdall.maintenance.copy.item import Route, plan_route
from holdall.maintenance.dump.line import HINT, TableLine, format_item, format_table, parse_line
from holdall.tables.demand import needs_of, plan_tables
from holdall.tables.flow import discover, find_table

_PAGE = 1000


class Dump:
    """A cursor over the lines of a database's table, of the tables of models, and of others."""

    def __init__(self, context: Context, models: Sequence[NeedsTable], tables: Sequence[str]) -> None:
        if isinstance(tables, str):
            raise InvalidOptionsError(
                "tables must be a list of names, not text", hint=f"pass [{tables!r:.60}]"
            )
        self._context = context
        own = [each.own for each in plan_tables(context.settings, needs_of(models)) if each.own is not None]
        self._names: list[str | None] = list(dict.fromkeys([None, *own, *tables]))
        self._left: list[tuple[str | None, TableSchema]] | None = None
        self._pages: PageCursor | None = None

    async def next_page(self) -> list[str] | None:
        """The next lines; None at the end."""
        if self._left is None:  # a missing table is reported before the first line
            self._left = [(name, await _find_schema(self._context, name)) for name in self._names]
        page = None if self._pages is None else await self._pages.next_page()
        if page is None:
            return self._begin(*self._left.pop(0)) if self._left else None
        return await self._context.port.offload(_format_all, page.items)

    def _begin(self, name: str | None, schema: TableSchema) -> list[str]:
        scan = Scan(schema.name, limit=_PAGE, consistent=True)
        self._pages = PageCursor(self._context.port, scan)
        return [format_table(name, [part.name for part in schema.keys])]


def _format_all(items: Iterable[Item]) -> list[str]:
    return [format_item(item) for item in items]


async def load_lines(context: Context, lines: Iterable[str]) -> int:
    """Put the items of these lines into their tables; see `holdall.Database.load_lines`."""
    if isinstance(lines, str | bytes):
        raise InvalidOptionsError(
            "lines must be an iterable of lines, not text", hint="pass text.splitlines(), or an open file"
        )
    start = await context.port.offload(_find_start, lines)
    if start is not None:
        await _Load(context, check_only=True).run(lines)
        await context.port.offload(_return_to, lines, start)
    return await _Load(context, check_only=False).run(lines)


def _find_start(lines: Any) -> int | None:
    """Where to begin again once the lines were read; None if they can be read only once."""
    if isinstance(lines, Sequence):
        return 0
    try:
        return int(lines.tell()) if lines.seekable() else None
    except (AttributeError, OSError):  # not a file, or one that is being read
        return None


def _return_to(lines: Any, start: int) -> None:
    if not isinstance(lines, Sequence):
        lines.seek(start)


class _Load:
    """One reading of all lines, which loads them, or only finds out whether they can be loaded."""

    def __init__(self, context: Context, *, check_only: bool) -> None:
        self._context = context
        self._check_only = check_only
        self._route: Route | None = None
        self._batch: dict[str, PutItem] = {}

    async def run(self, lines: Iterable[str]) -> int:
        """Read the lines; return how many items they have."""
        loaded, numbered = 0, enumerate(lines, 1)
        while some := await self._context.port.offload(_take, numbered):
            for number, line in some:
                try:
                    loaded += await self._read(parse_line(line))
                except (InvalidRequestError, ConfigurationError, TableNotFoundError) as error:
                    kind = InvalidValueError if isinstance(error, InvalidRequestError) else type(error)
                    raise kind(
                        f"line {number:,} cannot be loaded: {error.message}", hint=error.hint
                    ) from None
            await self._write()
        return loaded

    async def _read(self, found: TableLine | Item) -> bool:
        """Begin a table, or add an item to the batch; return whether it is an item."""
        if isinstance(found, TableLine):
            await self._write()
            self._route = await _plan_route(self._context, found)
            return False
        if self._route is None:
            self._route = await _plan_route(self._context, None)
        route = self._route
        try:
            transfer = route.carry(found)
        except KeyError as error:
            raise InvalidValueError(f"the key {error} is missing", hint=HINT) from None
        check_item(route.target, transfer.item)
        self._batch[transfer.key] = PutItem(route.target.name, transfer.item)
        return True

    async def _write(self) -> None:
        """Write the items of the batch, which all have different keys, and clear it."""
        puts, port = list(self._batch.values()), self._context.port
        self._batch.clear()
        if self._check_only:
            return
        flows = [port.send(BatchWrite(tuple(some))) for some in make_batches(puts, BatchWrite.most)]
        for outcome in await port.gather(flows, limit=4):
            outcome.result()


def _take(numbered: Iterator[tuple[int, str]]) -> list[tuple[int, str]]:
    """The next lines, without empty ones."""
    found: list[tuple[int, str]] = []
    last = 0
    try:
        for last, line in numbered:
            if line.strip():
                found.append((last, line))
            if len(found) == _PAGE:
                break
    except UnicodeDecodeError:
        raise InvalidValueError(
            f"the text after line {last:,} is not UTF-8", hint="load what holdall dump has written"
        ) from None
    return found


async def _plan_route(context: Context, line: TableLine | None) -> Route:
    """From a table as the lines have it to the one that exists here."""
    name = None if line is None else line.name
    target = await _find_schema(context, name)
    if line is None:
        return plan_route(target, target)
    if len(line.keys) != len(target.keys):
        raise ConfigurationError(
            f"the lines are for a table with {len(line.keys)} key attributes, and table {target.name} has "
            f"{len(target.keys)}",
            hint="load them into a table with the same keys",
        )
    partition, *sort = (
        KeyAttribute(key, part.type) for key, part in zip(line.keys, target.keys, strict=True)
    )
    return plan_route(TableSchema(target.name, partition, sort[0] if sort else None), target)


async def _find_schema(context: Context, name: str | None) -> TableSchema:
    """The schema of a table by its name without prefix; None is the database's, created if that is allowed."""
    settings = context.settings
    if name is None:
        await discover(context)
    found = await find_table(
        context, settings.table_name if name is None else f"{settings.table_prefix}{name}"
    )
    if found is None:
        raise TableNotFoundError(
            f"there is no table {settings.table_prefix}{name}", hint="create it first, or check the name"
        )
    return found.schema
