"""Content: what a version contains, as described by its note and its object; and artifacts as values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256 as _sha256
from json import JSONEncoder
from typing import Any

from holdall.artifacts.record import CONTENT, FIELDS, ROW, Note, VersionRow
from holdall.artifacts.version.artifact import Artifact
from holdall.core.expressions import Remove, Set
from holdall.core.frozen import dataclass
from holdall.core.objects import ObjectInfo
from holdall.tables.record import Record

NAME_KEY = "artifact_name"
SHA_KEY = "artifact_sha256"
OURS = (NAME_KEY, SHA_KEY)
"""The metadata that every object of an artifact has."""

MANIFEST_KEY = "artifact_manifest"
"""The metadata of a directory's manifest that has the size of all its files."""

_encode = JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_REVISED = frozenset(column.name for column in (*ROW, Note.revision, *FIELDS))


@dataclass(frozen=True, slots=True)
class Content:
    """What is known about an artifact's content: its digest, and the object that holds it.

    ``manifest`` is the digest of a directory's manifest, ``total`` the size of all files in it.
    """

    sha256: str
    etag: str
    size: int
    key: str
    content_type: str | None = None
    metadata: Mapping[str, str] | None = None
    tags: Mapping[str, str] | None = None
    manifest: str | None = None
    total: int | None = None

    def is_like(self, other: Content) -> bool:
        """Whether both are the same for the user: bytes, type, metadata and tags."""
        return (self.sha256, self.content_type, self.metadata or {}, self.tags or {}) == (
            other.sha256,
            other.content_type,
            other.metadata or {},
            other.tags or {},
        )


# --- rows and notes ---------------------------------------------------------------------------------------


def content_updates(content: Content, row: VersionRow) -> list[Set | Remove]:
    """The updates with which a note describes a content and repeats its row."""
    described = [column.set(getattr(content, column.name)) for column in CONTENT]
    return [Note.update_at.set(row.update_at), *described]


def find_content(row: VersionRow, note: Note) -> Content | None:
    """The content that a note describes; None if there is none, or if versioned has written the row since."""
    sha256 = note.sha256
    if note.etag is None or sha256 is None or sha256 != row.sha256 or note.update_at != row.update_at:
        return None
    return Content(**{column.name: column.read(note.item) for column in CONTENT})


def revision_of(*records: Record | None) -> str:
    """A digest that differs after every change of these records: of all attributes of rows, and of notes' revisions."""
    facts = [
        None
        if record is None or record.item is None
        else {name: each for name, each in record.item.items() if name in _REVISED}
        for record in records
    ]
    return _sha256(_encode(facts).encode()).hexdigest()[:20]


def artifact_of(
    row: VersionRow,
    note: Note | None = None,
    *,
    content: Content | None = None,
    aliases: Iterable[str] = (),
) -> Artifact:
    """Make an artifact from a row and its note; ``content`` is, by default, what the note describes."""
    known = find_content(row, note) if content is None and note is not None else content
    more: dict[str, Any] = {}
    if known is not None:
        more = {
            "size": known.size if known.total is None else known.total,
            "content_type": known.content_type,
            "metadata": known.metadata,
            "tags": known.tags,
            "manifest": known.manifest is not None,
            "key": known.key,
        }
    return Artifact(
        row.pk,
        row.sk,
        row.moment,
        row.is_deleted,
        row.sha256,
        aliases=tuple(sorted(aliases)),
        deleted_at=note.deleted_at if note is not None and row.is_deleted else None,
        revision=revision_of(row, note),
        **more,
    )


# --- objects ----------------------------------------------------------------------------------------------


def object_sha256(info: ObjectInfo) -> str | None:
    """The digest in the metadata of an artifact's object."""
    return info.headers.metadata.get(SHA_KEY)


def user_metadata(info: ObjectInfo) -> dict[str, str]:
    """The user's metadata of an object, without Holdall's."""
    return {name: value for name, value in info.headers.metadata.items() if name not in (*OURS, MANIFEST_KEY)}


def content_of(info: ObjectInfo, tags: Mapping[str, str] | None = None) -> Content | None:
    """The content that an object's metadata describes; None if neither Holdall nor versioned put the object."""
    sha256 = object_sha256(info)
    if sha256 is None:
        return None
    total = info.headers.metadata.get(MANIFEST_KEY)
    return Content(
        sha256,
        info.etag,
        info.size,
        info.key,
        info.headers.content_type,
        user_metadata(info),
        tags,
        None if total is None else sha256,
        None if total is None or not total.isdigit() else int(total),
    )
