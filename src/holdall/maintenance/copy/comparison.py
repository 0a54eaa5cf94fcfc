"""Comparing the items of a table with what a pass has recorded, to verify a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdall.core.context import Context
from holdall.core.requests import Scan
from holdall.core.values import Item
from holdall.local.copy_manifest import find_recorded
from holdall.maintenance.copy.item import Transfer, show_key
from holdall.maintenance.copy.report import CopyReport
from holdall.maintenance.copy.work import Work
from holdall.transactions.table_run.flow import TableRun, Tally


async def compare_table(
    work: Work,
    context: Context,
    scan: Scan,
    place: str,
    measure: Callable[[Sequence[Item]], Sequence[Transfer]],
    report: Callable[[TableRun], CopyReport],
) -> TableRun:
    """Read a table of the source or the target; ``measure`` returns items in the form of the target.

    A table in a file or in memory is read in one part: threads of one process would only wait for each other.

    The run that is returned has counted the items that this pass recorded as ``known``, each ``equal`` or ``other``,
    and those that it did not as ``new``. It has noted the keys of the first of the others.
    """
    turn = work.manifest.turn

    async def visit(tally: Tally, rows: Sequence[Item]) -> None:
        transfers = await context.port.offload(measure, rows)
        keys = [each.key for each in transfers]
        known = await work.offload(find_recorded, place, keys)
        mine = {key: recorded.origin for key, recorded in known.items() if recorded.turn == turn}
        others = [each.key for each in transfers if mine.get(each.key, each.digest) != each.digest]
        tally.count("new", len(transfers) - len(mine))
        tally.count("known", len(mine))
        tally.count("equal", len(mine) - len(others))
        tally.count("other", len(others))
        for key in others:
            tally.note("other", show_key(key))

    run = TableRun(
        context,
        scan,
        visit,
        segments=work.options.segments if context.settings.is_remote else 1,
        rate=None,
        report=report,
        progress=work.account.progress,
    )
    await run.work(None, restart=False)
    report(run)
    return run
