"""Opening pictures: with exactly one format, a limit on their pixels, and their orientation."""

from __future__ import annotations

import warnings
from typing import Any

from PIL import Image

from holdall.backends.media.format import READ
from holdall.core.media import ProbeMedia
from holdall.errors import MediaLimitError, UnsupportedMediaError

ORIENTATION = 0x0112
"""The EXIF tag."""


def open_image(path: str, content_type: str, most: int | None = None) -> Image.Image:
    """The picture, with only its header read; ``most`` limits its pixels, and those of nested pictures."""
    if content_type not in READ:
        raise UnsupportedMediaError("is not supported")
    warnings.simplefilter("ignore")  # about oddities in files, which the user cannot change
    Image.MAX_IMAGE_PIXELS = None if most is None else most // 2  # up to twice that, Pillow only warns
    image = Image.open(path, formats=(READ[content_type],))
    if most is not None:
        check_pixels(*image.size, most)
    return image


def check_pixels(width: int, height: int, most: int, frames: int = 1) -> None:
    """Refuse a picture that is too large, before memory is allocated for it."""
    if width * height * frames > most:
        each = f" in each of {frames} frames" if frames > 1 else ""
        raise MediaLimitError(f"has {width} × {height} pixels{each}, more than the limit of {most:,}")


def read_exif(image: Image.Image) -> Image.Exif:
    """The picture's EXIF data; empty if it cannot be read."""
    try:
        return image.getexif()
    except Exception:  # noqa: BLE001 - its parser raises anything; the picture itself may be fine
        return Image.Exif()


def read_orientation(image: Image.Image) -> int:
    """How the picture must be rotated or flipped for display, 1 to 8 as in EXIF; 1 means not at all."""
    if image.format in ("TIFF", "HEIF"):  # Pillow rotates these by itself
        return 1
    found = read_exif(image).get(ORIENTATION, 1)
    return found if found in range(1, 9) else 1


def probe_image(request: ProbeMedia) -> dict[str, Any]:
    """The width and height of the picture as displayed."""
    with open_image(request.path, request.content_type) as image:
        width, height = image.size
        if read_orientation(image) >= 5:
            width, height = height, width
        return {"width": width, "height": height}
