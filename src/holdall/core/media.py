"""Requests about pictures, films, sound and documents, and what comes back. Pure.

Paths are files on this machine. The work is done in a child process with limits, because the content cannot be
trusted: a file that crashes, hangs or fills the memory ends its own call, with a `MediaError`. ``content_type`` picks
the parser, so it has to be the type that the bytes say, not the one that a sender declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from holdall.core.frozen import dataclass
from holdall.core.requests import Destination, Request


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """How much one file may cost; what needs more ends in a `MediaLimitError`.

    ``pixels`` bounds a picture before it is decoded (all frames of an animation together), and what is made of it;
    ``memory`` and ``output`` are bytes, ``seconds`` is time of the processor.
    """

    pixels: int = 100_000_000
    memory: int = 1 << 30
    seconds: float = 30.0
    output: int = 100_000_000


LIMITS = MediaLimits()
"""What a file may cost unless a request says otherwise."""

PICTURE_TYPES = frozenset(
    f"image/{each}"
    for each in (
        *("png", "gif", "jpeg", "tiff", "bmp", "webp", "avif", "heic", "heif"),
        *("vnd.adobe.photoshop", "vnd.microsoft.icon"),
    )
)
"""Pictures that are read."""
FILM_TYPES = frozenset(
    f"video/{each}"
    for each in ("mp4", "x-m4v", "quicktime", "webm", "x-matroska", "ogg", "x-msvideo", "mpeg")
)
"""Films that are read."""
SOUND_TYPES = frozenset(f"audio/{each}" for each in ("mp4", "webm", "ogg", "mpeg", "wav", "flac", "aac"))
"""Sound that is read."""
PDF = "application/pdf"

PICTURE_FORMATS = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "jpe": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "tiff": "image/tiff",
    "tif": "image/tiff",
    "bmp": "image/bmp",
}
"""The pictures that can be made: their types, by the extension of their files."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that was written: its size in pixels, and its type."""

    width: int
    height: int
    content_type: str


@dataclass(frozen=True, slots=True)
class ProbeMedia(Request[Mapping[str, Any]]):
    """What a file says about itself, without decoding it: only what is known is in the mapping.

    - a picture: ``width`` and ``height``, as it is shown;
    - a film: these, ``duration`` in seconds, ``angle``, ``display_aspect_ratio`` ([16, 9]), and whether there is
      ``audio`` and ``video``;
    - sound: ``duration``, ``bit_rate``, ``sample_rate`` and ``tags``;
    - a PDF document: ``pages``.
    """

    destination: ClassVar[Destination] = "media"
    path: str
    content_type: str
    limits: MediaLimits = LIMITS


@dataclass(frozen=True, slots=True)
class TransformImage(Request[Picture]):
    """Make a picture of another, and write it to ``target``; after an error there is nothing at ``target``.

    ``operations`` are (name, argument) in the order in which they are done; ``format`` is a file's extension.
    """

    destination: ClassVar[Destination] = "media"
    path: str
    target: str
    content_type: str
    operations: tuple[tuple[str, Any], ...]
    format: str
    limits: MediaLimits = LIMITS


@dataclass(frozen=True, slots=True)
class DrawPreview(Request[Picture]):
    """Write a picture of a document's first page (PNG) or a film's first frame (JPEG) to ``target``.

    After an error there is nothing at ``target``.
    """

    destination: ClassVar[Destination] = "media"
    path: str
    target: str
    content_type: str
    limits: MediaLimits = LIMITS
