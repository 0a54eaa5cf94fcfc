"""Signature Version 4, by which a request proves who sent it.

Pure: the caller passes time, credentials and content. The key derived from the secret is kept for its day, which leaves
one HMAC and two digests per request. A `PostTemplate` also keeps the text that its requests share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from hmac import digest
from typing import Any, TypeAlias
from urllib.parse import quote

from holdall.core.frozen import dataclass

UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
"""What S3 accepts instead of a body's digest."""

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
"""Headers that proxies on the way to the service may change or drop."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The keys to sign with. ``expires`` is in seconds since 1970; None for keys that do not expire."""

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
        self.scope = f"{region}/{service}/aws4_request"
        self._service = service
        self._region = region
        self._kept: tuple[str, str, bytes] = ("", "", b"")

    def sign(
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
        names, signed_names = _list_signed(tuple(complete))
        lines = "".join([f"{name}:{complete[name]}\n" for name in names])
        canonical = (
            f"{method}\n{self._canonical_path(path)}\n{query_text(query)}\n"
            f"{lines}\n{signed_names}\n{body_digest}"
        )
        signature = self._signature(stamp, canonical, credentials)
        complete["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{stamp[:8]}/{self.scope}, "
            f"SignedHeaders={signed_names}, Signature={signature}"
        )
        return complete

    def presign(
        self,
        method: str,
        path: str,
        query: Iterable[tuple[str, str]],
        headers: Mapping[str, str],
        expires: int,
        credentials: Credentials,
        now: datetime,
    ) -> str:
        """The query of a URL that is valid for ``expires`` seconds, for any body, if the request has these headers
        (``host`` among them)."""
        stamp = _stamp(now)
        complete = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
        names, signed_names = _list_signed(tuple(complete))
        lines = "".join([f"{name}:{complete[name]}\n" for name in names])
        given = list(query)
        proof = [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", f"{credentials.access_key}/{stamp[:8]}/{self.scope}"),
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
        text = "&".join(f"{_encode(name)}={_encode(value)}" for name, value in given + proof)
        return f"{text}&X-Amz-Signature={self._signature(stamp, canonical, credentials)}"

    def _signature(self, stamp: str, canonical: str, credentials: Credentials) -> str:
        day = stamp[:8]
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{day}/{self.scope}\n{sha256_hex(canonical.encode())}"
        return digest(self.derive_key(day, credentials.secret_key), text.encode(), "sha256").hex()

    def _canonical_path(self, path: str) -> str:
        """S3 signs the path as it is sent; every other service tidies it and encodes it once more."""
        if path == "/" or self._service == "s3":
            return path
        return quote(_tidy(path), safe="/~")

    def derive_key(self, day: str, secret: str) -> bytes:
        """The signing key for a day."""
        kept_day, kept_secret, key = self._kept
        if day != kept_day or secret != kept_secret:
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = digest(key, part.encode(), "sha256")
            self._kept = (day, secret, key)
        return key


_Prepared: TypeAlias = tuple[float, "Credentials | None", str, str, str, Any, Any, str, str]


class PostTemplate:
    """Posts to ``/`` that differ in their body, their time and the end of one header: the last one in the alphabet.

    Everything else is prepared, once per second and credentials.
    """

    def __init__(
        self, signer: Signer, headers: Mapping[str, str], name: str, prefix: str, line: str, unsigned: str
    ) -> None:
        """The varying header is ``name: prefix…``. ``line`` is the request line, ``unsigned`` are header lines that are
        not signed."""
        self._signer = signer
        self._headers = headers
        self._name = name
        self._prefix = prefix
        self._line = line
        self._unsigned = unsigned
        self._prepared: _Prepared = (-1.0, None, "", "", "", sha256(), sha256(), "", "")

    def sign(self, suffix: str, body: bytes, credentials: Credentials, now: float) -> bytes:
        """The signed head of a request at that time, in seconds since 1970."""
        prepared = self._prepared  # read once: another thread may replace it
        if prepared[0] != now // 1 or prepared[1] is not credentials:
            prepared = self._prepare(credentials, now)
        _, _, canonical, names, scope, inner, outer, head, proof = prepared
        canonical = f"{canonical}{suffix}{names}{sha256(body).hexdigest()}"
        inner, outer = inner.copy(), outer.copy()
        inner.update(f"{scope}{sha256(canonical.encode()).hexdigest()}".encode())
        outer.update(inner.digest())
        end = f"{outer.hexdigest()}\r\ncontent-length: {len(body)}\r\n\r\n"
        return f"{head}{suffix}{proof}{end}".encode("latin-1")

    def _prepare(self, credentials: Credentials, now: float) -> _Prepared:
        stamp = _stamp(datetime.fromtimestamp(now // 1, UTC))
        fixed = {**self._headers, "x-amz-date": stamp}
        if credentials.token:
            fixed["x-amz-security-token"] = credentials.token
        names, signed_names = _list_signed((*fixed, self._name))
        assert names[-1] == self._name
        lines = "".join([f"{name}:{' '.join(fixed[name].split())}\n" for name in names[:-1]])
        sent = "".join([f"{name}: {value}\r\n" for name, value in fixed.items()])
        scope = f"{stamp[:8]}/{self._signer.scope}"
        self._prepared = prepared = (
            now // 1,
            credentials,
            f"POST\n/\n\n{lines}{self._name}:{self._prefix}",
            f"\n\n{signed_names}\n",
            f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n",
            *_begin_hmac(self._signer.derive_key(stamp[:8], credentials.secret_key)),
            f"{self._line}\r\n{sent}{self._unsigned}{self._name}: {self._prefix}",
            f"\r\nauthorization: AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={signed_names}, Signature=",
        )
        return prepared


def _begin_hmac(key: bytes) -> tuple[Any, Any]:
    """The inner and the outer digest of HMAC-SHA256 with this key of 32 bytes; copying them is fast."""
    block = key.ljust(64, b"\0")
    return sha256(bytes(part ^ 0x36 for part in block)), sha256(bytes(part ^ 0x5C for part in block))


def _stamp(now: datetime) -> str:
    """The time in the basic format; cut out of the extended one, which is quicker than strftime."""
    text = now.isoformat()
    return f"{text[:4]}{text[5:7]}{text[8:13]}{text[14:16]}{text[17:19]}Z"


@lru_cache(256)
def _list_signed(names: tuple[str, ...]) -> tuple[list[str], str]:
    """The headers to sign, in order, and the list of their names that goes into the signature."""
    signed = sorted(set(names) - _UNSIGNED)
    return signed, ";".join(signed)


def _tidy(path: str) -> str:
    """The path without empty segments and ``.``, and with ``..`` resolved."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    end = "/" if kept and path.endswith("/") else ""
    return f"/{'/'.join(kept)}{end}"


def query_text(query: Iterable[tuple[str, str]]) -> str:
    """A query as it is signed: encoded, and sorted by name."""
    if not query:
        return ""
    pairs = sorted((_encode(name), _encode(value)) for name, value in query)
    return "&".join(f"{name}={value}" for name, value in pairs)


def _encode(text: str) -> str:
    return quote(text, safe="-_.~")
