"""An object's attributes, kept beside its bytes as a small JSON file, and how the two are matched.

Pure. A file of attributes is named after the identity of its bytes: their size, and their time of modification in
microseconds. Both stay the same when the bytes are renamed, so a reader of the bytes finds the attributes that belong
to them, or none, but never those of earlier bytes. A put gives its bytes a time that no other bytes of that size have
under that key; it claims the time by creating the file of attributes, whose name can exist only once.

Bytes without attributes, such as those of Active Storage or files put there by hand, can still be read. A copied root
need not keep the times: see `holdall.backends.disk.copy`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from holdall.core.frozen import dataclass
from holdall.core.objects import ListedObject, ObjectHeaders, ObjectInfo

if TYPE_CHECKING:
    from os import stat_result

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGESTS = ("md5", "sha256", "put_id", "upload")
_HEADERS = ("content_type", "disposition", "cache_control")


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is known about an object besides its bytes; ``upload`` is the id of the upload that created it, and ``tags``
    is None if there are none."""

    headers: ObjectHeaders = ObjectHeaders()
    md5: str | None = None
    sha256: str | None = None
    put_id: str | None = None
    upload: str | None = None
    tags: Mapping[str, str] | None = None


def etag_of(stat: stat_result) -> str:
    """The identity of bytes."""
    return f"{stat.st_size:x}-{_moment(stat):x}"


def beside(name: str, etag: str) -> str:
    """The name of the file of attributes for bytes with this identity."""
    return f"{name}~{etag}"


def moment_of(etag: str) -> int:
    """The time, in nanoseconds, of bytes with an identity; 0 if the text is not an identity."""
    try:
        return int(etag.partition("-")[2], 16) * 1000
    except ValueError:
        return 0


def info_of(key: str, stat: stat_result, attributes: Attributes | None) -> ObjectInfo:
    """The description of an object."""
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


def list_object(key: str, stat: stat_result) -> ListedObject:
    """An object as it appears in a listing."""
    return ListedObject(key, stat.st_size, etag_of(stat), _convert_time(stat))


def encode_attributes(key: str, etag: str, attributes: Attributes) -> bytes:
    """The text of a file of attributes, including the object that they belong to."""
    headers = attributes.headers
    facts: dict[str, Any] = {"key": key, "etag": etag}
    facts |= {name: getattr(headers, name) for name in _HEADERS}
    facts |= {name: getattr(attributes, name) for name in _DIGESTS}
    if headers.metadata:
        facts["metadata"] = dict(headers.metadata)
    if attributes.tags:
        facts["tags"] = dict(attributes.tags)
    kept = {name: value for name, value in facts.items() if value is not None}
    return json.dumps(kept, separators=(",", ":")).encode()


class Note(NamedTuple):
    """The content of a file of attributes, with the key and the identity of the bytes that it belongs to."""

    key: str
    etag: str
    attributes: Attributes


def parse_note(text: bytes) -> Note | None:
    """Parse a file of attributes; None if another program wrote the file, or it is incomplete."""
    try:
        facts = json.loads(text)
        metadata, tags = facts.pop("metadata", {}), facts.pop("tags", {})
        texts = *facts.values(), *metadata.values(), *tags.values()
        key, etag = facts["key"], facts["etag"]
    except (ValueError, KeyError, TypeError, AttributeError):  # not JSON, or in another form
        return None
    if not all(isinstance(each, str) for each in texts):
        return None
    headers = ObjectHeaders(**{name: facts.get(name) for name in _HEADERS}, metadata=metadata)
    return Note(
        key, etag, Attributes(headers, **{name: facts.get(name) for name in _DIGESTS}, tags=tags or None)
    )


def _moment(stat: stat_result) -> int:
    return (stat.st_mtime_ns + 500) // 1000


def _convert_time(stat: stat_result) -> datetime:
    return _EPOCH + timedelta(microseconds=_moment(stat))
