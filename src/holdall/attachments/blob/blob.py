"""Blobs as values: what is known about a stored file. They do no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdall.attachments.blob.content_type import is_previewable
from holdall.attachments.blob.delivery import Delivery, Disposition, delivery_of
from holdall.attachments.blob.filename import Filename
from holdall.attachments.record import BlobRow
from holdall.core.internal import internal
from holdall.core.media import PICTURE_TYPES


class Blob:
    """A stored file: its name, type and size, and where its bytes are. Blobs with the same id are equal.

    ``checksum`` is the MD5 of the bytes in base64; None for a blob composed of others. ``sha256`` is known for files
    that Holdall itself uploaded. ``metadata`` has what you passed and what analysis found; entries under ``custom`` are
    also stored with the object in the service. ``attachments_count`` is how many attachments referred to the blob when
    it was read.
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
    @internal
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
        """Whether it was composed of other blobs; then it has no checksum."""
        return self.metadata.get("composed") is True

    @property
    def is_analyzed(self) -> bool:
        """Whether its bytes have been analyzed for metadata."""
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

    @property
    def is_variable(self) -> bool:
        """Whether variants can be made of it, because it is a picture."""
        return self.content_type in PICTURE_TYPES

    @property
    def is_previewable(self) -> bool:
        """Whether a preview can be made of it, because it is a PDF or video."""
        return is_previewable(self.content_type)

    @property
    def is_representable(self) -> bool:
        """Whether a variant or a preview can be made of it."""
        return self.is_variable or self.is_previewable

    def delivery(self, disposition: Disposition = "inline") -> Delivery:
        """Return the headers to serve it with; types that a browser could execute are always served as downloads."""
        return delivery_of(self.content_type, self.filename, disposition)

    def _is(self, kind: str) -> bool:
        return self.content_type is not None and self.content_type.startswith(kind)

    def _holdall_locator(self) -> str:
        """The text that stands for this blob in the arguments of a job."""
        return f"blob:{self.id}"

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Blob) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Blob({self.id!r}, {str(self.filename)!r}, {self.content_type!r}, {self.byte_size} bytes)"
