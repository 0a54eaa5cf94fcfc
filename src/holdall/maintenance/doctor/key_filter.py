"""A set of keys in a fixed amount of memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

_BITS = 1 << 26
"""8 MB. Of the keys that were not added, 4 in a million seem to be there once 2 million were added, 6 % once 10 million
were."""


class KeyFilter:
    """Remembers keys. It never lacks a key that was added, but may seem to have one that was not.

    Threads that add keys at the same moment may lose one, so what it lacks has to be confirmed.
    """

    def __init__(self, bits: int = _BITS) -> None:
        self._bits = bytearray(bits // 8)

    def add(self, key: str) -> None:
        """Remember a key."""
        for place in self._list_places(key):
            self._bits[place >> 3] |= 1 << (place & 7)

    def __contains__(self, key: str) -> bool:
        return all(self._bits[place >> 3] & 1 << (place & 7) for place in self._list_places(key))

    def _list_places(self, key: str) -> Iterator[int]:
        digest = blake2b(key.encode(errors="surrogatepass"), digest_size=32).digest()
        size = len(self._bits) * 8
        for start in range(0, 32, 4):
            yield int.from_bytes(digest[start : start + 4], "big") % size
