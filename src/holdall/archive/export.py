"""Exporting a model's items, hot and cold, into one file: as DynamoDB's JSON, or as Parquet.

The file appears under its name when it is complete; a process that dies before leaves nothing under that name. Memory
is bounded: the table is read page by page, and archived items are fetched side by side, a few at a time.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.frozen import dataclass, replace
from holdall.core.requests import Scan
from holdall.core.values import Item
from holdall.errors import InvalidOptionsError
from holdall.files.download import find_place, give
from holdall.local.draft import Draft, drop_draft, open_draft, place_draft, write_draft
from holdall.models.model import Model
from holdall.tables.commit.lock import all_of
from holdall.transactions.binding import Binding, bind
from holdall.transactions.expiry import alive
from holdall.transactions.hydration import hydrate_all, is_pointer
from holdall.transactions.query.scan import of_model

if TYPE_CHECKING:
    from holdall.models.schema import ModelSchema

ExportFormat: TypeAlias = Literal["dynamodb-json", "parquet"]
"""The formats of an export."""

_TOGETHER = 64
"""So many items are in memory at a time, besides a page of the table and what a row group of Parquet collects."""

Take: TypeAlias = Callable[[bytes], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class ExportReport:
    """How far an export has come: rows of the table that were read, items written, how many of them were archived,
    and the bytes of the file."""

    scanned: int = 0
    items: int = 0
    cold: int = 0
    bytes: int = 0


class Writer(Protocol):
    """Turns items into the bytes of a file. Blocking."""

    def add(self, rows: Sequence[tuple[ModelSchema, Item]]) -> bytes:
        """The bytes that these items add, which may come later."""

    def finish(self) -> bytes:
        """The last bytes."""


async def export(
    context: Context,
    model: type[Model],
    *,
    to: Any,
    format: ExportFormat = "dynamodb-json",
    progress: Callable[[ExportReport], Any] | None = None,
) -> ExportReport:
    """Write all items of a model, archived or not, into a file by its path, or into a stream of yours.

    ``dynamodb-json`` is gzipped lines ``{"Item": {...}}``, which DynamoDB's import from S3 takes: all types come back
    as they were. ``parquet`` has a column for each field, of the field's type; it needs pyarrow. ``progress`` is called
    after each page. Items are written as their model knows them now, without those that have expired. It reads the
    whole table. An item whose object is missing or damaged raises, and no file appears.
    """
    if format not in get_args(ExportFormat):
        raise InvalidOptionsError(
            f"format is {format!r:.60}", hint=f"it is one of {', '.join(map(repr, get_args(ExportFormat)))}"
        )
    binding = await bind(context, model._schema)
    writer = _open_writer(binding, format)
    if callable(getattr(to, "write", None)):

        async def take(data: bytes) -> None:
            await give(context.port, to, data)

        return await _export(context, binding, writer, take, progress)
    return await _export_into_file(context, binding, writer, to, progress)


def _open_writer(binding: Binding, format: ExportFormat) -> Writer:
    if format == "dynamodb-json":
        return _Lines()
    from holdall.archive.parquet import ParquetRows

    return ParquetRows(binding)


async def _export_into_file(
    context: Context,
    binding: Binding,
    writer: Writer,
    to: Any,
    progress: Callable[[ExportReport], Any] | None,
) -> ExportReport:
    port = context.port
    draft = Draft(await find_place(context, to), port.new_id()[:16])

    async def take(data: bytes) -> None:
        await port.offload(write_draft, draft, data)

    try:
        await port.offload(open_draft, draft, False)
        report = await _export(context, binding, writer, take, progress)
        await port.offload(place_draft, draft)
    except BaseException:
        await port.offload(drop_draft, draft)
        raise
    return report


async def _export(
    context: Context,
    binding: Binding,
    writer: Writer,
    take: Take,
    progress: Callable[[ExportReport], Any] | None,
) -> ExportReport:
    port, done = context.port, ExportReport()
    filter = all_of([of_model(binding), alive(binding, port.now())])
    cursor = PageCursor(port, Scan(binding.table, filter=filter))
    while (page := await cursor.next_page()) is not None:
        done = replace(done, scanned=done.scanned + page.scanned)
        for raws in _split(page.items):
            rows = await _hydrate(context, binding, raws)
            data = await port.offload(writer.add, rows)
            if data:
                await take(data)
            cold = sum(is_pointer(binding, raw) for raw in raws)
            done = ExportReport(
                done.scanned, done.items + len(rows), done.cold + cold, done.bytes + len(data)
            )
        if progress is not None:
            await port.call(progress, done)
    data = await port.offload(writer.finish)
    await take(data)
    done = replace(done, bytes=done.bytes + len(data))
    if progress is not None:
        await port.call(progress, done)
    return done


def _split(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for at in range(0, len(items), _TOGETHER):
        yield items[at : at + _TOGETHER]


async def _hydrate(
    context: Context, binding: Binding, raws: Sequence[Item]
) -> list[tuple[ModelSchema, Item]]:
    """The rows that are of the model, whole, each with the model that it is of."""
    schemas = [binding.schema.of(raw, binding.sort_of(raw) if binding.own else None) for raw in raws]
    known = [(schema, raw) for schema, raw in zip(schemas, raws, strict=True) if schema is not None]
    outcomes = await hydrate_all(context, [(binding, raw) for _, raw in known])
    wholes = [outcome.result() for outcome in outcomes]
    return [(schema, whole) for (schema, _), whole in zip(known, wholes, strict=True) if whole is not None]


class _Lines:
    """Gzipped lines of DynamoDB's JSON."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS | 16)

    def add(self, rows: Sequence[tuple[ModelSchema, Item]]) -> bytes:
        """The bytes that these items add, which may come later."""
        lines = [
            json.dumps({"Item": item}, separators=(",", ":"), ensure_ascii=False) + "\n" for _, item in rows
        ]
        return self._deflate.compress("".join(lines).encode())

    def finish(self) -> bytes:
        """The last bytes."""
        return self._deflate.flush()
