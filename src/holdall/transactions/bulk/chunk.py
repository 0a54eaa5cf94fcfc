"""Changes to all items that a query or scan finds, in transactions of a few items each.

A page is read outside any transaction; then its rows are changed chunk by chunk. A chunk's transaction requires that
its rows still match; after contention it reads them again and leaves out those that no longer do. So locks, guards of
unique fields, attachments and the archive are handled as in any transaction.

With a checkpoint, each transaction also stores how far the run has come. A run that was interrupted at any point
resumes exactly there, and changes no item twice; two processes cannot work on the same run. A finished run stays
finished.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.option import check_count, check_progress, check_switch
from holdall.core.requests import Query, Scan
from holdall.core.values import Item
from holdall.errors import InvalidOptionsError, InvalidRequestError, TransactionTooLarge
from holdall.models.item_values import unknown_field
from holdall.models.schema import ModelSchema
from holdall.tables.commit.change import Change, Participant
from holdall.tables.commit.retry import RunOptions
from holdall.tables.flow import discover
from holdall.transactions.binding import Binding, bind, bind_index
from holdall.transactions.bulk.treatment import Treatment
from holdall.transactions.query.question import Question
from holdall.transactions.query.row import RowMaker, read_again
from holdall.transactions.query.scan import ScanQuestion
from holdall.transactions.read.expiry import has_expired
from holdall.transactions.run.flow import run_transaction
from holdall.transactions.table_run.checkpoint import Checkpoint, fetch_checkpoint
from holdall.transactions.table_run.pace import Pace, check_rate
from holdall.transactions.unit import Unit

_LARGEST_CHUNK = 99  # the checkpoint needs an action, too
_LONGEST_NAME = 200
_OPTIONS = RunOptions()


class ChangeReport(NamedTuple):
    """What `update_all` or `delete_all` has done so far, including before it was interrupted.

    ``scanned`` rows were read, ``found`` of them matched, and ``changed`` items were updated or deleted.
    """

    scanned: int
    found: int
    changed: int


class TransactionMaker(NamedTuple):
    """How a sync or an async caller makes transactions.

    ``begin`` makes a transaction of a unit, ``wrap`` turns a flow that takes a transaction into a function that
    `run_transaction` can call.
    """

    begin: Callable[[Unit], Any]
    wrap: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]


class ChunkOptions(NamedTuple):
    """The options of a run."""

    chunk: int
    checkpoint: str | None
    restart: bool
    rate: float | None
    progress: Callable[[ChangeReport], Any] | None


# --- what is asked ----------------------------------------------------------------------------------------


def make_question(
    schema: ModelSchema, *, scan: Any, segments: int, where: Any, sort: Any, index: Any, components: Any
) -> Question:
    """The query or scan that finds the items; a scan has to be requested, because it concerns every item."""
    for name in components:
        if name not in schema.fields:
            raise unknown_field(
                schema, name, ("sort", "where", "index", "scan", "segments", *ChunkOptions._fields)
            )
    check_switch(scan, "scan")
    if scan:
        if components or sort is not None or index is not None:
            raise InvalidOptionsError(
                "scan=True reads the whole table, so it cannot be used with key components, sort= or index=",
                hint="leave out scan=True, or express the rest in where=",
            )
        return ScanQuestion(schema, segments=segments, where=where, consistent=True, lock="rows")
    if not components:
        raise InvalidOptionsError(
            f"no partition key was given, so this would concern every {schema.name}",
            hint="pass the components of the partition key, or scan=True to read the whole table",
        )
    if segments != 1:
        raise InvalidOptionsError("segments= is only for scan=True: a query reads one partition")
    return Question(schema, components, sort=sort, where=where, index=index, lock="rows")


def check_options(chunk: Any, checkpoint: Any, restart: Any, rate: Any, progress: Any) -> ChunkOptions:
    """Check the options; `InvalidOptionsError` names the one that is wrong."""
    check_count(chunk, "chunk", _LARGEST_CHUNK)
    if checkpoint is not None and not (isinstance(checkpoint, str) and 1 <= len(checkpoint) <= _LONGEST_NAME):
        raise InvalidOptionsError(
            f"checkpoint must be a name of 1 to {_LONGEST_NAME} characters, not {checkpoint!r:.60}"
        )
    check_switch(restart, "restart")
    if restart and checkpoint is None:
        raise InvalidOptionsError(
            "restart=True was given without a checkpoint", hint="name it: checkpoint=..."
        )
    check_rate(rate)
    check_progress(progress)
    return ChunkOptions(chunk, checkpoint, restart, rate, progress)


# --- how far it has come ----------------------------------------------------------------------------------


class _Advance(Participant):
    """Stores the position of a run in the transaction of a chunk."""

    def __init__(self, old: Checkpoint, new: Checkpoint, name: str) -> None:
        self._old = old
        self._new = new
        self._name = name

    async def state(self, change: Change) -> None:
        """Replace the checkpoint, on condition that no other process has."""
        change.put(self._new, expect=[self._old.same(Checkpoint.mark)], refused=self._refuse)

    def _refuse(self, stored: Item | None) -> InvalidRequestError:
        return InvalidRequestError(
            f"another process is working on the run {self._name!r}",
            hint="let it finish, or use another name",
        )


class _Part:
    """One part of a run, the only one unless a scan has segments; parts may run in different threads."""

    def __init__(self, run: _Run, request: Query | Scan | None, record: Checkpoint | None) -> None:
        self.run = run
        self.request = request
        self.record = record
        self.report = ChangeReport(0, 0, 0)
        rate = run.options.rate
        self.pace = Pace(None if rate is None else rate / run.segments)

    async def work(self) -> None:
        """Change everything that is left."""
        run, request = self.run, self.request
        if request is None or not self._resume():
            return
        while request is not None:
            page = await run.context.port.send(replace(request, start_after=self.after))
            items = run.sift(page.items)
            after = page.last_key
            request = None if after is None else request
            if not items:
                await self._step((), page.scanned, after)
            done = 0
            while done < len(items):
                done = await self._next_chunk(items, done, page.scanned, after)

    def _resume(self) -> bool:
        """Whether something is left; set where to continue."""
        self.after: Item | None = None
        record, options = self.record, self.run.options
        if record is None or not record.is_stored or options.restart:
            return True
        if record.run != self.run.digest:
            raise InvalidOptionsError(
                f"the checkpoint {options.checkpoint!r} belongs to a run with other arguments",
                hint="use another name, or begin again with restart=True",
            )
        self.report = ChangeReport(**record.counted)
        self.after = record.after
        return not record.done

    async def _next_chunk(self, items: Sequence[Item], done: int, scanned: int, last: Item | None) -> int:
        """Change the next items of a page; fewer of them if they do not fit into a transaction."""
        run = self.run
        size = run.options.chunk
        while True:
            part = items[done : done + size]
            end = done + len(part) == len(items)
            after = last if end else run.question.start_after(run.binding, part[-1])
            try:
                await self._step(part, scanned - done if end else len(part), after, end=end)
            except TransactionTooLarge:
                if len(part) == 1:
                    raise
                size = len(part) // 2
            else:
                return done + len(part)

    async def _step(
        self, items: Sequence[Item], scanned: int, after: Item | None, *, end: bool = True
    ) -> None:
        """Change some items in a transaction, and note that the run has come to ``after``."""
        run, record = self.run, self.record
        if items:
            await self.pace.wait(run.context.port, len(items))
        if items or record is not None:
            new: list[Checkpoint] = []

            async def body(tx: Any) -> ChangeReport:
                unit: Unit = tx._unit
                found, changed = await run.change(unit, items)
                report = self._count(scanned, found, changed)
                if record is not None:
                    mark, done = run.context.port.new_id(), end and after is None
                    new[:] = [record.advance(run.digest, mark, after, report._asdict(), done=done)]
                    assert run.options.checkpoint is not None
                    unit.participants.append(_Advance(record, new[0], run.options.checkpoint))
                return report

            body.__qualname__ = f"{run.treatment.kind}_all"
            flow = run_transaction(run.context, run.maker.begin, run.maker.wrap(body), _OPTIONS)
            self.report = await flow
            if new:
                self.record = new[0]
        else:
            self.report = self._count(scanned)
        self.after = after
        if run.options.progress is not None:
            await run.context.port.call(run.options.progress, run.report())

    def _count(self, scanned: int, found: int = 0, changed: int = 0) -> ChangeReport:
        before = self.report
        return ChangeReport(before.scanned + scanned, before.found + found, before.changed + changed)


# --- the run ----------------------------------------------------------------------------------------------


class _Run:
    """What all parts of a run have in common."""

    def __init__(
        self,
        context: Context,
        maker: TransactionMaker,
        binding: Binding,
        question: Question,
        treatment: Treatment,
        options: ChunkOptions,
    ) -> None:
        self.context = context
        self.maker = maker
        self.binding = binding
        self.question = question
        self.treatment = treatment
        self.options = options
        self.digest = _digest(question, binding, treatment.kind)
        self.segments = question.segments
        self.parts: list[_Part] = []
        self._request: Query | Scan | None = None

    def requests(self) -> list[Query | Scan | None]:
        """The first request of each part; None if nothing can match."""
        question, now = self.question, self.context.port.now()
        if isinstance(question, ScanQuestion):
            first = question.scan(self.binding, now, consistent=True, hold=True)
            self._request = first
            return [replace(first, segment=segment) for segment in range(question.segments)]
        self._request = question.request(self.binding, now, hold=True)
        return [self._request]

    def report(self) -> ChangeReport:
        """The counts of all parts."""
        reports = [part.report for part in self.parts]
        return ChangeReport(*(sum(column) for column in zip(*reports, strict=True)))

    def sift(self, items: Sequence[Item]) -> list[Item]:
        """The rows of a page that the store could not leave out itself."""
        question, binding = self.question, self.binding
        within = question.range(binding)
        items = [raw for raw in items if within.admits(raw)]
        if question.expires_unseen(binding):
            now = self.context.port.now()
            items = [raw for raw in items if not has_expired(binding, raw, now)]
        return list(items)

    async def change(self, unit: Unit, items: Sequence[Item]) -> tuple[int, int]:
        """Change these rows in a transaction: how many still matched, and how many were changed."""
        request = self._request
        assert request is not None
        if unit.insist or self.question.index is not None:
            filter = self.question.filter(self.binding, self.context.port.now())
            items = await read_again(self.context, self.binding, items, self.question.index, filter)
        maker = RowMaker(
            self.context,
            unit,
            self.binding,
            None,
            projected=False,
            held=self.question.list_held_names(request),
            where=self.question.condition,
        )
        found = 0
        for item in maker.give(await maker.make_instances(items)):
            found += 1
            await self.treatment.apply(self.context, unit, item, self.question)
        return found, len(unit.entries)


async def change_all(
    context: Context,
    maker: TransactionMaker,
    question: Question,
    treatment: Treatment,
    options: ChunkOptions,
) -> ChangeReport:
    """Change all items that the query or scan finds."""
    binding = await bind(context, question.schema)
    whole = question.index is None or await bind_index(context, binding, question.index)
    run = _Run(context, maker, binding, question, treatment, options)
    requests = run.requests()
    if not whole:  # the index lacks what the filter needs; the items are read by their keys, and checked then
        requests = [None if each is None else replace(each, filter=None) for each in requests]
    records = await _fetch_checkpoints(context, options.checkpoint, len(requests))
    run.parts = [_Part(run, *each) for each in zip(requests, records, strict=True)]
    if len(run.parts) == 1:
        await run.parts[0].work()
    else:
        flows = (part.work() for part in run.parts)
        for outcome in await context.port.gather(flows, limit=len(run.parts)):
            outcome.result()
    return run.report()


async def _fetch_checkpoints(context: Context, name: str | None, count: int) -> list[Checkpoint | None]:
    """The checkpoint of each part, as it is stored."""
    if name is None:
        return [None] * count
    layout = await discover(context)
    return [await fetch_checkpoint(context, layout, f"holdall#Bulk#{name}", part) for part in range(count)]


def _digest(question: Question, binding: Binding, kind: str) -> str:
    """A digest of what a run does, so that it cannot resume another one."""
    from holdall.core.digests import digest_facts

    return digest_facts([kind, question.identity(binding)], 32)
