"""Pictures, a PDF and a video for trying out the album, painted by this program."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import NamedTuple

import av
from PIL import Image, ImageDraw, ImageFont


class Mood(NamedTuple):
    """The colours of a landscape: its sky from the top down, its sun, and its hills from far to near."""

    sky: tuple[str, ...]
    sun: str
    hills: tuple[str, ...]


MOODS = {
    "First light": Mood(
        ("#20344f", "#50618a", "#b0849c", "#f0b08f"), "#ffe3b0", ("#6d5f86", "#4a4670", "#2b2d4e")
    ),
    "Noon in the hills": Mood(
        ("#7cc0e0", "#a5d6e8", "#cdeaf0"), "#fff6d5", ("#8fbf8a", "#5f9d6b", "#37734f")
    ),
    "Dunes": Mood(("#f2c879", "#f6d79b", "#fae7c4"), "#fffaf0", ("#e3a15c", "#c97f45", "#a05c35")),
    "After the rain": Mood(("#4d6a78", "#7793a0", "#a9bfc6"), "#eef4f0", ("#65838a", "#456369", "#28434a")),
    "By the lake": Mood(
        ("#3b2457", "#7d3c74", "#d1606f", "#f7a072"), "#ffd9a0", ("#5b3364", "#3d2550", "#21183a")
    ),
    "Winter walk": Mood(("#b9c8d8", "#d3dee8", "#eaf0f4"), "#ffffff", ("#c3d0dc", "#93a6b8", "#5d7287")),
    "Vineyard": Mood(("#f3d9c9", "#f7e6d6", "#fbf1e6"), "#f0b26b", ("#c9a66b", "#8f8a4b", "#5a6234")),
    "Night train": Mood(("#0b1026", "#141b3c", "#232c55"), "#f3f0d8", ("#1d2549", "#121839", "#080c22")),
}


def paint(mood: Mood, width: int, height: int, *, seed: int, sun_at: float = 0.7) -> Image.Image:
    """Paint a landscape in a few flat colours."""
    random = Random(seed)
    picture = Image.new("RGB", (width, height), mood.sky[-1])
    draw = ImageDraw.Draw(picture)
    for index, colour in enumerate(mood.sky):
        top = height * 0.7 * index / len(mood.sky)
        draw.rectangle((0, top, width, height), fill=colour)
    radius, x, y = height * 0.09, width * sun_at, height * (0.2 + 0.5 * abs(sun_at - 0.5))
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=mood.sun)
    for index, colour in enumerate(mood.hills):
        base = height * (0.58 + 0.15 * index)
        waves = [
            (random.uniform(1, 4), random.uniform(0, 7), height * random.uniform(0.02, 0.07))
            for _ in range(3)
        ]
        ridge = [
            (
                at,
                base
                + sum(
                    size * math.sin(rate * 2 * math.pi * at / width + phase) for rate, phase, size in waves
                ),
            )
            for at in range(0, width + 8, 8)
        ]
        draw.polygon([(0, height), *ridge, (width, height)], fill=colour)
    return picture


def make_picture(path: Path, name: str, width: int = 1600, height: int = 1200) -> Path:
    """Paint a picture and save it as a JPEG."""
    seed = list(MOODS).index(name)
    paint(MOODS[name], width, height, seed=seed, sun_at=0.25 + seed * 0.37 % 0.5).save(path, quality=88)
    return path


def make_document(path: Path) -> Path:
    """Make a PDF with one page."""
    page = Image.new("RGB", (1240, 1754), "#fbf7ee")
    page.paste(paint(MOODS["Dunes"], 1080, 760, seed=5), (80, 80))
    draw = ImageDraw.Draw(page)
    draw.text((80, 900), "Around the lake", fill="#2b2d4e", font=ImageFont.load_default(110))
    for line in range(7):
        draw.rectangle((80, 1090 + 70 * line, 1160 - (line * 211) % 420, 1110 + 70 * line), fill="#d9d2c3")
    page.save(path, resolution=150)
    return path


def make_video(path: Path, width: int = 640, height: int = 480, frames: int = 48) -> Path:
    """Make a video of a sun that crosses the sky."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(24))
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for index in range(frames):
            at = 0.35 + 0.4 * index / frames
            picture = paint(MOODS["By the lake"], width, height, seed=9, sun_at=at)
            frame = av.VideoFrame.from_image(picture)  # type: ignore[no-untyped-call]
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def make_samples(folder: Path) -> list[Path]:
    """Make all samples; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [make_picture(folder / f"{name}.jpg", name) for name in MOODS]
    files.insert(2, make_video(folder / "Sunset.mp4"))
    files.insert(7, make_document(folder / "Around the lake.pdf"))
    return files
