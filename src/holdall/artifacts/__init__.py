"""Versioned artifacts: content that is put, published as numbered versions, and served through aliases.

Use them through ``db.artifacts``. Tables and buckets have the format of the package versioned: Holdall reads and
continues what versioned wrote, and versioned reads what Holdall writes.
"""

from __future__ import annotations

from holdall.lazy import fetch_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdall.artifacts.alias.alias import Alias
    from holdall.artifacts.alias.history import AliasChange
    from holdall.artifacts.api import Artifacts, AsyncArtifacts
    from holdall.artifacts.catalogue import Reindexed
    from holdall.artifacts.event import ArtifactEvent, on
    from holdall.artifacts.name import encode_alias_pk, encode_version_sk
    from holdall.artifacts.rollout.rollout import Rollout
    from holdall.artifacts.settings import ArtifactSettings
    from holdall.artifacts.version.artifact import Artifact
    from holdall.artifacts.version.lookup import Where
    from holdall.artifacts.version.purge import PurgeReport
    from holdall.artifacts.version.retention import PruneReport

__all__ = [
    "Alias",
    "AliasChange",
    "Artifact",
    "ArtifactEvent",
    "ArtifactSettings",
    "Artifacts",
    "AsyncArtifacts",
    "PruneReport",
    "PurgeReport",
    "Reindexed",
    "Rollout",
    "Where",
    "encode_alias_pk",
    "encode_version_sk",
    "on",
]

_HOMES = {
    "Alias": "holdall.artifacts.alias.alias",
    "AliasChange": "holdall.artifacts.alias.history",
    "Artifact": "holdall.artifacts.version.artifact",
    "ArtifactEvent": "holdall.artifacts.event",
    "ArtifactSettings": "holdall.artifacts.settings",
    "Artifacts": "holdall.artifacts.api",
    "AsyncArtifacts": "holdall.artifacts.api",
    "PruneReport": "holdall.artifacts.version.retention",
    "PurgeReport": "holdall.artifacts.version.purge",
    "Reindexed": "holdall.artifacts.catalogue",
    "Rollout": "holdall.artifacts.rollout.rollout",
    "Where": "holdall.artifacts.version.lookup",
    "encode_alias_pk": "holdall.artifacts.name",
    "encode_version_sk": "holdall.artifacts.name",
    "on": "holdall.artifacts.event",
}

__getattr__ = fetch_names(__name__, _HOMES)
