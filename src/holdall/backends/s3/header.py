"""An object's attributes as HTTP headers, and back.

Pure. Metadata can be any text, but a header's value cannot: text that is not plain ASCII is sent as encoded words
(RFC 2047), which S3 and its tools understand. An object that is put without a type gets S3's default type, which is
read as no type.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterator, Mapping
from quopri import decodestring
from urllib.parse import quote

from holdall.core.frozen import dataclass
from holdall.core.objects import ObjectHeaders
from holdall.errors import ConfigurationError

PUT_ID = "holdall-put-id"
"""The metadata in which a conditional put leaves its id."""

_META = "x-amz-meta-"
_NO_TYPE = "binary/octet-stream"
_PLAIN = re.compile(r"(?!.*=\?)(?!.*  )[ -~]*\Z")
_WORD = re.compile(r"=\?([A-Za-z0-9-]+)(?:\*[A-Za-z0-9-]*)?\?([BbQq])\?([^? ]*)\?=")
_BETWEEN = re.compile(r"(\?=)\s+(?==\?)")
_WORD_BYTES = 45
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Storage:
    """How new objects are stored: their encryption and its key, their storage class, their access control list."""

    encryption: str | None = None
    kms_key: str | None = None
    storage_class: str | None = None
    acl: str | None = None

    def headers(self) -> dict[str, str]:
        """The headers for every object that is created; `ConfigurationError` if a value is not valid."""
        if self.kms_key is not None and not (self.encryption or "").startswith("aws:kms"):
            raise ConfigurationError(
                "kms_key is set, but encryption is not aws:kms", hint="add encryption='aws:kms'"
            )
        named = {
            "x-amz-server-side-encryption": self.encryption,
            "x-amz-server-side-encryption-aws-kms-key-id": self.kms_key,
            "x-amz-storage-class": self.storage_class,
            "x-amz-acl": self.acl,
        }
        for name, value in named.items():
            if value is not None and not _TOKEN.fullmatch(value):
                raise ConfigurationError(
                    f"{value!r} cannot be sent as the header {name}", hint="use visible ASCII characters"
                )
        return {name: value for name, value in named.items() if value is not None}


def http_headers(headers: ObjectHeaders, put_id: str | None = None) -> dict[str, str]:
    """The headers of a put."""
    sent = {"content-type": headers.content_type or _NO_TYPE}
    if headers.disposition is not None:
        sent["content-disposition"] = headers.disposition
    if headers.cache_control is not None:
        sent["cache-control"] = headers.cache_control
    for name, value in headers.metadata.items():
        sent[_META + name] = _as_words(value)
    if put_id is not None:
        sent[_META + PUT_ID] = put_id
    return sent


def build_tag_header(tags: Mapping[str, str]) -> dict[str, str]:
    """The header with the tags of a put."""
    if not tags:
        return {}
    pairs = (f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in tags.items())
    return {"x-amz-tagging": "&".join(pairs)}


def object_headers(received: Mapping[str, str]) -> ObjectHeaders:
    """An object's attributes, from the headers of a reply."""
    content_type = received.get("content-type")
    metadata = {
        name[len(_META) :]: _from_words(value)
        for name, value in received.items()
        if name.startswith(_META) and name != _META + PUT_ID
    }
    return ObjectHeaders(
        content_type if content_type != _NO_TYPE else None,
        received.get("content-disposition"),
        received.get("cache-control"),
        metadata,
    )


def put_id(received: Mapping[str, str]) -> str | None:
    """The id that a put left."""
    return received.get(_META + PUT_ID)


def _as_words(value: str) -> str:
    if _PLAIN.match(value):
        return value
    return " ".join(f"=?UTF-8?B?{b64encode(piece).decode()}?=" for piece in _pieces(value))


def _pieces(value: str) -> Iterator[bytes]:
    """The text in pieces of whole characters that each fit into one word."""
    piece = b""
    for character in value:
        encoded = character.encode()
        if len(piece) + len(encoded) > _WORD_BYTES:
            yield piece
            piece = b""
        piece += encoded
    yield piece


def _from_words(value: str) -> str:
    if not value.isascii():  # another program may have put it as UTF-8, which was decoded as Latin-1
        try:
            value = value.encode("latin-1").decode()
        except UnicodeError:
            return value
    if "=?" not in value:
        return value
    return _WORD.sub(_decode_word, _BETWEEN.sub(r"\1", value))


def _decode_word(word: re.Match[str]) -> str:
    try:
        if word[2] in "Bb":
            return b64decode(word[3], validate=True).decode(word[1])
        return decodestring(word[3].encode(), header=True).decode(word[1])
    except (Error, LookupError, ValueError):
        return word[0]
