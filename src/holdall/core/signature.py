"""Signed texts: opaque tokens that only we can have made, for one purpose each.

Pure. A token is URL-safe text: the payload and an HMAC-SHA256 over the purpose, the expiry and the payload. The first
secret signs, every secret verifies, so a secret can be replaced without breaking what is out there.
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
            "there is no secret to sign with",
            hint="set secret= (or HOLDALL_SECRET) to a long random text, the same on all machines",
        )


def sign(secrets: Sequence[str], purpose: str, payload: Any, *, expires: datetime | None = None) -> str:
    """A token for the payload, which is any JSON; `ConfigurationError` if there is no secret to sign with."""
    check_secrets(secrets)
    until = None if expires is None else int(expires.timestamp())
    body = json.dumps([until, payload], separators=(",", ":"), ensure_ascii=False).encode()
    return f"{_text(body)}.{_text(_mac(secrets[0], purpose, body))}"


def verify(secrets: Sequence[str], purpose: str, token: str, *, now: datetime) -> Any:
    """The payload of a token; `InvalidTokenError` for one that is forged, for another purpose, or out of date."""
    check_secrets(secrets)
    try:
        body, mac = (_bytes(part) for part in token.split("."))
    except (ValueError, AttributeError, TypeError):
        raise InvalidTokenError("this is no token of ours") from None
    if not any(hmac.compare_digest(mac, _mac(secret, purpose, body)) for secret in secrets):
        raise InvalidTokenError(
            "the token was changed, or is for something else", hint="hand it back exactly as it was given"
        )
    until, payload = json.loads(body)
    if until is not None and now.timestamp() >= until:
        raise InvalidTokenError("the token is out of date")
    return payload


def read_expiry(token: str) -> datetime | None:
    """When a token that was verified expires; None: never."""
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
        raise ValueError  # the last character has bits to spare: another spelling of the same
    return data
