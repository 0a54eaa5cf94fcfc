"""The bulk migration, which brings all items of a model up to date: conversions, renames, attributes of new indexes.

It is safe while other programs write, if it dies at any point, and if it runs twice: each item is written back on
condition that it is unchanged, and an item that is up to date is left alone. How far each segment has come is stored in
the database's table, so that the next run resumes there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypedDict

from holdall.core.context import Context
from holdall.core.requests import GetItem, Scan
from holdall.core.values import Item
from holdall.errors import (
    ContentionError,
    HoldallError,
    InvalidRequestError,
    ServiceError,
    TransactionCanceledError,
)
from holdall.models.indexes import Index
from holdall.models.marks import Marks
from holdall.models.schema import ModelSchema
from holdall.tables.commit.flow import Attempts, send_plan
from holdall.tables.commit.plan import CommitPlan
from holdall.transactions.binding import Binding, bind
from holdall.transactions.entry.loaded import Loaded
from holdall.transactions.query.scan import of_model
from holdall.transactions.read.hydration import hydrate, is_pointer
from holdall.transactions.read.instance import make_instance
from holdall.transactions.table_run.checkpoint import Checkpoints
from holdall.transactions.table_run.flow import TableRun, Tally, check_run_options
from holdall.transactions.unit import Unit


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


class MigrationArguments(TypedDict, total=False):
    """The options of a migration."""

    segments: int
    rate: float | None
    dry_run: bool
    restart: bool
    progress: Callable[[MigrationReport], Any] | None


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
    """Bring all items of a model, and of models derived from it, up to date."""
    check_run_options(segments, rate, progress)
    binding = await bind(context, schema)
    migration = _Migration(context, binding, dry_run)
    scan = Scan(binding.table, filter=of_model(binding), consistent=True)
    run = TableRun(
        context, scan, migration.visit, segments=segments, rate=rate, report=_report, progress=progress
    )
    name = f"holdall#Migration#{schema.name}"
    kept = None if dry_run else await Checkpoints.of(context, name, f"{_version(schema)}#{segments}")
    await run.work(kept, restart=restart)
    return _report(run)


def _report(run: TableRun) -> MigrationReport:
    counts = {name: run.count(name) for name in ("scanned", "found", "changed", "failed")}
    return MigrationReport(**counts, problems=run.lines("problems"))


class _Migration:
    """What a run does with each item."""

    def __init__(self, context: Context, binding: Binding, dry_run: bool) -> None:
        self._context = context
        self._binding = binding
        self._dry_run = dry_run

    async def visit(self, tally: Tally, items: Sequence[Item]) -> None:
        """Bring the items of a page up to date."""
        for raw in items:
            await self._visit_item(tally, raw)

    async def _visit_item(self, tally: Tally, raw: Item | None) -> None:
        """Process one item; if another program writes it meanwhile, it is read and tried again."""
        attempts, is_counted = Attempts(self._context, "it", made=1), False
        while raw is not None and (binding := await self._bind(raw)) is not None:
            tally.count("found", not is_counted)
            is_counted = True
            try:
                plan = await plan_refresh(self._context, binding, raw)
                if plan is not None:
                    await self._write(tally, plan)
                    tally.count("changed")
                return
            except ContentionError:
                pass
            except (InvalidRequestError, ServiceError) as error:
                if not _is_about_the_item(error):
                    raise
                tally.fail(binding.key_of(raw), error.message)
                return
            try:
                await attempts.another()
            except ContentionError as error:
                tally.fail(binding.key_of(raw), error.message)
                return
            raw = (await self._context.port.send(GetItem(binding.table, binding.key_of(raw), True))).item
        # otherwise it was deleted meanwhile, or is of another model that shares the key

    async def _bind(self, raw: Item) -> Binding | None:
        found = self._binding.model_of(raw)
        return None if found is None else await bind(self._context, found)

    async def _write(self, tally: Tally, plan: CommitPlan) -> None:
        if not self._dry_run:
            await tally.pace.wait(self._context.port)
            await send_plan(self._context.port, plan)


def _is_about_the_item(error: HoldallError) -> bool:
    """Whether the error concerns only this item, so that others may succeed."""
    return isinstance(error, InvalidRequestError) or isinstance(error.__cause__, TransactionCanceledError)


async def plan_refresh(context: Context, binding: Binding, raw: Item) -> CommitPlan | None:
    """The write that brings an item up to date; None if it is up to date."""
    if is_pointer(binding, raw):
        return None  # it is converted when it is read; fetching its content back would be wasteful
    stored = await hydrate(context, binding, raw)
    assert stored is not None
    item = make_instance(binding, binding.schema, stored, Marks(Unit(), held=True), None)
    step = Loaded(item, raw, asked=True).refresh(binding)
    return None if step is None else CommitPlan((step,))


def _version(schema: ModelSchema) -> str:
    """A digest of everything that a run applies to items, for the model and those derived from it."""
    from holdall.core.digests import digest_facts

    facts: list[list[Any]] = []
    for each in schema.family():
        renames = {} if each.migrations is None else each.migrations.renames
        facts.append([each.name, len(each.conversions), sorted(renames.items())])
        facts.append([_describe_index(index.declared) for index in each.indexes.values()])
        facts.append([None if each.ttl is None else each.ttl.name])
    return digest_facts(facts, 16)


def _describe_index(index: Index) -> list[Any]:
    include = None if index.include is None else list(index.include)
    return [index.name, list(index.key), list(index.sort_key), index.slot, include, index.sparse]
