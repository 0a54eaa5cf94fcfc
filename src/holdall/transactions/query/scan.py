"""Scans: every item of a model, found by reading the model's whole table.

A table is read in segments, concurrently, in rounds of one page each. Only the pages of one round are held in memory,
and no request is open between two rounds. In a transaction, rows take part as those of a query do. In the shared table
this reads every model's items, and the log reports how much that was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypedDict, TypeVar

from holdall.core.context import Context
from holdall.core.expressions import Condition, In, Path, Value
from holdall.core.expressions.renderer import render
from holdall.core.frozen import replace
from holdall.core.numbers import number_text
from holdall.core.option import check_count, check_progress, check_switch
from holdall.core.requests import Page, Scan
from holdall.core.values import Attribute, Item
from holdall.models.fields.conditions import Clause
from holdall.models.fields.field import Field
from holdall.models.keys.key import default_sort
from holdall.models.model import Model
from holdall.models.schema import ModelSchema
from holdall.tables.commit.lock import all_of
from holdall.transactions.binding import Binding, bind
from holdall.transactions.current import is_retry
from holdall.transactions.query.question import Question, family_condition, names_in
from holdall.transactions.query.row import FoundItem, RowLock, RowMaker, holds_rows
from holdall.transactions.read.expiry import alive
from holdall.transactions.read.target import model_schema, refuse_others
from holdall.transactions.unit import Unit

if TYPE_CHECKING:
    from datetime import datetime

M = TypeVar("M", bound=Model)

_SEGMENTS = 1_000_000
_AT_ONCE = 32
_FILTERED_PAGE = 100
_LARGEST_PAGE = 1_000_000


class ScanProgress(NamedTuple):
    """How far a scan has come: the items that were read, how many of them matched, and the segments that are done."""

    scanned: int
    found: int
    segments_done: int


# --- what is asked ----------------------------------------------------------------------------------------


class ScanArguments(TypedDict, total=False):
    """The options of a scan."""

    segments: int
    where: Clause | None
    limit: int | None
    only: Iterable[Any] | None
    consistent: bool
    progress: Callable[[ScanProgress], Any] | None
    lock: RowLock


def ask_scan(model: object, options: ScanArguments) -> ScanQuestion:
    """The scan of a model's items; `InvalidOptionsError` names an option that does not exist."""
    schema = model_schema(model)
    refuse_others("scan", schema, options, ScanArguments.__annotations__)
    return ScanQuestion(schema, **options)


class ScanQuestion(Question):
    """A scan before it is sent: a query of the whole table."""

    def __init__(
        self,
        schema: ModelSchema,
        *,
        segments: int = 4,
        where: Clause | None = None,
        limit: int | None = None,
        only: Iterable[Any] | None = None,
        consistent: bool = False,
        progress: Callable[[ScanProgress], Any] | None = None,
        lock: RowLock = True,
    ) -> None:
        check_count(segments, "segments", _SEGMENTS)
        check_switch(consistent, "consistent")  # unlike a query, a scan has no default of its own for None
        check_progress(progress)
        super().__init__(schema, {}, where=where, limit=limit, only=only, consistent=consistent, lock=lock)
        self.segments = segments
        self.progress = progress

    @property
    def _key_fields(self) -> Sequence[Field[Any]]:
        return ()  # a scan reads all partitions

    def scan(self, binding: Binding, now: datetime, *, consistent: bool, hold: bool) -> Scan:
        """The first request, for the first segment. ``hold``: also fetch the attributes that the filter uses."""
        filter = self.filter(binding, now)
        return Scan(
            binding.table,
            filter=filter,
            projection=self.projection(binding, names_in(filter) if hold else ()),
            segments=self.segments,
            consistent=self.consistent or consistent,
        )

    def identity(self, binding: Binding) -> list[Any]:
        """What identifies this scan, as JSON: a checkpoint belongs to one scan."""
        condition = self.condition
        where = None if condition is None else render({"where": condition})
        return [binding.table, self.schema.name, self.segments, where]

    def filter(self, binding: Binding, now: datetime) -> Condition | None:
        """The condition on rows: of the model, matching the caller's condition, not expired."""
        return all_of([of_model(binding), self._visible(), alive(binding, now)])


def of_model(binding: Binding) -> Condition | None:
    """The condition that a row is of the model or of one derived from it; None if the store cannot tell."""
    schema = binding.schema
    if schema.form.type_attribute is not None:
        return family_condition(schema)
    if not schema.form.in_key_alone:
        return None
    defaults = [default_sort(each) for each in schema.family()]
    if schema.name == schema.root or binding.sort is None or None in defaults:
        return None
    sort = binding.sort
    return In(
        Path((sort.name,)), tuple(Value(_encode_sort(part, sort.type)) for part in dict.fromkeys(defaults))
    )


def _encode_sort(part: Any, kind: str) -> Attribute:
    """A sort key as the table stores it: a number may be stored as text."""
    if isinstance(part, str):
        return {"S": part}
    if kind == "N":
        return {"N": number_text(part)}
    from holdall.models.codec.ecmascript import number_text as text_of

    return {"S": text_of(part)}


# --- reading ----------------------------------------------------------------------------------------------


class ScanCursor(Generic[M]):
    """Returns the rows of a scan, at most a page at a time. Call `end` after the last rows, or to stop early."""

    def __init__(
        self, context: Context, unit: Unit | None, question: ScanQuestion, limit: int | None = None
    ) -> None:
        self._context = context
        self._unit = unit
        self._question = question
        self._binding: Binding | None = None
        self._maker: RowMaker | None = None
        self._filtered = True
        self._waiting: Iterator[Scan] = iter(())  # the segments that have not begun
        self._next: list[Scan] = []  # the next request of each segment that has begun
        self._pages: list[Page] = []  # the pages of the last round that are not rows yet, the next one last
        self._rest: Sequence[Item] = ()  # items of that page that are not rows yet
        self._matches = 0  # rows of that page so far
        self._rounds = 0
        self._left = question.limit if limit is None else limit
        self._scanned = self._found = self._done = 0
        self._refused = 0  # pages with rows that the store found, but that are not wanted
        self._capacity = 0.0

    @property
    def reads_to_count(self) -> bool:
        """Whether rows must be read even to count them: to lock them, or to check whether they match."""
        return self._question.lock == "rows" or self._question.is_blind

    async def next_rows(self) -> Iterable[M] | None:
        """The next rows, possibly none; None if there are no more."""
        rows = await self._next_rows()
        return None if rows is None or self._maker is None else self._maker.give(rows)

    async def next_found(self) -> Iterable[FoundItem] | None:
        """The next rows, including those that cannot be read; none of them is locked."""
        rows = await self._next_rows()
        return None if rows is None or self._maker is None else self._maker.describe(rows)

    async def _next_rows(self) -> list[tuple[M, Item]] | None:
        if not self._pages:
            pages = await self._fetch_round(count_only=False)
            if pages is None:
                return None
            self._pages = pages[::-1]
            self._rest = pages[0].items
        maker = self._maker
        assert maker is not None
        batch = maker.batch or len(self._rest)
        rows: list[tuple[M, Item]] = await maker.make_instances(self._rest[:batch], self._left)
        self._rest = self._rest[batch:]
        self._take(len(rows))
        self._matches += len(rows)
        if not self._rest:
            page = self._pages.pop()
            self._refused += self._matches < page.count
            self._matches = 0
            self._rest = self._pages[-1].items if self._pages else ()
            await self._note(page)
        return rows

    async def next_count(self) -> int | None:
        """How many rows the next round has, without reading them; None if there are no more rounds."""
        pages = await self._fetch_round(count_only=True)
        if pages is None:
            return None
        before = self._found
        for page in pages:
            self._take(page.count if self._left is None else min(page.count, self._left))
            await self._note(page)
        return self._found - before

    def end(self) -> None:
        """Log how much was read, if the table is shared with other models."""
        binding, self._binding = self._binding, None
        if binding is None or binding.own:
            return
        import logging  # slow to load, so only if there is something to log

        logging.getLogger("holdall").warning(
            "a scan for %s read %d items of table %s, which all models share, to find %d; "
            "it cost %.1f read units. A query by key or by index reads only the items that it finds",
            *(binding.schema.name, self._scanned, binding.table, self._found, self._capacity),
        )

    async def _fetch_round(self, *, count_only: bool) -> list[Page] | None:
        """The next pages of the segments that are read concurrently; None if all are done."""
        if self._unit is not None:
            self._unit.check_open()
        if self._maker is None:
            await self._begin(count_only)
        requests = [] if self._left == 0 else self._requests()
        if not requests:
            return None
        pages = await self._send_all(requests)
        self._rounds += 1
        if self._unit is not None:  # the rows of a page may be from different moments
            self._unit.requests += sum(max(1, len(page.items)) for page in pages)
        going_on = [
            replace(request, start_after=page.last_key)
            for request, page in zip(requests, pages, strict=True)
            if page.last_key is not None
        ]
        self._next = self._next[len(requests) :] + going_on
        return pages

    async def _begin(self, count_only: bool) -> None:
        question = self._question
        self._binding = binding = await bind(self._context, question.schema)
        strong = self._unit is not None and self._unit.insist
        hold = holds_rows(self._unit, question.lock)
        first = question.scan(binding, self._context.port.now(), consistent=strong, hold=hold)
        if is_retry():
            first = replace(first, fresh=True)
        if count_only:
            first = replace(first, count_only=True, projection=())
        self._filtered = first.filter is not None
        self._waiting = (replace(first, segment=segment) for segment in range(question.segments))
        self._maker = RowMaker(
            self._context,
            self._unit,
            binding,
            question.list_fetched_fields(question.schema),
            projected=bool(first.projection),
            held=question.list_held_names(first) if hold else None,
            where=question.condition,
        )

    def _requests(self) -> list[Scan]:
        """The requests of a round. If nothing is filtered out, they read no more rows than are wanted."""
        self._next += islice(self._waiting, _AT_ONCE - len(self._next))
        if self._left is None or not self._next:
            return self._next
        if self._filtered:
            # more and more, while too few rows match
            most = -(-max(self._left, _FILTERED_PAGE) // len(self._next)) << min(self._rounds, 20)
            enough = self._left << min(self._refused, 20)
            return [replace(scan, limit=min(most, _LARGEST_PAGE), enough=enough) for scan in self._next]
        share, more = divmod(min(self._left, _LARGEST_PAGE), len(self._next))
        shares = [share + 1] * more + [share] * (len(self._next) - more)
        return [replace(scan, limit=each) for scan, each in zip(self._next, shares, strict=True) if each]

    async def _send_all(self, requests: Sequence[Scan]) -> list[Page]:
        port = self._context.port
        if len(requests) == 1:
            return [await port.send(requests[0])]
        outcomes = await port.gather((port.send(request) for request in requests), limit=_AT_ONCE)
        return [outcome.result() for outcome in outcomes]

    def _take(self, found: int) -> None:
        """Count rows that were found."""
        self._found += found
        if self._left is not None:
            self._left -= found

    async def _note(self, page: Page) -> None:
        """Count a page, and report the progress."""
        self._scanned += page.scanned
        self._done += page.last_key is None
        self._capacity += page.capacity
        if self._question.progress is not None:
            progress = ScanProgress(self._scanned, self._found, self._done)
            await self._context.port.call(self._question.progress, progress)


# --- flows ------------------------------------------------------------------------------------------------


async def fetch_all_rows(cursor: ScanCursor[M]) -> list[M]:
    """All items."""
    try:
        found: list[M] = []
        while (rows := await cursor.next_rows()) is not None:
            found += rows
        return found
    finally:
        cursor.end()


async def fetch_first_row(cursor: ScanCursor[M]) -> M | None:
    """The item that is found first, None if there is none."""
    rows = await fetch_all_rows(cursor)
    return rows[0] if rows else None


async def count_rows(cursor: ScanCursor[M]) -> int:
    """The number of items."""
    if cursor.reads_to_count:
        return len(await fetch_all_rows(cursor))
    try:
        total = 0
        while (counted := await cursor.next_count()) is not None:
            total += counted
        return total
    finally:
        cursor.end()
