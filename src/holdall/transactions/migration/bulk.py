"""The bulk migration, which brings all items of a model up to date: conversions, renames, attributes of new indexes.

It is safe while other programs write, if it dies at any point, and if it runs twice: each item is written back on
condition that it is unchanged, and an item that is up to date is left alone. How far each segment has come is stored in
the database's table, so that the next run resumes there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.requests import GetItem, Scan
from holdall.core.values import Item
from holdall.errors import (
    ContentionError,
    HoldallError,
    InvalidOptionsError,
    InvalidRequestError,
    ServiceError,
    TransactionCanceledError,
)
from holdall.models.indexes import Index
from holdall.models.marks import Marks
from holdall.models.schema import ModelSchema
from holdall.tables.commit.flow import send_plan
from holdall.tables.commit.plan import CommitPlan
from holdall.transactions.binding import Binding, bind
from holdall.transactions.checkpoint import Checkpoints
from holdall.transactions.entry.loaded import Loaded
from holdall.transactions.hydration import hydrate, is_pointer
from holdall.transactions.instance import make_instance
from holdall.transactions.query.scan import of_model
from holdall.transactions.unit import Unit

_ATTEMPTS = 8
_PROBLEMS = 20


class MigrationReport(NamedTuple):
    """What a migration has done so far, including before it was interrupted, or (with ``dry_run``) would do.

    ``scanned`` items were read, ``found`` of them were of the model, ``changed`` were brought up to date, and
    ``failed`` could not be; ``problems`` describes the first of those.
    """

    scanned: int
    found: int
    changed: int
    failed: int
    problems: tuple[str, ...]


async def migrate(
    context: Context,
    schema: ModelSchema,
    *,
    segments: int = 1,
    rate: float | None = None,
    dry_run: bool = False,
    restart: bool = False,
    progress: Callable[[MigrationReport], Any] | None = None,
) -> MigrationReport:
    """Bring all items of a model, and of models derived from it, up to date.

    ``segments`` parts of the table are processed concurrently. ``rate`` is the most items written per second.
    ``dry_run`` only counts. An interrupted run is resumed where it stopped, unless ``restart`` is true.
    """
    _check(segments, rate)
    binding = await bind(context, schema)
    run = _Run(context, binding, dry_run, None if rate is None else segments / rate, progress)
    name = f"holdall#Migration#{schema.name}"
    kept = None if dry_run else await Checkpoints.of(context, name, f"{_version(schema)}#{segments}")
    flows = (_segment(run, segment, segments, kept, restart) for segment in range(segments))
    for outcome in await context.port.gather(flows, limit=segments):
        outcome.result()
    if kept is not None:
        await kept.forget()
    return run.report()


class _Tally:
    """The counts of one segment; each segment has its own, because they may run in different threads."""

    def __init__(
        self,
        scanned: int = 0,
        found: int = 0,
        changed: int = 0,
        failed: int = 0,
        problems: Sequence[str] = (),
    ) -> None:
        self.scanned, self.found, self.changed, self.failed = scanned, found, changed, failed
        self.problems = list(problems)
        self.due: datetime | None = None  # when the next write may be sent

    def note(self, problem: str) -> None:
        self.failed += 1
        if len(self.problems) < _PROBLEMS:
            self.problems.append(problem)

    def to_dict(self) -> dict[str, Any]:
        counts = {"scanned": self.scanned, "found": self.found, "changed": self.changed}
        return {**counts, "failed": self.failed, "problems": self.problems}


class _Run:
    """One run: its options, and how far it has come. ``pause`` is the time between two writes of a segment."""

    def __init__(
        self, context: Context, binding: Binding, dry_run: bool, pause: float | None, progress: Any
    ) -> None:
        self.context = context
        self.binding = binding
        self.dry_run = dry_run
        self.pause = None if pause is None else timedelta(seconds=pause)
        self.progress = progress
        self.tallies: list[_Tally] = []

    def report(self) -> MigrationReport:
        tallies = self.tallies
        problems = [problem for tally in tallies for problem in tally.problems]
        return MigrationReport(
            sum(tally.scanned for tally in tallies),
            sum(tally.found for tally in tallies),
            sum(tally.changed for tally in tallies),
            sum(tally.failed for tally in tallies),
            tuple(problems[:_PROBLEMS]),
        )

    async def pace(self, tally: _Tally) -> None:
        """Wait until the next write is due; time in which nothing was written is not made up for."""
        if self.pause is None:
            return
        now = self.context.port.now()
        if tally.due is not None and tally.due > now:
            await self.context.port.sleep((tally.due - now).total_seconds())
            now = tally.due
        tally.due = now + self.pause


def _check(segments: Any, rate: Any) -> None:
    if isinstance(segments, bool) or not isinstance(segments, int) or not 1 <= segments <= 1000:
        raise InvalidOptionsError(f"segments must be a whole number from 1 to 1000, not {segments!r}")
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not rate > 0):
        raise InvalidOptionsError(f"rate must be a number of items per second above 0, not {rate!r}")


async def _segment(run: _Run, segment: int, segments: int, kept: Checkpoints | None, restart: bool) -> None:
    """Process one part of the table; a checkpoint after each page lets the next run resume without gaps."""
    binding, port = run.binding, run.context.port
    start, done, counted = (None, False, {}) if kept is None or restart else await kept.get(segment)
    tally = _Tally(**counted)
    run.tallies.append(tally)
    scan: Scan | None = Scan(
        binding.table,
        filter=of_model(binding),
        segment=segment,
        segments=segments,
        consistent=True,
        start_after=start,
    )
    while scan is not None and not done:
        page = await port.send(scan)
        tally.scanned += page.scanned
        for raw in page.items:
            await _item(run, tally, raw)
        scan = None if page.last_key is None else replace(scan, start_after=page.last_key)
        if kept is not None:
            await kept.put(segment, page.last_key, tally.to_dict())
        if run.progress is not None:
            await port.call(run.progress, run.report())


async def _item(run: _Run, tally: _Tally, raw: Item | None) -> None:
    """Process one item; if another program writes it meanwhile, it is read and tried again."""
    for attempt in range(_ATTEMPTS):
        binding = None if raw is None else await _binding_of(run, raw)
        if raw is None or binding is None:
            return  # deleted meanwhile, or of another model that shares the key
        tally.found += attempt == 0
        try:
            plan = await _plan(run.context, binding, raw)
            if plan is not None:
                await _write(run, tally, plan)
                tally.changed += 1
            return
        except ContentionError:
            raw = (await run.context.port.send(GetItem(binding.table, binding.key_of(raw), True))).item
        except (InvalidRequestError, ServiceError) as error:
            if not _is_about_the_item(error):
                raise
            tally.note(f"{_show_key(binding, raw)}: {error.message}")
            return
        last = binding
    assert raw is not None
    tally.note(f"{_show_key(last, raw)}: another writer changed it during each of {_ATTEMPTS} attempts")


def _is_about_the_item(error: HoldallError) -> bool:
    """Whether the error concerns only this item, so that others may succeed."""
    return isinstance(error, InvalidRequestError) or isinstance(error.__cause__, TransactionCanceledError)


def _show_key(binding: Binding, raw: Item) -> str:
    return ", ".join(str(*part.values()) for part in binding.key_of(raw).values())


async def _binding_of(run: _Run, raw: Item) -> Binding | None:
    binding = run.binding
    found = binding.model_of(raw)
    return None if found is None else await bind(run.context, found)


async def _plan(context: Context, binding: Binding, raw: Item) -> CommitPlan | None:
    """The write that brings an item up to date; None if it is up to date."""
    if is_pointer(binding, raw):
        return None  # it is converted when it is read; fetching its content back would be wasteful
    stored = await hydrate(context, binding, raw)
    assert stored is not None
    item = make_instance(binding, binding.schema, stored, Marks(Unit(), held=True), None)
    step = Loaded(item, raw, asked=True).refresh(binding)
    return None if step is None else CommitPlan((step,))


async def _write(run: _Run, tally: _Tally, plan: CommitPlan) -> None:
    if run.dry_run:
        return
    await run.pace(tally)
    await send_plan(run.context.port, plan)


def _version(schema: ModelSchema) -> str:
    """A digest of everything that a run applies to items, for the model and those derived from it."""
    import json
    from hashlib import sha256

    told: list[list[Any]] = []
    for each in schema.family():
        renames = {} if each.migrations is None else each.migrations.renames
        told.append([each.name, len(each.conversions), sorted(renames.items())])
        told.append([_describe_index(index.declared) for index in each.indexes.values()])
        told.append([None if each.ttl is None else each.ttl.name])
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _describe_index(index: Index) -> list[Any]:
    include = None if index.include is None else list(index.include)
    return [index.name, list(index.key), list(index.sort_key), index.slot, include, index.sparse]
