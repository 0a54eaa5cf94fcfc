"""Versioned artifacts: content that is put, published as numbered versions, and served through aliases.

Tables and buckets are those of the package versioned: what it wrote is read and continued here, and it reads ours.
Names are fetched when first used; ``db.artifacts`` is their shell.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdall.artifacts.alias import Alias
    from holdall.artifacts.api import Artifacts, AsyncArtifacts
    from holdall.artifacts.artifact import Artifact
    from holdall.artifacts.catalogue import Reindexed
    from holdall.artifacts.events import ArtifactEvent, on
    from holdall.artifacts.history import AliasChange
    from holdall.artifacts.naming import encode_alias_pk, encode_version_sk
    from holdall.artifacts.pruning import PruneReport
    from holdall.artifacts.purging import PurgeReport
    from holdall.artifacts.reading import Where
    from holdall.artifacts.rollouts.rollout import Rollout
    from holdall.artifacts.settings import ArtifactSettings

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
    "Alias": "holdall.artifacts.alias",
    "AliasChange": "holdall.artifacts.history",
    "Artifact": "holdall.artifacts.artifact",
    "ArtifactEvent": "holdall.artifacts.events",
    "ArtifactSettings": "holdall.artifacts.settings",
    "Artifacts": "holdall.artifacts.api",
    "AsyncArtifacts": "holdall.artifacts.api",
    "PruneReport": "holdall.artifacts.pruning",
    "PurgeReport": "holdall.artifacts.purging",
    "Reindexed": "holdall.artifacts.catalogue",
    "Rollout": "holdall.artifacts.rollouts.rollout",
    "Where": "holdall.artifacts.reading",
    "encode_alias_pk": "holdall.artifacts.naming",
    "encode_version_sk": "holdall.artifacts.naming",
    "on": "holdall.artifacts.events",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdall.artifacts' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(home), name)
    globals()[name] = found
    return found
