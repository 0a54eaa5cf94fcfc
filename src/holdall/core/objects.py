"""Objects: what is asked of the services that keep bytes, as frozen values, and what they answer.

Pure. A service (`holdall.backends`: disk, memory, S3) answers these as a store of tables answers its requests. Bytes
travel in pieces that fit into memory: a larger object is uploaded in parts and read in ranges, so nothing here holds a
stream or a connection.

How writes are repeated after a lost reply: a put of the same bytes under the same key may be sent again. One that must
not replace anything (``if_absent``) leaves its id with the object, by which a refused repetition is told from
somebody else's object. One that replaces a certain object (``if_match``) has the service leave an id of its own.

Tags are apart from the headers: they are told only to who asks for them, and a copy has those of its source.
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
    """The base of all requests to a service; ``service`` is its name in the database's registry."""

    __slots__ = ()
    destination: ClassVar[Destination] = "service"
    service: str


# --- what objects are -------------------------------------------------------------------------------------


class _NoMetadata(dict[str, str]):
    """No metadata, or no tags; never changed, which its having a hash says."""

    __hash__ = object.__hash__  # type: ignore[assignment]


_NONE = _NoMetadata()


@dataclass(frozen=True, slots=True)
class ObjectHeaders:
    """What an object is kept with, and served with. Names of metadata are lower case."""

    content_type: str | None = None
    disposition: str | None = None
    cache_control: str | None = None
    metadata: Mapping[str, str] = _NONE


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object without its bytes.

    ``etag`` changes whenever the bytes do. ``md5``, ``sha256`` and ``crc32c`` are digests in base64 where they are
    known; ``put_id`` is what a put with ``if_absent`` left, or an id of the service's own that one with ``if_match``
    left. ``parts`` is the number of parts in which the object was uploaded, if the etag is the MD5 of their MD5s; the
    service then answers `MeasurePart`.
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
    """Some or all bytes of an object, from ``start`` on; ``info.size`` is that of the whole."""

    info: ObjectInfo
    start: int
    body: bytes


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object as it stands in a listing."""

    key: str
    size: int
    etag: str
    modified: datetime


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """Part of a listing, in the order of the keys' bytes. ``next`` asks for what follows, None at the end."""

    objects: tuple[ListedObject, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class DeleteReport:
    """What became of several deletions: the keys that could not be deleted, each with why."""

    failures: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload in parts that is under way. Nothing of it can be seen until it is completed."""

    key: str
    id: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part that was uploaded, numbered from 1."""

    number: int
    etag: str
    size: int


@dataclass(frozen=True, slots=True)
class PartPage:
    """The parts that an upload has so far; ``next`` asks for what follows."""

    parts: tuple[Part, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class SignedUrl:
    """A URL that needs no credentials, and the headers that have to be sent with it, exactly so."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ServiceTraits:
    """How a service wants to be treated: what is larger than ``single_put`` bytes comes in parts of ``part_size`` or
    more (the last may be smaller), ``parallel`` of them at a time. ``public``: its URLs need no signature. ``mirrors``
    are the names of the services that should have all that it has. ``place`` names its bucket or directory in
    messages. Keys have up to ``max_key`` bytes."""

    single_put: int = 8 * 1024**2
    part_size: int = 8 * 1024**2
    parallel: int = 1
    public: bool = False
    mirrors: tuple[str, ...] = ()
    place: str = ""
    max_key: int = 1024


# --- reads ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DescribeService(ObjectRequest[ServiceTraits]):
    """Ask how the service wants to be treated; it is answered without sending anything."""

    service: str


@dataclass(frozen=True, slots=True)
class HeadObject(ObjectRequest[ObjectInfo]):
    """Ask about an object; `ObjectNotFoundError` when there is none."""

    service: str
    key: str


@dataclass(frozen=True, slots=True)
class GetObject(ObjectRequest[ObjectRange]):
    """Read an object, or ``size`` bytes of it from ``start`` on (fewer at its end, none beyond it).

    With ``if_match`` only if its etag is still that one: `PreconditionFailedError` otherwise.
    """

    service: str
    key: str
    start: int = 0
    size: int | None = None
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class MeasurePart(ObjectRequest[int | None]):
    """Ask for the size of the parts in which an object was uploaded; None if the service does not know."""

    service: str
    key: str
    number: int
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class GetTags(ObjectRequest[Mapping[str, str]]):
    """Ask for the tags of an object; `ObjectNotFoundError` when there is none."""

    service: str
    key: str


@dataclass(frozen=True, slots=True)
class ListObjects(ObjectRequest[ObjectPage]):
    """List the objects whose keys begin with a prefix, up to ``limit`` of them."""

    most: ClassVar[int] = 1000
    service: str
    prefix: str = ""
    after: str | None = None
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class SignUrl(ObjectRequest[SignedUrl]):
    """Sign a URL: to get an object (with how it is to be served), or to put one of exactly these bytes.

    ``size``, ``md5`` (base64) and the content type bind an upload: the service refuses any other.
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
    """Keep bytes under a key, in place of whatever is there.

    ``md5`` and ``sha256`` (base64) are what the bytes must have: `IntegrityError`, and nothing is kept, otherwise.
    ``if_absent`` is an id, and demands that there is no object yet: `PreconditionFailedError` otherwise. ``if_match``
    demands that there is the object with this etag, and is refused likewise; not both at once. ``unmarked``: the id of
    ``if_absent`` is not left with the object, so a repetition after a lost reply is refused like any other put.
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
    """Copy an object within a service, with its headers and its tags; ``if_match`` as for a get, ``if_absent`` as for
    a put. ``sha256`` (base64) is its digest, for who knows it: where the bytes pass through here, it vouches for
    them. ``unmarked``: it leaves no id with what it creates, so that a repetition after a lost reply is refused like
    any other.
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
class DeleteObject(ObjectRequest[Done]):
    """Delete an object; one that is missing is no error.

    With ``if_match`` only if its etag is that one: `PreconditionFailedError` when it is another.
    """

    writes: ClassVar[bool] = True
    service: str
    key: str
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteObjects(ObjectRequest[DeleteReport]):
    """Delete up to 1,000 objects, each for itself."""

    writes: ClassVar[bool] = True
    most: ClassVar[int] = 1000
    service: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BeginUpload(ObjectRequest[Upload]):
    """Begin an upload in parts, of an object with these headers and tags."""

    writes: ClassVar[bool] = True
    service: str
    key: str
    headers: ObjectHeaders = ObjectHeaders()
    tags: Mapping[str, str] = _NONE


@dataclass(frozen=True, slots=True)
class UploadPart(ObjectRequest[Part]):
    """Upload a part; one of the same number is replaced. All but the last have 5 MiB or more, where S3 is strict."""

    writes: ClassVar[bool] = True
    service: str
    upload: Upload
    number: int
    body: bytes


@dataclass(frozen=True, slots=True)
class CopyPart(ObjectRequest[Part]):
    """Take a part from an object that is there: ``size`` bytes of it from ``start`` on."""

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
    """Ask which parts an upload has; `ObjectNotFoundError` when there is no such upload."""

    service: str
    upload: Upload
    after: int | None = None


@dataclass(frozen=True, slots=True)
class ListUploads(ObjectRequest[tuple[Upload, ...]]):
    """Ask which uploads of keys with a prefix are under way."""

    service: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class CompleteUpload(ObjectRequest[ObjectInfo]):
    """Make the object of the parts, in their order; ``if_absent`` and ``if_match`` as for a put.

    ``md5`` and ``sha256`` (base64) are those of the whole, taken by whoever sent the parts on their way: a service
    keeps them with the object where it can, and takes them as given.
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
    """Give an upload up, with all its parts; one that is gone is no error."""

    writes: ClassVar[bool] = True
    service: str
    upload: Upload


Checksum: TypeAlias = Literal["md5", "sha256", "crc32c"]
"""The digests that can be taken of bytes on their way."""
