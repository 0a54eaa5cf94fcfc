"""The run that archives a model's items: all that are old enough, segment by segment.

It can be killed at any moment: each item is archived by itself, what is a pointer already is passed over, and how far
each segment has come is kept in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from math import ceil, inf
from typing import Any

from holdall.archive.batch import Batch, Candidate, archive_batch, make_candidate
from holdall.archive.item import ArchivePlace, age_of, archive_item, find_place, measure
from holdall.archive.price import BOUNDS, Estimate, Prices, classify
from holdall.core.context import Context
from holdall.core.expressions import Condition
from holdall.core.frozen import dataclass, replace
from holdall.core.port import Outcome
from holdall.core.requests import GetItem, Scan
from holdall.core.values import Item, item_size
from holdall.errors import (
    ArchiveLossError,
    HoldallError,
    InvalidExpressionError,
    InvalidOptionsError,
)
from holdall.models.conditions import Clause
from holdall.models.model import Model
from holdall.models.schema import ModelSchema
from holdall.tables.commit.lock import all_of
from holdall.transactions.checkpoint import Checkpoints
from holdall.transactions.query.scan import of_model

_PROBLEMS = 20
_TRIES = 3


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What a run has done so far, or (dry) would do.

    ``scanned`` items were looked at; ``archived`` were, or would be; ``skipped`` says how many were not, by reason;
    ``failed`` could not be, and ``problems`` tells of the first. ``item_bytes`` is what the archived items occupied,
    ``object_bytes`` what their objects do. ``estimate`` is what that costs once and saves each month, at ``prices``;
    ``paybacks`` counts the items by the months after which they have paid for themselves, up to `BOUNDS`.
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
        """How many items never pay for themselves, or not within three years."""
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
    """Archive the items of a model that are old enough, or that ``where`` is true of, too.

    ``dry_run`` only says what that would cost and save. On DynamoDB a run that has not paid for itself after
    ``keep_months`` is refused unless ``force``: `ArchiveLossError`. ``max_items`` ends it early. ``rate`` is how many
    units of capacity it may use in a second. A run that was stopped is taken up where it was, unless ``restart``.
    """
    _check(segments, rate, max_items)
    schema: ModelSchema = model._schema
    place = await find_place(context, model)
    if where is None and place.archive.timestamp is None:
        raise InvalidOptionsError(
            f"{schema.name} has no timestamp to say which items are old",
            hint='give where=..., or declare Archive(timestamp="...")',
        )
    condition = None if where is None else where.condition()
    options = (segments, rate, max_items, prices or Prices(), restart)
    if not dry_run and not force and context.settings.scheme == "dynamodb":
        ahead = await _Run(context, place, condition, True, *options, None).work()
        months = ahead.estimate.payback_months
        if ahead.archived and months > keep_months:
            raise ArchiveLossError(
                f"archiving {ahead.archived:,} items of {schema.name} would pay for itself "
                + ("never" if months == inf else f"after {months:.0f} months"),
                hint="look at the report of a dry run: small items cost more than they save; min_item_bytes= leaves "
                "them, force=True archives all the same",
            )
    return await _Run(context, place, condition, dry_run, *options, progress).work()


def _check(segments: Any, rate: Any, max_items: Any) -> None:
    if isinstance(segments, bool) or not isinstance(segments, int) or not 1 <= segments <= 1000:
        raise InvalidOptionsError(f"segments is {segments!r}, and has to be a whole number from 1 to 1000")
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not rate > 0):
        raise InvalidOptionsError(f"rate is {rate!r}, and has to be a number of capacity units per second")
    if max_items is not None and (
        isinstance(max_items, bool) or not isinstance(max_items, int) or max_items < 1
    ):
        raise InvalidOptionsError(f"max_items is {max_items!r}, and has to be a whole number from 1 up")


class _Run:
    """One run over a table. All segments count together: flows take turns, and only add numbers."""

    def __init__(
        self,
        context: Context,
        place: ArchivePlace,
        where: Condition | None,
        dry_run: bool,
        segments: int,
        rate: float | None,
        max_items: int | None,
        prices: Prices,
        restart: bool,
        progress: Callable[[ArchiveReport], Any] | None,
    ) -> None:
        self._context = context
        self._place = place
        self._where = where
        self._dry_run = dry_run
        self._segments = segments
        self._rate = rate
        self._left = max_items
        self._prices = prices
        self._restart = restart
        self._progress = progress
        self._scanned = self._archived = self._failed = self._item_bytes = self._object_bytes = 0
        self._skipped: dict[str, int] = {}
        self._problems: list[str] = []
        self._estimate = Estimate(0.0, 0.0)
        self._paybacks = [0] * len(BOUNDS)

    async def work(self) -> ArchiveReport:
        """Go through all segments, side by side."""
        kept = None
        if not self._dry_run:
            h = f"holdall#Archive#{self._place.schema.name}"
            kept = await Checkpoints.of(self._context, h, str(self._segments))
        flows = (self._work_segment(segment, kept) for segment in range(self._segments))
        for outcome in await self._context.port.gather(flows, limit=self._segments):
            outcome.result()
        if kept is not None and self._left != 0:
            await kept.forget()
        return self.report()

    def report(self) -> ArchiveReport:
        return ArchiveReport(
            self._scanned,
            self._archived,
            dict(self._skipped),
            self._failed,
            tuple(self._problems),
            self._item_bytes,
            self._object_bytes,
            self._estimate,
            tuple(self._paybacks),
            self._prices,
        )

    async def _work_segment(self, segment: int, kept: Checkpoints | None) -> None:
        place, port = self._place, self._context.port
        start, done, _ = (None, False, {}) if kept is None or self._restart else await kept.get(segment)
        scan: Scan | None = Scan(
            place.binding.table,
            filter=all_of([of_model(place.binding), place.archive.guard(None), self._where]),
            segment=segment,
            segments=self._segments,
            consistent=True,
            start_after=start,
        )
        batch: Batch[Candidate] = Batch()
        while scan is not None and not done and self._left != 0:
            page = await port.send(scan)
            self._scanned += page.scanned
            await self._pace(page.capacity or 0.0)
            for item in page.items:
                if self._left == 0:
                    break
                if place.archive.pack:
                    self._gather(batch, item)
                else:
                    await self._consider(item)
            while batch.is_full:
                await self._archive_together(batch.take())
            if self._left == 0:
                break
            scan = None if page.last_key is None else replace(scan, start_after=page.last_key)
            if kept is not None and not batch:  # what waits in the batch is read again after a kill
                await kept.put(segment, page.last_key, {})
            if self._progress is not None:
                await port.call(self._progress, self.report())
        if batch:
            await self._archive_together(batch.take())
            if kept is not None and scan is None:
                await kept.put(segment, None, {})

    async def _consider(self, item: Item) -> None:
        """Archive an item if it is to be; when somebody writes it meanwhile, look at it again."""
        place, found = self._place, item
        for _ in range(_TRIES):
            reason = self._reason_to_stay(found)
            if reason is not None:
                self._skip(reason)
                return
            sizes = measure(place, found)
            if self._dry_run:
                self._count(*sizes)
                self._spend(1)
                return
            if self._left == 0:  # another segment was faster
                return
            self._spend(1)  # before it waits, so that no two segments spend the last one
            try:
                pointer = await archive_item(self._context, place, found, self._context.port.now())
            except InvalidExpressionError:
                self._spend(-1)
                self._skip("too many attributes")
                return
            except HoldallError as error:
                if error.retryable:
                    raise
                self._spend(-1)
                self._note(found, error)
                return
            if pointer is not None:
                self._count(*sizes)
                await self._pace(ceil(sizes[0] / 1024) * (1.0 + place.copies))
                return
            self._spend(-1)
            again = (
                await self._context.port.send(GetItem(place.binding.table, place.binding.key_of(found), True))
            ).item
            if again is None:
                return
            found = again
        self._skip("changing")

    def _gather(self, batch: Batch[Candidate], item: Item) -> None:
        """Have an item packed if it is to be archived."""
        reason = self._reason_to_stay(item)
        if reason is None:
            try:
                batch.add(make_candidate(self._place, item, self._context.port.now()))
            except InvalidExpressionError:
                reason = "too many attributes"
        if reason is not None:
            self._skip(reason)
        else:
            self._spend(1)

    def _spend(self, items: int) -> None:
        """So many of ``max_items`` are archived, or about to be."""
        if self._left is not None:
            self._left -= items

    async def _archive_together(self, candidates: Sequence[Candidate]) -> None:
        """Archive items in one pack. One that another process writes meanwhile is left to the next run."""
        place, together, units = self._place, len(candidates), 0.0
        outcomes = [Outcome(True)] * together
        if not self._dry_run:
            outcomes = await archive_batch(self._context, place, candidates, self._context.port.now())
        for each, outcome in zip(candidates, outcomes, strict=True):
            if isinstance(outcome.error, HoldallError) and not outcome.error.retryable:
                self._note(each.item, outcome.error)
            elif outcome.result():
                size = item_size(each.item)
                self._count(size, each.left_bytes, each.object_bytes, together)
                units += ceil(size / 1024) * (1.0 + place.copies)
            else:
                self._skip("changing")
        await self._pace(units)

    def _reason_to_stay(self, item: Item) -> str | None:
        archive = self._place.archive
        if archive.is_pointer(item):
            return "archived"
        if not self._place.split(item)[1]:
            return "nothing to archive"
        if archive.timestamp is not None:
            age = age_of(self._place, item, self._context.port.now())
            if age is None:
                return "no timestamp"
            if age <= archive.after_days:
                return "too young"
        return "too small" if item_size(item) < archive.min_item_bytes else None

    def _skip(self, reason: str) -> None:
        self._skipped[reason] = self._skipped.get(reason, 0) + 1

    def _note(self, item: Item, error: HoldallError) -> None:
        self._failed += 1
        if len(self._problems) < _PROBLEMS:
            key = ", ".join(str(*part.values()) for part in self._place.binding.key_of(item).values())
            self._problems.append(f"{key}: {error.message}")

    def _count(self, item_bytes: int, left_bytes: int, object_bytes: int, together: int = 1) -> None:
        copies = self._place.copies
        estimate = self._prices.estimate(item_bytes, object_bytes, left_bytes, copies, together)
        self._archived += 1
        self._item_bytes += item_bytes
        self._object_bytes += object_bytes
        self._estimate += estimate
        self._paybacks[classify(estimate.payback_months)] += 1

    async def _pace(self, units: float) -> None:
        """Wait as long as these units of capacity may take."""
        if self._rate is not None and not self._dry_run:
            await self._context.port.sleep(
                timedelta(seconds=units / self._rate * self._segments).total_seconds()
            )
