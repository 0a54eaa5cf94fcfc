"""Reading a query page by page, as instances.

No request is open between two pages. In a transaction, a row takes part once one of its fields is read, or, if every
row is to be locked, when it is returned to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from holdall.core.context import Context
from holdall.core.expressions import Condition
from holdall.core.frozen import replace
from holdall.core.option import check_count
from holdall.core.requests import Query
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidOptionsError, InvalidTokenError, RecordNotFound
from holdall.models.model import Model
from holdall.transactions.binding import Binding, bind, bind_index
from holdall.transactions.current import is_retry
from holdall.transactions.query.question import Question
from holdall.transactions.query.row import FoundItem, MixedMaker, RowMaker, holds_rows, read_again
from holdall.transactions.read.expiry import has_expired
from holdall.transactions.unit import Unit

if TYPE_CHECKING:
    from datetime import datetime

M = TypeVar("M", bound=Model)

_FILTERED_PAGE = 100
_LARGEST_PAGE = 1_000_000


class RowPage(NamedTuple, Generic[M]):
    """A page of items; ``next`` is the token of the next page, None on the last one."""

    items: list[M]
    next: str | None


class RowCursor(Generic[M]):
    """Returns the rows of a query, a page at a time, each with its raw item."""

    def __init__(self, context: Context, unit: Unit | None, question: Question) -> None:
        self._context = context
        self._unit = unit
        self._question = question
        self._binding: Binding | None = None
        self._next: Query | None = None
        self._waiting: Sequence[Item] = ()  # items of the last page that are not rows yet
        self._begun = False
        self._pages = 0
        self._excluded: tuple[Attribute, ...] = ()
        self._sifts = False  # whether rows are filtered here, because the store cannot do it
        self._reads_to_count = False
        # whether the index holds only parts of items, so that they are fetched by their keys
        self._fetches = False
        self._filter: Condition | None = None
        self._maker: RowMaker | MixedMaker | None = None
        self.left = question.limit

    async def begin(self, start_after: Item | None = None, given: int = 0) -> Binding:
        """Find the table, and prepare the first request; ``given`` rows were returned by earlier pages."""
        if self._unit is not None:
            self._unit.check_open()
        self._begun = True
        if self.left is not None:
            self.left = max(self.left - given, 0)
        question = self._question
        bindings = [await bind(self._context, schema) for schema in question.schemas]
        self._binding = bindings[0] if len(bindings) == 1 else _choose_expiring(bindings)
        self._excluded = question.range(self._binding).excluded
        self._reads_to_count = question.lock == "rows" or question.is_blind
        self._sifts = question.is_blind or not _countable(question, self._binding)
        if question.index is not None:
            self._fetches = not await bind_index(self._context, self._binding, question.index)
            self._sifts |= self._fetches
        hold = holds_rows(self._unit, question.lock)
        self._next = question.request(self._binding, self._context.port.now(), hold=hold)
        if self._next is not None:
            insist = is_retry() if self._unit is None else self._unit.insist
            if insist or start_after is not None:
                strong = self._next.consistent or (insist and not question.lags and self._unit is not None)
                # a global index cannot be read strongly; after contention, it is at least not read from a cache
                self._next = replace(self._next, start_after=start_after, consistent=strong, fresh=insist)
            makers = [self._row_maker(binding, self._next, hold) for binding in bindings]
            self._maker = makers[0] if len(makers) == 1 else MixedMaker(makers)
            self._filter = self._next.filter
            if self._fetches:
                self._next = replace(self._next, filter=None, projection=())
        return self._binding

    def _row_maker(self, binding: Binding, request: Query, hold: bool) -> RowMaker:
        schema = binding.schema
        fetched = self._question.list_fetched_fields(schema)
        index = None if self._question.index is None else schema.indexes[self._question.index.name]
        partial = index is not None and index.schema.projection.kind != "ALL"
        projected = partial or bool(request.projection)
        held = self._question.list_held_names(request) if hold else None
        return RowMaker(
            self._context,
            self._unit,
            binding,
            fetched,
            projected=projected,
            index=index,
            held=held,
            where=self._question.condition,
        )

    @property
    def more(self) -> bool:
        """Whether there may be more rows."""
        return self._next is not None or bool(self._waiting)

    async def next_rows(self, at_most: int | None = None, spare: int = 0) -> list[tuple[M, Item]] | None:
        """The next rows; None if there are no more.

        With ``at_most``, at most as many are read unless a filter may exclude some, and of those that were read, at
        most ``at_most + spare`` are returned. The others are skipped, so a caller that got so many must not ask for
        more.
        """
        if self._unit is not None:
            self._unit.check_open()
        if not self._begun:
            await self.begin()
        if not self.more or self.left == 0:
            return None
        if not self._waiting:
            self._waiting = await self._fetch_items(at_most)
        assert self._maker is not None
        batch = self._maker.batch or len(self._waiting)
        items, self._waiting = self._waiting[:batch], self._waiting[batch:]
        limits = [
            limit for limit in (self.left, None if at_most is None else at_most + spare) if limit is not None
        ]
        rows: list[tuple[M, Item]] = await self._maker.make_instances(items, min(limits, default=None))
        if self.left is not None:
            self.left -= len(rows)
        return rows

    async def _fetch_items(self, at_most: int | None) -> Sequence[Item]:
        """The items of the next page that may be rows."""
        request = self._next
        assert request is not None
        given = (number for number in (self.left, at_most) if number is not None)
        limit = self._page_limit(min(given, default=None))
        page = await self._context.port.send(request if limit is None else replace(request, limit=limit))
        self._pages += 1
        more = page.last_key is not None
        self._next = replace(request, start_after=page.last_key) if more else None
        if self._unit is not None:
            self._unit.requests += max(1, len(page.items))  # the rows of a page may be from different moments
        return await self._sift(page.items)

    def _page_limit(self, wanted: int | None) -> int | None:
        """How many rows to read: as many as are wanted; if some are filtered out, more and more with each page."""
        if wanted is None:
            return None
        if self._sifts or (self._next is not None and self._next.filter is not None):
            # without a where, only expired rows and those of other models are filtered out, which are few
            least = 1 if self._question.where is None else _FILTERED_PAGE
            wanted = max(wanted, least) << min(self._pages, 20)
        return min(wanted, _LARGEST_PAGE)

    def give(self, rows: list[tuple[M, Item]]) -> Iterable[M]:
        """The items of rows; if they are to be locked, each is locked only when the caller takes it, because more rows
        may have been read."""
        return () if self._maker is None else self._maker.give(rows)

    def describe(self, rows: list[tuple[M, Item]]) -> Iterable[FoundItem]:
        """The rows, including those that cannot be read; none of them is locked."""
        return () if self._maker is None else self._maker.describe(rows)

    async def next_page(self) -> Iterable[M] | None:
        """The next items; None if there are no more."""
        rows = await self.next_rows()
        return None if rows is None else self.give(rows)

    async def count(self) -> int:
        """The number of rows, up to the limit; if the store can count them, only the number is fetched."""
        await self.begin()
        total = 0
        if self._excluded or self._sifts or self._reads_to_count:
            while (rows := await self.next_rows()) is not None:
                total += sum(1 for _ in self.give(rows)) if self._reads_to_count else len(rows)
            return total
        # like iteration, leave out rows of models that this program does not define
        if self._next is not None:
            self._next = replace(self._next, filter=self._question.count_filter(self._next.filter))
        while self._next is not None and self.left != 0:
            limit = self._page_limit(self.left)
            page = await self._context.port.send(
                replace(self._next, count_only=True, projection=(), limit=limit)
            )
            self._pages += 1
            self._next = None if page.last_key is None else replace(self._next, start_after=page.last_key)
            counted = page.count if self.left is None else min(page.count, self.left)
            total += counted
            self.left = None if self.left is None else self.left - counted
        return total

    async def _sift(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items that may be rows, as far as that can be seen before they are hydrated."""
        binding, filter = self._binding, self._filter
        assert binding is not None
        # an index lags, and would cause contention again, or it holds only parts
        insist = self._unit is not None and self._unit.insist and self._question.lags
        if insist or self._fetches:
            items = await read_again(self._context, binding, items, self._question.index, filter)
        if self._excluded:
            within = self._question.range(binding)
            items = [raw for raw in items if within.admits(raw)]
        if self._question.expires_unseen(binding):
            now = self._context.port.now()
            items = [raw for raw in items if not has_expired(binding, raw, now)]
        return items


def _choose_expiring(bindings: Sequence[Binding]) -> Binding:
    """Of several models in one table, the binding of one whose items expire, if there is one."""
    return next((binding for binding in bindings if binding.schema.ttl is not None), bindings[0])


def _countable(question: Question, binding: Binding) -> bool:
    """Whether the store can count exactly the matching rows; in a model's own table it cannot distinguish models."""
    schema = question.schema
    told_apart = len(question.schemas) > 1 or schema.name == schema.root
    return not binding.own or (told_apart and not question.expires_unseen(binding))


# --- flows ------------------------------------------------------------------------------------------------


async def fetch_row_page(
    context: Context,
    unit: Unit | None,
    question: Question,
    size: int,
    after: str | None,
    secret: str | None,
) -> RowPage[Any]:
    """One page, with the signed token of the next."""
    cursor: RowCursor[Any] = RowCursor(context, unit, question)
    rows, token = await _fetch_page(context, cursor, question, size, after, secret)
    return RowPage(list(cursor.give(rows)), token)


async def list_page(
    context: Context, question: Question, size: int, after: str | None, secret: str | None
) -> tuple[list[FoundItem], str | None]:
    """One page with the items that cannot be read, and the signed token of the next."""
    cursor: RowCursor[Any] = RowCursor(context, None, question)
    rows, token = await _fetch_page(context, cursor, question, size, after, secret)
    return list(cursor.describe(rows)), token


async def _fetch_page(
    context: Context,
    cursor: RowCursor[Any],
    question: Question,
    size: int,
    after: str | None,
    secret: str | None,
) -> tuple[list[tuple[Any, Item]], str | None]:
    from holdall.core.settings import parse_secrets
    from holdall.core.signature import check_secrets

    check_count(size, "size")
    secrets = context.settings.secret if secret is None else parse_secrets(secret, "the page's secret")
    check_secrets(secrets)  # fail now, not only when there is a second page
    now = context.port.now()
    binding = await bind(context, question.schema)
    start, given = (None, 0) if after is None else _start(secrets, question, binding, after, now)
    await cursor.begin(start, given)
    rows: list[tuple[Any, Item]] = []
    # one spare row shows whether there are more
    while len(rows) < size and (found := await cursor.next_rows(size - len(rows), 1)) is not None:
        rows += found
    more = cursor.more or len(rows) > size
    rows = rows[:size]
    given += len(rows)
    token = None
    if more and rows and given != question.limit:
        token = _token(secrets, question, binding, rows[-1][1], given)
    return rows, token


def _token(secrets: Sequence[str], question: Question, binding: Binding, raw: Item, given: int) -> str:
    """A token with the query's digest, its last row, and the number of rows so far: the limit is for all pages."""
    from holdall.core.signature import sign

    where = {name: dict(value) for name, value in question.start_after(binding, raw).items()}
    return sign(secrets, "page", [_digest(question, binding), where, given])


def _start(
    secrets: Sequence[str], question: Question, binding: Binding, token: str, now: datetime
) -> tuple[Item, int]:
    from holdall.core.signature import verify

    digest, where, given = verify(secrets, "page", token, now=now)
    if digest != _digest(question, binding):
        raise InvalidTokenError(
            "the page token belongs to another query", hint="pass it to the query that returned it"
        )
    return where, given


def _digest(question: Question, binding: Binding) -> str:
    from holdall.core.digests import digest_facts

    return digest_facts(question.identity(binding), 32)


async def fetch_first(context: Context, unit: Unit | None, question: Question) -> Any:
    """The first item, None if there is none."""
    cursor: RowCursor[Any] = RowCursor(context, unit, question)
    while (rows := await cursor.next_rows(1)) is not None:
        if rows:
            return next(iter(cursor.give(rows)))
    return None


async def fetch_only(context: Context, unit: Unit | None, question: Question) -> Any:
    """The only item; an error if there is none, or more than one."""
    cursor: RowCursor[Any] = RowCursor(context, unit, question)
    found: list[Any] = []
    while len(found) < 2 and (rows := await cursor.next_rows(2)) is not None:
        found += rows
    if not found:
        raise RecordNotFound(f"no {question.name} matches the query")
    if len(found) > 1:
        raise InvalidOptionsError(
            f"more than one {question.name} matches the query",
            hint="use first(), or make the query more specific",
        )
    return next(iter(cursor.give(found)))


async def fetch_all(context: Context, unit: Unit | None, question: Question) -> list[Any]:
    """All items."""
    cursor: RowCursor[Any] = RowCursor(context, unit, question)
    items: list[Any] = []
    while (rows := await cursor.next_rows()) is not None:
        items += cursor.give(rows)
    return items
