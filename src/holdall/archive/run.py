"""The run that archives all items of a model that are old enough, segment by segment.

It can be killed at any moment: each item is archived separately, items that are already pointers are passed over, and
the progress of each segment is kept in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from holdall.archive.item import (
    ArchivePlace,
    age_of,
    archive_item,
    find_place,
    is_too_wide,
    measure,
    send_swap,
)
from holdall.archive.pack.batch import Batch, Candidate, make_candidate, store_batch
from holdall.archive.pointer import show_key
from holdall.archive.price import BOUNDS, POINTER_BYTES, Estimate, Prices, classify
from holdall.core.context import Context
from holdall.core.digests import digest_facts
from holdall.core.expressions import Condition
from holdall.core.expressions.evaluation import holds
from holdall.core.expressions.renderer import render
from holdall.core.frozen import dataclass
from holdall.core.measure import item_size
from holdall.core.option import check_count
from holdall.core.requests import GetItem, Scan
from holdall.core.values import Item
from holdall.errors import (
    ArchiveLossError,
    ContentionError,
    InvalidOptionsError,
    InvalidRequestError,
    OutcomeUnknown,
)
from holdall.models.fields.conditions import Clause
from holdall.models.model import Model
from holdall.tables.commit.lock import all_of
from holdall.transactions.query.scan import of_model
from holdall.transactions.read.expiry import has_expired
from holdall.transactions.table_run.checkpoint import Checkpoints
from holdall.transactions.table_run.flow import TableRun, Tally, check_run_options

_PROBLEMS = 20
_PAGE = 500
"""The most items in a page. Each segment holds one page in memory, and examines it again after a kill."""
_TRIES = 3
_AT_ONCE = 4  # swaps of a pack, in each segment
_OF_THE_ITEM = (InvalidRequestError, ContentionError, OutcomeUnknown)
"""The errors that concern a single item; after any other error, the next item would fail too."""


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What a run has done so far, or what a dry run would do.

    ``scanned`` counts the items that were read, ``archived`` those that were archived. ``skipped`` maps each reason to
    the number of items that were left in the table for it. ``failed`` counts the items that could not be archived, and
    ``problems`` has the messages of the first few. ``item_bytes`` is the size of the archived items in the table,
    ``object_bytes`` the size of their objects. ``estimate`` is what archiving costs once and saves each month at
    ``prices``. ``paybacks`` is a histogram: how many items pay for themselves within 3, 6, 12, 24 and 36 months, and
    how many take longer.
    """

    scanned: int
    archived: int
    skipped: Mapping[str, int]
    failed: int
    problems: tuple[str, ...]
    item_bytes: int
    object_bytes: int
    estimate: Estimate
    paybacks: tuple[int, ...]
    prices: Prices

    @property
    def losing(self) -> int:
        """How many items do not pay for themselves within three years."""
        return self.paybacks[-1]


async def run(
    context: Context,
    model: type[Model],
    *,
    where: Clause | None = None,
    dry_run: bool = False,
    force: bool = False,
    max_items: int | None = None,
    segments: int = 4,
    rate: float | None = None,
    keep_months: float = 36,
    prices: Prices | None = None,
    restart: bool = False,
    progress: Callable[[ArchiveReport], Any] | None = None,
) -> ArchiveReport:
    """Archive the items of a model that are old enough; with ``where``, only those that match it.

    A model whose archive has no timestamp needs ``where``. ``dry_run`` changes nothing and reports what the run would
    cost and save. On DynamoDB, a run that would not pay for itself within ``keep_months`` raises `ArchiveLossError`;
    ``force`` runs it anyway. ``max_items`` ends the run after that many items. ``rate`` limits how many units of the
    table's capacity it uses per second. ``segments`` is the number of parts of the table that are processed in
    parallel. A run that was stopped continues where it was; ``restart`` begins again. ``progress`` is called with a
    report after each page.
    """
    check_run_options(segments, rate, progress, "capacity units")
    if max_items is not None:
        check_count(max_items, "max_items")
    place = await find_place(context, model)
    schema = place.schema
    if where is None and place.archive.timestamp is None:
        raise InvalidOptionsError(
            f"{schema.name} does not declare a timestamp, so the run cannot know how old its items are",
            hint='declare the field with Archive(timestamp="..."), or choose the items with where=...',
        )
    condition = None if where is None else where.condition()
    options = (segments, rate, max_items, prices or Prices())
    if not dry_run and not force and context.settings.is_remote:
        ahead = await _Run(context, place, condition, *options).work(None)
        months = ahead.estimate.payback_months
        if ahead.archived and months > keep_months:
            raise ArchiveLossError(
                f"archiving {ahead.archived:,} items of {schema.name} would "
                + (
                    "never pay for itself"
                    if months == inf
                    else f"pay for itself only after {months:.0f} months"
                ),
                hint="see the costs with dry_run=True; leave small items in the table with "
                "Archive(min_item_bytes=...), or let them share objects with Archive(pack=True); force=True archives "
                "them anyway",
            )
    work = _Run(context, place, condition, *options, dry_run=dry_run, progress=progress)
    if dry_run:
        return await work.work(None)
    kept = await Checkpoints.of(context, f"holdall#Archive#{schema.name}", _name_run(segments, condition))
    return await work.work(kept, restart=restart)


def _name_run(segments: int, where: Condition | None) -> str:
    """Name the checkpoints of a run: a run with another condition or other segments starts from the beginning."""
    if where is None:
        return str(segments)
    return f"{segments}-{digest_facts(render({'where': where}), 16)}"


class _Sums:
    """What one segment has archived. Segments may run in different threads, so each has its own sums."""

    def __init__(self) -> None:
        self.scanned = self.archived = self.failed = self.item_bytes = self.object_bytes = 0
        self.skipped: dict[str, int] = {}
        self.problems: list[str] = []
        self.estimate = Estimate(0.0, 0.0)
        self.paybacks = [0] * len(BOUNDS)
        self.batch: Batch[Candidate] = Batch()  # the items that wait for others to share their pack

    def skip(self, reason: str) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def note(self, problem: str) -> None:
        self.failed += 1
        if len(self.problems) < _PROBLEMS:
            self.problems.append(problem)

    def count(self, item_bytes: int, object_bytes: int, estimate: Estimate) -> None:
        self.archived += 1
        self.item_bytes += item_bytes
        self.object_bytes += object_bytes
        self.estimate += estimate
        self.paybacks[classify(estimate.payback_months)] += 1


class _Quota:
    """How many items may still be archived. Segments in several threads share it, so each step is atomic."""

    def __init__(self, most: int | None) -> None:
        self._fresh = None if most is None else iter(range(most))
        self._returned: list[int] = []

    def take(self) -> bool:
        """Use up one item; False if the quota is exhausted."""
        if self._fresh is None:
            return True
        try:
            self._returned.pop()
        except IndexError:
            return next(self._fresh, None) is not None
        return True

    def give_back(self) -> None:
        """Return one item to the quota, because it was not archived after all."""
        self._returned.append(0)


class _Run:
    """One run over a table; a dry run only counts what a real one would do."""

    def __init__(
        self,
        context: Context,
        place: ArchivePlace,
        where: Condition | None,
        segments: int,
        rate: float | None,
        max_items: int | None,
        prices: Prices,
        *,
        dry_run: bool = True,
        progress: Callable[[ArchiveReport], Any] | None = None,
    ) -> None:
        self._context = context
        self._place = place
        self._wanted = all_of([of_model(place.binding), where])
        self._rate = rate
        self._quota = _Quota(max_items)
        self._prices = prices
        self._dry_run = dry_run
        self._sums = [_Sums() for _ in range(segments)]
        scan = Scan(
            place.binding.table,
            filter=all_of([self._wanted, place.archive.guard(None)]),
            limit=_PAGE,
            consistent=True,
        )
        self._run = TableRun(
            context,
            scan,
            self._visit,
            segments=segments,
            rate=rate,
            report=lambda run: self.report(),
            progress=progress,
        )

    async def work(self, kept: Checkpoints | None, *, restart: bool = False) -> ArchiveReport:
        """Process all segments in parallel, each from its checkpoint."""
        await self._run.work(kept, restart=restart)
        return self.report()

    def report(self) -> ArchiveReport:
        """What this run has done so far, without what it had done before it was interrupted."""
        parts = self._sums
        skipped: dict[str, int] = {}
        for part in parts:
            for reason, count in list(part.skipped.items()):
                skipped[reason] = skipped.get(reason, 0) + count
        problems = [problem for part in parts for problem in part.problems]
        return ArchiveReport(
            sum(part.scanned for part in parts),
            sum(part.archived for part in parts),
            skipped,
            sum(part.failed for part in parts),
            tuple(problems[:_PROBLEMS]),
            sum(part.item_bytes for part in parts),
            sum(part.object_bytes for part in parts),
            sum((part.estimate for part in parts), Estimate(0.0, 0.0)),
            tuple(map(sum, zip(*(part.paybacks for part in parts), strict=True))),
            self._prices,
        )

    async def _visit(self, tally: Tally, items: Sequence[Item]) -> None:
        """Archive the items of a page that qualify, until the quota is exhausted."""
        sums = self._sums[tally.segment]
        batch = sums.batch
        sums.scanned += tally.page.scanned
        await tally.pace.pay(self._context.port, tally.page.capacity)
        if self._place.archive.pack:
            tally.stopped = not await self._context.port.offload(self._gather, sums, items)
        else:
            for item in items:
                if not await self._consider(tally, sums, item):
                    tally.stopped = True
                    break
        ends = tally.stopped or tally.page.last_key is None
        while batch.is_full or (batch and ends):
            await self._archive_together(tally, sums, batch.take())
        tally.holds = bool(batch)  # the items in it must be read again

    async def _consider(self, tally: Tally, sums: _Sums, item: Item) -> bool:
        """Archive an item if it qualifies; if another client writes it meanwhile, examine it again.

        False if the quota is exhausted.
        """
        place, port = self._place, self._context.port
        found = item
        for _ in range(_TRIES):
            reason = self._find_reason_to_stay(found)
            if reason is not None:
                sums.skip(reason)
                return True
            if not self._quota.take():
                return False
            try:
                if await self._archive(tally, sums, found):
                    return True
            except _OF_THE_ITEM as error:
                sums.note(f"{self._show_key(found)}: {error.message}")
                self._quota.give_back()
                return True
            self._quota.give_back()
            again = (await port.send(GetItem(place.binding.table, place.binding.key_of(found), True))).item
            if again is None or (self._wanted is not None and not holds(self._wanted, again)):
                return True  # it was deleted, or no longer matches
            found = again
        sums.skip("changing")
        return True

    async def _archive(self, tally: Tally, sums: _Sums, item: Item) -> bool:
        place, units = self._place, 0.0
        if self._dry_run:
            object_bytes = await self._context.port.offload(measure, place, item)
        else:
            archived = await archive_item(self._context, place, item, self._context.port.now())
            if archived is None:
                return False
            object_bytes, units = archived.pointer.size, archived.capacity
        size = item_size(item)
        left = item_size(place.split(item)[0]) + POINTER_BYTES
        sums.count(
            size, object_bytes, self._prices.estimate(size, object_bytes, left, place.count_copies(item))
        )
        await tally.pace.pay(self._context.port, units)
        return True

    def _gather(self, sums: _Sums, items: Sequence[Item]) -> bool:
        """Add the items that qualify to the batch, compressed; False if the quota is exhausted."""
        for item in items:
            reason = self._find_reason_to_stay(item)
            if reason is not None:
                sums.skip(reason)
            elif not self._quota.take():
                return False
            else:
                sums.batch.add(make_candidate(self._place, item, self._context.port.now()))
        return True

    async def _archive_together(self, tally: Tally, sums: _Sums, candidates: Sequence[Candidate]) -> None:
        """Archive items in one pack. An item that another client writes meanwhile is left to the next run."""
        place, context, together = self._place, self._context, len(candidates)
        if self._dry_run:
            for each in candidates:
                self._count_packed(sums, each, together)
            return
        pointers = await store_batch(context, place, candidates, context.port.now())
        step = together if self._rate is None else _AT_ONCE
        for at in range(0, together, step):
            some = candidates[at : at + step]
            flows = (
                send_swap(context, place, each.item, pointer)
                for each, pointer in zip(some, pointers[at : at + step], strict=True)
            )
            units = 0.0
            for each, outcome in zip(some, await context.port.gather(flows, limit=_AT_ONCE), strict=True):
                capacity = None
                if isinstance(outcome.error, _OF_THE_ITEM):
                    sums.note(f"{self._show_key(each.item)}: {outcome.error.message}")
                elif (capacity := outcome.result()) is None:
                    sums.skip("changing")
                if capacity is None:
                    self._quota.give_back()
                else:
                    self._count_packed(sums, each, together)
                    units += capacity
            await tally.pace.pay(self._context.port, units)

    def _count_packed(self, sums: _Sums, each: Candidate, together: int) -> None:
        size, object_bytes = item_size(each.item), each.object_bytes
        copies = self._place.count_copies(each.item)
        estimate = self._prices.estimate(size, object_bytes, each.left_bytes, copies, together)
        sums.count(size, object_bytes, estimate)

    def _find_reason_to_stay(self, item: Item) -> str | None:
        archive, now = self._place.archive, self._context.port.now()
        if archive.is_pointer(item):
            return "archived"
        if has_expired(self._place.binding, item, now):
            return "expired"
        if not self._place.split(item)[1]:
            return "nothing to archive"
        if archive.timestamp is not None:
            age = age_of(self._place, item, now)
            if age is None:
                return "no timestamp"
            if age <= archive.after_days:
                return "too young"
        if item_size(item) < archive.min_item_bytes:
            return "too small"
        return "too many attributes" if is_too_wide(self._place, item) else None

    def _show_key(self, item: Item) -> str:
        return show_key(self._place.binding.key_of(item))
