"""Malicious files: each ends in a named error, or in a picture without the payload."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from media_rig import Studio, studio
from rig import samples
from rig.torture import ROUNDS, SEED, SEEDED

from holdall.attachments.blob.content_type import identify
from holdall.backends.process import children
from holdall.core.media import LIMITS, PICTURE_TYPES, MediaLimits
from holdall.errors import MalformedMediaError, MediaError, MediaLimitError, UnsupportedMediaError

__all__ = ["studio"]

PNG, GIF, JPEG, TIFF, ICON, PDF = (
    *("image/png", "image/gif", "image/jpeg", "image/tiff", "image/vnd.microsoft.icon", "application/pdf"),
)
HUGE = 60_000
SMALLER = ("resize_to_limit", (10, 10))


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def huge_png() -> bytes:
    """A picture that claims 3.6 billion pixels and contains the first rows only."""
    head = struct.pack(">IIBBBBB", HUGE, HUGE, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(1 << 20)))
        + chunk(b"IEND", b"")
    )


def huge_gif() -> bytes:
    data = bytearray(samples.picture("GIF"))
    data[6:10] = struct.pack("<HH", 65_535, 65_535)
    return bytes(data)


def huge_tiff() -> bytes:
    """A small picture with huge dimensions in its first directory."""
    data = bytearray(samples.picture("TIFF"))
    (at,) = struct.unpack_from("<I", data, 4)
    for number in range(struct.unpack_from("<H", data, at)[0]):
        entry = at + 2 + 12 * number
        if struct.unpack_from("<H", data, entry)[0] in (256, 257, 278):
            struct.pack_into("<HII", data, entry + 2, 4, 1, HUGE)
    return bytes(data)


def huge_bmp() -> bytes:
    data = bytearray(samples.picture("BMP"))
    data[18:26] = struct.pack("<ii", HUGE, HUGE)
    return bytes(data)


def icon_with_huge_picture() -> bytes:
    """An icon whose directory claims 256 × 256 pixels, with a larger picture inside."""
    inner = huge_png()
    return struct.pack("<HHHBBBBHHII", 0, 1, 1, 0, 0, 0, 0, 1, 32, len(inner), 22) + inner


BOMBS = {
    "png": (huge_png, PNG),
    "gif": (huge_gif, GIF),
    "tiff": (huge_tiff, TIFF),
    "bmp": (huge_bmp, "image/bmp"),
    "psd": (
        lambda: samples.psd()[:14] + struct.pack(">II", 30_000, 30_000) + samples.psd()[22:],
        samples.PSD,
    ),
    "ico": (icon_with_huge_picture, ICON),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_picture_with_too_many_pixels_is_refused_before_it_is_decoded(studio: Studio, name: str) -> None:
    make, kind = BOMBS[name]
    assert identify(make()) == kind
    with pytest.raises(MediaLimitError, match="pixels"):
        studio.transform(make(), kind, SMALLER)
    assert not studio.target.exists()
    assert studio.transform(samples.picture("PNG"), PNG, SMALLER).size == (10, 7)


def test_the_limit_counts_the_pixels_of_all_frames_and_of_the_result(studio: Studio) -> None:
    few = MediaLimits(pixels=3000)
    data = samples.animation("GIF", frames=3)
    with pytest.raises(MediaLimitError, match="pixels in each of 3 frames, more than the limit of 3,000"):
        studio.transform(data, GIF, SMALLER, format="gif", limits=few)
    assert studio.transform(data, GIF, SMALLER, format="png", limits=few).size == (10, 8)
    still = samples.picture("PNG", samples.draw(60, 40))
    for operation in ("resize_to_fit", "resize_to_fill", "resize_and_pad"):
        with pytest.raises(MediaLimitError, match="pixels"):
            studio.transform(still, PNG, (operation, (100, 100)), limits=few)
    with pytest.raises(MediaLimitError, match="71 × 71 pixels, more than the limit of 3,000"):
        studio.transform(still, PNG, ("rotate", 45), limits=few)


def test_a_picture_within_the_limit_of_pixels_can_exceed_those_of_memory_and_output(studio: Studio) -> None:
    data = samples.picture("PNG", samples.draw(3000, 2000))
    with pytest.raises(MediaLimitError, match="memory"):
        studio.transform(data, PNG, ("rotate", 10), limits=MediaLimits(memory=20 << 20))
    with pytest.raises(MediaLimitError, match="100,000 bytes"):
        studio.transform(data, PNG, ("rotate", 90), format="bmp", limits=MediaLimits(output=100_000))
    assert not studio.target.exists()


def test_a_film_with_too_many_pixels_is_refused(studio: Studio) -> None:
    with pytest.raises(MediaLimitError, match="64 × 48 pixels"):
        studio.preview(samples.film(), "video/mp4", MediaLimits(pixels=3000))


def list_files() -> Iterator[tuple[str, bytes]]:
    """A file of each supported type."""
    for format, kind in samples.TYPES.items():
        yield kind, samples.picture(format)
    yield samples.PSD, samples.psd()
    yield PDF, samples.pdf()
    yield "video/mp4", samples.film("mp4")
    yield "video/webm", samples.film("webm", "libvpx-vp9")
    yield "audio/mpeg", samples.tone("mp3", "libmp3lame")


def work_on(studio: Studio, kind: str, data: bytes) -> None:
    """Do everything that is supported for a file of this type; a `MediaError` is fine."""
    limits = MediaLimits(pixels=1_000_000, memory=512 << 20, seconds=5.0)
    works: list[Any] = [lambda: studio.probe(data, kind, limits)]
    if kind.startswith("image/"):
        works.append(lambda: studio.transform(data, kind, SMALLER, limits=limits).load())
    elif not kind.startswith("audio/"):
        works.append(lambda: studio.preview(data, kind, limits).load())
    for work in works:
        try:
            work()
        except MediaError:
            assert not studio.target.exists()
        studio.target.unlink(missing_ok=True)


@pytest.mark.parametrize("kind", [kind for kind, _ in list_files()])
def test_a_truncated_file_is_refused_or_read_partially(studio: Studio, kind: str) -> None:
    data = dict(list_files())[kind]
    for part in (0, 12, len(data) * 9 // 10):
        work_on(studio, kind, data[:part])
    if kind.startswith("image/"):
        with pytest.raises(MalformedMediaError):
            studio.transform(data[: len(data) // 3], kind, SMALLER)


@pytest.mark.torture
@pytest.mark.parametrize("kind", [kind for kind, _ in list_files()])
def test_a_file_with_randomly_changed_bytes_ends_in_a_picture_or_a_named_error(
    studio: Studio, kind: str
) -> None:
    data, dice = dict(list_files())[kind], random.Random(f"{SEED}{kind}")
    for number in range(2 * ROUNDS):
        changed = bytearray(data)
        for _ in range(dice.choice((1, 4, 32))):
            changed[dice.randrange(len(changed))] = dice.choice((0, 1, 127, 255, dice.randrange(256)))
        try:
            work_on(studio, kind, bytes(changed))
        except Exception as error:
            error.add_note(f"{kind}, file {number} {SEEDED}")
            raise


PAYLOADS = {
    "html": b"<html><script>alert(1)</script></html>",
    "javascript": b"/*\n*/=1;alert(1)//",
    "zip": samples.archive({"shell.php": "<?php system($_GET[0]); ?>"}),
    "php": b"<?php system($_GET['c']); ?>",
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_payload_behind_a_picture_is_not_in_the_result(studio: Studio, name: str) -> None:
    payload = PAYLOADS[name]
    for data, kind, format in (
        (samples.picture("GIF", comment=payload[:200]), GIF, "gif"),
        (samples.picture("JPEG", comment=payload[:200]), JPEG, "jpg"),
        (samples.picture("PNG"), PNG, "png"),
    ):
        hidden = data + payload
        assert identify(hidden, name=f"page.{name}", declared="text/html") == kind
        studio.transform(hidden, kind, SMALLER, format=format)
        assert payload[:10] not in studio.target.read_bytes()
    with pytest.raises(MalformedMediaError):
        studio.transform(b"GIF89a" + payload, GIF, SMALLER)
    with pytest.raises(MalformedMediaError):
        studio.transform(b"\xff\xd8\xff\xe0" + payload, JPEG, SMALLER)


SCRIPTS = {
    "svg": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
    "postscript": b"%!PS\n(/etc/passwd) (r) file\n",
    "msl": b'<?xml version="1.0"?><image><read filename="/etc/passwd"/><write filename="/tmp/x.php"/></image>',
    "mvg": b"push graphic-context\nfill 'url(https://127.0.0.1/x.jpg\"|ls \"-la)'\npop graphic-context",
    "playlist": b"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:10.0,\nconcat:file:///etc/passwd\n#EXT-X-ENDLIST",
    "concat": b"ffconcat version 1.0\nfile '/etc/passwd'\n",
}
SEEN = {"svg": "image/svg+xml", "postscript": "application/postscript", "msl": "application/xml"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_is_declared_as_a_picture_or_film_is_not_interpreted(studio: Studio, name: str) -> None:
    if name in SEEN:
        assert identify(SCRIPTS[name], name="photo.png", declared="image/png") == SEEN[name]
    for kind in (PNG, TIFF, "image/heic"):
        with pytest.raises(MalformedMediaError):
            studio.transform(SCRIPTS[name], kind, SMALLER)
    for kind in ("video/mp4", "video/x-msvideo", PDF):
        with pytest.raises(MalformedMediaError):
            studio.preview(SCRIPTS[name], kind)


def test_a_picture_of_another_format_than_declared_is_refused(studio: Studio) -> None:
    for format in samples.TYPES:
        kind = GIF if format == "PNG" else PNG
        with pytest.raises(
            MalformedMediaError, match=f"a file of type {kind} does not have content of that type"
        ):
            studio.transform(samples.picture(format), kind, SMALLER)
        with pytest.raises(MalformedMediaError):
            studio.probe(samples.picture(format), kind)


@pytest.mark.parametrize("format", ["PPM", "PCX", "TGA", "EPS", "ICNS"])
def test_a_format_that_is_not_on_the_list_is_never_read(studio: Studio, format: str) -> None:
    data = samples.picture(format, samples.draw(64, 64))
    assert identify(data, name="photo", declared=None) not in PICTURE_TYPES
    with pytest.raises(MalformedMediaError, match="does not have content of that type"):
        studio.transform(data, PNG, SMALLER)
    with pytest.raises(UnsupportedMediaError, match="is not supported"):
        studio.transform(data, f"image/x-{format.lower()}", SMALLER)


def test_a_codec_that_is_not_on_the_list_is_never_decoded(studio: Studio) -> None:
    data = samples.film("avi", "ffv1", sound=False)
    assert studio.probe(data, "video/x-msvideo")["video"] is True
    with pytest.raises(UnsupportedMediaError, match="ffv1"):
        studio.preview(data, "video/x-msvideo")


@pytest.mark.torture
def test_many_hostile_files_do_not_increase_the_memory_of_the_children(studio: Studio) -> None:
    files = [(kind, make()) for make, kind in BOMBS.values()]
    files += [(kind, data[: len(data) // 2]) for kind, data in list_files()]

    def read_all() -> dict[int, int]:
        for kind, data in files * ROUNDS:
            work_on(studio, kind, data)
        return {process: count_resident_bytes(process) for process in find_children()}

    first = read_all()
    last = read_all()
    assert last.keys() == first.keys()
    assert all(last[process] < size + (8 << 20) for process, size in first.items())


def find_children() -> list[int]:
    return [pid for child in children._idle if (pid := child._process.pid) is not None]


def count_resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * 4096


def test_the_default_limits_are_large_enough_for_a_photograph() -> None:
    assert MediaLimits(pixels=100_000_000, memory=1 << 30, seconds=30.0, output=100_000_000) == LIMITS
