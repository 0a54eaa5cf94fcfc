"""Signature Version 4: how a request proves who sent it.

Pure: time, credentials and content are given. The key derived from the secret is kept for the day it is good for,
which leaves one HMAC and two digests per request.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from urllib.parse import quote

from holdall.core.frozen import dataclass

__all__ = ["UNSIGNED_PAYLOAD", "Credentials", "Signer", "query_text", "sha256_hex"]

UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
"""What S3 takes in the place of a body's digest."""

_UNSIGNED = frozenset(
    {
        "baggage",
        "connection",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "x-amzn-trace-id",
    }
)
"""What those between us and the service may change or drop on the way."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who signs. ``expires`` is in seconds since 1970, None for keys that do not expire."""

    access_key: str
    secret_key: str
    token: str | None = None
    expires: float | None = None

    def __repr__(self) -> str:
        return f"Credentials({self.access_key[:4]}…, secret hidden)"


def sha256_hex(content: bytes) -> str:
    """The digest by which a request names its body."""
    return sha256(content).hexdigest()


class Signer:
    """Signs requests for one service in one region."""

    def __init__(self, service: str, region: str) -> None:
        self._scope = f"{region}/{service}/aws4_request"
        self._service = service
        self._region = region
        self._kept: tuple[str, str, bytes] = ("", "", b"")

    def signed(
        self,
        method: str,
        path: str,
        query: Iterable[tuple[str, str]],
        headers: Mapping[str, str],
        body_digest: str,
        credentials: Credentials,
        now: datetime,
    ) -> dict[str, str]:
        """The headers (``host`` among them) with date, session token and signature added; names in lower case.

        ``path`` is as it goes into the request line, already percent-encoded.
        """
        stamp = _stamp(now)
        complete = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
        complete.pop("authorization", None)  # an earlier attempt's
        complete["x-amz-date"] = stamp
        if credentials.token:
            complete["x-amz-security-token"] = credentials.token
        names, signed_names = _signed_names(tuple(complete))
        lines = "".join([f"{name}:{complete[name]}\n" for name in names])
        canonical = (
            f"{method}\n{self._canonical_path(path)}\n{query_text(query)}\n"
            f"{lines}\n{signed_names}\n{body_digest}"
        )
        signature = self._signature(stamp, canonical, credentials)
        complete["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{stamp[:8]}/{self._scope}, "
            f"SignedHeaders={signed_names}, Signature={signature}"
        )
        return complete

    def presigned(
        self,
        method: str,
        path: str,
        query: Iterable[tuple[str, str]],
        headers: Mapping[str, str],
        expires: int,
        credentials: Credentials,
        now: datetime,
    ) -> str:
        """The query of a URL that is good for ``expires`` seconds, for a body of any kind, if it is sent with the
        headers (``host`` among them)."""
        stamp = _stamp(now)
        complete = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
        names, signed_names = _signed_names(tuple(complete))
        lines = "".join([f"{name}:{complete[name]}\n" for name in names])
        given = list(query)
        proof = [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", f"{credentials.access_key}/{stamp[:8]}/{self._scope}"),
            ("X-Amz-Date", stamp),
            ("X-Amz-Expires", str(expires)),
            ("X-Amz-SignedHeaders", signed_names),
        ]
        if credentials.token:
            proof.append(("X-Amz-Security-Token", credentials.token))
        canonical = (
            f"{method}\n{self._canonical_path(path)}\n{query_text(given + proof)}\n"
            f"{lines}\n{signed_names}\n{UNSIGNED_PAYLOAD}"
        )
        text = "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in given + proof)
        return f"{text}&X-Amz-Signature={self._signature(stamp, canonical, credentials)}"

    def _signature(self, stamp: str, canonical: str, credentials: Credentials) -> str:
        day = stamp[:8]
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{day}/{self._scope}\n{sha256_hex(canonical.encode())}"
        return hmac.digest(self._key(day, credentials.secret_key), text.encode(), "sha256").hex()

    def _canonical_path(self, path: str) -> str:
        """S3 signs the path as it is sent; every other service tidies it and encodes it once more."""
        if path == "/" or self._service == "s3":
            return path
        return quote(_tidied(path), safe="/~")

    def _key(self, day: str, secret: str) -> bytes:
        kept_day, kept_secret, key = self._kept
        if day != kept_day or secret != kept_secret:
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._kept = (day, secret, key)
        return key


def _stamp(now: datetime) -> str:
    """The time in the basic format; cut out of the extended one, which is quicker than strftime."""
    text = now.isoformat()
    return f"{text[:4]}{text[5:7]}{text[8:13]}{text[14:16]}{text[17:19]}Z"


@lru_cache(256)
def _signed_names(names: tuple[str, ...]) -> tuple[list[str], str]:
    """Which headers are signed, in their order, and as the list that the signature names them in."""
    signed = sorted(set(names) - _UNSIGNED)
    return signed, ";".join(signed)


def _tidied(path: str) -> str:
    """The path without empty segments, without ``.``, and with ``..`` taken at its word."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    end = "/" if kept and path.endswith("/") else ""
    return f"/{'/'.join(kept)}{end}"


def query_text(query: Iterable[tuple[str, str]]) -> str:
    """A query as it is signed: encoded, and in the order of its names."""
    if not query:
        return ""
    pairs = sorted((_encoded(name), _encoded(value)) for name, value in query)
    return "&".join(f"{name}={value}" for name, value in pairs)


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")
