"""Transformations of pictures: sizes, crops, colours, metadata, frames."""

from __future__ import annotations

from typing import Any

import pytest
from media_rig import Studio, corners, name_colour, studio
from PIL import Image, ImageCms
from rig import samples

from holdall.core.media import PICTURE_FORMATS
from holdall.errors import InvalidOptionsError, UnsupportedMediaError

__all__ = ["studio"]

PNG, JPEG, GIF = "image/png", "image/jpeg", "image/gif"
LIMIT = ("resize_to_limit", (30, 30))
UPRIGHT = ["red", "white", "white", "blue"]


@pytest.mark.parametrize("kind", [*samples.TYPES.values(), samples.PSD])
def test_every_supported_type_of_picture_is_read(studio: Studio, kind: str) -> None:
    format = {kind: format for format, kind in samples.TYPES.items()}.get(kind)
    data = samples.psd() if format is None else samples.picture(format)
    made = studio.transform(data, kind, ("resize_to_fit", (24, None)))
    assert made.size == (24, 16)
    if format is not None:
        assert corners(made) == UPRIGHT


@pytest.mark.parametrize("format", PICTURE_FORMATS)
def test_every_format_is_written_with_alpha_if_it_supports_it(studio: Studio, format: str) -> None:
    image = samples.draw().convert("RGBA")
    image.paste((0, 0, 0, 0), (30, 0, 60, 20))
    made = studio.transform(samples.picture("PNG", image), PNG, LIMIT, format=format)
    assert made.size == (30, 20)
    top_right = "white" if PICTURE_FORMATS[format] in ("image/jpeg", "image/bmp") else "clear"
    assert corners(made) == ["red", top_right, "white", "blue"]


@pytest.mark.parametrize(
    ("operation", "size", "seen"),
    [
        (("resize_to_limit", (30, 30)), (30, 20), UPRIGHT),
        (("resize_to_limit", (600, 600)), (60, 40), UPRIGHT),
        (("resize_to_limit", (None, 10)), (15, 10), UPRIGHT),
        (("resize_to_fit", (120, 120)), (120, 80), UPRIGHT),
        (("resize_to_fill", (20, 20)), (20, 20), UPRIGHT),
        (("resize_to_fill", (20, 40, {"gravity": "west"})), (20, 40), ["red", "red", "white", "white"]),
        (("resize_to_fill", (20, 40, {"gravity": "NorthEast"})), (20, 40), ["white", "white", "blue", "blue"]),
        (("resize_to_fill", (60, 20, {"crop": "high"})), (60, 20), ["white", "blue", "white", "blue"]),
        (("resize_and_pad", (60, 60)), (60, 60), ["clear"] * 4),
        (("resize_and_pad", (60, 60, {"background": "green"})), (60, 60), ["green"] * 4),
        (("resize_and_pad", (60, 60, {"background": [0, 128, 0], "gravity": "south"})), (60, 60),
         ["green", "green", "white", "blue"]),
        (("crop", (30, 20, 30, 20)), (30, 20), ["blue"] * 4),
        (("crop", (30, 20, 500, 500)), (30, 20), ["blue"] * 4),
        (("rotate", 90), (40, 60), ["white", "red", "blue", "white"]),
        (("rotate", -90), (40, 60), ["white", "blue", "red", "white"]),
        (("rotate", 540.0), (60, 40), ["blue", "white", "white", "red"]),
    ],
)  # fmt: skip
def test_an_operation_changes_size_and_content_as_expected(
    studio: Studio, operation: tuple[str, Any], size: tuple[int, int], seen: list[str]
) -> None:
    made = studio.transform(samples.picture("PNG"), PNG, operation)
    assert (made.size, corners(made)) == (size, seen)


def test_operations_are_applied_in_order_and_empty_corners_are_transparent(studio: Studio) -> None:
    data = samples.picture("PNG")
    assert studio.transform(data, PNG, ("rotate", 90), ("crop", (0, 0, 20, 60))).size == (20, 60)
    made = studio.transform(data, PNG, ("crop", (0, 0, 20, 40)), ("rotate", 45))
    assert made.size[0] == pytest.approx(43, abs=2)
    assert name_colour(made, 0, 0) == "clear"
    assert name_colour(studio.transform(data, PNG, ("rotate", 45), format="jpg"), 0, 0) == "white"


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "AVIF", "TIFF", "HEIF"])
def test_a_picture_is_rotated_upright_first_and_its_orientation_tag_removed(
    studio: Studio, format: str
) -> None:
    data = samples.picture(format, exif=samples.exif(6, description="a hill"))
    kind = samples.TYPES[format]
    assert studio.probe(data, kind) == {"width": 40, "height": 60}
    made = studio.transform(data, kind, LIMIT, format="jpg")
    assert (made.size, corners(made)) == ((20, 30), ["white", "red", "blue", "white"])
    kept = dict(made.getexif())
    assert 0x0112 not in kept or kept[0x0112] == 1
    if format != "TIFF":  # its tags also describe the file
        assert kept[0x010E] == "a hill"
    assert not studio.transform(data, kind, LIMIT, ("strip", True), format="jpg").getexif()


def test_a_large_jpeg_that_is_decoded_at_a_smaller_scale_has_the_exact_size(studio: Studio) -> None:
    data = samples.picture("JPEG", samples.draw(1001, 667), exif=samples.exif(8))
    made = studio.transform(data, JPEG, ("resize_to_fill", (50, 70, {"gravity": "south"})))
    assert (made.size, corners(made)) == ((50, 70), ["white", "blue", "red", "white"])
    made = studio.transform(data, JPEG, ("resize_to_limit", (100, 100)))
    assert made.size == (67, 100)


def test_a_colour_profile_is_kept_if_the_result_supports_it_and_otherwise_applied(studio: Studio) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = samples.picture("JPEG", icc_profile=profile)
    assert studio.transform(data, JPEG, LIMIT, format="webp").info["icc_profile"] == profile
    for format, operations in (("gif", ()), ("png", (("strip", True),)), ("bmp", ())):
        made = studio.transform(data, JPEG, LIMIT, *operations, format=format)
        assert "icc_profile" not in made.info
        assert corners(made) == UPRIGHT
    grey = samples.picture("PNG", samples.draw().convert("L"), icc_profile=profile)
    assert (
        "icc_profile" not in studio.transform(grey, PNG, LIMIT).info
    )  # the profile is for another colour mode


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "L", "1", "P", "LA", "RGBA", "I;16", "I", "F"])
def test_every_colour_mode_is_converted_for_a_jpeg(studio: Studio, mode: str) -> None:
    image = samples.draw().convert("L" if mode.startswith(("I", "F")) else mode)
    if mode in ("I", "F"):
        image = image.convert(mode)
    elif mode == "I;16":
        wide = b"".join(bytes((0, each)) for each in samples.draw().convert("L").tobytes())
        image = Image.frombytes("I;16", (60, 40), wide)
    made = studio.transform(samples.picture("TIFF", image), "image/tiff", LIMIT, format="jpg").convert("L")
    pixels: list[Any] = [made.getpixel((2, 2)), made.getpixel((27, 2)), made.getpixel((27, 17))]
    assert pixels[0] < 140
    assert pixels[1] > 240
    assert pixels[2] < 60


def test_the_quality_determines_the_size_of_the_file(studio: Studio) -> None:
    image = Image.effect_noise((80, 80), 60)
    sizes = []
    for quality in (5, 95):
        studio.transform(samples.picture("PNG", image), PNG, ("quality", quality), format="jpg")
        sizes.append(studio.target.stat().st_size)
    assert sizes[0] * 2 < sizes[1]


@pytest.mark.parametrize(
    ("source", "format", "frames"),
    [
        ("GIF", "gif", 3),
        ("GIF", "webp", 3),
        ("GIF", "avif", 3),
        ("GIF", "png", 1),
        ("GIF", "jpg", 1),
        ("PNG", "png", 3),
        ("WEBP", "gif", 3),
        ("WEBP", "tiff", 1),
    ],
)
def test_an_animation_keeps_its_frames_if_the_format_supports_them(
    studio: Studio, source: str, format: str, frames: int
) -> None:
    data = samples.animation(source, loop=0)
    made: Any = studio.transform(data, samples.TYPES[source], ("resize_to_limit", (20, 20)), format=format)
    assert (made.size, getattr(made, "n_frames", 1)) == ((20, 15), frames)
    if frames > 1:
        made.seek(1)
        made.load()
        assert made.info["duration"] == 120
        assert made.convert("RGB").getpixel((5, 5))[0] == pytest.approx(80, abs=12)
        assert format == "avif" or made.info["loop"] == 0


@pytest.mark.parametrize("format", ["gif", "webp", "png"])
def test_transparent_parts_of_an_animation_stay_transparent(studio: Studio, format: str) -> None:
    frames = [Image.new("RGBA", (40, 40), (0, 0, 0, 0)) for _ in range(3)]
    for number, frame in enumerate(frames):
        frame.paste("red", (0, 0, 20, 20 + 10 * number))
    data = samples.picture("PNG", frames[0], save_all=True, append_images=frames[1:], duration=50, disposal=1)
    made: Any = studio.transform(data, PNG, ("resize_to_limit", (20, 20)), format=format)
    seen = []
    for number in range(3):
        made.seek(number)
        seen.append(corners(made))
    assert seen == [["red", "clear", "clear", "clear"]] * 2 + [["red", "clear", "red", "clear"]]


def test_a_picture_that_no_operation_changes_is_still_encoded_again(studio: Studio) -> None:
    made: Any = studio.transform(samples.animation("PNG", loop=2), PNG, ("strip", True))
    assert (made.n_frames, made.info["loop"], made.info["duration"]) == (3, 2, 120)
    colours = []
    for number in range(3):
        made.seek(number)
        colours.append(made.convert("RGB").getpixel((5, 5))[0])
    assert colours == [0, 80, 160]
    data = samples.picture("TIFF", exif=samples.exif(6, description="a hill"), description="a hill")
    made = studio.transform(data, "image/tiff", ("quality", 50), format="tiff")
    assert (made.size, corners(made)) == ((40, 60), ["white", "red", "blue", "white"])
    assert b"a hill" not in studio.target.read_bytes()


def test_tags_that_do_not_fit_into_a_jpeg_are_left_out(studio: Studio) -> None:
    data = samples.picture("PNG", exif=samples.exif(1, description="x" * 70_000))
    assert not studio.transform(data, PNG, LIMIT, format="jpg").getexif()


@pytest.mark.parametrize(
    ("operations", "format", "error"),
    [
        ([("resize", (1, 1))], "png", InvalidOptionsError),
        ([("__class__", 1)], "png", InvalidOptionsError),
        ([("crop", (60, 0, 10, 10))], "png", InvalidOptionsError),
        ([("resize_and_pad", (9, 9, {"background": "mauve-ish"}))], "png", InvalidOptionsError),
        ([("rotate", 90)], "svg", UnsupportedMediaError),
        ([("rotate", 90)], "../../x", UnsupportedMediaError),
    ],
)
def test_the_process_refuses_unknown_operations_and_formats_too(
    studio: Studio, operations: list[Any], format: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        studio.transform(samples.picture("PNG"), PNG, *operations, format=format)
    assert not studio.target.exists()
