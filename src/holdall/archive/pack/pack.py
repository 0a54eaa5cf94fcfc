"""Packs: many items in one object. Pure.

A pack is a series of gzip members: first the index, then one slice per item. A slice holds the same envelope as the
object of a single item. So an item can be read alone, as a range of bytes, and gunzip shows all of them. The index
lists the owners of the slices in order; the sweep and the compaction use it to find out which slices are still needed.

A pack's key contains the SHA-256 of its bytes, and the bytes contain the id of the put: no two puts have the same key,
so a pack is never replaced.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from holdall.archive.envelope import Envelope, compress
from holdall.core.frozen import dataclass
from holdall.core.measure import canonical_item
from holdall.core.values import Item
from holdall.errors import CorruptArchiveError

PACK_SUFFIX = ".pack.gz"
"""The suffix of every pack's key; objects of single items have another."""

PACK_BYTES = 4 * 1024**2
PACK_ITEMS = 1000
"""A pack is full when its slices reach ``PACK_BYTES``, or it has ``PACK_ITEMS`` items."""

INDEX_BYTES = 80
"""Roughly how many bytes an item takes in the index of a pack."""

FOLDER = "packs/"
"""The folder of packs, below the prefix of an archive's keys."""

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Slice:
    """An item on its way into a pack: its key, the digest of its text, and its bytes."""

    key: Item
    digest: str
    data: bytes

    @classmethod
    def of(cls, key: Item, envelope: Envelope) -> Slice:
        """The slice of an envelope."""
        return cls(key, envelope.digest, compress(envelope.text))


@dataclass(frozen=True, slots=True)
class PackedSlice:
    """A slice as listed in a pack's index: its owner's key, the digest of its text, and its place in the pack."""

    key: Item
    digest: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class PackIndex:
    """The slices of a pack in order, with the table and the model (or a base of the models) that they belong to."""

    table: str
    model: str
    slices: tuple[PackedSlice, ...]

    @property
    def size(self) -> int:
        """The size of all slices together, in bytes."""
        return sum(each.size for each in self.slices)


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack before it is stored: its bytes, their digest, and its index."""

    body: bytes
    digest: bytes
    index: PackIndex

    @classmethod
    def of(cls, table: str, model: str, slices: Sequence[Slice], put_id: str) -> Pack:
        """Make a pack of these slices."""
        facts = {
            "v": _VERSION,
            "table": table,
            "model": model,
            "put": put_id,
            "slices": [{"key": dict(each.key), "h": each.digest, "l": len(each.data)} for each in slices],
        }
        head = compress(json.dumps(facts, separators=(",", ":"), ensure_ascii=False).encode())
        index = _place(table, model, [(each.key, each.digest, len(each.data)) for each in slices], len(head))
        body = b"".join([head, *(each.data for each in slices)])
        return cls(body, sha256(body).digest(), index)

    def key(self, prefix: str) -> str:
        """The key at which the pack is stored."""
        return f"{prefix}{FOLDER}{self.digest.hex()}{PACK_SUFFIX}"

    @property
    def sha256(self) -> str:
        """The digest in base64; the service uses it to verify the bytes."""
        return b64encode(self.digest).decode("ascii")


def _place(table: str, model: str, slices: Sequence[tuple[Item, str, int]], start: int) -> PackIndex:
    packed = []
    for key, digest, size in slices:
        packed.append(PackedSlice(key, digest, start, size))
        start += size
    return PackIndex(table, model, tuple(packed))


class IndexReader:
    """Reads the index of a pack from its first bytes, which arrive piece by piece."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._text: list[bytes] = []
        self.read = 0

    def take(self, piece: bytes) -> PackIndex | None:
        """Take the next piece; return the index once it is complete. `CorruptArchiveError` if this is not a pack."""
        try:
            self._text.append(self._inflate.decompress(piece))
        except zlib.error:
            raise self._refuse() from None
        self.read += len(piece)
        if self._inflate.eof:
            return self._parse(self.read - len(self._inflate.unused_data))
        if not piece:
            raise self._refuse()
        return None

    def _parse(self, start: int) -> PackIndex:
        try:
            facts: Any = json.loads(b"".join(self._text))
            if facts["v"] != _VERSION or not isinstance(facts["table"], str):
                raise self._refuse()
            model = str(facts["model"])
            slices = [(canonical_item(each["key"])[0], each["h"], int(each["l"])) for each in facts["slices"]]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._refuse() from None
        return _place(facts["table"], model, slices, start)

    def _refuse(self) -> CorruptArchiveError:
        return CorruptArchiveError(f"the object {self._where} is not a pack of archived items")
