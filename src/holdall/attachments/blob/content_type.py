"""The content type of a file: by its first bytes, then by what its sender declared, then by its name.

Pure. The first of the three that gives a type decides, unless a later one is more specific: the bytes of a Word
document look like a ZIP archive, and its name shows which kind. So a sender cannot pass off a page of HTML as a
picture, or the reverse.
"""

from __future__ import annotations

import re

from holdall.core.media import FILM_TYPES, PDF

BINARY = "application/octet-stream"
HEAD_BYTES = 4096
"""How many of a file's first bytes are examined."""

_OOXML = "application/vnd.openxmlformats-officedocument."
_OPEN = "application/vnd.oasis.opendocument."

_EXTENSIONS = {
    "image/jpeg": "jpg jpeg jpe",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/heic": "heic",
    "image/heif": "heif",
    "image/tiff": "tiff tif",
    "image/bmp": "bmp",
    "image/vnd.adobe.photoshop": "psd",
    "image/vnd.microsoft.icon": "ico",
    "image/svg+xml": "svg",
    "application/pdf": "pdf",
    "application/postscript": "ps eps ai",
    "application/rtf": "rtf",
    "application/zip": "zip",
    "application/gzip": "gz tgz",
    "application/x-bzip2": "bz2",
    "application/x-xz": "xz",
    "application/zstd": "zst",
    "application/x-7z-compressed": "7z",
    "application/vnd.rar": "rar",
    "application/x-tar": "tar",
    "application/java-archive": "jar",
    "application/epub+zip": "epub",
    _OOXML + "wordprocessingml.document": "docx",
    _OOXML + "spreadsheetml.sheet": "xlsx",
    _OOXML + "presentationml.presentation": "pptx",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    _OPEN + "text": "odt",
    _OPEN + "spreadsheet": "ods",
    _OPEN + "presentation": "odp",
    "application/json": "json",
    "application/xml": "xml xsl",
    "application/xhtml+xml": "xhtml",
    "application/yaml": "yaml yml",
    "application/wasm": "wasm",
    "application/vnd.sqlite3": "sqlite sqlite3",
    "text/html": "html htm",
    "text/plain": "txt text log",
    "text/csv": "csv",
    "text/markdown": "md markdown",
    "text/css": "css",
    "text/javascript": "js mjs",
    "text/calendar": "ics",
    "text/vcard": "vcf",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg oga opus",
    "audio/flac": "flac",
    "audio/aac": "aac",
    "audio/mp4": "m4a",
    "audio/webm": "weba",
    "audio/midi": "mid midi",
    "video/mp4": "mp4",
    "video/x-m4v": "m4v",
    "video/quicktime": "mov qt",
    "video/webm": "webm",
    "video/x-matroska": "mkv",
    "video/ogg": "ogv",
    "video/x-msvideo": "avi",
    "video/mpeg": "mpg mpeg",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "font/ttf": "ttf",
    "font/otf": "otf",
}
_BY_EXTENSION = {each: kind for kind, given in _EXTENSIONS.items() for each in given.split()}

WEB_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Pictures that every browser shows; their variants keep their type."""

_PARENTS = {
    "image/svg+xml": "application/xml",
    "application/xhtml+xml": "application/xml",
    "application/rss+xml": "application/xml",
    "application/atom+xml": "application/xml",
    "application/mathml+xml": "application/xml",
    "application/xml": "text/plain",
    "application/json": "text/plain",
    "application/yaml": "text/plain",
    "audio/ogg": "application/ogg",
    "video/ogg": "application/ogg",
    "video/webm": "video/x-matroska",
    "audio/webm": "video/x-matroska",
    "video/x-m4v": "video/mp4",
    "audio/mp4": "video/mp4",
    "image/heic": "image/heif",
    "application/java-archive": "application/zip",
    "application/epub+zip": "application/zip",
    **{kind: "application/zip" for kind in _EXTENSIONS if kind.startswith((_OOXML, _OPEN))},
}
_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-icon": "image/vnd.microsoft.icon",
    "image/x-ms-bmp": "image/bmp",
    "application/x-pdf": "application/pdf",
    "application/x-zip-compressed": "application/zip",
    "text/xml": "application/xml",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/mp3": "audio/mpeg",
}

_STARTS = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"II+\0", "image/tiff"),
    (b"MM\0+", "image/tiff"),
    (b"8BPS\0\x01", "image/vnd.adobe.photoshop"),
    (b"%PDF-", "application/pdf"),
    (b"%!PS", "application/postscript"),
    (b"{\\rtf", "application/rtf"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"\0asm", "application/wasm"),
    (b"\0\0\x01\xba", "video/mpeg"),
    (b"\0\0\x01\xb3", "video/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"MThd", "audio/midi"),
    (b"ID3", "audio/mpeg"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO", "font/otf"),
)
_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"hevc": "image/heic",
    b"hevx": "image/heic",
    b"mif1": "image/heif",
    b"msf1": "image/heif",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"M4V ": "video/x-m4v",
    b"qt  ": "video/quicktime",
}
_PARTS_OF_OOXML = (
    (b"word/", _OOXML + "wordprocessingml.document"),
    (b"xl/", _OOXML + "spreadsheetml.sheet"),
    (b"ppt/", _OOXML + "presentationml.presentation"),
)
_HTML = re.compile(
    rb"<!doctype html|<(a|b|body|br|div|font|h1|head|html|iframe|img|p|script|style|table|title)[\s/>]"
)
"""What browsers that sniff content take for the beginning of a page."""
_SVG = re.compile(rb"<!doctype svg|<svg[\s/>]")


def identify(head: bytes, *, name: str | None = None, declared: str | None = None) -> str:
    """The content type of a file that begins with these bytes (`HEAD_BYTES` of them are enough)."""
    found = _type_by_bytes(head[:HEAD_BYTES])
    for candidate in (_clean(declared), type_by_name(name)):
        if candidate is not None and (found is None or _descends(candidate, found)):
            found = candidate
    return found or BINARY


def type_by_name(name: str | None) -> str | None:
    """The content type that a file's name implies; None if its extension is missing or unknown."""
    return None if name is None else _BY_EXTENSION.get(name.rpartition(".")[2].lower())


def extension_of(content_type: str) -> str | None:
    """The usual extension of a content type, without the dot; None if it is unknown."""
    known = _EXTENSIONS.get(_ALIASES.get(content_type, content_type))
    return None if known is None else known.split()[0]


def is_previewable(content_type: str | None) -> bool:
    """Whether a preview of the file's first page or frame can be made."""
    return content_type == PDF or content_type in FILM_TYPES


def _clean(declared: str | None) -> str | None:
    """A declared type without parameters, under its usual name; None if it carries no information."""
    kind = (declared or "").partition(";")[0].strip().lower()
    kind = _ALIASES.get(kind, kind)
    return None if kind == BINARY or "/" not in kind else kind


def _descends(kind: str, ancestor: str) -> bool:
    parent: str | None = kind
    while parent is not None:
        parent = _PARENTS.get(parent, "text/plain" if parent.startswith("text/") else None)
        if parent == ancestor:
            return True
        if parent == "text/plain":
            return False
    return False


def _type_by_bytes(head: bytes) -> str | None:
    for start, kind in _STARTS:
        if head.startswith(start):
            return kind
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _type_of_zip(head)
    if head[4:8] == b"ftyp":
        return _type_of_box(head)
    if head[:1] == b"\0" and head[4:8] in (b"moov", b"mdat", b"wide"):  # older than brands
        return "video/quicktime"
    if head.startswith(b"RIFF"):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}.get(head[8:12])
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        return "video/webm" if b"webm" in head[:64] else "video/x-matroska"
    if head.startswith(b"OggS"):
        return "video/ogg" if b"theora" in head[:512] else "audio/ogg"
    if head.startswith(b"\0\0\x01\0") and head[4:6] not in (b"", b"\0\0"):
        return "image/vnd.microsoft.icon"
    if head.startswith(b"BM") and head[6:10] == b"\0\0\0\0":
        return "image/bmp"
    if head[257:262] == b"ustar":
        return "application/x-tar"
    if _is_mpeg_audio(head):
        return "audio/mpeg"
    markup = _type_of_markup(head)
    if markup is None and b"%PDF-" in head[:1024]:  # PDF readers accept this
        return "application/pdf"
    return markup


def _type_of_zip(head: bytes) -> str:
    """The kind of a ZIP archive, by the names of its first files."""
    if head[30:38] == b"mimetype":
        size = int.from_bytes(head[18:22], "little")
        kind = head[38 : 38 + size].decode("ascii", "replace")
        return kind if kind in _PARENTS else "application/zip"
    if any(part in head for part in (b"[Content_Types].xml", b"_rels/.rels", b"docProps/")):
        for part, kind in _PARTS_OF_OOXML:
            if part in head:
                return kind
    return "application/java-archive" if b"META-INF/" in head[30:60] else "application/zip"


def _type_of_box(head: bytes) -> str:
    """The kind of an ISO media file: by its main brand or, if that is too general, by the first specific brand."""
    size = min(int.from_bytes(head[:4], "big"), 256)
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, size, 4))]
    main = _BRANDS.get(brands[0])
    if main == "image/heif":
        return next(
            (
                _BRANDS[each]
                for each in brands[1:]
                if each[:3] in (b"avi", b"hei", b"hev") and each in _BRANDS
            ),
            main,
        )
    return main or "video/mp4"


def _is_mpeg_audio(head: bytes) -> bool:
    """Whether the bytes begin with a frame header of MPEG audio: no field has an impossible value."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer, rate = head[1] >> 3 & 3, head[1] >> 1 & 3, head[2] >> 2 & 3
    return version != 1 and layer == 1 and head[2] >> 4 not in (0, 15) and rate != 3


def _type_of_markup(head: bytes) -> str | None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        head = head.decode("utf-16", "ignore").encode()
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    is_xml = text.startswith(b"<?xml")
    while text.startswith((b"<?", b"<!--")):
        text = text.partition(b"-->" if text.startswith(b"<!--") else b"?>")[2].lstrip()
    if _SVG.match(text):
        return "image/svg+xml"
    if is_xml:
        return (
            "application/xhtml+xml" if text.startswith((b"<!doctype html", b"<html")) else "application/xml"
        )
    return "text/html" if _HTML.match(text) else None
