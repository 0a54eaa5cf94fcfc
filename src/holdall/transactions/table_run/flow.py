"""A run over all items of a table, in segments, each of which can be resumed where it stopped.

A checkpoint is stored after each page. If the process dies before that, the page is visited again, so a visit must be
harmless if it is repeated. If one segment fails, the others finish their pages and stop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.option import check_count, check_progress
from holdall.core.requests import Page, Scan
from holdall.core.values import Item
from holdall.transactions.table_run.pace import Pace, check_rate

_MOST_NOTES = 20


class Bookmark(Protocol):
    """How far one segment has come: to the key ``after``, or to its end if it is ``done``."""

    @property
    def after(self) -> Item | None:
        """The last key of the last page that was visited."""

    @property
    def done(self) -> bool:
        """Whether the segment has come to its end."""

    @property
    def counted(self) -> Mapping[str, Any]:
        """What was counted and noted until then."""


M = TypeVar("M", bound=Bookmark)


class Bookmarks(Protocol[M]):
    """Where a run stores how far its segments have come."""

    async def get(self, part: int, /) -> M:
        """How far a segment has come."""

    async def put(self, last: M, after: Item | None, counted: Mapping[str, Any], /) -> None:
        """Store that a segment has come to the key ``after``; to its end if that is None."""

    async def forget(self) -> None:
        """All segments have come to their end."""


class Tally:
    """What one segment has counted and noted; each segment has its own, because they may run in different threads.

    ``page`` is the page that is visited, and ``done`` is true at the end of the segment. A visit sets ``holds`` while
    items of the page are not finished, so that no checkpoint is stored after them, and ``stopped`` to end the segment
    before its end.
    """

    page: Page

    def __init__(self, segment: int) -> None:
        self.segment = segment
        self.pace = Pace(None)
        self.counts: dict[str, int] = {}
        self.notes: dict[str, list[str]] = {}
        self.done = self.holds = self.stopped = False

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + amount

    def note(self, name: str, line: str) -> None:
        """Keep a line, if it is among the first few and not a repetition."""
        lines = self.notes.setdefault(name, [])
        if len(lines) < _MOST_NOTES and line not in lines:
            lines.append(line)

    def fail(self, key: Item, problem: str) -> str:
        """Count an item that could not be processed, and note why; return the line."""
        line = f"{', '.join(str(*part.values()) for part in key.values())}: {problem}"
        self.count("failed")
        self.note("problems", line)
        return line

    def forget_failure(self, line: str) -> None:
        """Take back a failure, because the item is processed again."""
        self.count("failed", -1)
        lines = self.notes.get("problems", [])
        if line in lines:
            lines.remove(line)

    def restore(self, counted: Mapping[str, Any]) -> None:
        """Continue with what an earlier run has counted."""
        self.counts = {name: value for name, value in counted.items() if not isinstance(value, list)}
        self.notes = {name: value for name, value in counted.items() if isinstance(value, list)}


class TableRun:
    """One run. ``visit`` is called with each page's items; ``progress`` with ``report()`` after each page."""

    def __init__(
        self,
        context: Context,
        scan: Scan,
        visit: Callable[[Tally, Sequence[Item]], Coroutine[Any, Any, None]],
        *,
        segments: int,
        rate: float | None,
        report: Callable[[TableRun], Any],
        progress: Callable[[Any], Any] | None,
    ) -> None:
        self._context = context
        self._scan = replace(scan, segments=segments)
        self._visit = visit
        self._report = report
        self._progress = progress
        self._rate = rate
        self._tallies = [Tally(segment) for segment in range(segments)]
        self._share_rate()
        self._failed = False

    def _share_rate(self) -> None:
        """Share the rate among the segments that have not come to their end."""
        if self._rate is not None:
            working = [tally for tally in self._tallies if not tally.done]
            for tally in working:
                tally.pace.rate = self._rate / len(working)

    def count(self, name: str) -> int:
        """A count, over all segments."""
        return sum(tally.counts.get(name, 0) for tally in self._tallies)

    def lines(self, name: str) -> tuple[str, ...]:
        """The first of the lines that were noted."""
        found = (line for tally in self._tallies for line in list(tally.notes.get(name, ())))
        return tuple(dict.fromkeys(found))[:_MOST_NOTES]

    async def work(self, kept: Bookmarks[Any] | None, *, restart: bool) -> None:
        """Visit all items, of each segment those after its checkpoint; then forget the checkpoints."""
        flows = (self._work(segment, kept, restart) for segment in range(len(self._tallies)))
        for outcome in await self._context.port.gather(flows, limit=len(self._tallies)):
            outcome.result()
        if kept is not None and all(tally.done for tally in self._tallies):
            await kept.forget()

    async def _work(self, segment: int, kept: Bookmarks[Any] | None, restart: bool) -> None:
        try:
            await self._read(self._tallies[segment], kept, restart)
        except BaseException:
            self._failed = True
            raise

    async def _read(self, tally: Tally, kept: Bookmarks[Any] | None, restart: bool) -> None:
        port, scan = self._context.port, replace(self._scan, segment=tally.segment)
        last = None if kept is None else await kept.get(tally.segment)
        if last is not None and not restart:
            tally.restore(last.counted)
            tally.done = last.done
            scan = replace(scan, start_after=last.after)
        while not tally.done and not self._failed:
            tally.page = page = await port.send(scan)
            tally.count("scanned", page.scanned)
            await self._visit(tally, page.items)
            if tally.stopped:
                return
            tally.done = page.last_key is None
            scan = replace(scan, start_after=page.last_key)
            if kept is not None and last is not None and not tally.holds:
                await kept.put(last, page.last_key, {**tally.counts, **tally.notes})
            if self._progress is not None:
                await port.call(self._progress, self._report(self))
        self._share_rate()


def check_run_options(segments: Any, rate: Any, progress: Any, what: str = "items") -> None:
    """Refuse options that no run can have; ``what`` is what the rate counts."""
    check_count(segments, "segments", 1000)
    check_rate(rate, what)
    check_progress(progress)
