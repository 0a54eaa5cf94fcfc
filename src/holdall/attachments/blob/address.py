"""The format of the web application's URLs for files. Pure. A URL is valid only with a signed id in it.

<path>/blobs/<signed id>/<filename>                                   the file, as a redirect to its service
<path>/blobs/proxy/<signed id>/<filename>                             the file, through the application
<path>/representations/<signed id>/<variation>/<filename>             a variant or preview of it
<path>/representations/proxy/<signed id>/<variation>/<filename>
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.delivery import Disposition
from holdall.attachments.blob.signed_id import Purpose, sign_id, verify_id
from holdall.attachments.picture.representation import Representation
from holdall.attachments.picture.variant import Variant, pack_variant, unpack_variant
from holdall.attachments.settings import attachment_settings
from holdall.core.frozen import dataclass
from holdall.core.settings import Settings


@dataclass(frozen=True, slots=True)
class FileAddress:
    """The parts of a URL: a signed id, the signed variation if it is of a representation, and the file's name."""

    signed_id: str
    filename: str
    variation: str | None = None
    proxied: bool = False


@dataclass(frozen=True, slots=True)
class SignedFile:
    """The file that a URL identifies: a blob, or a picture of it.

    ``proxied``: the application sends the bytes itself, instead of redirecting to the service. ``expires_in`` is how
    long the URL remains valid; None if it never expires.
    """

    blob: Blob
    representation: Representation | None
    proxied: bool
    expires_in: timedelta | None


def format_address(path: str, address: FileAddress) -> str:
    """Format the path of a URL."""
    kind = "blobs" if address.variation is None else "representations"
    parts = [kind, *(["proxy"] if address.proxied else []), address.signed_id]
    parts += [] if address.variation is None else [address.variation]
    return "/".join([path, *(quote(part, safe="") for part in (*parts, address.filename))])


def parse_address(path: str, given: str) -> FileAddress | None:
    """Parse the path of a URL; None if it is not a URL of files. ``redirect`` may be part of it, as in Rails."""
    if not given.startswith(f"{path}/"):
        return None
    kind, *parts = (unquote(part) for part in given.removeprefix(f"{path}/").split("/"))
    proxied = parts[:1] == ["proxy"]
    parts = parts[parts[:1] in (["proxy"], ["redirect"]) :]
    if kind == "blobs" and len(parts) == 2 and all(parts):
        return FileAddress(parts[0], parts[1], None, proxied)
    if kind == "representations" and len(parts) == 3 and all(parts):
        return FileAddress(parts[0], parts[2], parts[1], proxied)
    return None


def sign_with(settings: Settings, data: Any, purpose: Purpose, expires: datetime | None = None) -> str:
    """Sign an id, or any JSON, with the database's secret and in its form."""
    form = attachment_settings(settings).signed_ids
    return sign_id(settings.secret, data, purpose=purpose, expires=expires, form=form)


def verify_with(settings: Settings, text: str, purpose: Purpose, now: datetime) -> Any:
    """Return what `sign_with` signed; `InvalidTokenError` if it was forged, has expired, or is for another purpose."""
    form = attachment_settings(settings).signed_ids
    return verify_id(settings.secret, text, purpose=purpose, now=now, form=form)


def sign_variation(settings: Settings, variant: Variant | None) -> str:
    """The part of a URL that identifies the variant; None for a preview in its original size."""
    packed: Mapping[str, Any] = {} if variant is None else pack_variant(variant)
    if variant is not None and attachment_settings(settings).signed_ids == "rails":
        packed = dict(variant.transformations)  # Rails does not use symbols in its URLs
    return sign_with(settings, packed, "variation")


def verify_variation(settings: Settings, text: str, now: datetime) -> Variant | None:
    """The variant that a part of a URL identifies; `InvalidTokenError` or `InvalidOptionsError` if there is none."""
    packed = verify_with(settings, text, "variation", now)
    return unpack_variant(packed) if packed else None


def url_of(
    settings: Settings,
    blob: Blob,
    *,
    representation: Representation | None = None,
    expires: datetime | None = None,
    disposition: Disposition | None = None,
    proxied: bool = False,
) -> str:
    """The URL of a blob, or of a picture of it, in the web application."""
    signed = sign_with(settings, blob.id, "blob", expires)
    variation = None if representation is None else sign_variation(settings, representation.variant)
    address = FileAddress(signed, str(blob.filename), variation, proxied)
    url = format_address(attachment_settings(settings).path, address)
    return url if disposition is None else f"{url}?disposition={disposition}"
