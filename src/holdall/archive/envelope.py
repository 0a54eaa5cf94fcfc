"""Envelopes: an item in the form in which an object stores it. The same item always gives the same text.

Pure. The text is DynamoDB's typed JSON with sorted names, so all types come back as they were; the pointer keeps its
SHA-256. The text is compressed with gzip, and the gzip header carries the id of the put: two puts of the same item have
different etags, so a late deletion of one cannot delete the other.
"""

from __future__ import annotations

import json
import zlib
from binascii import crc32
from hashlib import sha256

from holdall.core.frozen import dataclass
from holdall.core.measure import canonical_item
from holdall.core.stamp import STAMP
from holdall.core.values import Item
from holdall.errors import CorruptArchiveError

CODEC = "gzip"
VERSION = 1
_WITH_COMMENT = 0x10


@dataclass(frozen=True, slots=True)
class Envelope:
    """An item's text, with its digest in hex."""

    text: bytes
    digest: str

    @classmethod
    def of(cls, table: str, key: Item, item: Item) -> Envelope:
        """The envelope of an item: all of its attributes except the id of the write that stored it."""
        whole, _ = canonical_item({name: value for name, value in item.items() if name != STAMP})
        document = {"v": VERSION, "table": table, "key": dict(key), "item": whole}
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        return cls(text, sha256(text).hexdigest())

    def compress(self, put_id: str) -> bytes:
        """The object's bytes."""
        return compress(self.text, put_id.encode("ascii") + b"\0")


def compress(text: bytes, comment: bytes = b"") -> bytes:
    """A gzip member: always the same bytes for the same text and comment, with the same version of zlib."""
    flags = _WITH_COMMENT if comment else 0
    header = bytes((0x1F, 0x8B, 8, flags, 0, 0, 0, 0, 0, 255)) + comment
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(text) + deflate.flush()
    return header + body + crc32(text).to_bytes(4, "little") + (len(text) & 0xFFFFFFFF).to_bytes(4, "little")


@dataclass(frozen=True, slots=True)
class Contents:
    """What an object contains: an item, and the table and key that it was archived from."""

    envelope: Envelope
    table: str
    key: Item
    item: Item


def open_envelope(data: bytes, where: str) -> Contents:
    """Read what an object contains; `CorruptArchiveError` if it is not an archived item."""
    text = _decompress(data, where)
    try:
        document = json.loads(text)
        key, _ = canonical_item(document["key"])
        item, _ = canonical_item(document["item"])
        if document["v"] != VERSION or not isinstance(document["table"], str):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CorruptArchiveError(f"the object {where} is not an archived item") from None
    return Contents(Envelope(text, sha256(text).hexdigest()), document["table"], key, item)


def read_envelope(data: bytes, digest: str, where: str) -> Item:
    """Read the item in an object; `CorruptArchiveError` unless its text has this digest."""
    text = _decompress(data, where)
    if sha256(text).hexdigest() != digest:
        raise CorruptArchiveError(f"the content of the archived object {where} is not what was archived")
    item: Item = json.loads(text)["item"]
    return item


def _decompress(data: bytes, where: str) -> bytes:
    try:
        return zlib.decompress(data, zlib.MAX_WBITS | 16)
    except zlib.error as error:
        raise CorruptArchiveError(f"the archived object {where} cannot be decompressed: {error}") from None
