"""Representations as values: a picture of a blob, and its URL. Pure; `picture` makes the picture itself."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from holdall.attachments.blob.blob import Blob
from holdall.attachments.picture.variant import Variant
from holdall.core.internal import internal
from holdall.errors import InvariableError, UnpreviewableError, UnrepresentableError

if TYPE_CHECKING:
    from holdall.attachments.blob.delivery import Disposition
    from holdall.core.settings import Settings


class Representation:
    """A picture of a file: a variant of a picture, or a preview of a PDF or video. It may not have been made yet.

    ``variant`` is None for a preview in its original size. ``db.blobs.representation(...)`` returns the picture's blob.
    """

    __slots__ = ("_settings", "blob", "variant")

    @internal
    def __init__(self, settings: Settings, blob: Blob, variant: Variant | None) -> None:
        self._settings = settings
        self.blob = blob
        self.variant = variant

    def url(
        self,
        *,
        expires: datetime | None = None,
        disposition: Disposition | None = None,
        proxied: bool = False,
    ) -> str:
        """Return the picture's signed URL in the web application, which makes the picture on the first request.

        With ``proxied=True`` the application sends the bytes itself, instead of redirecting to the service.
        """
        from holdall.attachments.blob.address import url_of

        return url_of(
            self._settings,
            self.blob,
            representation=self,
            expires=expires,
            disposition=disposition,
            proxied=proxied,
        )

    def __repr__(self) -> str:
        return f"Representation({self.blob!r}, {self.variant!r})"


def check_variable(blob: Blob) -> None:
    """Raise `InvariableError` for a file that cannot have variants."""
    if not blob.is_variable:
        raise InvariableError(
            f"{blob!r} cannot have variants: it is not a picture of a supported type",
            hint="check blob.is_variable first",
        )


def check_previewable(blob: Blob) -> None:
    """Raise `UnpreviewableError` for a file that cannot have a preview."""
    if not blob.is_previewable:
        raise UnpreviewableError(
            f"{blob!r} cannot have a preview: it is neither a PDF nor a video",
            hint="check blob.is_previewable first",
        )


def check_representable(blob: Blob) -> None:
    """Raise `UnrepresentableError` for a file that cannot have a variant or a preview."""
    if not blob.is_representable:
        raise UnrepresentableError(
            f"{blob!r} can have neither a variant nor a preview: it is not a picture, a PDF or a video",
            hint="check blob.is_representable first",
        )
