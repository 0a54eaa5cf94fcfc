"""What the parts of a copy share: both databases, the manifest, and the options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.values import Item
from holdall.errors import InvalidOptionsError
from holdall.local.copy_manifest import CopyManifest, Position, find_position, record_position
from holdall.maintenance.copy.report import CopiedPart, CopyReport
from holdall.transactions.table_run.pace import Pace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two databases, with the names of its file services."""

    context: Context
    services: Collection[str]


def make_side(db: Any, kind: type[Any]) -> Side:
    """A database as one of the two; `InvalidOptionsError` if it is not of this kind."""
    if not isinstance(db, kind):
        twin = "aio" if kind.__name__.startswith("Async") else "sync"
        raise InvalidOptionsError(
            f"the target must be of type {kind.__name__}, not {db!r:.60}",
            hint=f"open it with {kind.__name__}(URL), or pass its .{twin}",
        )
    return Side(db._context, db._services.urls)


@dataclass(frozen=True, slots=True)
class Options:
    """How a copy works: see `holdall.Database.copy_to`."""

    delete: bool
    overwrite: bool
    verify: bool
    segments: int
    rate: float | None
    dry_run: bool


class Account:
    """What was done so far with each part. ``expected`` is about how much will be read, None if it was not counted."""

    def __init__(
        self, progress: Callable[[CopyReport], Any] | None, dry_run: bool, manifest: str | None
    ) -> None:
        self.progress = progress
        self.expected: int | None = None
        self._parts: dict[str, CopiedPart] = {}
        self._dry_run = dry_run
        self._manifest = manifest

    @property
    def report(self) -> CopyReport:
        """The report of the whole."""
        return CopyReport(tuple(self._parts.values()), self._dry_run, self._manifest, self.expected)

    def collect(self, part: CopiedPart) -> CopyReport:
        """Replace what is known of a part, and return the report of the whole."""
        self._parts[f"{part.kind} {part.name}"] = part
        return self.report


@dataclass(frozen=True, slots=True)
class Work:
    """One pass of a copy. ``pace`` limits how many bytes of files are read per second."""

    source: Context
    target: Context
    manifest: CopyManifest
    options: Options
    account: Account
    pace: Pace

    async def offload(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function of the manifest, which blocks."""
        return await self.source.port.offload(function, self.manifest, *args)

    async def show(self, part: CopiedPart) -> None:
        """Call the user's function with the report so far."""
        report = self.account.collect(part)
        if self.account.progress is not None:
            await self.source.port.call(self.account.progress, report)


@dataclass(frozen=True, slots=True)
class PassBookmark:
    """How far a segment has come in this pass."""

    segment: int
    after: Item | None
    done: bool
    counted: Mapping[str, Any]


class PassBookmarks:
    """How far the segments of a part have come, stored in the manifest until the pass ends."""

    def __init__(self, work: Work, place: str) -> None:
        self._work = work
        self._place = f"{place} in {work.options.segments}"

    async def get(self, part: int) -> PassBookmark:
        """How far a segment has come."""
        found = await self._work.offload(find_position, self._place, part)
        return PassBookmark(part, None, False, {}) if found is None else PassBookmark(part, *found)

    async def put(self, last: PassBookmark, after: Any, counted: Mapping[str, Any]) -> None:
        """Store that a segment has come to the key ``after``; to its end if that is None."""
        position = Position(after, after is None, counted)
        await self._work.offload(record_position, self._place, last.segment, position)

    async def forget(self) -> None:
        """Keep the bookmarks: the part must not be read again before the whole pass has ended."""
