"""Signed ids: texts that identify a blob for one purpose, and cannot be forged.

Pure. A signed id for viewing a blob cannot be used to attach it. ``signed_ids="rails"`` writes and reads them like a
Rails application with the same ``secret_key_base``.
"""

from __future__ import annotations

import binascii
import hmac
import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import pbkdf2_hmac
from typing import Any, Literal, TypeAlias

from holdall.core import signature
from holdall.core.signature import check_secrets, sign, verify
from holdall.errors import InvalidTokenError

Form: TypeAlias = Literal["holdall", "rails"]
Purpose: TypeAlias = Literal["blob", "attach", "variation", "blob_key", "blob_token", "upload"]

_RAILS = {"blob": "blob_id", "attach": "blob_id"}
"""Rails has one purpose for both: there, a client that may see a blob may also attach it."""


def sign_id(
    secrets: Sequence[str],
    data: Any,
    *,
    purpose: Purpose,
    expires: datetime | None = None,
    form: Form = "holdall",
) -> str:
    """Sign an id, or any JSON."""
    if form == "holdall":
        return sign(secrets, purpose, data, expires=expires)
    check_secrets(secrets)
    message: dict[str, Any] = {"data": data}
    if expires is not None:
        message["exp"] = expires.astimezone(UTC).isoformat(timespec="milliseconds")[:23] + "Z"
    message["pur"] = _RAILS.get(purpose, purpose)
    payload = b64encode(json.dumps({"_rails": message}, separators=(",", ":")).encode())
    return f"{payload.decode()}--{_mac(secrets[0], payload)}"


def verify_id(
    secrets: Sequence[str], text: str, *, purpose: Purpose, now: datetime, form: Form = "holdall"
) -> Any:
    """Return what was signed; `InvalidTokenError` if the text is forged, has expired, or is for another purpose."""
    if form == "holdall":
        return verify(secrets, purpose, text, now=now)
    check_secrets(secrets)
    payload, _, mac = text.rpartition("--")
    if not any(hmac.compare_digest(mac.encode(), _mac(each, payload.encode()).encode()) for each in secrets):
        raise InvalidTokenError(
            "the signed id is not valid: it was tampered with, or signed with another secret"
        )
    try:
        message = _read_payload(payload)
        data, found, until = message["data"], message.get("pur"), message.get("exp")
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise InvalidTokenError("the signed id is not in the format of Rails 7.1 and later") from None
    if found != _RAILS.get(purpose, purpose):
        raise InvalidTokenError("the signed id was made for another purpose")
    if until is not None and now >= datetime.fromisoformat(until):
        raise InvalidTokenError("the signed id has expired")
    return data


def read_expiry(text: str, *, form: Form = "holdall") -> datetime | None:
    """When a verified signed text expires; None if never."""
    if form == "holdall":
        return signature.read_expiry(text)
    until = _read_payload(text.rpartition("--")[0]).get("exp")
    return None if until is None else datetime.fromisoformat(until)


def _read_payload(payload: str) -> Any:
    standard = payload.replace("-", "+").replace("_", "/")
    return json.loads(b64decode(standard + "=" * (-len(standard) % 4)))["_rails"]


def _mac(secret: str, payload: bytes) -> str:
    return hmac.new(_derive_key(secret), payload, "sha1").hexdigest()


@lru_cache(maxsize=16)
def _derive_key(secret: str) -> bytes:
    return pbkdf2_hmac("sha256", secret.encode(), b"ActiveStorage", 1000, 64)
