"""Pictures as they are opened: by exactly one format, with a bound on their pixels, the right way up."""

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
    """The picture, of which only the head has been read; ``most`` bounds its pixels, and those of pictures inside."""
    if content_type not in READ:
        raise UnsupportedMediaError("has no reader")
    warnings.simplefilter("ignore")  # about oddities in files, for people who cannot do anything about them
    Image.MAX_IMAGE_PIXELS = None if most is None else most // 2  # up to twice that, Pillow only warns
    image = Image.open(path, formats=(READ[content_type],))
    if most is not None:
        check_pixels(*image.size, most)
    return image


def check_pixels(width: int, height: int, most: int, frames: int = 1) -> None:
    """Refuse a picture of this size before there is memory for it."""
    if width * height * frames > most:
        size = f"{width} × {height}" + (f" × {frames} frames" if frames > 1 else "")
        raise MediaLimitError(f"has {size} pixels, more than {most}")


def read_exif(image: Image.Image) -> Image.Exif:
    """What a camera wrote into the picture; nothing if that cannot be read."""
    try:
        return image.getexif()
    except Exception:  # noqa: BLE001 - its parser raises anything; the picture itself may be fine
        return Image.Exif()


def read_orientation(image: Image.Image) -> int:
    """How the picture has to be turned to be shown, 1 to 8 as EXIF counts; 1 is: not at all."""
    if image.format in ("TIFF", "HEIF"):  # Pillow turns these by itself
        return 1
    found = read_exif(image).get(ORIENTATION, 1)
    return found if found in range(1, 9) else 1


def probe_image(request: ProbeMedia) -> dict[str, Any]:
    """Width and height as the picture is shown."""
    with open_image(request.path, request.content_type) as image:
        width, height = image.size
        if read_orientation(image) >= 5:
            width, height = height, width
        return {"width": width, "height": height}
