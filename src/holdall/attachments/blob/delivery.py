"""The headers of files: types that a browser could execute are always served as downloads. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from holdall.attachments.blob.content_type import BINARY
from holdall.attachments.blob.filename import Filename
from holdall.files.upkeep import disposition_of

Disposition: TypeAlias = Literal["inline", "attachment"]

_RUN_BY_BROWSERS = frozenset(
    {
        "text/html",
        "image/svg+xml",
        "application/postscript",
        "application/x-shockwave-flash",
        "text/xml",
        "application/xml",
        "application/xhtml+xml",
        "application/mathml+xml",
        "text/cache-manifest",
    }
)
_SHOWN = frozenset(
    {
        "image/webp",
        "image/avif",
        "image/png",
        "image/gif",
        "image/jpeg",
        "image/tiff",
        "image/bmp",
        "image/vnd.adobe.photoshop",
        "image/vnd.microsoft.icon",
        "application/pdf",
    }
)


class Delivery(NamedTuple):
    """The headers that a file is served with."""

    content_type: str
    disposition: str


def delivery_of(
    content_type: str | None, filename: Filename | str, wanted: Disposition = "inline"
) -> Delivery:
    """The headers for a file; neither ``wanted="inline"`` nor another spelling of its type can loosen the rule."""
    essence = (content_type or BINARY).partition(";")[0].strip().lower()
    kind = BINARY if content_type is None or essence in _RUN_BY_BROWSERS else content_type
    how = wanted if wanted == "attachment" or essence in _SHOWN else "attachment"
    header = disposition_of(how, str(Filename(filename)))
    assert header is not None
    return Delivery(kind, header)


def custom_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The metadata that is sent to the service: what the user passed under ``custom``."""
    custom = metadata.get("custom")
    return (
        {str(name).lower(): str(value) for name, value in custom.items()}
        if isinstance(custom, Mapping)
        else {}
    )
