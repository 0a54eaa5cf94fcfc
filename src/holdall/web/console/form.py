"""The form of a change: its values, and the proof that a page of this console sent it."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from holdall.web.console.session import Session
from holdall.web.console.visit import RefusedVisitError
from holdall.web.serving.access import is_same_origin

_MOST_BYTES = 2 * 1024 * 1024  # an item has at most 400 kB, and in a form each of its bytes may become three
_MOST_FIELDS = 1000


async def read_form(request: Request) -> Mapping[str, str]:
    """Return the values of a form; the last value wins if a name is repeated."""
    if (
        request.headers.get("content-type", "").partition(";")[0].strip()
        != "application/x-www-form-urlencoded"
    ):
        raise RefusedVisitError(415, "A form must be sent as a browser sends it.")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST_BYTES:
            raise RefusedVisitError(413, f"A form may have at most {_MOST_BYTES:,} bytes.")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise RefusedVisitError(400, "The form cannot be read.") from None
    return {name: value.replace("\r\n", "\n") for name, value in pairs}


async def check_origin(request: Request) -> None:
    """Refuse a form that a page of another site sent."""
    if not await is_same_origin(request):
        raise RefusedVisitError(403, "The request comes from another site.")


def check_csrf(session: Session, form: Mapping[str, str]) -> None:
    """Refuse a form without the session's CSRF token."""
    if not hmac.compare_digest(form.get("csrf", "").encode(), session.csrf.encode()):
        raise RefusedVisitError(
            403,
            "The form does not belong to your session, so nothing was changed.",
            "go back, reload the page and try again",
        )
