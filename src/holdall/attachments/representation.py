"""Representations as values: which picture of a blob is meant, and its URL. Pure: `picture` makes it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from holdall.attachments.blob import Blob
from holdall.attachments.variant import Variant
from holdall.core.internal import internal
from holdall.errors import InvariableError, UnpreviewableError, UnrepresentableError

if TYPE_CHECKING:
    from holdall.attachments.delivery import Disposition
    from holdall.core.settings import Settings


class Representation:
    """A picture of a file: a variant of a picture, or a preview of a PDF or video. It need not have been made yet.

    ``variant`` is None for a preview as it is drawn. ``db.blobs.representation(...)`` returns the picture's blob.
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
        """The picture's signed URL in the web application, which makes the picture when it is first asked for.

        With ``proxied`` the application sends the bytes itself, instead of redirecting to the service.
        """
        from holdall.attachments.address import url_of

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
    """Refuse a file of which no variant can be made."""
    if not blob.is_variable:
        raise InvariableError(
            f"{blob!r} is not a picture of which a variant can be made", hint="blob.is_variable tells"
        )


def check_previewable(blob: Blob) -> None:
    """Refuse a file of which no preview can be drawn."""
    if not blob.is_previewable:
        raise UnpreviewableError(f"no preview can be drawn of {blob!r}", hint="blob.is_previewable tells")


def check_representable(blob: Blob) -> None:
    """Refuse a file of which there can be no picture."""
    if not blob.is_representable:
        raise UnrepresentableError(f"there can be no picture of {blob!r}", hint="blob.is_representable tells")
