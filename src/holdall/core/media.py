"""Requests to read pictures, films, sound and documents, and their replies. Pure.

Paths are files on this machine. A child process with limits does the work, because the content cannot be
trusted: a file that crashes, hangs or exhausts memory fails only its own call, with a `MediaError`. ``content_type``
selects the parser, so it must be the type found in the bytes, not the one that a client declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from holdall.core.frozen import dataclass
from holdall.core.requests import Destination, Request


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """The resources that one file may use; a file that needs more raises `MediaLimitError`.

    ``pixels`` limits a picture before it is decoded (all frames of an animation together), and the pictures made from
    it. ``memory`` and ``output`` are in bytes, ``seconds`` is processor time.
    """

    pixels: int = 100_000_000
    memory: int = 1 << 30
    seconds: float = 30.0
    output: int = 100_000_000


LIMITS = MediaLimits()
"""The default limits."""

PICTURE_TYPES = frozenset(
    f"image/{each}"
    for each in (
        *("png", "gif", "jpeg", "tiff", "bmp", "webp", "avif", "heic", "heif"),
        *("vnd.adobe.photoshop", "vnd.microsoft.icon"),
    )
)
"""The types of pictures that Holdall reads."""
FILM_TYPES = frozenset(
    f"video/{each}"
    for each in ("mp4", "x-m4v", "quicktime", "webm", "x-matroska", "ogg", "x-msvideo", "mpeg")
)
"""The types of films that Holdall reads."""
SOUND_TYPES = frozenset(f"audio/{each}" for each in ("mp4", "webm", "ogg", "mpeg", "wav", "flac", "aac"))
"""The types of sound that Holdall reads."""
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
"""The picture formats that Holdall writes: their types by file extension."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that was written: its size in pixels and its type."""

    width: int
    height: int
    content_type: str


@dataclass(frozen=True, slots=True)
class ProbeMedia(Request[Mapping[str, Any]]):
    """Read a file's metadata without decoding the file. The mapping contains only what is known.

    - a picture: ``width`` and ``height``, as displayed;
    - a film: the same, ``duration`` in seconds, ``angle``, ``display_aspect_ratio`` ([16, 9]), and whether it has
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
    """Transform a picture and write the result to ``target``. After an error, ``target`` does not exist.

    ``operations`` are (name, argument) pairs, applied in order; ``format`` is a file extension.
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

    After an error, ``target`` does not exist.
    """

    destination: ClassVar[Destination] = "media"
    path: str
    target: str
    content_type: str
    limits: MediaLimits = LIMITS
