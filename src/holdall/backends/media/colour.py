"""Colours of pictures: modes that every operation can handle, and colour profiles, which are kept or applied."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from PIL import Image

_SPACES = {b"RGB ": ("RGB", "RGBA"), b"GRAY": ("L", "LA"), b"CMYK": ("CMYK",)}


class Palette:
    """How the frames of one picture are converted: to grey or RGB, 8 bits, with alpha only if they have it.

    With ``keep_profile``, the picture keeps its profile if it fits the mode; otherwise the colours are converted to
    sRGB, which is assumed for pictures without a profile.
    """

    def __init__(self, source: Image.Image, *, keep_profile: bool) -> None:
        profile = source.info.get("icc_profile")
        self._profile = profile if isinstance(profile, bytes) and len(profile) >= 128 else None
        self._keep = keep_profile

    def convert(self, frame: Image.Image) -> Image.Image:
        """The frame in one of the supported modes; the frame itself if it already is."""
        if frame.mode == "CMYK" or (self._profile is not None and not self._keep):
            converted = self._apply_profile(frame)
            if converted is not None:
                return converted
        if frame.mode in ("I", "F") or frame.mode.startswith("I;16"):
            return _scale_greys(frame)
        if frame.has_transparency_data:
            return frame if frame.mode in ("RGBA", "LA") else frame.convert("RGBA")
        mode = "L" if frame.mode in ("1", "L") else "RGB"
        return frame if frame.mode == mode else frame.convert(mode)

    def find_profile(self, mode: str) -> bytes | None:
        """The profile for pictures of this mode, if it is kept."""
        if self._profile is None or not self._keep or mode not in _SPACES.get(self._profile[16:20], ()):
            return None
        return self._profile

    def _apply_profile(self, frame: Image.Image) -> Image.Image | None:
        from PIL import ImageCms

        if self._profile is None or frame.mode not in _SPACES.get(self._profile[16:20], ()):
            return None
        mode = "RGBA" if frame.mode == "RGBA" else "RGB"
        try:
            own = ImageCms.ImageCmsProfile(BytesIO(self._profile))
            converted = ImageCms.profileToProfile(frame, own, ImageCms.createProfile("sRGB"), outputMode=mode)
        except (ImageCms.PyCMSError, OSError, ValueError):
            return None  # a broken profile is ignored
        return converted


def flatten(image: Image.Image) -> Image.Image:
    """The picture on white, without alpha."""
    if image.mode not in ("RGBA", "LA"):
        return image
    ground = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB")


def sharpen_alpha(image: Image.Image) -> Image.Image:
    """The picture with pixels that are either transparent or opaque, for a GIF, which would show faint ones as
    opaque."""
    if image.mode not in ("RGBA", "LA"):
        return image
    sharp = image.convert("RGBA")
    sharp.putalpha(sharp.getchannel("A").point(lambda value: 255 if value >= 128 else 0))
    return sharp


def _scale_greys(frame: Image.Image) -> Image.Image:
    """A grey picture of 16 or more bits, reduced to 8 bits."""
    wide = frame.convert("I") if frame.mode.startswith("I;16") else frame
    brightest: Any = wide.getextrema()[1]
    if brightest <= 255:
        return wide.convert("L")
    scale = 1 / 257 if frame.mode != "F" and brightest <= 65535 else 255 / brightest
    return wide.point(lambda value: value * scale + 0).convert("L")
