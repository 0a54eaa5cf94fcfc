"""Small real files of many types, written by the libraries that read them."""

from __future__ import annotations

import io
import wave
import zipfile
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import av
import pillow_heif
import pypdfium2
from PIL import Image

pillow_heif.register_heif_opener()

TYPES = {
    "PNG": "image/png",
    "GIF": "image/gif",
    "JPEG": "image/jpeg",
    "TIFF": "image/tiff",
    "BMP": "image/bmp",
    "ICO": "image/vnd.microsoft.icon",
    "WEBP": "image/webp",
    "AVIF": "image/avif",
    "HEIF": "image/heic",
}
"""The formats of pictures that Pillow can write, and their types."""
PSD = "image/vnd.adobe.photoshop"
RATE = 48_000


def draw(width: int = 60, height: int = 40) -> Image.Image:
    """Draw a white image with a red quarter at the top left and a blue one at the bottom right."""
    image = Image.new("RGB", (width, height), "white")
    image.paste("red", (0, 0, width // 2, height // 2))
    image.paste("blue", (width // 2, height // 2, width, height))
    return image


def picture(format: str, image: Image.Image | None = None, **options: Any) -> bytes:
    """A picture as a file."""
    data = io.BytesIO()
    (draw() if image is None else image).save(data, format, **options)
    return data.getvalue()


def exif(orientation: int, **tags: str) -> bytes:
    """The metadata that a camera writes into a picture."""
    made = Image.Exif()
    made[0x0112] = orientation
    if "description" in tags:
        made[0x010E] = tags["description"]
    return made.tobytes()


def psd(width: int = 60, height: int = 40) -> bytes:
    """A Photoshop document of one flat, teal picture."""
    head = b"8BPS\0\x01" + bytes(6) + (3).to_bytes(2, "big")
    head += (
        height.to_bytes(4, "big") + width.to_bytes(4, "big") + (8).to_bytes(2, "big") + (3).to_bytes(2, "big")
    )
    planes = bytes([0]) * (width * height) + bytes([128]) * (width * height) * 2
    return head + bytes(12) + bytes(2) + planes


def animation(format: str, frames: int = 3, size: tuple[int, int] = (40, 30), **options: Any) -> bytes:
    """An animated picture whose frames differ in colour."""
    images = [Image.new("RGB", size, (80 * number % 256, 0, 90)) for number in range(frames)]
    return picture(format, images[0], save_all=True, append_images=images[1:], duration=120, **options)


@cache
def film(
    container: str = "mp4",
    codec: str = "mpeg4",
    *,
    sound: bool = True,
    width: int = 64,
    height: int = 48,
    rate: int = 10,
) -> bytes:
    """Ten frames, red at the top left, optionally with a tone."""
    data = io.BytesIO()
    with av.open(data, "w", format=container) as target:
        stream: Any = target.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        voice = _add_voice(target, "libopus" if container in ("webm", "ogg") else "aac") if sound else None
        for _ in range(10):
            frame: Any = av.VideoFrame
            target.mux(stream.encode(frame.from_image(draw(width, height))))
        target.mux(stream.encode())
        if voice is not None:
            _encode_tone(target, voice)
    return data.getvalue()


def turn(data: bytes) -> bytes:
    """Mark a film in MP4 to be shown rotated by 90 degrees clockwise, as phones do."""
    unit = (1 << 16).to_bytes(4, "big")
    upright = unit + bytes(12) + unit + bytes(12) + (1 << 30).to_bytes(4, "big")
    at = data.index(upright, data.index(b"tkhd"))
    sideways = bytes(4) + unit + bytes(4) + (-(1 << 16)).to_bytes(4, "big", signed=True) + upright[16:20]
    return data[:at] + sideways + bytes(len(upright) - 24) + upright[-4:] + data[at + len(upright) :]


@cache
def tone(container: str, codec: str, **tags: str) -> bytes:
    """A second of sound."""
    data = io.BytesIO()
    with av.open(data, "w", format=container) as target:
        target.metadata.update(tags)
        _encode_tone(target, _add_voice(target, codec))
    return data.getvalue()


def _add_voice(target: Any, codec: str) -> Any:
    return target.add_stream(codec, rate=RATE, layout="mono")


def _encode_tone(target: Any, stream: Any) -> None:
    format = stream.codec_context.format.name
    size = stream.codec_context.frame_size or 1024
    for number in range(RATE // size + 1):
        frame = av.AudioFrame(format=format, layout="mono", samples=size)
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        frame.sample_rate, frame.pts, frame.time_base = RATE, number * size, Fraction(1, RATE)
        target.mux(stream.encode(frame))
    target.mux(stream.encode())


def wav() -> bytes:
    """A second of silence."""
    data = io.BytesIO()
    with wave.open(data, "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(2)
        target.setframerate(8000)
        target.writeframes(bytes(16_000))
    return data.getvalue()


def pdf(*pages: tuple[float, float]) -> bytes:
    """A document with pages of these sizes."""
    document, data = pypdfium2.PdfDocument.new(), io.BytesIO()
    for size in pages or ((200, 100),):
        document.new_page(*size)
    document.save(data)
    return data.getvalue()


def archive(files: Mapping[str, str]) -> bytes:
    """A ZIP archive."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as target:
        for name, text in files.items():
            target.writestr(name, text)
    return data.getvalue()


def office(part: str) -> bytes:
    """A document of Word (``word/document.xml``), Excel or PowerPoint, with only the archive's structure."""
    return archive(
        {"[Content_Types].xml": "<Types/>", "_rels/.rels": "<Relationships/>", part: "<document/>"}
    )
