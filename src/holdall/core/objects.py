"""Requests to file services, which store bytes as objects under keys, and their replies. All are frozen values.

Pure. A service (`holdall.backends`: disk, memory, S3) answers these as a table store answers its requests. Every
request and reply fits into memory: a larger object is uploaded in parts and read in ranges, so nothing here holds a
stream or a connection.

How writes are repeated after a lost reply: a put of the same bytes under the same key can be sent again. A put that
must not replace an object (``if_absent``) stores an id with the object; if a repetition is refused, the id shows
whether the object is its own. For a put that replaces a certain object (``if_match``), the service stores an id.

Tags are separate from the headers: only `GetTags` returns them. A copy gets the tags of its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal, TypeAlias, TypeVar

from holdall.core.frozen import dataclass
from holdall.core.requests import Destination, Done, Request

__all__ = [
    "AbortUpload",
    "BeginUpload",
    "CompleteUpload",
    "CopyObject",
    "CopyPart",
    "DeleteObject",
    "DeleteObjects",
    "DeleteReport",
    "DescribeService",
    "GetObject",
    "GetTags",
    "HeadObject",
    "ImportObject",
    "ListObjects",
    "ListParts",
    "ListUploads",
    "ListedObject",
    "MeasurePart",
    "ObjectHeaders",
    "ObjectInfo",
    "ObjectPage",
    "ObjectRange",
    "ObjectRequest",
    "Origin",
    "Part",
    "PartPage",
    "PutObject",
    "ServiceTraits",
    "SignedUrl",
    "SignUrl",
    "Upload",
    "UploadPart",
]

R = TypeVar("R")


class ObjectRequest(Request[R]):
    """The base class of all requests to a file service; ``service`` is the name of the service in the settings."""

    __slots__ = ()
    destination: ClassVar[Destination] = "service"
    service: str


# --- what objects are -------------------------------------------------------------------------------------


class _NoMetadata(dict[str, str]):
    """No metadata, or no tags. It is never changed, so it can have a hash."""

    __hash__ = object.__hash__  # type: ignore[assignment]


_NONE = _NoMetadata()


@dataclass(frozen=True, slots=True)
class ObjectHeaders:
    """The headers with which an object is stored and served. The names of metadata are in lower case."""

    content_type: str | None = None
    disposition: str | None = None
    cache_control: str | None = None
    metadata: Mapping[str, str] = _NONE


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object without its bytes.

    ``etag`` changes whenever the bytes do. ``md5``, ``sha256`` and ``crc32c`` are digests in base64, if known.
    ``put_id`` is the id that a put with ``if_absent`` or ``if_match`` stored with the object. ``parts`` is the number
    of parts in which the object was uploaded, if the etag is the MD5 of their MD5s; the service then answers
    `MeasurePart`.
    """

    key: str
    size: int
    etag: str
    modified: datetime
    headers: ObjectHeaders = ObjectHeaders()
    md5: str | None = None
    sha256: str | None = None
    put_id: str | None = None
    crc32c: str | None = None
    parts: int | None = None


@dataclass(frozen=True, slots=True)
class ObjectRange:
    """Some or all bytes of an object, from ``start`` on; ``info.size`` is the size of the whole object."""

    info: ObjectInfo
    start: int
    body: bytes


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object in a listing."""

    key: str
    size: int
    etag: str
    modified: datetime


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """A page of a listing, sorted by the bytes of the keys. Pass ``next`` as ``after`` for more; None at the end."""

    objects: tuple[ListedObject, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class DeleteReport:
    """The result of several deletions: the keys that could not be deleted, each with the reason."""

    failures: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload in parts that has begun. The object is not visible until the upload is completed."""

    key: str
    id: str


@dataclass(frozen=True, slots=True)
class Part:
    """An uploaded part; parts are numbered from 1."""

    number: int
    etag: str
    size: int


@dataclass(frozen=True, slots=True)
class PartPage:
    """A page of the parts that an upload has so far. Pass ``next`` as ``after`` for more; it is None at the end."""

    parts: tuple[Part, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class SignedUrl:
    """A URL that needs no credentials, and the exact headers that the client must send with it."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a service's objects are, for services that can copy them from there: see `ImportObject`.

    Two services whose origins name the same ``server`` can import from each other.
    """

    server: str
    bucket: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class ServiceTraits:
    """The characteristics of a service.

    An object larger than ``single_put`` bytes must be uploaded in parts of at least ``part_size`` bytes (the last can
    be smaller), ``parallel`` of them at a time. ``public``: its URLs need no signature. ``mirrors`` are the names of
    the services that hold copies of its objects. ``place`` is the name of its bucket or directory for messages. Keys
    can have up to ``max_key`` bytes. ``origin`` is set if the service can import objects from others. ``snapshots``: a
    backup can include its objects.
    """

    single_put: int = 8 * 1024**2
    part_size: int = 8 * 1024**2
    parallel: int = 1
    public: bool = False
    mirrors: tuple[str, ...] = ()
    place: str = ""
    max_key: int = 1024
    origin: Origin | None = None
    snapshots: bool = False


# --- reads ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DescribeService(ObjectRequest[ServiceTraits]):
    """Describe the service's characteristics. Nothing is sent over the network."""

    service: str


@dataclass(frozen=True, slots=True)
class HeadObject(ObjectRequest[ObjectInfo]):
    """Describe an object; raises `ObjectNotFoundError` if it does not exist."""

    service: str
    key: str


@dataclass(frozen=True, slots=True)
class GetObject(ObjectRequest[ObjectRange]):
    """Read an object, or ``size`` bytes of it from ``start`` on (fewer at its end, none beyond it).

    With ``if_match``, raises `PreconditionFailedError` if the object no longer has this etag.
    """

    service: str
    key: str
    start: int = 0
    size: int | None = None
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class MeasurePart(ObjectRequest[int | None]):
    """Return the size of a part of an object that was uploaded in parts; None if the service does not know it."""

    service: str
    key: str
    number: int
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class GetTags(ObjectRequest[Mapping[str, str]]):
    """Return the tags of an object; raises `ObjectNotFoundError` if it does not exist."""

    service: str
    key: str


@dataclass(frozen=True, slots=True)
class ListObjects(ObjectRequest[ObjectPage]):
    """List up to ``limit`` objects whose keys begin with a prefix."""

    most: ClassVar[int] = 1000
    service: str
    prefix: str = ""
    after: str | None = None
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class SignUrl(ObjectRequest[SignedUrl]):
    """Sign a URL for a download, to be served with these headers, or for an upload.

    An upload must have the given ``size``, ``md5`` (base64) and content type: the service refuses any other.
    """

    service: str
    key: str
    method: Literal["GET", "PUT"]
    expires: int
    headers: ObjectHeaders = ObjectHeaders()
    size: int | None = None
    md5: str | None = None


# --- writes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PutObject(ObjectRequest[ObjectInfo]):
    """Store bytes under a key, replacing any object there.

    ``md5`` and ``sha256`` (base64) are the expected digests: if the bytes have others, nothing is stored and
    `IntegrityError` is raised. ``if_absent`` is an id; the put raises `PreconditionFailedError` if an object exists.
    With ``if_match``, it raises the same error unless the object there has this etag. Pass at most one of the two.
    ``unmarked``: the id of ``if_absent`` is not stored with the object, so a repetition after a lost reply is refused
    like any other put.
    """

    writes: ClassVar[bool] = True
    service: str
    key: str
    body: bytes
    headers: ObjectHeaders = ObjectHeaders()
    md5: str | None = None
    sha256: str | None = None
    if_absent: str | None = None
    if_match: str | None = None
    tags: Mapping[str, str] = _NONE
    unmarked: bool = False


@dataclass(frozen=True, slots=True)
class CopyObject(ObjectRequest[ObjectInfo]):
    """Copy an object within a service, with its headers and its tags.

    ``if_match`` applies to the source, as in `GetObject`; ``if_absent`` and ``unmarked`` to the copy, as in
    `PutObject`. ``sha256`` (base64) is the source's digest, if the caller knows it: a service that reads and writes the
    bytes itself checks them against it.
    """

    writes: ClassVar[bool] = True
    service: str
    source: str
    key: str
    if_match: str | None = None
    if_absent: str | None = None
    sha256: str | None = None
    unmarked: bool = False


@dataclass(frozen=True, slots=True)
class ImportObject(ObjectRequest[ObjectInfo]):
    """Copy an object from another service on the same server, which moves the bytes itself, replacing any object.

    ``source`` is the object there; the copy has its key, headers and tags. Raises `PreconditionFailedError` if the
    object no longer has this etag. Sent only to a service whose `ServiceTraits` have an ``origin``.
    """

    writes: ClassVar[bool] = True
    service: str
    origin: Origin
    source: ObjectInfo
    tags: Mapping[str, str] = _NONE


@dataclass(frozen=True, slots=True)
class DeleteObject(ObjectRequest[Done]):
    """Delete an object. Deleting a missing object is not an error.

    With ``if_match``, raises `PreconditionFailedError` if the object has another etag.
    """

    writes: ClassVar[bool] = True
    service: str
    key: str
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteObjects(ObjectRequest[DeleteReport]):
    """Delete up to 1,000 objects, each independently."""

    writes: ClassVar[bool] = True
    most: ClassVar[int] = 1000
    service: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BeginUpload(ObjectRequest[Upload]):
    """Begin to upload an object in parts; it will have these headers and tags."""

    writes: ClassVar[bool] = True
    service: str
    key: str
    headers: ObjectHeaders = ObjectHeaders()
    tags: Mapping[str, str] = _NONE


@dataclass(frozen=True, slots=True)
class UploadPart(ObjectRequest[Part]):
    """Upload a part, replacing one with the same number. S3 requires at least 5 MiB for all parts but the last."""

    writes: ClassVar[bool] = True
    service: str
    upload: Upload
    number: int
    body: bytes


@dataclass(frozen=True, slots=True)
class CopyPart(ObjectRequest[Part]):
    """Copy a part from an existing object: ``size`` bytes of it from ``start`` on."""

    writes: ClassVar[bool] = True
    service: str
    upload: Upload
    number: int
    source: str
    start: int
    size: int
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class ListParts(ObjectRequest[PartPage]):
    """List the parts of an upload; raises `ObjectNotFoundError` if the upload does not exist."""

    service: str
    upload: Upload
    after: int | None = None


@dataclass(frozen=True, slots=True)
class ListUploads(ObjectRequest[tuple[Upload, ...]]):
    """List the unfinished uploads whose keys begin with a prefix."""

    service: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class CompleteUpload(ObjectRequest[ObjectInfo]):
    """Make an object of the parts, in their order; ``if_absent`` and ``if_match`` as in `PutObject`.

    ``md5`` and ``sha256`` (base64) are the digests of the whole object, computed by the sender. A service stores them
    with the object if it can, without checking them.
    """

    writes: ClassVar[bool] = True
    service: str
    upload: Upload
    parts: tuple[Part, ...]
    md5: str | None = None
    sha256: str | None = None
    if_absent: str | None = None
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class AbortUpload(ObjectRequest[Done]):
    """Abort an upload and delete its parts. Aborting an upload that no longer exists is not an error."""

    writes: ClassVar[bool] = True
    service: str
    upload: Upload


Checksum: TypeAlias = Literal["md5", "sha256", "crc32c"]
"""The digests that can be computed while bytes are transferred."""
