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
        """The envelope of an item, which has all of its attributes."""
        whole, _ = canonical_item(item)
        said = {"v": VERSION, "table": table, "key": dict(key), "item": whole}
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        return cls(text, sha256(text).hexdigest())

    def compress(self, put_id: str) -> bytes:
        """The object's bytes."""
        header = bytes((0x1F, 0x8B, 8, _WITH_COMMENT, 0, 0, 0, 0, 0, 255)) + put_id.encode("ascii") + b"\0"
        deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        body = deflate.compress(self.text) + deflate.flush()
        size = len(self.text) & 0xFFFFFFFF
        return header + body + crc32(self.text).to_bytes(4, "little") + size.to_bytes(4, "little")


def read_envelope(data: bytes, digest: str, where: str) -> Item:
    """The item in an object; `CorruptArchiveError` unless it is the one with this digest."""
    try:
        text = zlib.decompress(data, zlib.MAX_WBITS | 16)
    except zlib.error as error:
        raise CorruptArchiveError(f"the archived object {where} cannot be decompressed: {error}") from None
    if sha256(text).hexdigest() != digest:
        raise CorruptArchiveError(f"the archived object {where} has other content than was archived")
    item: Item = json.loads(text)["item"]
    return item
