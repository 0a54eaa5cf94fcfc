"""Signed texts: opaque tokens that only this application can make, each for one purpose.

Pure. A token is URL-safe text: the payload and an HMAC-SHA256 over the purpose, the expiry and the payload. The first
secret signs, every secret verifies, so a secret can be replaced without invalidating the tokens that clients hold.
"""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from holdall.errors import ConfigurationError, InvalidTokenError


def check_secrets(secrets: Sequence[str]) -> None:
    """Raise `ConfigurationError` if there is no secret to sign with."""
    if not secrets:
        raise ConfigurationError(
            "signed tokens and URLs need a secret, and none is set",
            hint="set secret= (or HOLDALL_SECRET) to a long random text, the same on all machines",
        )


def sign(secrets: Sequence[str], purpose: str, payload: Any, *, expires: datetime | None = None) -> str:
    """Sign a payload, which can be any JSON value; raise `ConfigurationError` if there is no secret."""
    check_secrets(secrets)
    until = None if expires is None else int(expires.timestamp())
    body = json.dumps([until, payload], separators=(",", ":"), ensure_ascii=False).encode()
    return f"{_text(body)}.{_text(_mac(secrets[0], purpose, body))}"


def verify(secrets: Sequence[str], purpose: str, token: str, *, now: datetime) -> Any:
    """Return the payload of a token; raise `InvalidTokenError` if it is forged, for another purpose, or expired."""
    check_secrets(secrets)
    try:
        body, mac = (_bytes(part) for part in token.split("."))
    except (ValueError, AttributeError, TypeError):
        raise InvalidTokenError(
            "the token was not issued by this application",
            hint="send the token back exactly as it was issued",
        ) from None
    if not any(hmac.compare_digest(mac, _mac(secret, purpose, body)) for secret in secrets):
        raise InvalidTokenError(
            "the token was changed, was signed with another secret, or was issued for another purpose",
            hint="send the token back exactly as it was issued",
        )
    until, payload = json.loads(body)
    if until is not None and now.timestamp() >= until:
        raise InvalidTokenError("the token has expired", hint="request a new one")
    return payload


def read_expiry(token: str) -> datetime | None:
    """Return when a verified token expires; None if it never does."""
    until = json.loads(_bytes(token.partition(".")[0]))[0]
    return None if until is None else datetime.fromtimestamp(until, UTC)


def _mac(secret: str, purpose: str, body: bytes) -> bytes:
    return hmac.digest(secret.encode(), purpose.encode() + b"\x00" + body, "sha256")


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    if not text.isascii() or not text.replace("-", "").replace("_", "").isalnum():
        raise ValueError
    data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if _text(data) != text:
        raise ValueError  # the last character has unused bits, so the same data has other spellings
    return data
