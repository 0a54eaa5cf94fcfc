"""Media requests through the sync and the async port: replies and refusals."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PIL import Image

from holdall.backends.media.format import CONTAINERS, READ
from holdall.backends.port.awaiting import AwaitingPort
from holdall.backends.port.blocking import BlockingPort
from holdall.core.media import (
    FILM_TYPES,
    PICTURE_FORMATS,
    PICTURE_TYPES,
    SOUND_TYPES,
    DrawPreview,
    Picture,
    ProbeMedia,
    TransformImage,
)
from holdall.core.port import run
from holdall.errors import UnsupportedMediaError

NOWHERE: object = None


def test_each_supported_type_has_one_reader() -> None:
    assert READ.keys() == PICTURE_TYPES
    assert CONTAINERS.keys() == FILM_TYPES | SOUND_TYPES
    assert set(PICTURE_FORMATS.values()) <= PICTURE_TYPES


def test_both_ports_send_requests_to_a_process_that_reads_media(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (40, 30), "red").save(path)
    probe = ProbeMedia(str(path), "image/png")
    assert run(BlockingPort(NOWHERE).send(probe)) == {"width": 40, "height": 30}  # type: ignore[arg-type]

    async def main() -> Picture:
        transform = TransformImage(
            str(path), str(tmp_path / "b"), "image/png", (("resize_to_limit", (20, 20)),), "png"
        )
        return await AwaitingPort(NOWHERE).send(transform)  # type: ignore[arg-type]

    assert asyncio.run(main()) == Picture(20, 15, "image/png")
    with Image.open(tmp_path / "b") as made:
        assert (made.size, made.format) == ((20, 15), "PNG")


def test_a_type_without_a_reader_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    path.write_text("<svg/>", encoding="utf-8")
    port = BlockingPort(NOWHERE)  # type: ignore[arg-type]
    for request in (
        ProbeMedia(str(path), "image/svg+xml"),
        TransformImage(str(path), str(tmp_path / "b"), "image/svg+xml", (("rotate", 90),), "png"),
        DrawPreview(str(path), str(tmp_path / "b"), "image/svg+xml"),
    ):
        with pytest.raises(UnsupportedMediaError, match=r"image/svg\+xml is not supported"):
            run(port.send(request))
    assert not (tmp_path / "b").exists()
