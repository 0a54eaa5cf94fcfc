"""Attachments as values: an owner's blob, and its URLs in the web application. They do no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdall.attachments.blob.address import url_of
from holdall.attachments.blob.blob import Blob
from holdall.attachments.home import Owner
from holdall.attachments.picture.derived import find_source
from holdall.attachments.picture.representation import (
    Representation,
    check_previewable,
    check_representable,
    check_variable,
)
from holdall.attachments.picture.variant import Variant
from holdall.attachments.record import AttachmentRow
from holdall.core.internal import internal
from holdall.core.settings import Settings
from holdall.errors import AttachmentNotLoadedError, InvalidOptionsError, RecordNotFound

if TYPE_CHECKING:
    from holdall.attachments.blob.delivery import Disposition

_UNKNOWN: Any = object()


class Attachment:
    """A blob that belongs to an owner under a name. Attachments with the same id are equal."""

    __slots__ = (
        "_owner",
        "_settings",
        "_variants",
        "blob",
        "created_at",
        "id",
        "name",
        "record_id",
        "record_type",
    )

    def __init__(
        self,
        id: str,
        record_type: str,
        record_id: str,
        name: str,
        blob: Blob,
        created_at: datetime | None,
        settings: Settings,
    ) -> None:
        self.id = id
        self.record_type = record_type
        self.record_id = record_id
        self.name = name
        self.blob = blob
        self.created_at = created_at
        self._owner: Any = _UNKNOWN
        self._settings = settings
        self._variants: Mapping[str, Variant] = {}

    @classmethod
    @internal
    def of(cls, settings: Settings, row: AttachmentRow, blob: Blob) -> Attachment:
        """The attachment of a stored row."""
        return cls(row.id, row.record_type, row.record_id, row.name, blob, row.created_at, settings)

    @property
    def owner_key(self) -> Owner:
        """The record type and the id of the owner."""
        return Owner(self.record_type, self.record_id)

    @property
    def source_id(self) -> str | None:
        """The id of the blob that this picture was made of, a preview or a variant; None for an owner's file."""
        try:
            return find_source(self.owner_key)
        except RecordNotFound:
            return None

    @property
    def owner(self) -> Any:
        """The owner; None if it no longer exists.

        Available if the attachment was loaded with its owner, or after ``db.blobs.owners``; otherwise
        `AttachmentNotLoadedError`.
        """
        if self._owner is _UNKNOWN:
            raise AttachmentNotLoadedError(
                f"the owner of {self!r:.80} is not loaded",
                hint="load it with db.blobs.owners([attachment, ...])",
            )
        return self._owner

    @internal
    def belong(self, owner: Any, variants: Mapping[str, Variant]) -> None:
        """Set the owner, and the named variants that its class declares."""
        self._owner, self._variants = owner, variants

    def url(
        self,
        *,
        expires: datetime | None = None,
        disposition: Disposition | None = None,
        proxied: bool = False,
    ) -> str:
        """Return the file's signed URL in the web application.

        With ``proxied=True`` the application sends the bytes itself, instead of redirecting to the service.
        """
        return url_of(self._settings, self.blob, expires=expires, disposition=disposition, proxied=proxied)

    def variant(self, variant: Variant | str) -> Representation:
        """Return a variant of the picture: a `Variant`, or the name under which the owner's class declares it."""
        check_variable(self.blob)
        return Representation(self._settings, self.blob, self._find_variant(variant))

    def preview(self, variant: Variant | str | None = None) -> Representation:
        """Return the preview of the PDF or video, or a variant of the preview."""
        check_previewable(self.blob)
        return Representation(
            self._settings, self.blob, None if variant is None else self._find_variant(variant)
        )

    def representation(self, variant: Variant | str) -> Representation:
        """Return a variant of the picture, or of the preview of the PDF or video."""
        check_representable(self.blob)
        return Representation(self._settings, self.blob, self._find_variant(variant))

    def _find_variant(self, variant: Variant | str) -> Variant:
        if isinstance(variant, Variant):
            return variant
        found = self._variants.get(variant)
        if found is None:
            known = ", ".join(self._variants) or "none"
            raise InvalidOptionsError(
                f"{self.name} does not declare a variant {variant!r:.60}", hint=f"declared variants: {known}"
            )
        return found

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Attachment) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Attachment({self.record_type} {self.record_id}, {self.name!r}, {self.blob!r})"
