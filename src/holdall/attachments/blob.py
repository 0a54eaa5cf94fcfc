"""Blobs and attachments as values: what is known of a file, and of its belonging to an owner. They do no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdall.attachments.filename import Filename
from holdall.attachments.home import Owner
from holdall.attachments.record import AttachmentRow, BlobRow
from holdall.errors import AttachmentNotLoadedError

_UNKNOWN: Any = object()


class Blob:
    """A stored file: its name, its type, its size, and where its bytes are. Blobs with the same id are equal.

    ``checksum`` is the MD5 of the bytes in base64, None for a blob composed of others; ``sha256`` is known for files
    that Holdall itself uploaded. ``metadata`` holds what is known about the file, and under ``custom`` what you gave.
    ``attachments_count`` is how many attachments referred to the blob when it was read.
    """

    __slots__ = (
        "attachments_count",
        "byte_size",
        "checksum",
        "content_type",
        "created_at",
        "filename",
        "id",
        "key",
        "metadata",
        "service_name",
        "sha256",
    )
    _locators = "holdall.attachments.locator"

    def __init__(
        self,
        id: str,
        key: str,
        filename: str | Filename,
        content_type: str | None,
        byte_size: int,
        checksum: str | None,
        metadata: Mapping[str, Any],
        service_name: str,
        created_at: datetime | None,
        attachments_count: int,
        sha256: str | None = None,
    ) -> None:
        self.id = id
        self.key = key
        self.filename = Filename(filename)
        self.content_type = content_type
        self.byte_size = byte_size
        self.checksum = checksum
        self.metadata = metadata
        self.service_name = service_name
        self.created_at = created_at
        self.attachments_count = attachments_count
        self.sha256 = sha256

    @classmethod
    def of(cls, row: BlobRow) -> Blob:
        """The blob of a stored row."""
        return cls(
            row.id,
            row.key,
            row.filename,
            row.content_type,
            row.byte_size,
            row.checksum,
            row.metadata,
            row.service_name,
            row.created_at,
            row.count,
            row.sha256,
        )

    @property
    def is_composed(self) -> bool:
        """Whether it was composed of other blobs, so that it has no checksum."""
        return self.metadata.get("composed") is True

    @property
    def is_analyzed(self) -> bool:
        """Whether its bytes have been analysed for metadata."""
        return self.metadata.get("analyzed") is True

    @property
    def is_identified(self) -> bool:
        """Whether its content type has been checked against its bytes."""
        return self.metadata.get("identified") is True

    @property
    def is_image(self) -> bool:
        """Whether it is an image."""
        return self._is("image/")

    @property
    def is_audio(self) -> bool:
        """Whether it is audio."""
        return self._is("audio/")

    @property
    def is_video(self) -> bool:
        """Whether it is video."""
        return self._is("video/")

    @property
    def is_text(self) -> bool:
        """Whether it is text."""
        return self._is("text/")

    def _is(self, kind: str) -> bool:
        return self.content_type is not None and self.content_type.startswith(kind)

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Blob) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Blob({self.id!r}, {str(self.filename)!r}, {self.content_type!r}, {self.byte_size} bytes)"


class Attachment:
    """A blob that an owner has, under a name. Attachments with the same id are equal."""

    __slots__ = ("_owner", "blob", "created_at", "id", "name", "record_id", "record_type")

    def __init__(
        self, id: str, record_type: str, record_id: str, name: str, blob: Blob, created_at: datetime | None
    ) -> None:
        self.id = id
        self.record_type = record_type
        self.record_id = record_id
        self.name = name
        self.blob = blob
        self.created_at = created_at
        self._owner: Any = _UNKNOWN

    @classmethod
    def of(cls, row: AttachmentRow, blob: Blob) -> Attachment:
        """The attachment of a stored row."""
        return cls(row.id, row.record_type, row.record_id, row.name, blob, row.created_at)

    @property
    def owner_key(self) -> Owner:
        """The record type and the id of the owner."""
        return Owner(self.record_type, self.record_id)

    @property
    def owner(self) -> Any:
        """The owner, None if it is gone. It is known if it loaded the attachment, or after ``db.blobs.owners``."""
        if self._owner is _UNKNOWN:
            raise AttachmentNotLoadedError(
                f"the owner of {self!r:.80} is not loaded", hint="load it: db.blobs.owners([attachment, ...])"
            )
        return self._owner

    @owner.setter
    def owner(self, owner: Any) -> None:
        self._owner = owner

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Attachment) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Attachment({self.record_type} {self.record_id}, {self.name!r}, {self.blob!r})"
