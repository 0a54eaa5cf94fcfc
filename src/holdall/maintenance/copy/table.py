"""Copying a table: every page of a scan is compared with the manifest, and what differs is written to the target.

The order is what makes a kill harmless: the manifest gets the intent to write items, then they are written to the
target, then recorded in the manifest, then the position of the scan is. What was written and not recorded is found to
be the same, or, if the source has changed again, to be as it was intended, and is written again.

An item that is not as the manifest recorded it is compared with the target before it is replaced, because another
program may have changed it there. Only the first pass into an empty table does not read the target.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from holdall.core.batch import make_batches
from holdall.core.context import Context
from holdall.core.requests import BatchGet, BatchWrite, DeleteItem, DescribeTable, GetItem, PutItem, Scan
from holdall.core.schema import TableSchema
from holdall.core.values import Attribute, Item
from holdall.errors import HoldallError, InvalidRequestError, InvalidValueError
from holdall.local.copy_manifest import (
    Recorded,
    count_things,
    draft_intents,
    find_fact,
    find_intents,
    find_recorded,
    forget_place,
    forget_things,
    list_intents,
    list_things,
    record_fact,
    record_things,
    settle_intents,
)
from holdall.maintenance.copy.item import Transfer, show_key
from holdall.maintenance.copy.job import is_following, is_key_in_use, make_description
from holdall.maintenance.copy.plan import TablePlan
from holdall.maintenance.copy.report import CopiedPart, CopyReport
from holdall.maintenance.copy.work import PassBookmarks, Work
from holdall.maintenance.doctor.figure import FIGURES
from holdall.transactions.table_run.flow import TableRun, Tally
from holdall.transactions.table_run.pace import Pace

_PAGE = 1000
_LANES = 4
_MOST_LINES = 20
_COUNTS = (
    *("scanned", "copied", "unchanged", "same", "differing", "failed", "left_out"),
    *("copied_bytes", "write_units", "paused", "leased"),
)


class TableCopy:
    """One table in one pass."""

    def __init__(self, work: Work, plan: TablePlan) -> None:
        self._work = work
        self._route = route = plan.route
        self._plan = plan
        self._exists = plan.exists or not work.options.dry_run
        self._pace = Pace(work.options.rate)  # of deletions, which no segments share
        self._describe = make_description(route.source.partition.name) if plan.is_main else None
        self._place = f"table {route.source.name} to {route.target.name}"
        self._is_blank = False
        self._recorded = 0
        self._left_alone = 0
        self.part = CopiedPart("table", route.source.name, route.target.name)

    async def prepare(self) -> None:
        """Create the target's table, or what it lacks."""
        work = self._work
        if not self._plan.exists:  # what was recorded is of a table that has been deleted since
            await work.offload(forget_place, self._place)
        await self._plan.ensure(work.target)

    async def count(self) -> int:
        """About how many items there are, as the store counts them."""
        described = await self._work.source.port.send(DescribeTable(self._route.source.name))
        return max(0, described.item_count)

    async def copy(self) -> None:
        """Copy what differs."""
        work = self._work
        self._is_blank = await self._find_blank()
        scan = Scan(self._route.source.name, limit=_PAGE, consistent=True)
        options = work.options
        run = TableRun(
            work.source,
            scan,
            self._visit,
            segments=options.segments,
            rate=options.rate,
            report=lambda run: work.account.collect(self._report(run)),
            progress=work.account.progress,
        )
        await run.work(None if options.dry_run else PassBookmarks(work, self._place), restart=False)
        self._report(run)
        self._recorded = run.count("recorded")
        self._left_alone = run.count("left")

    def _report(self, run: TableRun) -> CopiedPart:
        counts: dict[str, Any] = {name: run.count(name) for name in _COUNTS}
        self.part = self.part._replace(
            **counts,
            differences=run.lines("differences"),
            problems=(*self._plan.remarks, *run.lines("problems")),
            leased_jobs=run.lines("leased"),
        )
        return self.part

    async def _find_blank(self) -> bool:
        """Whether the target's table was empty when the first pass began, and this is the first pass."""
        work = self._work
        if not self._exists:
            return True
        if work.manifest.turn > 1:
            return False
        known = await work.offload(find_fact, f"blank {self._place}")
        if known is None:
            first = await work.target.port.send(Scan(self._route.target.name, limit=1, consistent=True))
            known = "no" if first.items else "yes"
            if not work.options.dry_run:
                await work.offload(record_fact, f"blank {self._place}", known)
        return known == "yes"

    # --- copying --------------------------------------------------------------------------------------------

    async def _visit(self, tally: Tally, rows: Sequence[Item]) -> None:
        work = self._work
        port = work.source.port
        transfers = await port.offload(self._carry, tally, rows)
        keys = [each.key for each in transfers]
        known: dict[str, Recorded] = {}
        if self._exists:
            known = await work.offload(find_recorded, self._place, keys)
        changed = [
            each for each in transfers if each.key not in known or known[each.key].origin != each.digest
        ]
        tally.count("unchanged", len(transfers) - len(changed))
        tally.count("recorded", len(known))
        kept = {each.key: each.digest for each in transfers}
        wanted = await self._compare(tally, changed, known, kept)
        draft = None
        if wanted and not work.options.dry_run:
            intents = [(each.key, each.digest) for each in wanted]
            draft = await work.offload(draft_intents, self._place, intents)
        await self._write(tally, wanted, kept)
        if draft is not None or (kept and not work.options.dry_run):
            things = [(key, digest, "") for key, digest in kept.items()]
            await work.offload(record_things, self._place, things, draft)

    def _carry(self, tally: Tally, rows: Sequence[Item]) -> list[Transfer]:
        found, now = [], self._work.source.port.now()
        for item in rows:
            if self._is_left_out(item, now):
                tally.count("left_out")
                continue
            try:
                found.append(self._route.carry(item))
            except InvalidValueError as error:
                _fail(tally, self._route.source, item, error)
                continue
            if self._describe is not None:
                self._describe(tally, item)
        return found

    def _is_left_out(self, item: Item, now: datetime) -> bool:
        """Whether an item is not copied: it has expired, or is a figure that `doctor` counted in the source."""
        is_figure = self._plan.is_main and item[self._route.source.partition.name].get("S") == FIGURES
        return is_figure or self._route.has_expired(item, now)

    async def _compare(
        self, tally: Tally, changed: list[Transfer], known: dict[str, Recorded], kept: dict[str, bytes]
    ) -> list[Transfer]:
        """Those that must be written. What another program has changed in the target stays as it is recorded."""
        wanted = [each for each in changed if self._is_blank and each.key not in known]
        rest = changed if not wanted else [each for each in changed if each.key in known]
        keys = [each.key for each in rest]
        begun = await self._work.offload(find_intents, self._place, keys)
        for some in make_batches(rest, BatchGet.most):
            found = await self._fetch([self._route.key_of(each.item) for each in some])
            for each, item in zip(some, found, strict=True):
                there = None if item is None else self._route.measure(item).digest
                recorded = known.get(each.key)
                if there == each.digest:
                    tally.count("same")
                elif (
                    there is None
                    or self._work.options.overwrite
                    or there in begun.get(each.key, ())
                    or (recorded is not None and recorded.origin == there)
                ):
                    wanted.append(each)
                else:
                    tally.count("differing")
                    tally.count("left")
                    tally.note(
                        "differences", f"{show_key(each.key)}: changed in the target, so it was not replaced"
                    )
                    if recorded is None:
                        del kept[each.key]
                    else:
                        kept[each.key] = recorded.origin
        return wanted

    async def _fetch(self, keys: Sequence[Item]) -> Sequence[Item | None]:
        """Items of the target."""
        if not keys or not self._exists:
            return [None] * len(keys)
        table = self._route.target.name
        reads = tuple(GetItem(table, key, True) for key in keys)
        return (await self._work.target.port.send(BatchGet(reads))).items

    async def _write(self, tally: Tally, wanted: list[Transfer], kept: dict[str, bytes]) -> None:
        batches = [*make_batches(wanted, _size_batches(tally.pace))]
        if not self._work.options.dry_run:
            if self._work.options.rate is None:
                target = self._work.target
                # a file has one writer; the next batch is prepared meanwhile
                lanes = _LANES if target.settings.is_remote else 2
                outcomes = await target.port.gather([self._put(each) for each in batches], lanes)
                failures = [outcome.result() for outcome in outcomes]
            else:
                failures = []
                for each in batches:
                    await tally.pace.wait(self._work.target.port, len(each))
                    failures.append(await self._put(each))
            for transfer, error in (pair for some in failures for pair in some):
                _fail(tally, self._route.target, transfer.item, error)
                tally.count("left")
                del kept[transfer.key]
                wanted.remove(transfer)
        tally.count("copied", len(wanted))
        tally.count("copied_bytes", sum(each.size for each in wanted))
        tally.count("write_units", sum(map(self._count_units, wanted)))

    async def _put(self, transfers: Sequence[Transfer]) -> list[tuple[Transfer, HoldallError]]:
        """Write a batch; if it is refused, each item by itself. Returns the items that the target refuses."""
        table, port = self._route.target.name, self._work.target.port
        try:
            await port.send(BatchWrite(tuple(PutItem(table, each.item) for each in transfers)))
        except InvalidRequestError as error:
            if len(transfers) == 1:
                return [(transfers[0], error)]
            return [failure for each in transfers for failure in await self._put([each])]
        return []

    def _count_units(self, transfer: Transfer) -> int:
        """The write units of an item, in the table and in each index that holds it."""
        indexes = self._route.target.indexes
        copies = sum(all(part.name in transfer.item for part in index.keys) for index in indexes)
        return -(-transfer.size // 1024) * (1 + copies)

    # --- deleting -------------------------------------------------------------------------------------------

    async def delete(self) -> None:
        """Delete from the target what an earlier pass copied and this one did not find in the source."""
        work = self._work
        if not work.options.dry_run:
            await self._settle_intents()
        if self.part.failed or not self._exists:
            return  # what failed may be what seems to be gone
        if work.options.dry_run:
            recorded = await work.offload(count_things, self._place, False)
            name = "deleted" if work.options.delete and not self._is_empty else "gone"
            self.part = self.part._replace(**{name: recorded - self._recorded})  # type: ignore[arg-type]
        else:
            await self._delete_unseen()
        if self.part.gone and work.options.delete:
            line = "the source's table is empty, so nothing was deleted; if it should be, empty the target's"
            self.part = self.part._replace(problems=(*self.part.problems, line)[:_MOST_LINES])

    @property
    def _is_empty(self) -> bool:
        """Whether the source's table has nothing to copy: it may be a new one, so nothing is deleted."""
        return self.part.scanned == self.part.left_out

    async def _delete_unseen(self) -> None:
        work, after = self._work, ""
        while page := await work.offload(list_things, self._place, after, False):
            after = page[-1][0]
            for some in make_batches(page, BatchGet.most):
                await self._delete_some(some)
            await work.show(self.part)

    async def _settle_intents(self) -> None:
        """Record what was written before an interruption and is no longer in the source."""
        work = self._work
        while begun := await work.offload(list_intents, self._place, BatchGet.most):
            found = await self._fetch([self._parse_key(key) for key in begun])
            written = [self._route.measure(item) for item in found if item is not None]
            things = [(each.key, each.digest, "") for each in written if each.digest in begun[each.key]]
            await work.offload(settle_intents, self._place, list(begun), things)

    async def _delete_some(self, things: Sequence[tuple[str, Recorded]]) -> None:
        work = self._work
        keys = {key: self._parse_key(key) for key, _ in things}
        found = await self._fetch(list(keys.values()))
        gone = differing = 0
        ended: list[str] = []
        doomed: list[DeleteItem] = []
        for (key, recorded), item in zip(things, found, strict=True):
            if item is None:
                ended.append(key)
            elif self._is_empty or not (work.options.delete or self._is_following(keys[key])):
                gone += 1
            elif self._route.measure(item).digest != recorded.origin:
                self._note_differences(f"{show_key(key)}: changed in the target, so it was not deleted")
                differing += 1
            elif self._plan.is_main and await is_key_in_use(work.target, self._partition_of(keys[key]), item):
                ended.append(key)  # from now on it belongs to the target
            else:
                ended.append(key)
                doomed.append(DeleteItem(self._route.target.name, keys[key]))
        for some in make_batches(doomed, _size_batches(self._pace)):
            await self._pace.wait(work.target.port, len(some))
            await work.target.port.send(BatchWrite(tuple(some)))
        await work.offload(forget_things, self._place, ended)
        part = self.part
        self.part = part._replace(
            gone=part.gone + gone, differing=part.differing + differing, deleted=part.deleted + len(doomed)
        )

    def _is_following(self, key: Item) -> bool:
        return self._plan.is_main and is_following(self._partition_of(key))

    def _partition_of(self, key: Item) -> str:
        return str(key[self._route.target.partition.name].get("S", ""))

    def _parse_key(self, key: str) -> dict[str, Attribute]:
        return {
            part.name: value for part, value in zip(self._route.target.keys, json.loads(key), strict=True)
        }

    # --- verifying ------------------------------------------------------------------------------------------

    async def verify(self) -> None:
        """Read both tables again, and compare them with the manifest."""
        work = self._work
        expected = await work.offload(count_things, self._place, True)
        source = await self._match(work.source, self._route.source, self._route.carry)
        target = await self._match(work.target, self._route.target, self._route.measure)
        self._note_differences(*(f"{line}: changed in the target" for line in target.lines("other")))
        is_short = expected > target.count("equal") + target.count("other")
        missing = await self._find_missing() if is_short else 0
        unlike = source.count("other") + source.count("new") - self._left_alone
        self.part = self.part._replace(
            verified=target.count("equal"),
            altered=target.count("other"),
            missing=missing,
            newer=max(0, unlike) + max(0, expected - source.count("known")),
        )

    def _note_differences(self, *lines: str) -> None:
        self.part = self.part._replace(differences=(*self.part.differences, *lines)[:_MOST_LINES])

    async def _match(
        self, context: Context, schema: TableSchema, measure: Callable[[Item], Transfer]
    ) -> TableRun:
        """Compare the items of a table with what this pass has recorded; ``measure`` brings them to the target's form.

        A table in a file or in memory is read in one part: threads of one process would only wait for each other.

        The run that is returned has counted the items that this pass recorded as ``known``, each ``equal`` or
        ``other``, and those that it did not as ``new``. It has noted the keys of the first of the others.
        """
        work, turn, before = self._work, self._work.manifest.turn, self.part.checked

        def measure_all(rows: Sequence[Item]) -> list[Transfer]:
            found, now = [], context.port.now()
            for item in rows:
                if schema is self._route.source and self._is_left_out(item, now):
                    continue
                with suppress(InvalidValueError):  # counted as failed when it was to be copied
                    found.append(measure(item))
            return found

        async def visit(tally: Tally, rows: Sequence[Item]) -> None:
            transfers = await context.port.offload(measure_all, rows)
            keys = [each.key for each in transfers]
            known = await work.offload(find_recorded, self._place, keys)
            mine = {key: recorded.origin for key, recorded in known.items() if recorded.turn == turn}
            others = [each.key for each in transfers if mine.get(each.key, each.digest) != each.digest]
            tally.count("new", len(transfers) - len(mine))
            tally.count("known", len(mine))
            tally.count("equal", len(mine) - len(others))
            tally.count("other", len(others))
            for key in others:
                tally.note("other", show_key(key))

        def report(run: TableRun) -> CopyReport:
            self.part = self.part._replace(checked=before + run.count("scanned"))
            return work.account.collect(self.part)

        run = TableRun(
            context,
            Scan(schema.name, limit=_PAGE, consistent=True),
            visit,
            segments=work.options.segments if context.settings.is_remote else 1,
            rate=None,
            report=report,
            progress=work.account.progress,
        )
        await run.work(None, restart=False)
        report(run)
        return run

    async def _find_missing(self) -> int:
        """Count what the target has lost, and forget it, so that the next pass copies it again.

        A job that is no longer paused was resumed, so it is not missing.
        """
        work, missing, after = self._work, 0, ""
        while page := await work.offload(list_things, self._place, after, True):
            after = page[-1][0]
            for some in make_batches(page, BatchGet.most):
                keys = {key: self._parse_key(key) for key, _ in some}
                found = await self._fetch(list(keys.values()))
                pairs = zip(keys.items(), found, strict=True)
                gone = [key for (key, each), item in pairs if item is None and not self._is_following(each)]
                await work.offload(forget_things, self._place, gone)
                missing += len(gone)
                self._note_differences(*(f"{show_key(key)}: missing in the target" for key in gone))
        return missing


def _size_batches(pace: Pace) -> int:
    """How many items to write at a time: no more than in a second, so that a low rate does not mean bursts."""
    return BatchWrite.most if pace.rate is None else min(BatchWrite.most, max(1, int(pace.rate)))


def _fail(tally: Tally, schema: TableSchema, item: Item, error: HoldallError) -> None:
    key = " / ".join(str(*item[part.name].values()) for part in schema.keys)
    tally.count("failed")
    tally.note("problems", f"{key}: {error.message}")
