"""Digests that protect bytes, and etags that are digests.

AWS checks a put against the digests that come with it. Not every server does, so for the others it is done here, before
anything is sent. AWS also documents when an etag is the MD5 of an object, or of the MD5s of its parts; another server
is trusted once it has returned a correct etag for bytes with known MD5s.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import md5

from holdall.backends.aws.courier import Pace
from holdall.core.digests import Digests, etag_of_parts
from holdall.core.objects import Checksum, PutObject

UNHURRIED = 512 * 1024
"""From this size on, bytes are digested in a thread, to keep the event loop free."""

_HEX = re.compile("[0-9a-f]{32}")
_OF_PARTS = re.compile("[0-9a-f]{32}-([1-9][0-9]{0,4})")


class Etags:
    """Whether the etags of one server are digests."""

    def __init__(self, *, amazon: bool) -> None:
        self._amazon = amazon
        self._proven = amazon
        self._proven_for_parts = amazon

    def learn(self, etag: str, md5: str | None, headers: Mapping[str, str]) -> None:
        """Bytes with a known MD5 got this etag."""
        if not self._proven and md5 is not None and self._plain(headers):
            self._proven = _HEX.fullmatch(etag) is not None and _base64(bytes.fromhex(etag)) == md5

    def md5(self, etag: str, headers: Mapping[str, str]) -> str | None:
        """The MD5 of an object in base64, if its etag is one: it was put in one piece, without special encryption."""
        if not self._proven or not _HEX.fullmatch(etag) or not self._plain(headers):
            return None
        return _base64(bytes.fromhex(etag))

    def learn_parts(self, etag: str, parts: Iterable[str]) -> None:
        """Parts with these etags became an object with this one."""
        if not self._proven_for_parts and all(map(_HEX.fullmatch, parts := [*parts])):
            self._proven_for_parts = etag == etag_of_parts([bytes.fromhex(part) for part in parts])

    def parts(self, etag: str, headers: Mapping[str, str]) -> int | None:
        """How many parts an object was made of, if its etag is the MD5 of their MD5s."""
        found = _OF_PARTS.fullmatch(etag)
        if found is None or not self._proven_for_parts or not self._plain(headers):
            return None
        return int(found[1])

    def _plain(self, headers: Mapping[str, str]) -> bool:
        if "x-amz-server-side-encryption-customer-algorithm" in headers:
            return False
        encryption = headers.get("x-amz-server-side-encryption")
        return encryption is None or (self._amazon and encryption == "AES256")


async def verify(pace: Pace, request: PutObject) -> None:
    """Check the bytes of a put against the digests that came with them."""
    wanted: list[Checksum] = []
    if request.sha256 is not None:
        wanted.append("sha256")
    if request.md5 is not None:
        wanted.append("md5")
    if not wanted:
        return
    digests = Digests(wanted)
    if len(request.body) < UNHURRIED:
        digests.update(request.body)
    else:
        await pace.call(digests.update, request.body)
    digests.check(request.key, request.md5, request.sha256)


def md5_text(body: bytes) -> str:
    """The MD5 of bytes, in base64."""
    return _base64(md5(body, usedforsecurity=False).digest())


def _base64(digest: bytes) -> str:
    return b64encode(digest).decode()
