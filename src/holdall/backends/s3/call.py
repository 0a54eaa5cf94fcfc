"""A call to S3: all of a request but who sends it, when, and to which host."""

from __future__ import annotations

from collections.abc import Mapping

from holdall.backends.aws.message import Room
from holdall.core.frozen import dataclass

__all__ = ["NO_HEADERS", "SMALL_REPLY", "Call"]

SMALL_REPLY = 64 * 1024 * 1024
"""The longest reply that is taken where no object's bytes are asked for."""

NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked of which key, or of the bucket when there is none.

    ``digest`` is the SHA-256 of the body where it is known; ``unsigned`` leaves it to a Content-MD5 among the headers
    to vouch for the body, where nobody can change both on the way. ``document`` says that the answer is one, which
    may tell of a failure under any status. ``name`` is the key as the caller knows it. ``room`` is where the bytes of a
    large object may be received.
    """

    operation: str
    method: str
    key: str | None = None
    name: str | None = None
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = NO_HEADERS
    body: bytes = b""
    digest: str | None = None
    unsigned: bool = False
    document: bool = False
    limit: int = SMALL_REPLY
    room: Room | None = None
