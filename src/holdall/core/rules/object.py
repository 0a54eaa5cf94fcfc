"""The rules that every file service applies to a request first, so that a request that works on disk works on S3.

Pure. The limits are S3's. Keys also must not mean something else to a file system or a proxy.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Any

from holdall.core.objects import (
    BeginUpload,
    CompleteUpload,
    CopyObject,
    CopyPart,
    DeleteObjects,
    GetObject,
    ImportObject,
    ListObjects,
    ListUploads,
    ObjectHeaders,
    ObjectRequest,
    PutObject,
    SignUrl,
    Upload,
    UploadPart,
)
from holdall.errors import InvalidObjectKeyError, InvalidRequestError

MAX_KEY = 1024
MAX_OBJECT = 5 * 1024**4
MAX_PART = 5 * 1024**3
MIN_PART = 5 * 1024**2
MAX_PARTS = 10_000
MAX_METADATA = 2048
MAX_TAGS = 10
MAX_TAG_NAME = 128
MAX_TAG_VALUE = 256
_NO_KEY = object()
MAX_EXPIRY = 7 * 24 * 3600
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")
_NO_TAG = re.compile(r"[^\w +\-=.:/@]")
_TEXT = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*\Z")


def check_key(key: object, what: str = "key") -> None:
    """Check an object's key: 1 to 1,024 bytes of UTF-8, without NUL and without dot segments."""
    if not isinstance(key, str):
        raise InvalidObjectKeyError(f"the {what} must be text, not {type(key).__name__}")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise InvalidObjectKeyError(
            f"the {what} has a lone surrogate, so it cannot be written as UTF-8"
        ) from None
    if not 0 < size <= MAX_KEY:
        raise InvalidObjectKeyError(f"the {what} must have 1 to {MAX_KEY:,} bytes of UTF-8, not {size:,}")
    if "\x00" in key:
        raise InvalidObjectKeyError(f"the {what} {key!r:.60} contains a NUL character")
    if "." in key and not {".", ".."}.isdisjoint(key.split("/")):
        raise InvalidObjectKeyError(
            f"the {what} {key!r:.60} has the segment . or ..",
            hint="clients and proxies would resolve the segment to another path: use another key",
        )


def check_object_request(request: ObjectRequest[Any]) -> None:
    """Raise an error for a request that no service could carry out."""
    if type(request) is GetObject:  # the most frequent one, and it has neither content nor headers
        check_key(request.key)
        _check_range(request)
        return
    if isinstance(request, ListObjects | ListUploads):
        _check_listing(request)
        return
    if isinstance(request, DeleteObjects):
        _check_many(request.keys)
        return
    key = getattr(request, "key", _NO_KEY)
    if key is not _NO_KEY:
        check_key(key)
    headers = getattr(request, "headers", None)
    if isinstance(headers, ObjectHeaders):
        _check_headers(headers)
    if isinstance(request, PutObject | BeginUpload):
        _check_tags(request.tags)
    if isinstance(request, PutObject | CompleteUpload):
        _check_conditions(request)
    if isinstance(request, CopyObject | CopyPart):
        check_key(request.source, "source")
    if isinstance(request, ImportObject):
        check_key(request.source.key)
    if isinstance(request, CopyPart):
        _check_range(request)
    if isinstance(request, UploadPart | CopyPart):
        _check_part(request)
    if isinstance(request, CompleteUpload):
        _check_parts(request)
    if isinstance(request, SignUrl):
        _check_url(request)
    _check_digests(request)
    body = getattr(request, "body", b"")
    if not isinstance(body, bytes | bytearray | memoryview):
        raise InvalidRequestError(f"the content of an object must be bytes, not {type(body).__name__}")
    upload = getattr(request, "upload", None)
    if isinstance(upload, Upload):
        check_key(upload.key)


def _check_url(request: SignUrl) -> None:
    if not 1 <= request.expires <= MAX_EXPIRY:
        raise InvalidRequestError(
            f"a URL must expire in 1 to {MAX_EXPIRY:,} seconds (a week), not in {request.expires}"
        )
    if request.size is not None and request.size > MAX_PART:
        raise InvalidRequestError(
            f"an upload to a URL can have at most {MAX_PART:,} bytes (5 GiB), not {request.size:,}",
            hint="use a resumable upload for a larger file",
        )


def _check_listing(request: ListObjects | ListUploads) -> None:
    prefix = request.prefix
    if not isinstance(prefix, str) or "\x00" in prefix or not _has_utf8(prefix, MAX_KEY):
        raise InvalidObjectKeyError(f"{prefix!r:.60} cannot be the prefix of a key")
    if isinstance(request, ListObjects) and not 1 <= request.limit <= ListObjects.most:
        raise InvalidRequestError(f"limit must be from 1 to 1,000, not {request.limit}")


def _has_utf8(text: str, most: float) -> bool:
    try:
        return len(text.encode()) <= most
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _check_many(keys: Iterable[str]) -> None:
    found = tuple(keys)
    if not 1 <= len(found) <= DeleteObjects.most:
        raise InvalidRequestError(
            f"one request can delete 1 to 1,000 objects, not {len(found)}", hint="send several requests"
        )
    for key in found:
        check_key(key)


def _check_headers(headers: ObjectHeaders) -> None:
    for what in ("content_type", "disposition", "cache_control"):
        value = getattr(headers, what)
        if value is not None and (
            not isinstance(value, str)
            or not value
            or value != value.strip(" \t")
            or not _TEXT.match(value)
            or not value.isascii()
        ):
            raise InvalidRequestError(f"the {what} {value!r:.60} cannot be sent as a header")
    size = 0
    for name, value in headers.metadata.items():
        if not isinstance(name, str) or not _NAME.match(name) or name.startswith("holdall-"):
            raise InvalidRequestError(
                f"{name!r:.60} cannot be the name of a metadata entry",
                hint="use a-z, 0-9 and, after the first character, _ . -; names with holdall- are reserved",
            )
        if (
            not isinstance(value, str)
            or not _TEXT.match(value)
            or value != value.strip(" \t")
            or not _has_utf8(value, float("inf"))
        ):
            raise InvalidRequestError(
                f"the value of the metadata entry {name} cannot be sent as a header: {value!r:.60}"
            )
        size += len(name) + len(value.encode())
    if size > MAX_METADATA:
        raise InvalidRequestError(
            f"the metadata has {size:,} bytes; S3 allows {MAX_METADATA:,} for an object"
        )


def _check_tags(tags: Mapping[str, str]) -> None:
    if not isinstance(tags, Mapping):
        raise InvalidRequestError(f"tags must be a mapping of names to values, not {type(tags).__name__}")
    if len(tags) > MAX_TAGS:
        raise InvalidRequestError(f"the object has {len(tags):,} tags; S3 allows {MAX_TAGS}")
    for name, value in tags.items():
        if not _is_tag(name, MAX_TAG_NAME) or not name or name.lower().startswith("aws:"):
            raise InvalidRequestError(
                f"{name!r:.60} cannot be the name of a tag",
                hint=f"use 1 to {MAX_TAG_NAME} letters, digits, spaces and + - = . _ : / @; aws: is reserved",
            )
        if not _is_tag(value, MAX_TAG_VALUE):
            raise InvalidRequestError(
                f"{value!r:.60} cannot be the value of the tag {name}",
                hint=f"use up to {MAX_TAG_VALUE} letters, digits, spaces and + - = . _ : / @",
            )


def _is_tag(text: object, most: int) -> bool:
    """Whether S3 accepts a text as a tag; it counts the length in UTF-16."""
    return isinstance(text, str) and not _NO_TAG.search(text) and len(text.encode("utf-16-le")) <= 2 * most


def _check_conditions(request: PutObject | CompleteUpload) -> None:
    if request.if_absent is not None and request.if_match is not None:
        raise InvalidRequestError(
            "if_absent and if_match exclude each other: one forbids an existing object, the other requires one",
            hint="pass only one of them",
        )


def _check_digests(request: ObjectRequest[Any]) -> None:
    for name, size in (("md5", 16), ("sha256", 32)):
        digest = getattr(request, name, None)
        if digest is None:
            continue
        try:
            found = len(b64decode(digest, validate=True))
        except (TypeError, ValueError):
            found = 0
        if found != size:
            raise InvalidRequestError(f"{name} must be a digest in base64, not {digest!r:.60}")


def _check_range(request: GetObject | CopyPart) -> None:
    size = request.size
    if request.start < 0 or (size is not None and size < 1):
        raise InvalidRequestError(
            f"start={request.start} and size={size} are not a range of bytes",
            hint="start must be at least 0, and size at least 1",
        )


def _check_part(request: UploadPart | CopyPart) -> None:
    if not 1 <= request.number <= MAX_PARTS:
        raise InvalidRequestError(
            f"the number of a part must be from 1 to {MAX_PARTS:,}, not {request.number}"
        )


def _check_parts(request: CompleteUpload) -> None:
    numbers = [part.number for part in request.parts]
    if not numbers or numbers != sorted(set(numbers)):
        raise InvalidRequestError(
            "an upload must be completed with at least one part, in ascending order, and each part only once"
        )
