"""Media requests about given bytes, in a folder of the test."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from holdall.backends.media.delivery import deliver_blocking
from holdall.core.media import LIMITS, DrawPreview, MediaLimits, Picture, ProbeMedia, TransformImage


class Studio:
    """A folder with one source file, and one target file that is made from it."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "source"
        self.target = folder / "target"

    def probe(self, data: bytes, content_type: str, limits: MediaLimits = LIMITS) -> dict[str, Any]:
        self.source.write_bytes(data)
        found = deliver_blocking(ProbeMedia(str(self.source), content_type, limits))
        return dict(found)

    def transform(
        self,
        data: bytes,
        content_type: str,
        *operations: tuple[str, Any],
        format: str = "png",
        limits: MediaLimits = LIMITS,
    ) -> Image.Image:
        """Transform the picture and return the opened result."""
        self.source.write_bytes(data)
        request = TransformImage(str(self.source), str(self.target), content_type, operations, format, limits)
        return self._open(deliver_blocking(request))

    def preview(self, data: bytes, content_type: str, limits: MediaLimits = LIMITS) -> Image.Image:
        self.source.write_bytes(data)
        request = DrawPreview(str(self.source), str(self.target), content_type, limits)
        return self._open(deliver_blocking(request))

    def _open(self, picture: Picture) -> Image.Image:
        image = Image.open(BytesIO(self.target.read_bytes()))
        assert (image.size, Image.MIME[image.format or ""]) == (
            (picture.width, picture.height),
            picture.content_type,
        )
        return image


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    return Studio(tmp_path)


def name_colour(image: Image.Image, x: float, y: float) -> str:
    """Name the colour at a place that is given in fractions of the sides."""
    shown = image.convert("RGBA")
    pixel: Any = shown.getpixel((int(x * (shown.width - 1)), int(y * (shown.height - 1))))
    if pixel[3] < 128:
        return "clear"
    near = {"white": (255, 255, 255), "red": (255, 0, 0), "blue": (0, 0, 255), "green": (0, 128, 0)}
    return min(near, key=lambda name: sum(abs(a - b) for a, b in zip(near[name], pixel, strict=False)))


def corners(image: Image.Image) -> list[str]:
    """Name the colours near the corners, row by row."""
    return [name_colour(image, x, y) for y in (0.1, 0.9) for x in (0.1, 0.9)]
