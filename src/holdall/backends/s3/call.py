"""Requests as calls to S3: path, headers and body.

Pure. A call is a whole request except the sender, the time and the host. A value that the user passes and that goes
into a header is checked here, unless the rules for all services have already checked it.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Mapping

from holdall.backends.aws.message import Room
from holdall.backends.s3.digest import md5_text
from holdall.backends.s3.document import completion, deletion, tag_set
from holdall.backends.s3.header import PUT_ID, build_tag_header, http_headers
from holdall.backends.s3.place import encode_key
from holdall.core.frozen import dataclass
from holdall.core.objects import (
    AbortUpload,
    CompleteUpload,
    CopyPart,
    DeleteObject,
    GetObject,
    ListObjects,
    ListParts,
    MeasurePart,
    Origin,
    PutObject,
    SignUrl,
    UploadPart,
)
from holdall.core.rules.object import MAX_KEY, MAX_OBJECT
from holdall.errors import InvalidObjectKeyError, InvalidRequestError

_VISIBLE = re.compile(r"[!-~]{1,1024}")
_DIGEST_SIZES = {"md5": 16, "sha256": 32}
_CHECKSUMS = {"x-amz-checksum-mode": "ENABLED"}
_XML = {"content-type": "application/xml"}
_TAGS = (("tagging", ""),)
_SMALL_DOCUMENT = 1024 * 1024


SMALL_REPLY = 64 * 1024 * 1024
"""The longest reply that is accepted to a request that does not ask for an object's bytes."""

NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Call:
    """A request about a key, or about the bucket if ``key`` is None.

    ``digest`` is the SHA-256 of the body, if it is known. With ``unsigned``, only a Content-MD5 among the headers
    protects the body, over a connection on which an attacker cannot change both. ``document``: the answer is an XML
    document, which may report a failure under any status. ``name`` is the key as the caller knows it. ``room`` is where
    the bytes of a large object may be received.
    """

    operation: str
    method: str
    key: str | None = None
    name: str | None = None
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = NO_HEADERS
    body: bytes = b""
    digest: str | None = None
    unsigned: bool = False
    document: bool = False
    limit: int = SMALL_REPLY
    room: Room | None = None


class Calls:
    """Calls to one bucket, for the keys below a prefix."""

    def __init__(self, bucket: str, prefix: str, storage: Mapping[str, str]) -> None:
        self._bucket = bucket
        self.prefix = prefix
        self._storage = storage

    def key(self, key: str) -> str:
        """A key as it is in the bucket, with the prefix."""
        if not self.prefix:
            return key
        whole = self.prefix + key
        if len(whole.encode()) > MAX_KEY:
            raise InvalidObjectKeyError(
                f"the key {key!r:.60} with the prefix {self.prefix!r:.60} has more than {MAX_KEY:,} bytes"
            )
        return whole

    # --- reads ---

    def head(self, key: str, if_match: str | None = None) -> Call:
        """Asks about an object."""
        headers = {**_CHECKSUMS, **_match_header("if-match", if_match)}
        return Call("HeadObject", "HEAD", self.key(key), key, headers=headers)

    def head_part(self, request: MeasurePart) -> Call:
        """Asks about a part of an object."""
        headers = _match_header("if-match", request.if_match)
        query = (("partNumber", str(request.number)),)
        return Call("HeadObject", "HEAD", self.key(request.key), request.key, query, headers=headers)

    def get(self, request: GetObject, room: Room | None = None) -> Call:
        """Asks for bytes, to be received into a ``room`` if there is one."""
        headers = {**_CHECKSUMS, **_match_header("if-match", request.if_match)}
        if request.start or request.size is not None:
            end = "" if request.size is None else request.start + request.size - 1
            headers["range"] = f"bytes={request.start}-{end}"
        key = self.key(request.key)
        return Call("GetObject", "GET", key, request.key, headers=headers, limit=MAX_OBJECT, room=room)

    def tags(self, key: str) -> Call:
        """Asks for the tags of an object."""
        return Call("GetObjectTagging", "GET", self.key(key), key, _TAGS, limit=_SMALL_DOCUMENT)

    def list_objects(self, request: ListObjects) -> Call:
        """Asks for a page of a listing."""
        query = [
            ("list-type", "2"),
            ("encoding-type", "url"),
            ("max-keys", str(request.limit)),
            ("prefix", self.prefix + request.prefix),
        ]
        if request.after is not None:
            query.append(("start-after", self.prefix + request.after))
        return Call("ListObjectsV2", "GET", query=tuple(query), document=True)

    def list_parts(self, request: ListParts) -> Call:
        """Asks for parts of an upload."""
        query: tuple[tuple[str, str], ...] = (("uploadId", request.upload.id),)
        if request.after is not None:
            query += (("part-number-marker", str(request.after)),)
        key = request.upload.key
        return Call("ListParts", "GET", self.key(key), key, query, document=True)

    def list_uploads(self, prefix: str, after: tuple[str, str] | None) -> Call:
        """Asks for uploads in progress."""
        query = [("uploads", ""), ("encoding-type", "url"), ("prefix", self.prefix + prefix)]
        if after is not None:
            query += [("key-marker", after[0]), ("upload-id-marker", after[1])]
        return Call("ListMultipartUploads", "GET", query=tuple(query), document=True)

    # --- writes ---

    def put(
        self,
        request: PutObject,
        *,
        refuse: bool = False,
        put_id: str | None = None,
        unmarked: bool = False,
        extra: Mapping[str, str] = NO_HEADERS,
    ) -> Call:
        """Puts bytes; with ``refuse``, only if there is no object; ``extra`` are headers that `ObjectHeaders` lacks.

        It leaves ``put_id``, or the id of the request, unless it is ``unmarked``. If the request has a digest, that is
        signed, and the bytes are not digested again.
        """
        headers = {
            **http_headers(request.headers, None if unmarked else put_id or _put_id(request.if_absent)),
            **extra,
            **self._storage,
            **build_tag_header(request.tags),
            **_match_header("if-match", request.if_match),
        }
        if request.md5 is not None:
            headers["content-md5"] = _digest("md5", request.md5)
        digest = None
        if request.sha256 is not None:
            headers["x-amz-checksum-sha256"] = _digest("sha256", request.sha256)
            digest = b64decode(request.sha256).hex()
        if refuse:
            headers["if-none-match"] = "*"
        return Call(
            "PutObject",
            "PUT",
            self.key(request.key),
            request.key,
            headers=headers,
            body=request.body,
            digest=digest,
            unsigned=request.md5 is not None,
        )

    def copy(
        self,
        source: str,
        key: str,
        etag: str,
        replaced: Mapping[str, str] | None,
        *,
        refuse: bool = False,
        origin: Origin | None = None,
    ) -> Call:
        """Copies an object if it still has the etag, with its tags; ``replaced`` replaces its headers. With ``refuse``,
        only if there is no object at the target; with an ``origin``, from there."""
        headers = {**self._source(source, etag, origin), **(replaced or {}), **self._storage}
        headers["x-amz-metadata-directive"] = "COPY" if replaced is None else "REPLACE"
        if refuse:
            headers["if-none-match"] = "*"
            headers["x-amz-tagging-directive"] = "COPY"
        return Call("CopyObject", "PUT", self.key(key), key, headers=headers, document=True)

    def delete(self, request: DeleteObject) -> Call:
        """Deletes an object."""
        headers = _match_header("if-match", request.if_match)
        return Call("DeleteObject", "DELETE", self.key(request.key), request.key, headers=headers)

    def put_tags(self, key: str, tags: Mapping[str, str]) -> Call:
        """Sets the tags of an object."""
        body = tag_set(tags)
        headers = {**_XML, "content-md5": md5_text(body)}
        return Call("PutObjectTagging", "PUT", self.key(key), key, _TAGS, headers, body)

    def delete_many(self, keys: tuple[str, ...]) -> Call:
        """Deletes objects; `document.fits_xml` says which keys a document can name."""
        body = deletion(map(self.key, keys))
        headers = {**_XML, "content-md5": md5_text(body)}
        return Call(
            "DeleteObjects", "POST", query=(("delete", ""),), headers=headers, body=body, document=True
        )

    # --- uploads ---

    def begin(self, key: str, headers: Mapping[str, str]) -> Call:
        """Begins an upload of an object with these headers."""
        return Call(
            "CreateMultipartUpload",
            "POST",
            self.key(key),
            key,
            (("uploads", ""),),
            {**headers, **self._storage},
            document=True,
        )

    def part(self, request: UploadPart) -> Call:
        """Uploads a part."""
        return self._part("UploadPart", request, {}, request.body)

    def copy_part(self, request: CopyPart, origin: Origin | None = None) -> Call:
        """Copies a part from an object; with an ``origin``, from there."""
        headers = self._source(request.source, request.if_match, origin)
        headers["x-amz-copy-source-range"] = f"bytes={request.start}-{request.start + request.size - 1}"
        return self._part("UploadPartCopy", request, headers, b"")

    def _part(
        self, operation: str, request: UploadPart | CopyPart, headers: Mapping[str, str], body: bytes
    ) -> Call:
        key = request.upload.key
        return Call(
            operation,
            "PUT",
            self.key(key),
            key,
            (("partNumber", str(request.number)), ("uploadId", request.upload.id)),
            headers,
            body,
            document=isinstance(request, CopyPart),
        )

    def complete(self, request: CompleteUpload, *, refuse: bool = False) -> Call:
        """Completes an upload; with ``refuse``, only if there is no object."""
        headers = {**_XML, **_match_header("if-match", request.if_match)}
        if refuse:
            headers["if-none-match"] = "*"
        key = request.upload.key
        return Call(
            "CompleteMultipartUpload",
            "POST",
            self.key(key),
            key,
            (("uploadId", request.upload.id),),
            headers,
            completion(request.parts),
            document=True,
        )

    def abort(self, request: AbortUpload) -> Call:
        """Aborts an upload."""
        key = request.upload.key
        return Call("AbortMultipartUpload", "DELETE", self.key(key), key, (("uploadId", request.upload.id),))

    # --- URLs ---

    def presign(self, request: SignUrl) -> tuple[tuple[tuple[str, str], ...], dict[str, str]]:
        """The query of a URL, and the headers that are signed with it."""
        if request.method == "GET":
            given = request.headers
            overrides = (
                ("response-content-disposition", given.disposition),
                ("response-content-type", given.content_type),
                ("response-cache-control", given.cache_control),
            )
            return tuple((name, value) for name, value in overrides if value is not None), {}
        headers = {**http_headers(request.headers), **self._storage}
        if request.headers.content_type is None:
            del headers["content-type"]
        if request.size is not None:
            headers["content-length"] = str(request.size)
        if request.md5 is not None:
            headers["content-md5"] = _digest("md5", request.md5)
        return (), headers

    def _source(self, key: str, etag: str | None, origin: Origin | None) -> dict[str, str]:
        bucket, whole = self._bucket, self.key(key)
        if origin is not None:
            bucket, whole = origin.bucket, origin.prefix + key
        headers = {"x-amz-copy-source": f"/{bucket}/{encode_key(whole)}"}
        return headers | _match_header("x-amz-copy-source-if-match", etag)


def _match_header(name: str, etag: str | None) -> dict[str, str]:
    if etag is None:
        return {}
    if not _VISIBLE.fullmatch(etag):
        raise InvalidRequestError(f"{etag!r:.60} is not a valid etag", hint="use the etag of an ObjectInfo")
    return {name: f'"{etag}"'}


def _put_id(put_id: str | None) -> str | None:
    if put_id is not None and not _VISIBLE.fullmatch(put_id):
        raise InvalidRequestError(
            f"{put_id!r:.60} is not a valid id for a put",
            hint=f"use visible ASCII characters: it is sent in the header {PUT_ID}",
        )
    return put_id


def _digest(kind: str, text: str) -> str:
    try:
        size = len(b64decode(text, validate=True))
    except (Error, ValueError):
        size = 0
    if size != _DIGEST_SIZES[kind]:
        raise InvalidRequestError(f"{text!r:.60} is not a base64-encoded {kind} digest")
    return text
