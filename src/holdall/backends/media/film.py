"""Videos and audio files: their metadata, and the first frame of a video."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import av
import av.container

from holdall.backends.media.format import CODECS, CONTAINERS
from holdall.backends.media.image import check_pixels
from holdall.backends.media.sandbox import TAG_LENGTH, TAGS
from holdall.core.media import DrawPreview, ProbeMedia
from holdall.errors import MalformedMediaError, UnsupportedMediaError


def probe_film(request: ProbeMedia) -> dict[str, Any]:
    """The metadata of a video or audio file, without unknown values."""
    with _read(request) as container:
        if request.content_type.startswith("audio/"):
            found = _probe_sound(container)
        else:
            found = _probe_picture(container, request.limits.pixels)
    return {name: value for name, value in found.items() if value is not None}


def draw_frame(request: DrawPreview) -> tuple[int, int, str]:
    """Write a picture of the first frame, the right way up."""
    with _read(request) as container:
        stream = _find_film(container)
        if stream is None:
            raise MalformedMediaError("has no video in it")
        check_pixels(stream.codec_context.width, stream.codec_context.height, request.limits.pixels)
        frame = _decode(container, stream)
        if frame is None:
            raise MalformedMediaError("has no frame that can be decoded")
        check_pixels(frame.width, frame.height, request.limits.pixels)
        image = frame.to_image(threads=1)
    if frame.rotation:
        image = image.rotate(frame.rotation, expand=True)
    image.save(request.target, "JPEG", quality=85)
    return (*image.size, "image/jpeg")


@contextmanager
def _read(request: ProbeMedia | DrawPreview) -> Iterator[av.container.InputContainer]:
    try:
        with av.open(
            request.path,
            format=CONTAINERS[request.content_type],
            metadata_errors="replace",
            options={"protocol_whitelist": "file", "codec_whitelist": ",".join(CODECS)},
        ) as container:
            yield container
    except MemoryError:
        raise
    except av.FFmpegError as error:
        raise MalformedMediaError(f"cannot be read: {error.strerror}") from None


def _find_film(container: av.container.InputContainer) -> Any:
    stream = next(iter(container.streams.video), None)
    if stream is not None:
        stream.codec_context.thread_count = 1  # each thread reserves memory, and machines have many cores
    return stream


def _decode(container: av.container.InputContainer, stream: Any) -> Any:
    """The first frame; None if there is none."""
    name = stream.codec_context.name
    if name not in CODECS:  # the codec_whitelist applies only while the container is opened
        raise UnsupportedMediaError(f"has a video in the format {name}, which is not supported")
    return next(container.decode(stream), None)


def _probe_picture(container: av.container.InputContainer, most: int) -> dict[str, Any]:
    stream = _find_film(container)
    found: dict[str, Any] = {"audio": bool(container.streams.audio), "video": stream is not None}
    if stream is None:
        return found | {"duration": _measure(container, None)}
    width, height = stream.codec_context.width or None, stream.codec_context.height or None
    ratio = stream.display_aspect_ratio if width and height else None
    if ratio:
        found["display_aspect_ratio"] = [ratio.numerator, ratio.denominator]
        height = round(width * ratio.denominator / ratio.numerator)
    duration = _measure(container, stream)
    angle = _find_angle(container, stream) if (width or 0) * (height or 0) <= most else None
    if angle is not None and angle % 180:
        width, height = height, width
    return found | {"width": width, "height": height, "angle": angle, "duration": duration}


def _find_angle(container: av.container.InputContainer, stream: Any) -> int | None:
    """By how many degrees, counted as FFmpeg does, a video must be rotated; only its frames say so."""
    try:
        frame = _decode(container, stream)
    except (av.FFmpegError, UnsupportedMediaError):
        return None  # the container's size may still be right
    return (frame.rotation if frame is not None else 0) or None


def _probe_sound(container: av.container.InputContainer) -> dict[str, Any]:
    stream = next(iter(container.streams.audio), None)
    if stream is None:
        return {}
    tags = (container.metadata | stream.metadata).items()
    kept = {str(name)[:TAG_LENGTH]: str(value)[:TAG_LENGTH] for name, value in list(tags)[:TAGS]}
    return {
        "duration": _measure(container, stream),
        "bit_rate": stream.bit_rate or container.bit_rate or None,
        "sample_rate": stream.sample_rate or None,
        "tags": kept or None,
    }


def _measure(container: av.container.InputContainer, stream: Any) -> float | None:
    if stream is not None and (stream.duration or 0) > 0 and stream.time_base:
        return float(stream.duration * stream.time_base)
    whole = container.duration or 0
    return whole / av.time_base if whole > 0 else None
