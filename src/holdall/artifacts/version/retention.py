"""The flow that deletes old versions, but never one that an alias serves. They can be restored."""

from __future__ import annotations

from datetime import datetime, timedelta

from holdall.artifacts.version.artifact import Artifact
from holdall.artifacts.version.deletion import delete
from holdall.artifacts.version.lookup import VersionPages
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.errors import ArtifactInUseError, InvalidOptionsError

_LONGEST = 1000 * 366 * 86400


@dataclass(frozen=True, slots=True)
class PruneReport:
    """The result of a prune: ``pruned`` versions were deleted, or would be, newest first.

    The versions ``in_use`` were old enough, but are kept because aliases serve them.
    """

    name: str
    at: datetime
    pruned: tuple[Artifact, ...]
    in_use: tuple[Artifact, ...]
    dry_run: bool

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that were deleted, or would be, without leading zeros."""
        return tuple(each.version for each in self.pruned)


async def prune(
    context: Context,
    name: str,
    *,
    keep_last: int = 10,
    older_than: timedelta | float = timedelta(days=90),
    dry_run: bool = False,
) -> PruneReport:
    """Delete the versions that are older than ``older_than`` and not among the last ``keep_last``.

    ``older_than`` is a number of seconds or a timedelta. LATEST stays, and so do versions that aliases serve.
    ``dry_run`` reports what would be deleted, and deletes nothing. Deleted versions can be restored until they are
    purged.
    """
    if isinstance(keep_last, bool) or not isinstance(keep_last, int) or keep_last < 0:
        raise InvalidOptionsError(f"keep_last must be a whole number, 0 or more, not {keep_last!r:.60}")
    age = _age(older_than)
    now = context.port.now()
    pages = VersionPages(context, name)
    pruned: list[Artifact] = []
    in_use: list[Artifact] = []
    kept = 0
    while (page := await pages.next_page()) is not None:
        for each in page:
            if each.number is None:
                continue
            kept += 1
            if kept <= keep_last or each.update_at is None or each.update_at >= now - age:
                continue
            if each.aliases:
                in_use.append(each)
            elif dry_run:
                pruned.append(each)
            else:
                await _prune_one(context, each, pruned, in_use)
    return PruneReport(name, now, tuple(pruned), tuple(in_use), dry_run)


def _age(older_than: timedelta | float) -> timedelta:
    seconds = older_than.total_seconds() if isinstance(older_than, timedelta) else older_than
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _LONGEST:
        raise InvalidOptionsError(
            f"older_than must be a number of seconds or a timedelta, from 0 to a thousand years, not {older_than!r:.60}"
        )
    return timedelta(seconds=seconds)


async def _prune_one(
    context: Context, artifact: Artifact, pruned: list[Artifact], in_use: list[Artifact]
) -> None:
    try:
        if await delete(context, artifact.name, artifact.version):
            pruned.append(artifact)
    except ArtifactInUseError:  # an alias has just been pointed to it
        in_use.append(artifact)
