"""Artifacts as they are stored: versioned's rows, our notes beside them, and what the two together say.

Pure. A row has exactly the attributes that versioned gives it. A *note* is an item of ours in the partition
``__<name>-meta``: ``head`` about LATEST (and the counter of versions), ``version#<number>`` about a version. A note
repeats what the row said when it was written: where the two differ, versioned has written since, and what the note
says of the content is void.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256 as _sha256
from json import JSONEncoder
from typing import Any

from holdall.artifacts.artifact import Artifact
from holdall.artifacts.home import Home
from holdall.artifacts.naming import LATEST
from holdall.core.frozen import dataclass
from holdall.core.objects import ObjectInfo
from holdall.core.values import Attribute, Item

__all__ = [
    "HEAD",
    "ROW",
    "Content",
    "artifact_of",
    "content_attributes",
    "is_live",
    "moment_of",
    "moment_text",
    "noted_content",
    "note_sk",
    "object_sha256",
    "revision_of",
    "row_item",
    "served_by",
    "user_metadata",
]

HEAD = "head"
ROW = ("update_at", "is_deleted", "sha256")
"""The attributes of a row; when all of them are what they were, nobody has written it."""

NAME_KEY = "artifact_name"
SHA_KEY = "artifact_sha256"
OURS = (NAME_KEY, SHA_KEY)
"""The metadata that every object of an artifact has."""

_encode = JSONEncoder(sort_keys=True, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Content:
    """What is known of an artifact's content: its digest, and the object that has it.

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


# --- times ------------------------------------------------------------------------------------------------


def moment_text(moment: datetime) -> str:
    """A time as versioned writes it, always 31 characters."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:26] + "+0000"


def moment_of(text: str) -> datetime:
    """A time as it is stored, by versioned or by others who were less exact."""
    return datetime.fromisoformat(text.replace("+0000", "+00:00")).astimezone(UTC)


def moment_in(row: Item) -> datetime | None:
    """When a row says that it was changed; None when it does not, or not so that anybody could read it."""
    try:
        return moment_of(row["update_at"]["S"])
    except (KeyError, ValueError):
        return None


# --- rows and notes ---------------------------------------------------------------------------------------


def row_item(home: Home, name: str, sk: str, update_at: datetime, sha256: str) -> dict[str, Attribute]:
    """A version's row, exactly as versioned writes it."""
    return {
        **home.key(name, sk),
        "update_at": {"S": moment_text(update_at)},
        "is_deleted": {"BOOL": False},
        "sha256": {"S": sha256},
    }


def is_live(row: Item | None) -> bool:
    """Whether there is something that is not deleted; a mark that only says deleted is nothing."""
    return row is not None and "sha256" in row and not row.get("is_deleted", {}).get("BOOL", False)


def note_sk(sk: str) -> str:
    """The sort key of the note about a version."""
    return HEAD if sk == LATEST else f"version#{sk}"


def content_attributes(content: Content, row: Item) -> dict[str, Attribute]:
    """A content as a note says it, with what its row says."""
    found: dict[str, Attribute] = {
        "sha256": row["sha256"],
        "update_at": row["update_at"],
        "etag": {"S": content.etag},
        "size": {"N": str(content.size)},
        "key": {"S": content.key},
    }
    if content.content_type is not None:
        found["content_type"] = {"S": content.content_type}
    for name in ("metadata", "tags"):
        value = getattr(content, name)
        if value is not None:
            found[name] = {"M": {each: {"S": text} for each, text in value.items()}}
    if content.manifest is not None:
        found["manifest"] = {"S": content.manifest}
    if content.total is not None:
        found["total"] = {"N": str(content.total)}
    return found


CONTENT = (
    "sha256",
    "update_at",
    "etag",
    "size",
    "key",
    "content_type",
    "metadata",
    "tags",
    "manifest",
    "total",
)
"""The attributes of a note that speak of content."""


def noted_content(row: Item | None, note: Item | None) -> Content | None:
    """What a note says of the content; None when there is none, or the row is no longer the one that it is about."""
    if row is None or note is None or "etag" not in note:
        return None
    if note.get("sha256") != row.get("sha256") or note.get("update_at") != row.get("update_at"):
        return None
    return Content(
        note["sha256"]["S"],
        note["etag"]["S"],
        int(note["size"]["N"]),
        note["key"]["S"],
        _text(note, "content_type"),
        _texts(note, "metadata"),
        _texts(note, "tags"),
        _text(note, "manifest"),
        int(note["total"]["N"]) if "total" in note else None,
    )


def served_by(note: Item | None) -> frozenset[str]:
    """The aliases that, as far as we were told, serve a version."""
    return frozenset() if note is None else frozenset(note.get("served_by", {}).get("SS", ()))


def revision_of(*items: Item | None) -> str:
    """What changes with every change of these items: of the rows all there is, of our notes their revision."""
    said = [
        None
        if item is None
        else {name: each for name, each in item.items() if name in (*ROW, "revision", *_ALIAS)}
        for item in items
    ]
    return _sha256(_encode(said).encode()).hexdigest()[:20]


_ALIAS = ("version", "secondary_version", "secondary_version_weight")


def _text(item: Item, name: str) -> str | None:
    return str(item[name]["S"]) if name in item else None


def _texts(item: Item, name: str) -> dict[str, str] | None:
    if name not in item:
        return None
    return {each: attribute["S"] for each, attribute in item[name]["M"].items()}


# --- what they say ----------------------------------------------------------------------------------------


def artifact_of(
    home: Home,
    row: Item,
    note: Item | None = None,
    *,
    content: Content | None = None,
    aliases: Iterable[str] = (),
) -> Artifact:
    """A row and its note, as a value; ``content`` is what is known of it, where the note does not say."""
    known = noted_content(row, note) or content
    deleted = bool(row.get("is_deleted", {}).get("BOOL", False))
    deleted_at = None if note is None or not deleted else _text(note, "deleted_at")
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
        home.pk_of(row),
        home.sk_of(row),
        moment_in(row),
        deleted,
        _text(row, "sha256"),
        aliases=tuple(sorted(aliases)),
        deleted_at=None if deleted_at is None else moment_of(deleted_at),
        revision=revision_of(row, note),
        **more,
    )


def object_sha256(info: ObjectInfo) -> str | None:
    """The digest that an artifact's object says of itself."""
    return info.headers.metadata.get(SHA_KEY)


def user_metadata(info: ObjectInfo) -> dict[str, str]:
    """The metadata of an object that is not ours."""
    return {name: value for name, value in info.headers.metadata.items() if name not in (*OURS, MANIFEST_KEY)}


MANIFEST_KEY = "artifact_manifest"
"""The metadata of a directory's manifest: how many bytes all its files have."""


def content_of(info: ObjectInfo, tags: Mapping[str, str] | None) -> Content | None:
    """What an object says of the artifact that it is; None when it is none of ours or versioned's."""
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
