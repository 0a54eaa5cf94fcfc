"""The stored records of attachments: Rails' rows byte for byte, and Holdall's own items beside them.

Pure. A *row* (blob, attachment, variant) has exactly the attributes that activestorage-aws-record gives it. The names
of attributes that Holdall adds to a blob's row begin with ``hd_``, and that program ignores them. Holdall's own items
(slot, reference, marker, content) are stored where its queries do not look.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from holdall.attachments.home import Owner
from holdall.core.keys import format_moment
from holdall.core.values import Attribute, decode, encode
from holdall.tables.record import Record
from holdall.tables.record_column import RecordColumn, family, flag, number, text, texts

MOST_REFERENCES = 20
"""The most references that a blob's row holds itself."""


def _parse_moment(stored: str) -> datetime | None:
    try:
        return datetime.fromisoformat(stored).astimezone(UTC)
    except ValueError:
        return None


def _moment(name: str) -> RecordColumn[datetime | None]:
    column: RecordColumn[Any] = text(name, None).through(format_moment, _parse_moment)
    return column


def _decode_metadata(stored: Attribute) -> Any:
    """Metadata as the caller passed it: numbers are int or float, not Decimal."""
    return _to_plain(decode(stored))


def _to_plain(value: Any) -> Any:
    match value:
        case Decimal():
            return float(value)
        case dict():
            return {name: _to_plain(each) for name, each in value.items()}
        case list():
            return [_to_plain(each) for each in value]
    return value


class BlobRow(Record):
    """A file: its description, where its bytes are, and how many attachments refer to it."""

    __slots__ = ()
    id = text("as_id")
    key = text("as_key")
    filename = text("as_filename", "")
    content_type = text("as_content_type", None)
    byte_size = number("as_byte_size", 0)
    checksum = text("as_checksum", None)
    metadata: RecordColumn[Mapping[str, Any]] = RecordColumn("as_metadata", encode, _decode_metadata, {})
    service_name = text("as_service_name")
    created_at = _moment("as_created_at")
    count = number("as_attachments_count", 0)
    entity = text("as_entity", None)
    sha256 = text("hd_sha256", None)
    references = family("hd_ref_", text)
    reference_items = number("hd_reference_items", 0)
    variants = texts("hd_variants")


class AttachmentRow(Record):
    """Records that an owner has a blob under a name."""

    __slots__ = ()
    id = text("as_id")
    record_type = text("as_record_type")
    record_id = text("as_record_id")
    name = text("as_name")
    blob_id = text("as_blob_id")
    created_at = _moment("as_created_at")
    entity = text("as_entity", None)

    @property
    def owner(self) -> Owner:
        """The owner of the attachment."""
        return Owner(self.record_type, self.record_id)


class VariantRow(Record):
    """Records that a variant of a blob was made; its picture is an attachment of this record."""

    __slots__ = ()
    blob_id = text("as_blob_id")
    digest = text("as_variation_digest")
    entity = text("as_entity", None)


class Slot(Record, type="holdall.AttachmentSlot"):
    """Names the attachment of a `has_one_attached`; every change of the attachment changes this item too.

    For a `has_many_attached`, it names the intents that are removing rows; without intents there is no slot.
    """

    __slots__ = ()
    intents = texts("intents")
    attachment_id = text("attachment_id", None)
    blob_id = text("blob_id", None)
    version = number("version", 0)


class Intent(Record, type="holdall.AttachmentIntent"):
    """A part of an intent: the ids of attachments to remove from their owner, and what happens to their blobs.

    ``state`` is the state of the whole intent; only its first part has it: None before the transaction commits,
    ``"kept"`` after it, ``"dropped"`` if it can no longer commit.
    """

    __slots__ = ()
    ids = texts("ids")
    how: RecordColumn[Any] = text("how")
    state = text("state", None)


class ReferenceRecord(Record, type="holdall.BlobReference"):
    """Records that an attachment refers to a blob, if the blob's row is full of references."""

    __slots__ = ()
    attachment_id = text("attachment_id")
    place = text("place")


class UploadRecord(Record, type="holdall.Upload", stamps=True):
    """A file that arrives in several requests: the blob that it will become, and the bytes that have arrived.

    ``multipart`` is the upload in progress in the service, and ``part_size`` the bytes of each of its parts. ``parts``
    are the part numbers that count, as runs: the first and the last of each. ``next_part`` is a number that no request
    has used yet. ``pieces`` are the keys and sizes of the objects with the bytes after the last part, too few for
    another part. Every write increases ``version``, on the condition that it is as it was read.
    """

    __slots__ = ()
    id = text("id")
    key = text("key")
    service = text("service")
    filename = text("filename")
    content_type = text("content_type", None)
    byte_size = number("byte_size")
    checksum = text("checksum", None)
    metadata: RecordColumn[Mapping[str, Any]] = RecordColumn("metadata", encode, _decode_metadata, {})
    created_at = _moment("created_at")
    expires_at: RecordColumn[Any] = _moment("expires_at")
    part_size = number("part_size")
    version = number("version")
    offset = number("offset")
    multipart = text("multipart", None)
    next_part = number("next_part")
    parts: RecordColumn[list[list[int]]] = RecordColumn("parts", encode, decode, [])
    pieces: RecordColumn[list[tuple[str, int]]] = RecordColumn("pieces", encode, decode, [])
    md5 = text("md5", None)
    sha256 = text("sha256", None)
    is_complete = flag("is_complete", False)


class Marker(Record, type="holdall.Unattached"):
    """Records that there may be bytes to which no attachment refers; with ``is_upload``, also an `UploadRecord`."""

    __slots__ = ()
    blob_id = text("blob_id")
    service = text("service")
    key = text("key")
    created_at = _moment("created_at")
    is_upload = flag("is_upload", False)


class Hour(Record, type="holdall.UnattachedHour"):
    """Records that an hour has markers."""

    __slots__ = ()
    hour = text("hour")


class ContentRecord(Record, type="holdall.BlobDigest"):
    """Records which blob has certain bytes."""

    __slots__ = ()
    blob_id = text("blob_id")
