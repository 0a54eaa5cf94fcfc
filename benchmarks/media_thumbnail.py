"""A thumbnail of a 12-megapixel JPEG made by a child process, against bare Pillow; and memory after hostile files."""

from __future__ import annotations

import io
import os
import random
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from benchmarks.harness import Figure, time_pair
from holdall.backends.media.delivery import deliver_blocking
from holdall.backends.process import children
from holdall.core.media import TransformImage
from holdall.errors import MediaError

SIDE = 200
HOSTILE = 1000
PROCESSES = Path("/proc")
KINDS = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "GIF": "image/gif",
    "TIFF": "image/tiff",
    "WEBP": "image/webp",
}


def figures(workshop: Path) -> Iterator[Figure]:
    """The ratio of the times of a thumbnail, then the ratio of the memory after hostile files to the memory before."""
    others = _find_children()  # servers of earlier benchmarks
    yield _time_thumbnails(workshop)
    yield from _weigh(workshop, others)
    children.close()


def _time_thumbnails(workshop: Path) -> Figure:
    photo, ours, theirs = (str(workshop / name) for name in ("photo.jpg", "ours.jpg", "theirs.jpg"))
    _draw_photo().save(photo, quality=90)
    request = TransformImage(photo, ours, "image/jpeg", (("resize_to_limit", (SIDE, SIDE)),), "jpg")

    def make_bare(_: object) -> None:
        with Image.open(photo) as image:
            image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)  # also decodes in draft mode
            image.save(theirs, "JPEG")

    start = time.perf_counter()
    deliver_blocking(request)
    cold = time.perf_counter() - start
    result = time_pair(lambda: None, lambda _: deliver_blocking(request), make_bare, clock=time.perf_counter)
    with Image.open(ours) as one, Image.open(theirs) as other:
        assert one.size == other.size == (SIDE, SIDE * 3 // 4)
    note = f"{result.ours * 1e3:.1f} ms against {result.theirs * 1e3:.1f} ms; with a new child {cold * 1e3:.0f} ms"
    return Figure("media_thumbnail", ("12 megapixels",), result.ratio, 1.3, note=note)


def _draw_photo() -> Image.Image:
    """Return a picture of colours and noise, 4000 × 3000."""
    bands = [Image.effect_noise((4000, 3000), 24), Image.linear_gradient("L").resize((4000, 3000))]
    return Image.merge("RGB", (*bands, Image.radial_gradient("L").resize((4000, 3000))))


def _weigh(workshop: Path, others: set[Path]) -> Iterator[Figure]:
    files = list(_make_hostile_files(random.Random(1)))
    refused = 0
    before = after = {"this process": 0}
    for number in range(-len(files), HOSTILE):
        if number == 0:
            before = _measure_memory(others)  # libraries are loaded by now
        kind, data = files[number % len(files)]
        refused += _is_refused(workshop, kind, data)
    after = _measure_memory(others)
    for name, size in after.items():
        note = f"{before[name] >> 10:,} KiB before, {size >> 10:,} KiB after; {refused:,} refusals"
        yield Figure(
            "media_thumbnail", (f"{HOSTILE:,} hostile files", name), size / before[name], 1.1, note=note
        )


def _is_refused(workshop: Path, kind: str, data: bytes) -> bool:
    """Return whether making a picture of a file failed."""
    path = workshop / "hostile"
    path.write_bytes(data)
    smaller = (("resize_to_limit", (50, 50)),)
    try:
        deliver_blocking(TransformImage(str(path), str(workshop / "made"), kind, smaller, "png"))
    except MediaError:
        return True
    return False


def _make_hostile_files(dice: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yield files that are truncated, damaged at random, or claim a huge size in their header."""
    for format, kind in KINDS.items():
        data = io.BytesIO()
        Image.effect_noise((200, 150), 60).save(data, format)
        for part in (0, 20, len(data.getvalue()) // 2):
            yield kind, data.getvalue()[:part]
        for _ in range(5):
            changed = bytearray(data.getvalue())
            for _ in range(20):
                changed[dice.randrange(len(changed))] = dice.randrange(256)
            yield kind, bytes(changed)
    head = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    yield "image/png", b"\x89PNG\r\n\x1a\n\0\0\0\r" + head + struct.pack(">I", zlib.crc32(head))


def _find_children() -> set[Path]:
    """Return the children of this process."""
    parents = {
        path.parent: path.read_text(errors="replace").rpartition(")")[2].split()[1]
        for path in PROCESSES.glob("[0-9]*/stat")
    }
    return {child for child, parent in parents.items() if parent == str(os.getpid())}


def _measure_memory(others: set[Path]) -> dict[str, int]:
    """Return the resident bytes of this process and of its working child, ignoring ``others``."""
    (child,) = _find_children() - others
    processes = {"this process": PROCESSES / "self", "its child": child}
    return {name: int((path / "statm").read_text().split()[1]) * 4096 for name, path in processes.items()}
