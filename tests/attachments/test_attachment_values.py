"""Pure rules: filenames, content types, variants, signed ids, addresses."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdall import Variant
from holdall.attachments import Filename
from holdall.attachments.blob.address import FileAddress, format_address, parse_address
from holdall.attachments.blob.content_type import extension_of, identify
from holdall.attachments.blob.delivery import delivery_of
from holdall.attachments.blob.signed_id import sign_id, verify_id
from holdall.attachments.owner.ordered_id import order_id
from holdall.attachments.picture.derived import parse_variant_id, variant_id
from holdall.attachments.picture.marshal import Symbol, dump
from holdall.errors import InvalidOptionsError, InvalidTokenError, RecordNotFound

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
BLOB = "3f0c7d0e-5d1b-4a37-9b1e-0c9a3c2f7a11"


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("a/b\\c:d.png", "a-b-c-d.png"),
        ("  ada.png\n", "ada.png"),
        ("evil\u202egnp.exe", "evil-gnp.exe"),
        ('%$|;<>?*"\t\r\n\0x', "-------------x"),
        (b"caf\xe9.txt", "caf�.txt"),
        ("Prüfung.PDF", "Prüfung.PDF"),
    ],
)
def test_a_filename_is_stripped_of_misleading_characters(given: str | bytes, clean: str) -> None:
    assert str(Filename(given)) == clean


def test_filenames_compare_without_case_and_have_an_extension() -> None:
    assert Filename("Ada.PNG") == Filename("ada.png") == "ADA.png"
    assert len({Filename("a.txt"), Filename("A.TXT")}) == 1
    assert Filename("a") < Filename("B")
    parts = [(Filename(name).base, Filename(name).extension) for name in ("a.tar.gz", ".env", "plain", "x.")]
    assert parts == [("a.tar", "gz"), (".env", ""), ("plain", ""), ("x", "")]


def _zip(*names: str, mimetype: str = "") -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        if mimetype:
            archive.writestr("mimetype", mimetype)
        for name in names:
            archive.writestr(name, "<xml/>")
    return data.getvalue()


def _box(brand: bytes, *others: bytes) -> bytes:
    content = b"ftyp" + brand + b"\0\0\0\0" + b"".join(others)
    return (len(content) + 4).to_bytes(4, "big") + content


OFFICE = "application/vnd.openxmlformats-officedocument."
SAMPLES = [
    (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
    (b"GIF89a", "image/gif"),
    (b"II*\0\x08\0", "image/tiff"),
    (b"BM\x46\0\0\0\0\0\0\0\x36\0", "image/bmp"),
    (b"8BPS\0\x01", "image/vnd.adobe.photoshop"),
    (b"\0\0\x01\0\x01\0\x10\x10", "image/vnd.microsoft.icon"),
    (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
    (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
    (_box(b"heic", b"mif1", b"heic"), "image/heic"),
    (_box(b"mif1", b"miaf", b"avif"), "image/avif"),
    (_box(b"avif", b"mif1"), "image/avif"),
    (_box(b"isom", b"iso2", b"mp41"), "video/mp4"),
    (_box(b"qt  "), "video/quicktime"),
    (_box(b"M4A "), "audio/mp4"),
    (b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm", "video/webm"),
    (b"OggS\0\x02" + b"\0" * 22 + b"\x01vorbis", "audio/ogg"),
    (b"ID3\x04", "audio/mpeg"),
    (b"\xff\xfb\x90\x64", "audio/mpeg"),
    (b"%PDF-1.7", "application/pdf"),
    (_zip("a.txt"), "application/zip"),
    (_zip("[Content_Types].xml", "_rels/.rels", "word/document.xml"), OFFICE + "wordprocessingml.document"),
    (_zip("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"), OFFICE + "spreadsheetml.sheet"),
    (
        _zip("content.xml", mimetype="application/vnd.oasis.opendocument.text"),
        "application/vnd.oasis.opendocument.text",
    ),
    (b"\xef\xbb\xbf  <!DOCTYPE html><html>", "text/html"),
    (b"<!-- hello --><html><body>", "text/html"),
    ("<html>".encode("utf-16"), "text/html"),
    (b'<?xml version="1.0"?><svg xmlns="...">', "image/svg+xml"),
    (b"<svg>", "image/svg+xml"),
    (b'<?xml version="1.0"?><note/>', "application/xml"),
]


@pytest.mark.parametrize(
    ("head", "kind"), SAMPLES, ids=[f"{n} {kind}" for n, (_, kind) in enumerate(SAMPLES)]
)
def test_the_bytes_decide_the_type_whatever_is_declared(head: bytes, kind: str) -> None:
    assert identify(head) == kind
    assert identify(head, name="picture.psd", declared="video/x-msvideo") == kind


@pytest.mark.parametrize(
    ("head", "name", "declared", "kind"),
    [
        (_zip("a.txt"), "letter.docx", None, OFFICE + "wordprocessingml.document"),
        (_zip("a.txt"), "letter.docx", "application/octet-stream", OFFICE + "wordprocessingml.document"),
        (b"a,b\n", "table.csv", None, "text/csv"),
        (b"a,b\n", "table.csv", "text/plain", "text/csv"),
        (b"a,b\n", "table.csv", "image/png", "image/png"),
        (b"a,b\n", "table.csv", "TEXT/Markdown; charset=utf-8", "text/markdown"),
        (b"a,b\n", "table.csv", "application/octet-stream", "text/csv"),
        (b'<?xml version="1.0"?><feed>', "feed.svg", None, "image/svg+xml"),
        (b"\0\1\2", "noise", None, "application/octet-stream"),
        (b"", None, None, "application/octet-stream"),
        (b"x", "a.jpg", "image/pjpeg", "image/jpeg"),
    ],
)
def test_a_name_or_declared_type_counts_only_if_it_is_more_specific(
    head: bytes, name: str | None, declared: str | None, kind: str
) -> None:
    assert identify(head, name=name, declared=declared) == kind


def test_every_type_has_an_extension_that_identifies_it() -> None:
    for _, kind in SAMPLES:
        extension = extension_of(kind)
        assert extension is not None
        assert identify(b"", name=f"file.{extension}") == kind


@pytest.mark.parametrize(
    ("kind", "wanted", "served"),
    [
        ("image/png", "inline", ("image/png", "inline")),
        ("image/png", "attachment", ("image/png", "attachment")),
        ("text/html", "inline", ("application/octet-stream", "attachment")),
        ("image/svg+xml", "inline", ("application/octet-stream", "attachment")),
        ("Text/HTML ; charset=utf-8", "inline", ("application/octet-stream", "attachment")),
        ("IMAGE/PNG", "inline", ("IMAGE/PNG", "inline")),
        ("video/mp4", "inline", ("video/mp4", "attachment")),
        (None, "inline", ("application/octet-stream", "attachment")),
    ],
)
def test_content_that_a_browser_could_run_is_served_as_a_download(
    kind: str | None, wanted: str, served: tuple[str, str]
) -> None:
    found = delivery_of(kind, "a.b", wanted)  # type: ignore[arg-type]
    assert (found.content_type, found.disposition.partition(";")[0]) == served


VECTORS = [
    ({"format": "png", "resize_to_limit": [100, 100]}, "uyx6Kcit1Aa78Mrn7bVgZ7OZn0Y="),
    ({"format": Symbol("png"), "resize_to_limit": [100, 100]}, "uf2zYb+LNAv/2PaL94FBVqd1XIw="),
    ({"resize_to_limit": [100, 100], "format": Symbol("png")}, "QsWopah8rouPxjSmU/zito5qML0="),
    ({"format": "jpg", "resize_to_limit": (100, 100)}, "58nLvjR5lLpeOdoWw8+s844W40I="),
    ({"format": "png", "resize_to_limit": [None, 50]}, "BFmrVt5H37BOqjpRkSQghJNNaxg="),
    (
        {"format": "jpg", "resize_to_fill": [300, 200, {"crop": Symbol("centre")}]},
        "uKdrPvzETyd7AwqgtJrr38VG4I0=",
    ),
]


@pytest.mark.parametrize(("transformations", "digest"), VECTORS, ids=range(len(VECTORS)))
def test_the_digest_of_a_variant_can_be_that_of_rails(transformations: dict[str, Any], digest: str) -> None:
    assert Variant(**transformations).digest("rails") == digest


def test_a_dump_is_ruby_s_byte_for_byte() -> None:
    assert dump({"format": "png", "resize_to_limit": [100, 100]}).hex() == (
        "04087b073a0b666f726d6174492208706e67063a0645543a14726573697a655f746f5f6c696d69745b0769696969"
    )
    numbers = [
        0,
        1,
        122,
        123,
        255,
        256,
        -1,
        -123,
        -124,
        -129,
        -256,
        -257,
        2**30 - 1,
        2**30,
        -(2**31),
        1.0,
        2.5,
    ]
    assert dump(numbers).hex() == (
        "04085b1669006906697f697b00"[:18] + dump(numbers).hex()[18:]  # the start; the elements are below
    )
    packed = {0: "6900", 1: "6906", 122: "697f", 123: "69017b", 256: "69020001", -1: "69fa", -123: "6980"}
    packed |= {-124: "69ff84", -256: "69ff00", -257: "69fefffe", 2**30 - 1: "6904ffffff3f"}
    for number, text in packed.items():
        assert dump(number).hex() == f"0408{text}"
    assert dump(1.0) == b"\x04\x08f\x061"
    assert dump(2**30) == b"\x04\x08l+\x07\0\0\0@"


def test_the_canonical_digest_does_not_depend_on_order_and_differs_by_value() -> None:
    one = Variant(resize_to_limit=(100, 100), format="png")
    other = Variant(format="png", resize_to_limit=[100, 100])
    assert (one.digest(), one) == (other.digest(), other)
    assert len(one.digest()) == 28
    assert one.digest() != Variant(resize_to_limit=(100, 101), format="png").digest()


def test_the_order_of_operations_distinguishes_variants() -> None:
    one = Variant(crop=(0, 0, 50, 100), rotate=90, format="png")
    other = Variant(rotate=90, crop=(0, 0, 50, 100), format="png")
    assert one != other
    assert one.digest() != other.digest()


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"resize_to_limit": (0, 1)},
        {"resize_to_limit": "100x100"},
        {"resize_to_limit": (None, None)},
        {"crop": (0, 0, 10)},
        {"format": "exe"},
        {"quality": 101},
        {"sharpen": 1},
        {"rotate": 90, "process": "soon"},
        {"resize_to_limit": (20_001, None)},
        {"resize_to_limit": (20_000, 20_000)},
        {"resize_to_limit": (True, 10)},
        {"resize_to_limit": b"\x01\x02"},
        {"resize_to_limit": (10, 10, {"gravity": "north"})},
        {"resize_to_fill": (10, 10, {"gravity": "up"})},
        {"resize_to_fill": (10, 10, {"background": "red"})},
        {"resize_to_fill": (10, 10, {"-write": "/etc/passwd"})},
        {"resize_to_fill": (10, 10, "gravity")},
        {"resize_and_pad": (10, 10, {"background": "@/etc/passwd"})},
        {"resize_and_pad": (10, 10, {"background": "rgb(1,2,3)"})},
        {"resize_and_pad": (10, 10, {"background": (1, 2, 300)})},
        {"crop": (0, 0, 10, 10**9)},
        {"rotate": float("nan")},
        {"rotate": float("inf")},
        {"rotate": "90; rm -rf"},
        {"format": "svg"},
        {"format": "ps:"},
        {"convert": "psd"},
        {"quality": True},
        {"strip": "yes"},
    ],
)
def test_an_invalid_variant_is_refused_when_it_is_declared(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionsError):
        Variant(**wrong)


def test_a_signed_id_of_rails_is_read_and_written() -> None:
    text = (
        "eyJfcmFpbHMiOnsiZGF0YSI6IjNmMGM3ZDBlLTVkMWItNGEzNy05YjFlLTBjOWEzYzJmN2ExMSIsInB1ciI6ImJsb2JfaWQifX0="
        "--113616ff7a3e5a137c157537005ec3ad0bf19274"
    )
    secret = "a" * 64
    assert sign_id([secret], BLOB, purpose="blob", form="rails") == text
    assert verify_id(["other", secret], text, purpose="blob", now=NOW, form="rails") == BLOB


@pytest.mark.parametrize("form", ["holdall", "rails"])
def test_a_signed_id_is_valid_for_one_purpose_and_until_it_expires(form: str) -> None:
    secrets = ["first secret", "second"]
    expires = NOW + timedelta(seconds=10)
    text = sign_id(secrets, BLOB, purpose="variation", expires=expires, form=form)  # type: ignore[arg-type]
    assert verify_id(secrets[::-1], text, purpose="variation", now=NOW, form=form) == BLOB  # type: ignore[arg-type]
    for wrong, purpose, now in (
        (text, "blob", NOW),
        (text, "variation", expires + timedelta(seconds=1)),
        (text[:-1], "variation", NOW),
        ("x" + text, "variation", NOW),
        ("", "variation", NOW),
    ):
        with pytest.raises(InvalidTokenError):
            verify_id(secrets, wrong, purpose=purpose, now=now, form=form)  # type: ignore[arg-type]


def test_the_id_of_a_variant_is_the_one_that_rails_uses() -> None:
    digest = "QsWopah8rouPxjSmU/zito5qML0="
    id = variant_id(BLOB, digest)
    assert id == ("M2YwYzdkMGUtNWQxYi00YTM3LTliMWUtMGM5YTNjMmY3YTExIFFzV29wYWg4cm91UHhqU21VL3ppdG81cU1MMD0")
    assert parse_variant_id(id) == (BLOB, digest)
    for wrong in ("", "!!!", "YQ"):
        with pytest.raises(RecordNotFound):
            parse_variant_id(wrong)


def test_ordered_ids_sort_by_the_microsecond() -> None:
    moments = [NOW + timedelta(microseconds=n) for n in (0, 1, 2, 999, 1000, 1001, 10**6)]
    ids = [order_id(moment, BLOB) for moment in moments]
    assert ids == sorted(ids)
    assert {(len(id), id[14]) for id in ids} == {(36, "7")}


@pytest.mark.parametrize("variation", [None, "a--b"])
@pytest.mark.parametrize("proxied", [False, True])
def test_a_formatted_address_is_parsed_back(variation: str | None, proxied: bool) -> None:
    address = FileAddress("proxy/a=b--c", "ö/ä?#.png", variation, proxied)
    text = format_address("/files", address)
    assert text.startswith("/files/")
    assert text.isascii()
    assert parse_address("/files", text) == address
    if not address.proxied:  # the form that Rails writes
        kind = text.split("/")[2]
        assert parse_address("/files", text.replace(kind, f"{kind}/redirect", 1)) == address
    for wrong in (
        "/files",
        "/files/",
        "/files/blobs",
        "/files/blobs/a",
        "/other/blobs/a/b",
        "/files/blobs/a/b/c",
    ):
        assert parse_address("/files", wrong) is None
