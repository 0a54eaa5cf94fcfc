"""``db.artifacts``: versioned artifacts, in both colours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, cast

from holdall.artifacts import (
    aliasing,
    catalogue,
    deleting,
    delivery,
    history,
    home,
    pruning,
    publishing,
    purging,
    putting,
    reading,
    rollback,
)
from holdall.artifacts.artifact import Artifact
from holdall.artifacts.catalogue import NamePages
from holdall.artifacts.reading import VersionPages, Where
from holdall.artifacts.rollouts import rolling_out
from holdall.artifacts.settings import ArtifactSettings, artifact_settings
from holdall.core.context import Context
from holdall.core.port import run, wait
from holdall.core.shell import awaiting, blocking

if TYPE_CHECKING:
    from holdall.artifacts.overloads import AwaitedDownload, Download

__all__ = ["Artifacts", "AsyncArtifacts"]


class Artifacts:
    """The artifacts of a database: versions of bytes under names, and aliases that serve them."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def settings(self) -> ArtifactSettings:
        """Where the artifacts are kept."""
        return artifact_settings(self._context.settings)

    put = blocking(putting.put)
    publish = blocking(publishing.publish)
    get = blocking(reading.get)
    download = cast("Download", blocking(delivery.download))
    url = blocking(delivery.url)
    delete = blocking(deleting.delete)
    restore = blocking(deleting.restore)
    prune = blocking(pruning.prune)
    purge = blocking(purging.purge)
    reindex = blocking(catalogue.reindex)
    put_alias = blocking(aliasing.put_alias)
    alias = blocking(aliasing.alias)
    aliases = blocking(aliasing.aliases)
    delete_alias = blocking(aliasing.delete_alias)
    alias_history = blocking(history.alias_history)
    rollback_alias = blocking(rollback.rollback_alias)
    start_rollout = blocking(rolling_out.start_rollout)
    rollout = blocking(rolling_out.rollout)
    advance_rollout = blocking(rolling_out.advance_rollout)
    pause_rollout = blocking(rolling_out.pause_rollout)
    resume_rollout = blocking(rolling_out.resume_rollout)
    abort_rollout = blocking(rolling_out.abort_rollout)
    create_table = blocking(home.ensure_table)

    def versions(
        self,
        name: str,
        *,
        where: Where | None = None,
        before: int | str | None = None,
        limit: int | None = None,
    ) -> Iterator[Artifact]:
        """The versions of an artifact: LATEST first, then the newest first; fetched as you iterate.

        ``where`` says which: ``{"tags": {"team": "ml"}, "after": moment}``; deleted ones only with ``"deleted"``.
        ``before`` goes on below a version.
        """
        return _iterated(self._context, VersionPages(self._context, name, where, before, limit))

    def names(self, prefix: str = "", *, deleted: bool = False) -> Iterator[str]:
        """The names of all artifacts, or of those that begin with a prefix; ``deleted``: also of those all deleted."""
        pages = NamePages(self._context, prefix, deleted)
        while (page := run(pages.next_page(), self._context)) is not None:
            yield from page


def _iterated(context: Context, pages: VersionPages) -> Iterator[Artifact]:
    while (page := run(pages.next_page(), context)) is not None:
        yield from page


class AsyncArtifacts:
    """The artifacts of a database: versions of bytes under names, and aliases that serve them."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def settings(self) -> ArtifactSettings:
        """Where the artifacts are kept."""
        return artifact_settings(self._context.settings)

    put = awaiting(putting.put)
    publish = awaiting(publishing.publish)
    get = awaiting(reading.get)
    download = cast("AwaitedDownload", awaiting(delivery.download))
    url = awaiting(delivery.url)
    delete = awaiting(deleting.delete)
    restore = awaiting(deleting.restore)
    prune = awaiting(pruning.prune)
    purge = awaiting(purging.purge)
    reindex = awaiting(catalogue.reindex)
    put_alias = awaiting(aliasing.put_alias)
    alias = awaiting(aliasing.alias)
    aliases = awaiting(aliasing.aliases)
    delete_alias = awaiting(aliasing.delete_alias)
    alias_history = awaiting(history.alias_history)
    rollback_alias = awaiting(rollback.rollback_alias)
    start_rollout = awaiting(rolling_out.start_rollout)
    rollout = awaiting(rolling_out.rollout)
    advance_rollout = awaiting(rolling_out.advance_rollout)
    pause_rollout = awaiting(rolling_out.pause_rollout)
    resume_rollout = awaiting(rolling_out.resume_rollout)
    abort_rollout = awaiting(rolling_out.abort_rollout)
    create_table = awaiting(home.ensure_table)

    def versions(
        self,
        name: str,
        *,
        where: Where | None = None,
        before: int | str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Artifact]:
        """The versions of an artifact: LATEST first, then the newest first; fetched as you iterate.

        ``where`` says which: ``{"tags": {"team": "ml"}, "after": moment}``; deleted ones only with ``"deleted"``.
        ``before`` goes on below a version.
        """
        return _awaited(self._context, VersionPages(self._context, name, where, before, limit))

    async def names(self, prefix: str = "", *, deleted: bool = False) -> AsyncIterator[str]:
        """The names of all artifacts, or of those that begin with a prefix; ``deleted``: also of those all deleted."""
        pages = NamePages(self._context, prefix, deleted)
        while (page := await wait(pages.next_page(), self._context)) is not None:
            for each in page:
                yield each


async def _awaited(context: Context, pages: VersionPages) -> AsyncIterator[Artifact]:
    while (page := await wait(pages.next_page(), context)) is not None:
        for each in page:
            yield each
