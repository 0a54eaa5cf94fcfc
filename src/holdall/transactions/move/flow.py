"""The run that copies all items of one model as items of another.

The source is only read. An item is copied if nothing is stored under its new key; an item that is there already is
compared, and replaced only if the caller wants that and no program has changed it since it was copied. So a run can be
repeated, and resumed after it died at any point: what was copied before is found to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypedDict

from holdall.core.context import Context
from holdall.core.expressions.renderer import render
from holdall.core.frozen import replace
from holdall.core.requests import BatchGet, GetItem
from holdall.core.stamp import STAMP
from holdall.core.values import Item
from holdall.errors import (
    ContentionError,
    HoldallError,
    InvalidOptionsError,
    InvalidRequestError,
    OutcomeUnknown,
    TransactionCanceledError,
    TransactionErrors,
    UniqueViolationError,
)
from holdall.models.fields.conditions import Clause
from holdall.models.migrations import VERSION
from holdall.models.schema import ModelSchema
from holdall.tables.commit.flow import Attempts, send_plan
from holdall.tables.commit.plan import CommitPlan
from holdall.transactions.binding import Binding, bind
from holdall.transactions.move.conversion import AsyncConvert, Conversion
from holdall.transactions.move.copy import MOVED, Copy, CopyEntry, count_units, is_untouched, make_copy
from holdall.transactions.plan import plan_steps
from holdall.transactions.query.row import RowMaker
from holdall.transactions.query.scan import ScanQuestion
from holdall.transactions.read.expiry import has_expired
from holdall.transactions.read.hydration import hydrate, is_pointer
from holdall.transactions.table_run.checkpoint import Checkpoints
from holdall.transactions.table_run.flow import TableRun, Tally, check_run_options

_MOST_REFUSED = 1000
"""The most items that are kept to be tried again at the end."""
_COUNTS = ("scanned", "found", "copied", "updated", "same", "differing", "skipped", "failed")


class MoveReport(NamedTuple):
    """What a move has done so far, including before it was interrupted, or (with ``dry_run``) would do.

    ``scanned`` items were read, ``found`` of them were of the source model and matched. Of those, ``copied`` were
    written, ``updated`` replaced an older copy, ``same`` were there already, ``differing`` were there with other values
    and were left alone, ``skipped`` were left out by ``convert``, and ``failed`` could not be copied.

    ``item_bytes`` is the size of what was written, ``write_units`` an estimate of what DynamoDB bills for it.
    ``dropped`` are fields and attributes of the source that are not copied, ``added`` are fields that only the
    destination has. ``differences`` and ``problems`` describe the first items that differ or failed.
    """

    scanned: int
    found: int
    copied: int
    updated: int
    same: int
    differing: int
    skipped: int
    failed: int
    item_bytes: int
    write_units: int
    dropped: tuple[str, ...]
    added: tuple[str, ...]
    differences: tuple[str, ...]
    problems: tuple[str, ...]


class MoveArguments(TypedDict, total=False):
    """The options of a move."""

    where: Clause | None
    update: bool
    segments: int
    rate: float | None
    dry_run: bool
    restart: bool
    progress: Callable[[MoveReport], Any] | None


async def move(
    context: Context,
    source: ModelSchema,
    target: ModelSchema,
    *,
    convert: AsyncConvert[Any] | None = None,
    where: Clause | None = None,
    update: bool = False,
    segments: int = 1,
    rate: float | None = None,
    dry_run: bool = False,
    restart: bool = False,
    progress: Callable[[MoveReport], Any] | None = None,
) -> MoveReport:
    """Copy all items of ``source`` as items of ``target``."""
    check_run_options(segments, rate, progress)
    if convert is not None and not callable(convert):
        raise InvalidOptionsError(f"convert must be a function, not {convert!r:.60}")
    conversion = Conversion(source, target, convert)
    question = ScanQuestion(source, segments=segments, where=where, consistent=True, lock=False)
    as_it_is = replace(context, settings=replace(context.settings, manage_table=False))
    home = await bind(as_it_is, source)  # a missing table is an error, not a table to create
    place = await bind(context, target)
    _check_places(home, place, update)
    work = _Move(context, home, place, conversion, question, update=update, dry_run=dry_run)
    scan = question.scan(home, context.port.now(), consistent=True, hold=False)
    run = TableRun(
        context, scan, work.visit, segments=segments, rate=rate, report=work.report, progress=progress
    )
    h = f"holdall#Move#{home.table}#{source.name}#{target.name}"
    name = _name_run(question, convert, update)
    kept = None if dry_run else await Checkpoints.of(context, h, name)
    await run.work(kept, restart=restart)
    await work.repeat_refused()
    return work.report(run)


def _check_places(home: Binding, place: Binding, update: bool) -> None:
    if home.table == place.table:
        raise InvalidOptionsError(
            f"{home.schema.name} and {place.schema.name} are in the same table, {home.table}",
            hint="items are copied from one table to another; to change them in place, use migrations or update_all",
        )
    if update and place.own:
        raise InvalidOptionsError(
            f"update=True was given, but nothing in table {place.table} shows whether a copy was changed",
            hint="it is for a destination in the database's own table",
        )


def _name_run(question: ScanQuestion, convert: object, update: bool) -> str:
    """Identify what a run does, so that it does not resume another one."""
    from holdall.core.digests import digest_facts

    condition = question.condition
    facts = [
        question.segments,
        None if condition is None else render({"where": condition}),
        None if convert is None else getattr(convert, "__qualname__", type(convert).__qualname__),
        update,
    ]
    return digest_facts(facts, 16)


class _Move:
    """What a run does with each item."""

    def __init__(
        self,
        context: Context,
        source: Binding,
        target: Binding,
        conversion: Conversion,
        question: ScanQuestion,
        *,
        update: bool,
        dry_run: bool,
    ) -> None:
        self._context = context
        self._source = source
        self._target = target
        self._conversion = conversion
        self._update = update
        self._dry_run = dry_run
        self._maker = RowMaker(context, None, source, None, projected=False, where=question.condition)
        self._known = _list_known_names(source)
        self._refused: list[tuple[Tally, Copy, str]] = []

    def report(self, run: TableRun) -> MoveReport:
        """What the run has done so far."""
        conversion = self._conversion
        return MoveReport(
            **{name: run.count(name) for name in (*_COUNTS, "item_bytes", "write_units")},
            dropped=(*conversion.dropped, *run.lines("undeclared")),
            added=conversion.added,
            differences=run.lines("differences"),
            problems=run.lines("problems"),
        )

    async def visit(self, tally: Tally, rows: Sequence[Item]) -> None:
        """Copy the items of a page."""
        port, copies = self._context.port, list[Copy]()
        for item, raw in await self._maker.make_instances(rows):
            if isinstance(item, Exception):
                if not isinstance(item, HoldallError):
                    raise item
            elif item._schema is not self._source.schema:
                continue  # of a derived model, which is moved by a run of its own
            tally.count("found")
            if not is_pointer(self._source, raw):
                for name in sorted(raw.keys() - self._known):
                    tally.note("undeclared", name)
            try:
                if isinstance(item, Exception):
                    raise item
                converted = await self._conversion.apply(port, item)
                if converted is None:
                    tally.count("skipped")
                else:
                    copies.append(make_copy(self._target, converted, port.now()))
            except InvalidRequestError as error:
                tally.fail(self._source.key_of(raw), error.message)
        for start in range(0, len(copies), BatchGet.most):
            await self._settle(tally, copies[start : start + BatchGet.most])

    async def _settle(self, tally: Tally, copies: Sequence[Copy]) -> None:
        """Compare copies with what is stored under their keys, and write those that are missing."""
        reads = {copy.identity: self._read(copy) for copy in copies}
        found = await self._context.port.send(BatchGet(tuple(reads.values())))
        stored = dict(zip(reads, found.items, strict=True))
        for copy in copies:
            await self._settle_one(tally, copy, stored[copy.identity])
            stored[copy.identity] = stored[copy.identity] or copy.attributes  # another may have the same key

    def _read(self, copy: Copy) -> GetItem:
        return GetItem(self._target.table, self._target.key(copy.item.key), True)

    async def _settle_one(self, tally: Tally, copy: Copy, stored: Item | None) -> None:
        attempts = Attempts(self._context, "it", made=1)
        while True:
            differs = await self._compare(copy, stored)
            if differs is not None and not differs:
                tally.count("same")
                return
            if differs and not self._may_replace(stored):
                tally.count("differing")
                tally.note("differences", f"{copy.item.key!r}: {', '.join(differs)}")
                return
            try:
                await self._write(tally, copy, stored if differs else None)
                return
            except (ContentionError, OutcomeUnknown):
                pass
            except HoldallError as error:
                if not _is_about_the_item(error):
                    raise
                line = tally.fail(self._target.key_of(copy.attributes), error.message)
                if isinstance(error, UniqueViolationError) and len(self._refused) < _MOST_REFUSED:
                    self._refused.append((tally, copy, line))
                return
            try:
                await attempts.another()
            except ContentionError as error:
                tally.fail(self._target.key_of(copy.attributes), error.message)
                return
            stored = (await self._context.port.send(self._read(copy))).item

    async def repeat_refused(self) -> None:
        """Retry items whose unique value another item had, and may have released; stop when no item succeeds."""
        before = None
        while self._refused and len(self._refused) != before:
            again, self._refused = self._refused, []
            before = len(again)
            for tally, copy, line in again:
                tally.forget_failure(line)
                await self._settle_one(tally, copy, (await self._context.port.send(self._read(copy))).item)

    def _may_replace(self, stored: Item | None) -> bool:
        """Whether a stored item that differs is a copy that no program has changed, and is to be updated."""
        if not self._update or stored is None or self._target.model_of(stored) is not self._target.schema:
            return False
        return is_untouched(stored)

    async def _compare(self, copy: Copy, stored: Item | None) -> list[str] | None:
        """Where a stored item differs from the copy; None if nothing is stored."""
        target = self._target
        if stored is None or has_expired(target, stored, self._context.port.now()):
            return None
        if target.model_of(stored) is not target.schema:
            return ["it is of another model"]
        whole = await hydrate(self._context, target, stored)
        if whole is None:
            return None
        differs = copy.list_differences(whole)
        return [*differs, "it is archived"] if differs and is_pointer(target, stored) else differs

    async def _write(self, tally: Tally, copy: Copy, replaced: Item | None) -> None:
        port = self._context.port
        steps = plan_steps([(CopyEntry(copy, replaced), self._target)], port.now())
        if not self._dry_run:
            await tally.pace.wait(port)
            await send_plan(port, CommitPlan(tuple(steps)))
        tally.count("copied" if replaced is None else "updated")
        tally.count("item_bytes", copy.size)
        tally.count("write_units", count_units(self._target, copy, len(steps)))


def _list_known_names(binding: Binding) -> frozenset[str]:
    """The attributes of the source's items that its model explains."""
    schema = binding.schema
    names = {field.stored for field in schema.fields.values()}
    names |= {key.name for key in (binding.partition, binding.sort) if key is not None}
    names |= {key.name for index in schema.indexes.values() for key in index.schema.keys}
    names |= {STAMP, VERSION, MOVED, *(() if schema.migrations is None else schema.migrations.renames)}
    names |= {name for name in (binding.ttl, schema.form.type_attribute) if name is not None}
    return frozenset(names | schema.form.constants.keys())


def _is_about_the_item(error: HoldallError) -> bool:
    """Whether the error concerns only this item, so that others may succeed."""
    kinds = (InvalidRequestError, UniqueViolationError, TransactionErrors)
    return isinstance(error, kinds) or isinstance(error.__cause__, TransactionCanceledError)
