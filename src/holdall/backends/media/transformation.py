"""Transforming pictures: every frame is turned upright, goes through the operations, and is written in one format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from PIL import Image

from holdall.backends.media.colour import Palette, flatten, sharpen_alpha
from holdall.backends.media.format import READ
from holdall.backends.media.geometry import OPERATIONS, measure_scale
from holdall.backends.media.image import ORIENTATION, check_pixels, open_image, read_orientation
from holdall.core.media import PICTURE_FORMATS, TransformImage
from holdall.errors import InvalidOptionsError, UnsupportedMediaError

_GAP = 2.0  # how much larger than needed a JPEG is decoded, before a good filter shrinks it
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SETTINGS = ("quality", "strip")  # options of the written file, not of the picture
_OPAQUE = ("JPEG", "BMP")
_WITH_EXIF = ("JPEG", "PNG", "WEBP", "AVIF", "TIFF")
_MOST_EXIF = 65_000  # a JPEG has room for no more
_OPTIONS: dict[str, dict[str, Any]] = {
    "TIFF": {"compression": "tiff_adobe_deflate"},
    "AVIF": {"max_threads": 1},
}


def transform(request: TransformImage) -> tuple[int, int, str]:
    """Write the picture; returns its width, height and type."""
    if request.format.lower() not in PICTURE_FORMATS:
        raise UnsupportedMediaError(f"cannot be converted to {request.format!r}")
    content_type = PICTURE_FORMATS[request.format.lower()]
    writer = READ[content_type]
    unknown = [name for name, _ in request.operations if name not in (*OPERATIONS, *_SETTINGS)]
    if unknown:
        raise InvalidOptionsError(f"cannot be transformed by {unknown[0]!r:.80}")
    settings = {name: value for name, value in request.operations if name in _SETTINGS}
    with open_image(request.path, request.content_type, request.limits.pixels) as source:
        frames = _count_frames(source, writer)
        check_pixels(*source.size, request.limits.pixels, frames)
        palette = Palette(source, keep_profile=writer not in ("GIF", "BMP") and not settings.get("strip"))
        exif = b"" if settings.get("strip") or writer not in _WITH_EXIF else _read_kept_exif(source)
        drawn = list(_draw(source, request, palette, writer, frames))
    first, *rest = (image for image, _ in drawn)
    options = dict(_OPTIONS.get(writer, {}))
    if "quality" in settings and writer in ("JPEG", "WEBP", "AVIF"):
        options["quality"] = settings["quality"]
    if exif:
        options["exif"] = exif
    if (profile := palette.find_profile(first.mode)) is not None:
        options["icc_profile"] = profile
    if rest:
        options |= {"save_all": True, "append_images": rest, "duration": [time for _, time in drawn]}
        options |= _repeat(source.info, writer)
    first.save(request.target, writer, **options)
    return (*first.size, content_type)


def _count_frames(source: Image.Image, writer: str) -> int:
    """How many frames are kept: all, if both formats are animated; otherwise the first."""
    moves = {"GIF": ("GIF", "WEBP", "AVIF"), "PNG": ("GIF", "WEBP", "AVIF", "PNG")}
    moves["WEBP"] = moves["AVIF"] = moves["GIF"]
    if writer in moves.get(source.format or "", ()):
        return getattr(source, "n_frames", 1)
    return 1


def _draw(
    source: Image.Image, request: TransformImage, palette: Palette, writer: str, frames: int
) -> Iterator[tuple[Image.Image, int]]:
    """The frames to write, each with its duration in milliseconds."""
    operations = [each for each in request.operations if each[0] not in _SETTINGS]
    if source.format == "TIFF":
        source.load()  # this also turns it upright
    turn = read_orientation(source)
    size = (source.height, source.width) if turn >= 5 else source.size
    if frames == 1 and operations and source.format in ("JPEG", "MPO"):
        scale = measure_scale(*operations[0], size) * _GAP
        source.draft(None, (max(1, int(source.width * scale)), max(1, int(source.height * scale))))
    first = 1 if frames > 1 and source.info.get("default_image") else 0
    for number in range(first, frames):
        if number:
            source.seek(number)
        source.load()
        image = palette.convert(source)
        if turn in _TURNS:
            image = image.transpose(_TURNS[turn])
        shown = size
        for name, argument in operations:
            image = OPERATIONS[name](image, shown, argument, request.limits.pixels // frames)
            shown = image.size
        if image is source:
            # writers would use more of it than its pixels, and the next frame replaces it
            image = source.copy()
        if writer in _OPAQUE:
            image = flatten(image)
        elif writer == "GIF":
            image = sharpen_alpha(image)
        image.info = {}
        yield image, round(source.info.get("duration") or 0)


def _repeat(info: Mapping[Any, Any], writer: str) -> dict[str, Any]:
    """How often an animation is repeated: 0 means forever; a GIF without that information plays once."""
    loop = info.get("loop")
    if writer == "AVIF":
        return {}
    if writer == "GIF":
        return {"disposal": 2} | ({} if loop is None else {"loop": loop})
    return {"loop": 1 if loop is None else loop}


def _read_kept_exif(source: Image.Image) -> bytes:
    """The EXIF data without the orientation, which has been applied."""
    if "exif" not in source.info:
        return b""
    exif = Image.Exif()
    try:
        exif.load(source.info["exif"])
        exif.pop(ORIENTATION, None)
        kept = exif.tobytes() if len(exif) else b""
        return kept if len(kept) <= _MOST_EXIF else b""
    except Exception:  # noqa: BLE001 - tags that cannot be written again are dropped
        return b""
