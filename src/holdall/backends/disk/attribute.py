"""What is kept beside an object's bytes, as a small JSON file, and how the two find each other.

Pure. A file of attributes is named after the identity of its bytes: their size, and their time of modification in
microseconds. Both go with the bytes when they are renamed, so whoever has the bytes finds the attributes that belong to
them, or none: never those of the bytes that were there before. A put gives its bytes a time that no others of that
size have under that key; the name of the attributes, which cannot be there twice, is its claim to it.

Bytes without attributes are read all the same: Active Storage's, or what was put there by hand. A copied root need not
keep the times: see `holdall.backends.disk.copy`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from holdall.core.frozen import dataclass
from holdall.core.objects import ListedObject, ObjectHeaders, ObjectInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGESTS = ("md5", "sha256", "put_id", "upload")
_HEADERS = ("content_type", "disposition", "cache_control")


class Stat(Protocol):
    """What is asked of an `os.stat_result`."""

    @property
    def st_size(self) -> int:
        """How many bytes there are."""

    @property
    def st_mtime_ns(self) -> int:
        """When they were written."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is known of an object besides its bytes; ``upload`` is the id of the upload that it came from, ``tags`` are
    None where there are none."""

    headers: ObjectHeaders = ObjectHeaders()
    md5: str | None = None
    sha256: str | None = None
    put_id: str | None = None
    upload: str | None = None
    tags: Mapping[str, str] | None = None


def etag_of(stat: Stat) -> str:
    """The identity of bytes."""
    return f"{stat.st_size:x}-{_moment(stat):x}"


def beside(name: str, etag: str) -> str:
    """The name of the attributes of bytes."""
    return f"{name}~{etag}"


def moment_of(etag: str) -> int:
    """The time, in nanoseconds, of bytes with an identity; 0 if the text is not an identity."""
    try:
        return int(etag.partition("-")[2], 16) * 1000
    except ValueError:
        return 0


def info_of(key: str, stat: Stat, attributes: Attributes | None) -> ObjectInfo:
    """What is told of an object."""
    known = attributes or Attributes()
    return ObjectInfo(
        key,
        stat.st_size,
        etag_of(stat),
        _convert_time(stat),
        known.headers,
        md5=known.md5,
        sha256=known.sha256,
        put_id=known.put_id,
    )


def list_object(key: str, stat: Stat) -> ListedObject:
    """An object as it stands in a listing."""
    return ListedObject(key, stat.st_size, etag_of(stat), _convert_time(stat))


def encode_attributes(key: str, etag: str, attributes: Attributes) -> bytes:
    """The text of a file of attributes; it also says whose they are."""
    headers = attributes.headers
    said: dict[str, Any] = {"key": key, "etag": etag}
    said |= {name: getattr(headers, name) for name in _HEADERS}
    said |= {name: getattr(attributes, name) for name in _DIGESTS}
    if headers.metadata:
        said["metadata"] = dict(headers.metadata)
    if attributes.tags:
        said["tags"] = dict(attributes.tags)
    kept = {name: value for name, value in said.items() if value is not None}
    return json.dumps(kept, separators=(",", ":")).encode()


def of_note(text: bytes) -> Attributes | None:
    """The attributes in a file; None for what we have not written, or not to its end."""
    said = _parse_attributes(text)
    metadata, tags = said.pop("metadata", {}), said.pop("tags", {})
    if "key" not in said or not isinstance(metadata, dict) or not isinstance(tags, dict):
        return None
    if not all(isinstance(value, str) for value in (*said.values(), *metadata.values(), *tags.values())):
        return None
    headers = ObjectHeaders(**{name: said.get(name) for name in _HEADERS}, metadata=metadata)
    return Attributes(headers, **{name: said.get(name) for name in _DIGESTS}, tags=tags or None)


def parse_key(text: bytes) -> tuple[str, str] | None:
    """The key and the identity of the bytes that a file of attributes is for."""
    said = _parse_attributes(text)
    key, etag = said.get("key"), said.get("etag")
    return (key, etag) if isinstance(key, str) and isinstance(etag, str) else None


def _parse_attributes(text: bytes) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _moment(stat: Stat) -> int:
    return (stat.st_mtime_ns + 500) // 1000


def _convert_time(stat: Stat) -> datetime:
    return _EPOCH + timedelta(microseconds=_moment(stat))
