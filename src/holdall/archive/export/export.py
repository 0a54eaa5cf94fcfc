"""Exporting a model's items, archived or not, into one file: as DynamoDB's JSON, or as Parquet.

The file appears under its name only when it is complete; a process that dies first leaves nothing under that name.
Memory is bounded: the table is read page by page, and archived items are fetched in parallel, a few at a time.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from holdall.core.batch import make_batches
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
from holdall.transactions.query.scan import of_model
from holdall.transactions.read.expiry import alive
from holdall.transactions.read.hydration import hydrate_all, is_pointer

if TYPE_CHECKING:
    from holdall.models.schema import ModelSchema

ExportFormat: TypeAlias = Literal["dynamodb-json", "parquet"]
"""The formats of an export."""

_TOGETHER = 64
"""The number of items in memory at a time, besides a page of the table and a row group of Parquet."""

Take: TypeAlias = Callable[[bytes], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class ExportReport:
    """How far an export has come.

    ``scanned`` rows of the table were read and ``items`` were written, ``cold`` of them from the archive; the file has
    ``bytes`` so far.
    """

    scanned: int = 0
    items: int = 0
    cold: int = 0
    bytes: int = 0


class Writer(Protocol):
    """Turns items into the bytes of a file. Blocking."""

    def add(self, rows: Sequence[tuple[ModelSchema, Item]]) -> bytes:
        """Add items; return the bytes that are ready to be written, which may be none."""

    def finish(self) -> bytes:
        """Return the last bytes."""


async def export(
    context: Context,
    model: type[Model],
    *,
    to: Any,
    format: ExportFormat = "dynamodb-json",
    progress: Callable[[ExportReport], Any] | None = None,
) -> ExportReport:
    """Write all items of a model, archived or not, to a file: ``to`` is its path, or an object with ``write``.

    ``dynamodb-json`` writes gzipped lines ``{"Item": {...}}``, which DynamoDB's import from S3 accepts; all types
    survive. ``parquet`` writes one column per field, with the field's type; it needs pyarrow. Items are written as
    their model defines them now; expired items are left out. This reads the whole table. If the object of an archived
    item is missing or damaged, the export raises and no file appears. ``progress`` is called with a report after each
    page.
    """
    if format not in get_args(ExportFormat):
        raise InvalidOptionsError(
            f"format must be one of {', '.join(map(repr, get_args(ExportFormat)))}, not {format!r:.60}"
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
    from holdall.archive.export.parquet import ParquetRows

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
        for raws in make_batches(page.items, _TOGETHER):
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


async def _hydrate(
    context: Context, binding: Binding, raws: Sequence[Item]
) -> list[tuple[ModelSchema, Item]]:
    """The whole items of the rows that belong to the model, each with its own model."""
    schemas = [binding.model_of(raw) for raw in raws]
    known = [(schema, raw) for schema, raw in zip(schemas, raws, strict=True) if schema is not None]
    outcomes = await hydrate_all(context, [(binding, raw) for _, raw in known])
    wholes = [outcome.result() for outcome in outcomes]
    return [(schema, whole) for (schema, _), whole in zip(known, wholes, strict=True) if whole is not None]


class _Lines:
    """Gzipped lines of DynamoDB's JSON."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS | 16)

    def add(self, rows: Sequence[tuple[ModelSchema, Item]]) -> bytes:
        """Add items; return the bytes that are ready to be written, which may be none."""
        lines = [
            json.dumps({"Item": item}, separators=(",", ":"), ensure_ascii=False) + "\n" for _, item in rows
        ]
        return self._deflate.compress("".join(lines).encode())

    def finish(self) -> bytes:
        """Return the last bytes."""
        return self._deflate.flush()
