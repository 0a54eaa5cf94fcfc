"""The content types of real files, decided by their bytes, whatever their names and senders declare."""

from __future__ import annotations

import io

import pytest
from rig import samples

from holdall.attachments.blob.content_type import HEAD_BYTES, identify

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

SAMPLES = {
    **{f"{kind} by Pillow": (kind, samples.picture(format)) for format, kind in samples.TYPES.items()},
    "large tiff": ("image/tiff", samples.picture("TIFF", big_tiff=True)),
    "psd": (samples.PSD, samples.psd()),
    "pdf": ("application/pdf", samples.pdf()),
    "pdf behind other bytes": ("application/pdf", b"\r\n\0\0" + samples.pdf()),
    "docx": (WORD, samples.office("word/document.xml")),
    "xlsx": (EXCEL, samples.office("xl/workbook.xml")),
    "xlsx by openpyxl": (EXCEL, samples.archive({"docProps/app.xml": "<a/>", "xl/theme/theme1.xml": "<a/>"})),
    "zip": ("application/zip", samples.archive({"readme.txt": "words"})),
    "empty zip": ("application/zip", samples.archive({})),
    "mp4": ("video/mp4", samples.film("mp4")),
    "mov": ("video/quicktime", samples.film("mov")),
    "webm": ("video/webm", samples.film("webm", "libvpx-vp9")),
    "mkv": ("video/x-matroska", samples.film("matroska")),
    "mpeg": ("video/mpeg", samples.film("mpeg", "mpeg1video", sound=False, rate=25)),
    "mov without brands": ("video/quicktime", samples.film("mov")[20:]),
    "avi": ("video/x-msvideo", samples.film("avi")),
    "mp3": ("audio/mpeg", samples.tone("mp3", "libmp3lame")),
    "mp3 with tags": ("audio/mpeg", samples.tone("mp3", "libmp3lame", title="Moon")),
    "m4a": ("audio/mp4", samples.tone("ipod", "aac")),
    "wav": ("audio/wav", samples.wav()),
    "ogg": ("audio/ogg", samples.tone("ogg", "libopus")),
    "flac": ("audio/flac", samples.tone("flac", "flac")),
    "html": ("text/html", b"<!DOCTYPE html>\n<html><head><title>x</title></head></html>"),
    "html after a comment": ("text/html", b"\n\n <!-- x -->\n<HTML lang=de>"),
    "html fragment": ("text/html", b"<img src=x onerror=alert(1)>"),
    "html with a byte order mark": ("text/html", "\ufeff<html>".encode()),
    "html in UTF-16": ("text/html", "<html><p>".encode("utf-16")),
    "html before a pdf": ("text/html", b"<script>alert(1)</script>%PDF-1.7"),
    "xhtml": ("application/xhtml+xml", b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>'),
    "svg": ("image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'),
    "svg as xml": ("image/svg+xml", b'<?xml version="1.0"?>\n<!-- made by hand -->\n<!DOCTYPE svg>\n<svg/>'),
    "xml": ("application/xml", b'<?xml version="1.0"?><table/>'),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_bytes_decide_against_every_other_name_and_declared_type(name: str) -> None:
    kind, data = SAMPLES[name]
    head = data[:HEAD_BYTES]
    assert identify(head) == kind
    for wrong, declared in (
        ("page.html", "text/html"),
        ("a.exe", "image/png"),
        ("photo.jpg", "application/pdf"),
    ):
        if kind not in ("application/zip", "text/html"):
            assert identify(head, name=wrong, declared=declared) == kind


WORDS = b"name,age\nAda,36\n"


@pytest.mark.parametrize(
    ("head", "name", "declared", "kind"),
    [
        (WORDS, None, None, "application/octet-stream"),
        (WORDS, "people.txt", None, "text/plain"),
        (WORDS, "people.CSV", None, "text/csv"),
        (WORDS, "people.csv", "application/octet-stream", "text/csv"),  # a type that carries no information
        (
            WORDS,
            "people.csv",
            "Text/Markdown; charset=utf-8",
            "text/markdown",
        ),  # the declared type takes precedence over the name
        (WORDS, "people.csv", "text/plain", "text/csv"),  # unless the name is more specific
        (WORDS, "people.csv", "nonsense", "text/csv"),
        (b"", "photo.png", None, "image/png"),
        (b"", None, "image/png", "image/png"),
        (SAMPLES["zip"][1], "report.docx", None, WORD),  # a kind of ZIP archive
        (SAMPLES["zip"][1], None, EXCEL, EXCEL),
        (SAMPLES["zip"][1], "report.docx", "image/png", WORD),
        (SAMPLES["zip"][1], "photo.png", "image/png", "application/zip"),
        (SAMPLES["docx"][1], "book.xlsx", EXCEL, WORD),
        (SAMPLES["xml"][1], "drawing.svg", None, "image/svg+xml"),
        (SAMPLES["xml"][1], "words.txt", "text/plain", "application/xml"),
        (SAMPLES["mkv"][1], "film.webm", None, "video/webm"),
        (SAMPLES["webm"][1], "film.mkv", "video/x-matroska", "video/webm"),
    ],
)
def test_a_name_or_declared_type_counts_only_if_it_is_more_specific(
    head: bytes, name: str | None, declared: str | None, kind: str
) -> None:
    assert identify(head[:HEAD_BYTES], name=name, declared=declared) == kind


def test_bytes_after_the_head_do_not_matter() -> None:
    data = io.BytesIO(samples.film("mp4") + b"<html>")
    assert identify(data.getvalue()) == identify(data.getvalue()[:HEAD_BYTES]) == "video/mp4"
    assert identify(bytes(HEAD_BYTES) + b"%PDF-", name="a.txt") == "text/plain"
