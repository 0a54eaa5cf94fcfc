"""An artifact as a value: one version of the content under a name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdall.artifacts.name import LATEST, check_name, display_version, encode_version_sk, number_of
from holdall.core.frozen import dataclass
from holdall.core.internal import internal


@dataclass(frozen=True, slots=True)
class Artifact:
    """One version of an artifact, or its LATEST.

    ``pk``, ``sk``, ``update_at``, ``is_deleted`` and ``sha256`` are the fields of the package versioned, in the same
    form. The other fields are Holdall's. For a version that versioned wrote, listings leave them empty, and `get` reads
    them from the object. ``revision`` changes with every change. ``aliases`` are those that serve the version. If
    ``manifest`` is set, the artifact is a directory, and ``size`` is the size of all files in it. ``key`` is the key of
    its bytes in the file service.
    """

    pk: str
    sk: str = LATEST
    update_at: datetime | None = None
    is_deleted: bool = False
    sha256: str | None = None
    size: int | None = None
    content_type: str | None = None
    metadata: Mapping[str, str] | None = None
    tags: Mapping[str, str] | None = None
    aliases: tuple[str, ...] = ()
    deleted_at: datetime | None = None
    revision: str | None = None
    manifest: bool = False
    key: str | None = None

    @classmethod
    @internal
    def new(cls, name: str, version: int | str | None = None) -> Artifact:
        """Make an artifact that is not stored; without a version, LATEST."""
        return cls(check_name(name), encode_version_sk(version))

    @property
    def name(self) -> str:
        """The name of the artifact."""
        return self.pk

    @property
    def version(self) -> str:
        """The version, without leading zeros: ``LATEST``, ``1``, ``42``."""
        return display_version(self.sk)

    @property
    def number(self) -> int | None:
        """The version's number; None for LATEST."""
        return number_of(self.sk)

    def to_dict(self) -> dict[str, Any]:
        """Return name, version, update_at and sha256, as the package versioned does; `describe` returns everything."""
        return {
            "name": self.name,
            "version": self.version,
            "update_at": self.update_at,
            "sha256": self.sha256,
        }

    def describe(self) -> dict[str, Any]:
        """Return everything known about the artifact, as JSON-compatible values; times are in ISO 8601."""
        return {
            "name": self.name,
            "version": self.version,
            "sha256": self.sha256,
            "size": self.size,
            "update_at": None if self.update_at is None else self.update_at.isoformat(),
            "content_type": self.content_type,
            "metadata": None if self.metadata is None else dict(self.metadata),
            "tags": None if self.tags is None else dict(self.tags),
            "aliases": list(self.aliases),
            "deleted": self.is_deleted,
            "deleted_at": None if self.deleted_at is None else self.deleted_at.isoformat(),
            "revision": self.revision,
            "directory": self.manifest,
        }
