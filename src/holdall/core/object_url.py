"""Signed URLs for services without a web server of their own: the web app that serves files verifies their token.

Pure. The token contains everything that the app needs (what to serve and how, or which bytes may be stored where), and
its signature proves that this application made it. A token for a download cannot be used for an upload, nor the
reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from holdall.core.frozen import dataclass
from holdall.core.objects import ObjectHeaders, SignedUrl, SignUrl
from holdall.core.signature import sign, verify
from holdall.errors import ConfigurationError

GET, PUT = "blob_key", "blob_token"

BaseUrl: TypeAlias = str | Callable[[], str] | None
"""The beginning of all URLs, or a function that returns it and is called for the first URL."""


@dataclass(frozen=True, slots=True)
class Download:
    """What a URL for a download permits: one object of a service, served with these headers."""

    service: str
    key: str
    headers: ObjectHeaders


@dataclass(frozen=True, slots=True)
class DirectUpload:
    """What a URL for an upload permits: only these bytes, under this key. A ``size`` or ``md5`` of None is free."""

    service: str
    key: str
    headers: ObjectHeaders
    size: int | None
    md5: str | None


def sign_url(request: SignUrl, secrets: Sequence[str], base_url: BaseUrl, now: float) -> SignedUrl:
    """Sign a URL; raise `ConfigurationError` if the service has no base URL or no secret."""
    if callable(base_url):
        base_url = base_url()
    if base_url is None:
        raise ConfigurationError(
            f"the service {request.service!r} has no base_url, so it cannot make URLs",
            hint="set base_url to the address at which your web app serves files: base_url='https://example.com/files'",
        )
    expires = datetime.fromtimestamp(now + request.expires, UTC)
    payload = {"key": request.key, "service_name": request.service, **_of_headers(request.headers)}
    if request.method == "PUT":
        payload |= {"content_length": request.size, "checksum": request.md5}
    kept = {name: value for name, value in payload.items() if value is not None}
    token = sign(secrets, GET if request.method == "GET" else PUT, kept, expires=expires)
    return SignedUrl(f"{base_url.rstrip('/')}/{token}", _to_send(request))


def verified_download(token: str, secrets: Sequence[str], now: float) -> Download:
    """Return what a download's token permits; raise `InvalidTokenError` if it is forged or has expired."""
    payload = verify(secrets, GET, token, now=datetime.fromtimestamp(now, UTC))
    return Download(payload["service_name"], payload["key"], _headers(payload))


def verified_upload(token: str, secrets: Sequence[str], now: float) -> DirectUpload:
    """Return what an upload's token permits; raise `InvalidTokenError` if it is forged or has expired."""
    payload = verify(secrets, PUT, token, now=datetime.fromtimestamp(now, UTC))
    return DirectUpload(
        payload["service_name"],
        payload["key"],
        _headers(payload),
        payload.get("content_length"),
        payload.get("checksum"),
    )


def _to_send(request: SignUrl) -> dict[str, str]:
    """Return the headers that the client must send with an upload."""
    if request.method == "GET":
        return {}
    headers = {"Content-Type": request.headers.content_type, "Content-MD5": request.md5}
    return {name: value for name, value in headers.items() if value is not None}


def _of_headers(headers: ObjectHeaders) -> dict[str, Any]:
    return {
        "disposition": headers.disposition,
        "content_type": headers.content_type,
        "cache_control": headers.cache_control,
        "metadata": dict(headers.metadata) or None,
    }


def _headers(payload: Mapping[str, Any]) -> ObjectHeaders:
    return ObjectHeaders(
        content_type=payload.get("content_type"),
        disposition=payload.get("disposition"),
        cache_control=payload.get("cache_control"),
        metadata=payload.get("metadata", {}),
    )
