"""S3's XML: documents read with care, and the few that are sent.

Pure. S3's documents declare no types or entities, so one that does is refused before a parser sees it. Keys may contain
characters that XML cannot express: listings are requested in URL encoding, and if a server still puts such a character
into a document, it is parsed anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from holdall.core.objects import Part

if TYPE_CHECKING:
    # at run time only where there is a document: it takes a while to load
    from xml.etree.ElementTree import Element

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_MISFITS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\r|&#(?:x0*[0-9a-fA-F]{1,5}|0*[0-9]{1,6});")
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})


class NoDocument(Exception):
    """The bytes are not a document of S3; the text says why."""


class Document:
    """An element of a document, without the namespaces that some servers leave out."""

    __slots__ = ("_element", "_mark", "_namespace")

    def __init__(self, element: Element, mark: str = "") -> None:
        self._element = element
        self._mark = mark
        self._namespace = element.tag[: element.tag.rfind("}") + 1]

    @property
    def name(self) -> str:
        """The kind of document."""
        return self._element.tag[len(self._namespace) :]

    def all(self, name: str) -> Iterable[Document]:
        """The elements of that name below."""
        return (Document(found, self._mark) for found in self._element.findall(self._namespace + name))

    def get(self, name: str) -> str | None:
        """The text of an element below; None if there is none."""
        text = self._element.findtext(self._namespace + name)
        return _unmark(text, self._mark) if text is not None and self._mark else text

    def text(self, name: str) -> str:
        """The text of a required element."""
        text = self.get(name)
        if text is None:
            raise NoDocument(f"it has no {name}")
        return text

    def number(self, name: str) -> int:
        """The number in a required element."""
        try:
            return int(self.text(name))
        except ValueError:
            raise NoDocument(f"its {name} is not a number") from None

    def time(self, name: str) -> datetime:
        """The time in a required element."""
        try:
            found = datetime.fromisoformat(self.text(name))
        except ValueError:
            raise NoDocument(f"its {name} is not a time") from None
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

    def key(self, name: str, encoding: str | None) -> str:
        """The key in a required element, in the encoding that the document names."""
        text = self.text(name)
        return unquote_plus(text, errors="replace") if encoding == "url" else text

    def is_true(self, name: str) -> bool:
        """Whether an element is "true"."""
        return (self.get(name) or "").strip().lower() == "true"


def read_document(body: bytes) -> Document:
    """The document in a body; `NoDocument` if there is none."""
    from xml.etree.ElementTree import ParseError, fromstring

    try:
        text = body.decode().lstrip()  # some servers send spaces first, to keep a slow reply alive
    except UnicodeDecodeError:
        raise NoDocument("it is not UTF-8") from None
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise NoDocument("it declares a document type or an entity")
    trouble: ParseError | None = None
    for reading in (_mark_misfits, _keep_misfits) if "\r" in text else (_keep_misfits, _mark_misfits):
        tried, mark = reading(text)
        try:
            return Document(fromstring(tried), mark)
        except ParseError as error:
            trouble = error
    raise NoDocument(f"it is not XML ({trouble})")


def _keep_misfits(text: str) -> tuple[str, str]:
    return text, ""


def _mark_misfits(text: str) -> tuple[str, str]:
    """The text with every character that a parser refuses or changes written as a code between unused marks."""
    root = re.search("<[A-Za-z]", text)
    start, end = (0, 0) if root is None else (root.start(), text.rfind(">"))
    mark = next(chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    content = _MISFITS.sub(lambda found: f"{mark}{_code(found[0]):x}{mark}", text[start:end])
    return text[:start] + content + text[end:], mark


def _code(misfit: str) -> int:
    if not misfit.startswith("&"):
        return ord(misfit)
    return int(misfit[3:-1], 16) if misfit[2] == "x" else int(misfit[2:-1])


def _unmark(text: str, mark: str) -> str:
    return re.sub(f"{mark}([0-9a-f]+){mark}", lambda found: chr(int(found[1], 16)), text)


# --- documents to send ------------------------------------------------------------------------------------


def fits_xml(key: str) -> bool:
    """Whether a document can name the key."""
    return not _UNFIT.search(key)


def deletion(keys: Iterable[str]) -> bytes:
    """A request to delete keys, and to report only failures."""
    objects = "".join(f"<Object><Key>{key.translate(_ESCAPES)}</Key></Object>" for key in keys)
    return f'<Delete xmlns="{_NAMESPACE}"><Quiet>true</Quiet>{objects}</Delete>'.encode()


def completion(parts: Iterable[Part]) -> bytes:
    """The parts of an object."""
    listed = "".join(
        f"<Part><PartNumber>{part.number}</PartNumber><ETag>&quot;{part.etag.translate(_ESCAPES)}&quot;</ETag></Part>"
        for part in parts
    )
    return f'<CompleteMultipartUpload xmlns="{_NAMESPACE}">{listed}</CompleteMultipartUpload>'.encode()


def tag_set(tags: Mapping[str, str]) -> bytes:
    """The tags of an object."""
    listed = "".join(
        f"<Tag><Key>{name.translate(_ESCAPES)}</Key><Value>{value.translate(_ESCAPES)}</Value></Tag>"
        for name, value in tags.items()
    )
    return f'<Tagging xmlns="{_NAMESPACE}"><TagSet>{listed}</TagSet></Tagging>'.encode()


def bucket_configuration(region: str) -> bytes:
    """The region of a new bucket; empty for the oldest region, which is the default."""
    if region == "us-east-1":
        return b""
    return (
        f'<CreateBucketConfiguration xmlns="{_NAMESPACE}"><LocationConstraint>{region}</LocationConstraint>'
        "</CreateBucketConfiguration>"
    ).encode()
