"""Operations on a picture: each takes a picture, its nominal size, its argument, and the most pixels it may have.

A JPEG is decoded at a reduced size if that is enough. So the first operation computes with the size of the whole
picture, and applies the result to the pixels that were decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, cos, floor, radians, sin
from typing import Any, TypeAlias

from PIL import Image, ImageColor

from holdall.backends.media.image import check_pixels
from holdall.errors import InvalidOptionsError

Size: TypeAlias = tuple[int, int]
Operation: TypeAlias = Callable[[Image.Image, Size, Any, int], Image.Image]

_CLEAR = (255, 255, 255, 0)  # white, for formats without alpha
_GAP = 3.0
_PLACES = {"west": 0.0, "north": 0.0, "low": 0.0, "east": 1.0, "south": 1.0, "high": 1.0}


def measure_scale(name: str, argument: Any, size: Size) -> float:
    """By which factor an operation shrinks a picture; 1 if it does not."""
    if not name.startswith("resize_"):
        return 1.0
    width, height, _ = _read_argument(argument)
    return min(1.0, _fit(size, width, height, max if name == "resize_to_fill" else min))


def resize_to_limit(image: Image.Image, size: Size, argument: Any, most: int) -> Image.Image:
    """Shrink the picture until it fits; smaller pictures stay as they are."""
    width, height, _ = _read_argument(argument)
    return _scale(image, size, min(1.0, _fit(size, width, height, min)), most)


def resize_to_fit(image: Image.Image, size: Size, argument: Any, most: int) -> Image.Image:
    """Scale the picture to the largest size that fits."""
    width, height, _ = _read_argument(argument)
    return _scale(image, size, _fit(size, width, height, min), most)


def resize_to_fill(image: Image.Image, size: Size, argument: Any, most: int) -> Image.Image:
    """Scale the picture to exactly this size, and crop what exceeds it; ``gravity`` is the part that is kept."""
    width, height, options = _read_argument(argument)
    if width is None or height is None:
        return _scale(image, size, _fit(size, width, height, min), most)
    check_pixels(width, height, most)
    scale = _fit(size, width, height, max)
    part = (min(1.0, width / (size[0] * scale)), min(1.0, height / (size[1] * scale)))
    left, top = ((1 - each) * place for each, place in zip(part, _read_gravity(options), strict=True))
    box = (
        left * image.width,
        top * image.height,
        min(1.0, left + part[0]) * image.width,
        min(1.0, top + part[1]) * image.height,
    )
    return image.resize((width, height), Image.Resampling.LANCZOS, box, reducing_gap=_GAP)


def resize_and_pad(image: Image.Image, size: Size, argument: Any, most: int) -> Image.Image:
    """Scale the picture to the largest size that fits, on a ``background`` of exactly this size."""
    width, height, options = _read_argument(argument)
    fitted = _scale(image, size, _fit(size, width, height, min), most)
    goal = (width or fitted.width, height or fitted.height)
    if fitted.size == goal:
        return fitted
    check_pixels(*goal, most)
    colour = _read_colour(options.get("background"))
    place = [
        floor((whole - own) * gravity)
        for whole, own, gravity in zip(goal, fitted.size, _read_gravity(options), strict=True)
    ]
    ground = Image.new("RGBA", goal, colour)
    ground.alpha_composite(fitted.convert("RGBA"), (place[0], place[1]))
    return ground.convert("RGB") if colour[3] == 255 else ground


def crop(image: Image.Image, size: Size, argument: Any, most: int) -> Image.Image:
    """The part at (left, top) of this (width, height), as far as the picture reaches."""
    left, top, width, height = argument
    if left >= image.width or top >= image.height:
        raise InvalidOptionsError(
            f"has {image.width} × {image.height} pixels, so nothing of it is in the crop"
        )
    return image.crop((left, top, min(left + width, image.width), min(top + height, image.height)))


def rotate(image: Image.Image, size: Size, argument: Any, most: int) -> Image.Image:
    """Rotate the picture clockwise; new corners are transparent."""
    angle = argument % 360
    turns = {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_90}
    if angle == 0:
        return image
    if angle in turns:
        return image.transpose(turns[angle])
    across, up = abs(cos(radians(angle))), abs(sin(radians(angle)))
    width, height = image.width * across + image.height * up, image.width * up + image.height * across
    check_pixels(ceil(width), ceil(height), most)
    turned = image.convert("RGBA")
    return turned.rotate(-angle, Image.Resampling.BICUBIC, expand=True, fillcolor=_CLEAR)


OPERATIONS: dict[str, Operation] = {
    "resize_to_limit": resize_to_limit,
    "resize_to_fit": resize_to_fit,
    "resize_to_fill": resize_to_fill,
    "resize_and_pad": resize_and_pad,
    "crop": crop,
    "rotate": rotate,
}
"""The operations, by the names that variants use."""


def _read_argument(argument: Sequence[Any]) -> tuple[int | None, int | None, Mapping[str, Any]]:
    width, height, *options = argument
    return width, height, options[0] if options else {}


def _fit(size: Size, width: int | None, height: int | None, choose: Callable[[list[float]], float]) -> float:
    """The factor by which a picture must be scaled so that its sides, or the one given, have this length."""
    return choose([goal / side for goal, side in zip((width, height), size, strict=True) if goal is not None])


def _scale(image: Image.Image, size: Size, factor: float, most: int) -> Image.Image:
    goal = (max(1, round(size[0] * factor)), max(1, round(size[1] * factor)))
    check_pixels(*goal, most)
    if goal == image.size:
        return image
    return image.resize(goal, Image.Resampling.LANCZOS, reducing_gap=_GAP)


def _read_gravity(options: Mapping[str, Any]) -> tuple[float, float]:
    """The part to keep, across and down, from 0 (west, north) to 1 (east, south)."""
    words = str(options.get("gravity") or options.get("crop") or "center").lower()
    across = next((_PLACES[each] for each in ("west", "east", "low", "high") if each in words), 0.5)
    down = next((_PLACES[each] for each in ("north", "south", "low", "high") if each in words), 0.5)
    return across, down


def _read_colour(given: Any) -> tuple[int, int, int, int]:
    if given is None or given == "transparent":
        return _CLEAR
    try:
        found = ImageColor.getrgb(given) if isinstance(given, str) else tuple(given)
        red, green, blue, *alpha = found
    except (ValueError, TypeError):
        raise InvalidOptionsError(f"cannot have the background {given!r:.80}") from None
    return red, green, blue, alpha[0] if alpha else 255
