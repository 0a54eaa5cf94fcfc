"""Credentials from the forms in which other programs provide them, checked. Pure.

No message repeats a value: the errors name what is missing or wrong, and where it came from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from holdall.backends.aws.signer import Credentials
from holdall.errors import CredentialsError

_HEADER_TEXT = re.compile(r"[!-~]+")
_FOREVER = 1e12
_CODE = re.compile(r"[A-Za-z]{1,64}")

_NAMES = {
    "access_key": ("access_key", "AccessKeyId", "aws_access_key_id"),
    "secret_key": ("secret_key", "SecretAccessKey", "aws_secret_access_key"),
    "token": ("token", "SessionToken", "Token", "aws_session_token"),
    "expires": ("expires", "Expiration"),
}


def fits_a_header(text: str) -> bool:
    """Whether the text can be the value of a request's header."""
    return _HEADER_TEXT.fullmatch(text) is not None


def credentials_from_parts(
    where: str, access_key: object, secret_key: object, token: object = None, expires: object = None
) -> Credentials:
    """Credentials from their parts; `CredentialsError` names ``where`` they came from, but not their values."""
    return Credentials(
        _header_text(where, "access key", access_key),
        _text(where, "secret key", secret_key),
        None if token is None or token == "" else _header_text(where, "session token", token),
        _seconds(where, expires),
    )


def credentials_from(where: str, given: object) -> Credentials:
    """Credentials from a `Credentials`, a mapping, a sequence, or an object with the attributes."""
    if isinstance(given, Mapping):
        parts = {
            part: next((given[name] for name in names if given.get(name) is not None), None)
            for part, names in _NAMES.items()
        }
    elif hasattr(given, "access_key") and hasattr(given, "secret_key"):
        parts = {part: getattr(given, part, None) for part in _NAMES}
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes) and 2 <= len(given) <= 4:
        parts = dict(zip(_NAMES, given, strict=False))
    else:
        raise CredentialsError(
            f"{where} returned a {type(given).__name__} without credentials",
            hint="return Credentials, or (access key, secret key, session token or None, expiry or None)",
        )
    return credentials_from_parts(where, **parts)


def credentials_from_document(where: str, document: bytes) -> Credentials:
    """Credentials from the JSON that container and instance endpoints return."""
    try:
        given = json.loads(document)
    except (ValueError, RecursionError):
        given = None  # raised below, so that the document is not in the error's context
    if not isinstance(given, dict):
        raise CredentialsError(f"{where} returned a reply that is not a JSON object")
    code = given.get("Code", "Success")
    if code != "Success" and "AccessKeyId" not in given:
        shown = code if isinstance(code, str) and _CODE.fullmatch(code) else "an error"
        raise CredentialsError(f"{where} returned {shown} instead of credentials")
    return credentials_from(where, given)


def _text(where: str, part: str, value: object) -> str:
    if value is not None and not isinstance(value, str):
        raise CredentialsError(f"{where}: the {part} must be text, not a {type(value).__name__}")
    text = (value or "").strip()
    if not text:
        raise CredentialsError(f"{where}: the {part} is missing")
    return text


def _header_text(where: str, part: str, value: object) -> str:
    text = _text(where, part, value)
    if not fits_a_header(text):
        raise CredentialsError(f"{where}: the {part} has characters that are not allowed")
    return text


def _seconds(where: str, expires: object) -> float | None:
    if expires is None or expires == "":
        return None
    if isinstance(expires, int | float) and abs(expires) < _FOREVER and not isinstance(expires, bool):
        return float(expires)
    moment = expires
    if isinstance(expires, str):
        with suppress(ValueError):
            moment = datetime.fromisoformat(expires.strip())
    if not isinstance(moment, datetime):
        raise CredentialsError(
            f"{where}: the expiry is not a time",
            hint="return seconds since 1970, a datetime, or text like 2026-01-31T12:00:00Z",
        )
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
