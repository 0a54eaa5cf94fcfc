"""``db.artifacts``: versioned artifacts, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, cast

from holdall.artifacts import catalogue, home
from holdall.artifacts.alias import flow as alias_flow
from holdall.artifacts.alias import history
from holdall.artifacts.catalogue import NamePages
from holdall.artifacts.rollout import flow as rollout_flow
from holdall.artifacts.settings import ArtifactSettings, artifact_settings
from holdall.artifacts.version import deletion, delivery, intent, lookup, publication, retention
from holdall.artifacts.version import purge as purge_flow
from holdall.artifacts.version.artifact import Artifact
from holdall.artifacts.version.lookup import VersionPages, Where
from holdall.core.shell import Namespace, awaiting, blocking, iterate, iterate_awaiting

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path
    from typing import Any

    from holdall.artifacts.overload import Download


class Artifacts(Namespace):
    """``db.artifacts``: named artifacts with numbered versions, and the aliases that serve them."""

    @property
    def settings(self) -> ArtifactSettings:
        """The settings that decide where artifacts are stored."""
        return artifact_settings(self._context.settings)

    put = blocking(intent.put)
    publish = blocking(publication.publish)
    get = blocking(lookup.get)
    download = cast("Download[bytes, Path, None]", blocking(delivery.download))
    url = blocking(delivery.url)
    delete = blocking(deletion.delete)
    restore = blocking(deletion.restore)
    prune = blocking(retention.prune)
    purge = blocking(purge_flow.purge)
    reindex = blocking(catalogue.reindex)
    put_alias = blocking(alias_flow.put_alias)
    alias = blocking(alias_flow.alias)
    aliases = blocking(alias_flow.aliases)
    delete_alias = blocking(alias_flow.delete_alias)
    alias_history = blocking(history.alias_history)
    rollback_alias = blocking(alias_flow.rollback_alias)
    start_rollout = blocking(rollout_flow.start_rollout)
    rollout = blocking(rollout_flow.rollout)
    advance_rollout = blocking(rollout_flow.advance_rollout)
    pause_rollout = blocking(rollout_flow.pause_rollout)
    resume_rollout = blocking(rollout_flow.resume_rollout)
    abort_rollout = blocking(rollout_flow.abort_rollout)
    create_table = blocking(home.ensure_table)

    def versions(
        self,
        name: str,
        *,
        where: Where | None = None,
        before: int | str | None = None,
        limit: int | None = None,
    ) -> Iterator[Artifact]:
        """Iterate over the versions of an artifact: LATEST, then the numbered ones, newest first.

        ``where`` filters them, as in ``{"tags": {"team": "ml"}, "after": moment}``; deleted versions are included only
        if it has ``"deleted"``. ``before`` starts below that version. ``limit`` is the most versions to return. Pages
        are fetched as you iterate.
        """
        return iterate(VersionPages(self._context, name, where, before, limit), self._context)

    def names(self, prefix: str = "", *, deleted: bool = False, after: str | None = None) -> Iterator[str]:
        """Iterate over the names of all artifacts, or of those that begin with ``prefix``, in the order of their bytes.

        ``deleted=True`` includes artifacts whose versions are all deleted. ``after`` begins with the name that follows.
        """
        return iterate(NamePages(self._context, prefix, deleted, after), self._context)


class AsyncArtifacts(Namespace):
    """``db.artifacts`` of an `AsyncDatabase`: the same methods as `Artifacts`, for async code."""

    @property
    def settings(self) -> ArtifactSettings:
        """The settings that decide where artifacts are stored."""
        return artifact_settings(self._context.settings)

    put = awaiting(intent.put)
    publish = awaiting(publication.publish)
    get = awaiting(lookup.get)
    download = cast(
        "Download[Coroutine[Any, Any, bytes], Coroutine[Any, Any, Path], Coroutine[Any, Any, None]]",
        awaiting(delivery.download),
    )
    url = awaiting(delivery.url)
    delete = awaiting(deletion.delete)
    restore = awaiting(deletion.restore)
    prune = awaiting(retention.prune)
    purge = awaiting(purge_flow.purge)
    reindex = awaiting(catalogue.reindex)
    put_alias = awaiting(alias_flow.put_alias)
    alias = awaiting(alias_flow.alias)
    aliases = awaiting(alias_flow.aliases)
    delete_alias = awaiting(alias_flow.delete_alias)
    alias_history = awaiting(history.alias_history)
    rollback_alias = awaiting(alias_flow.rollback_alias)
    start_rollout = awaiting(rollout_flow.start_rollout)
    rollout = awaiting(rollout_flow.rollout)
    advance_rollout = awaiting(rollout_flow.advance_rollout)
    pause_rollout = awaiting(rollout_flow.pause_rollout)
    resume_rollout = awaiting(rollout_flow.resume_rollout)
    abort_rollout = awaiting(rollout_flow.abort_rollout)
    create_table = awaiting(home.ensure_table)

    def versions(
        self,
        name: str,
        *,
        where: Where | None = None,
        before: int | str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Artifact]:
        """Iterate over the versions of an artifact: LATEST, then the numbered ones, newest first.

        ``where`` filters them, as in ``{"tags": {"team": "ml"}, "after": moment}``; deleted versions are included only
        if it has ``"deleted"``. ``before`` starts below that version. ``limit`` is the most versions to return. Pages
        are fetched as you iterate.
        """
        return iterate_awaiting(VersionPages(self._context, name, where, before, limit), self._context)

    def names(
        self, prefix: str = "", *, deleted: bool = False, after: str | None = None
    ) -> AsyncIterator[str]:
        """Iterate over the names of all artifacts, or of those that begin with ``prefix``, in the order of their bytes.

        ``deleted=True`` includes artifacts whose versions are all deleted. ``after`` begins with the name that follows.
        """
        return iterate_awaiting(NamePages(self._context, prefix, deleted, after), self._context)
