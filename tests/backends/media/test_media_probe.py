"""Properties and previews of films, sound and documents."""

from __future__ import annotations

import pytest
from media_rig import Studio, corners, studio
from rig import samples

from holdall.errors import MalformedMediaError, UnsupportedMediaError

__all__ = ["studio"]


@pytest.mark.parametrize(
    ("container", "codec", "kind"),
    [
        ("mp4", "libx264", "video/mp4"),
        ("mov", "mpeg4", "video/quicktime"),
        ("webm", "libvpx-vp9", "video/webm"),
        ("matroska", "mpeg4", "video/x-matroska"),
        ("avi", "mpeg4", "video/x-msvideo"),
        ("ogg", "vp8", "video/ogg"),
    ],
)
def test_a_film_has_a_size_a_duration_and_streams_and_a_first_frame(
    studio: Studio, container: str, codec: str, kind: str
) -> None:
    data = samples.film(container, codec)
    found = studio.probe(data, kind)
    assert found.pop("duration") == pytest.approx(1.0, abs=0.15)
    assert found.pop("display_aspect_ratio", [4, 3]) == [4, 3]
    assert found == {"width": 64, "height": 48, "audio": True, "video": True}
    frame = studio.preview(data, kind)
    assert (frame.format, frame.size, corners(frame)) == ("JPEG", (64, 48), ["red", "white", "white", "blue"])


def test_the_size_and_frame_of_a_rotated_film_are_rotated(studio: Studio) -> None:
    data = samples.turn(samples.film(sound=False))
    found = studio.probe(data, "video/mp4")
    assert (found["width"], found["height"], found["angle"], found["audio"]) == (48, 64, -90, False)
    frame = studio.preview(data, "video/mp4")
    assert (frame.size, corners(frame)) == ((48, 64), ["white", "red", "blue", "white"])


@pytest.mark.parametrize(
    ("container", "codec", "kind"),
    [
        ("mp3", "libmp3lame", "audio/mpeg"),
        ("ogg", "libopus", "audio/ogg"),
        ("flac", "flac", "audio/flac"),
        ("ipod", "aac", "audio/mp4"),
    ],
)
def test_sound_has_a_duration_rates_and_tags(studio: Studio, container: str, codec: str, kind: str) -> None:
    found = studio.probe(samples.tone(container, codec, title="Moon"), kind)
    assert found["duration"] == pytest.approx(1.0, abs=0.1)
    assert found["sample_rate"] == samples.RATE
    assert found["bit_rate"] > 0
    assert found["tags"].get("title", found["tags"].get("TITLE")) == "Moon"
    assert set(found) == {"duration", "bit_rate", "sample_rate", "tags"}


def test_silence_without_tags_has_none(studio: Studio) -> None:
    wanted = {"duration": 1.0, "bit_rate": 128_000, "sample_rate": 8000}
    assert studio.probe(samples.wav(), "audio/wav") == wanted
    with pytest.raises(UnsupportedMediaError):
        studio.preview(samples.wav(), "audio/wav")


def test_a_document_has_pages_and_a_first_page(studio: Studio) -> None:
    data = samples.pdf((144, 72), (50, 50))
    assert studio.probe(data, "application/pdf") == {"pages": 2}
    page = studio.preview(data, "application/pdf")
    assert (page.format, page.size, set(corners(page))) == ("PNG", (300, 150), {"white"})
    assert studio.preview(samples.pdf((1e6, 5e5)), "application/pdf").size == (2000, 1000)


@pytest.mark.parametrize("kind", ["video/mp4", "video/webm", "application/pdf", "audio/ogg"])
def test_the_declared_type_alone_chooses_the_reader(studio: Studio, kind: str) -> None:
    for data in (samples.film("avi"), samples.picture("PNG"), b""):
        with pytest.raises(MalformedMediaError):
            studio.probe(data, kind)
