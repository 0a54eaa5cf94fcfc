"""Digests of bytes as they are read: MD5, SHA-256 and CRC32C, in one pass.

Pure. CRC32C is computed by the package ``google-crc32c`` or ``crc32c`` if one of them is installed; otherwise in
Python, about a hundred times slower, which is enough for small objects.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from holdall.core.objects import Checksum
from holdall.errors import IntegrityError, InvalidOptionsError

ALL: tuple[Checksum, ...] = ("md5", "sha256", "crc32c")
_POLYNOMIAL = 0x82F63B78


class Digests:
    """Computes digests of bytes piece by piece. Digests that were not requested cost nothing, and are None."""

    __slots__ = ("_crc", "_md5", "_sha256", "size", "wanted")

    def __init__(self, wanted: Iterable[Checksum] = ("md5", "sha256")) -> None:
        names = tuple(wanted)
        unknown = set(names) - set(ALL)
        if unknown:
            raise InvalidOptionsError(
                f"unknown checksum: {', '.join(sorted(unknown))}", hint=f"choose from: {', '.join(ALL)}"
            )
        self.wanted = bool(names)
        self._md5: Any = hashlib.md5(usedforsecurity=False) if "md5" in names else None
        self._sha256: Any = hashlib.sha256() if "sha256" in names else None
        self._crc: int | None = 0 if "crc32c" in names else None
        self.size = 0

    def update(self, data: bytes | memoryview) -> None:
        """Add some bytes."""
        if self._md5 is not None:
            self._md5.update(data)
        if self._sha256 is not None:
            self._sha256.update(data)
        if self._crc is not None:
            self._crc = crc32c()(bytes(data), self._crc)
        self.size += len(data)

    @property
    def md5(self) -> str | None:
        """In base64."""
        return None if self._md5 is None else b64encode(self._md5.digest()).decode()

    @property
    def sha256(self) -> str | None:
        """In base64."""
        return None if self._sha256 is None else b64encode(self._sha256.digest()).decode()

    @property
    def crc32c(self) -> str | None:
        """In base64, the most significant of its four bytes first."""
        return None if self._crc is None else b64encode(self._crc.to_bytes(4, "big")).decode()

    def check(self, key: str, md5: str | None, sha256: str | None) -> None:
        """Raise `IntegrityError` if the bytes do not have the expected digests; None for a digest is not checked."""
        for name, expected in (("md5", md5), ("sha256", sha256)):
            if expected is not None and expected != (found := getattr(self, name)):
                raise IntegrityError(
                    f"the bytes for {key!r:.80} have the {name} {found}, not the expected {expected}",
                    hint="they were changed in transit, or are different bytes; pass digests in base64",
                )


class PartDigests(Digests):
    """Computes the digest of an object that was uploaded in parts of ``part_size`` bytes; the last can be smaller."""

    __slots__ = ("_done", "_part", "part_size")

    def __init__(self, part_size: int) -> None:
        super().__init__([])
        self.wanted = True
        self.part_size = part_size
        self._done: list[bytes] = []
        self._part: Any = hashlib.md5(usedforsecurity=False)

    def update(self, data: bytes | memoryview) -> None:
        """Add some bytes."""
        rest = memoryview(data)
        while rest:
            left = self.part_size - self.size % self.part_size
            self._part.update(rest[:left])
            self.size += len(rest[:left])
            rest = rest[left:]
            if self.size % self.part_size == 0:
                self._done.append(self._part.digest())
                self._part = hashlib.md5(usedforsecurity=False)

    @property
    def etag(self) -> str:
        """The etag that S3 reports for the object."""
        if self.size % self.part_size:
            return etag_of_parts([*self._done, self._part.digest()])
        return etag_of_parts(self._done)


def etag_of_parts(digests: Sequence[bytes]) -> str:
    """Return the etag that S3 gives to an object made of parts with these MD5s."""
    return f"{hashlib.md5(b''.join(digests), usedforsecurity=False).hexdigest()}-{len(digests)}"


def digest_facts(facts: Any, digits: int) -> str:
    """Return a short digest of JSON values, to recognize the same query or the same run again."""
    import json

    text = json.dumps(facts, sort_keys=True, default=bytes.hex)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def hex_of(digest: str) -> str:
    """Convert a digest from base64 to hexadecimal digits."""
    return b64decode(digest).hex()


def base64_of(digest: str) -> str:
    """Convert a digest from hexadecimal digits to base64."""
    return b64encode(bytes.fromhex(digest)).decode()


@cache
def crc32c() -> Callable[[bytes, int], int]:
    """Return the fastest available function that continues a CRC32C: ``crc = crc32c()(data, crc)``."""
    try:
        from google_crc32c import extend  # type: ignore[import-not-found,unused-ignore]

        return lambda data, crc: extend(crc, data)  # type: ignore[no-any-return,unused-ignore]
    except ImportError:
        pass
    try:
        from crc32c import crc32c as native  # type: ignore[import-not-found,unused-ignore]

        return native  # type: ignore[no-any-return,unused-ignore]
    except ImportError:
        return _extend_in_python


def _extend_in_python(data: bytes, crc: int) -> int:
    table = _table()
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        found.append(crc)
    return tuple(found)
