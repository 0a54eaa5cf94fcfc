"""Envelopes: an item as an object has it. The same item always gives the same text, whoever archives it.

Pure. The text is DynamoDB's typed JSON with sorted names, so all types come back as they were; its SHA-256 is kept in
the pointer. It is compressed with gzip, whose header carries an id of the put: so two puts of the same item have
different etags, and a late deletion of one cannot hit the other.
"""

from __future__ import annotations

import json
import zlib
from binascii import crc32
from hashlib import sha256

from holdall.core.frozen import dataclass
from holdall.core.requests import STAMP
from holdall.core.values import Item, canonical_item
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
        """The envelope of an item, which has all of its attributes but the id of the write that left it."""
        whole, _ = canonical_item({name: value for name, value in item.items() if name != STAMP})
        said = {"v": VERSION, "table": table, "key": dict(key), "item": whole}
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        return cls(text, sha256(text).hexdigest())

    def compress(self, put_id: str) -> bytes:
        """The object's bytes."""
        return compress(self.text, put_id.encode("ascii") + b"\0")


def compress(text: bytes, comment: bytes = b"") -> bytes:
    """A gzip member: always the same for the same text and comment, but for other versions of zlib."""
    flags = _WITH_COMMENT if comment else 0
    header = bytes((0x1F, 0x8B, 8, flags, 0, 0, 0, 0, 0, 255)) + comment
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(text) + deflate.flush()
    return header + body + crc32(text).to_bytes(4, "little") + (len(text) & 0xFFFFFFFF).to_bytes(4, "little")


@dataclass(frozen=True, slots=True)
class Contents:
    """What an object has in it: an item, with the table and the key that it was archived from."""

    envelope: Envelope
    table: str
    key: Item
    item: Item


def open_envelope(data: bytes, where: str) -> Contents:
    """What is in an object; `CorruptArchiveError` if it is not an archived item."""
    text = _decompress(data, where)
    try:
        said = json.loads(text)
        key, _ = canonical_item(said["key"])
        item, _ = canonical_item(said["item"])
        if said["v"] != VERSION or not isinstance(said["table"], str):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CorruptArchiveError(f"the object {where} is not an archived item") from None
    return Contents(Envelope(text, sha256(text).hexdigest()), said["table"], key, item)


def read_envelope(data: bytes, digest: str, where: str) -> Item:
    """The item in an object; `CorruptArchiveError` unless it is the one with this digest."""
    text = _decompress(data, where)
    if sha256(text).hexdigest() != digest:
        raise CorruptArchiveError(f"the archived object {where} has other content than was archived")
    item: Item = json.loads(text)["item"]
    return item


def _decompress(data: bytes, where: str) -> bytes:
    try:
        return zlib.decompress(data, zlib.MAX_WBITS | 16)
    except zlib.error as error:
        raise CorruptArchiveError(f"the archived object {where} cannot be decompressed: {error}") from None
