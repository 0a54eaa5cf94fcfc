"""A file as a reply: all of it, a range of it, or a 304 if the client has it. It is streamed, never held in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from holdall.web.serving.range import parse_range
from holdall.web.serving.refusal import RefusedError

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_POLICY_OF_PDF = "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'"
"""Some browsers do not show a PDF in a sandbox."""


@dataclass(frozen=True, slots=True)
class Served:
    """A file to serve; ``stream(start, size)`` returns that range in pieces."""

    size: int
    etag: str
    modified: datetime | None
    content_type: str
    disposition: str | None
    cache_control: str
    stream: Callable[[int, int], AsyncIterator[bytes]]


async def reply_with(request: Request, file: Served) -> Response:
    """Reply with a file. An error in reading the first piece is raised before anything is sent."""
    headers = _headers_of(file)
    if _has_it(request, file):
        return Response(status_code=304, headers=headers)
    status, start, size = 200, 0, file.size
    asked = request.headers.get("range")
    if asked is not None and _is_meant(request, file):
        wanted = parse_range(asked, file.size)
        if wanted is None:
            raise RefusedError(416, "This range cannot be served.", {"Content-Range": f"bytes */{file.size}"})
        status, start, size = 206, wanted.start, len(wanted)
        headers["Content-Range"] = f"bytes {start}-{wanted.stop - 1}/{file.size}"
    headers |= {
        "Content-Type": file.content_type,
        "Content-Length": str(size),
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": _POLICY_OF_PDF if file.content_type == "application/pdf" else _POLICY,
    }
    if file.disposition is not None:
        headers["Content-Disposition"] = file.disposition
    is_head = request.method == "HEAD"
    pieces = file.stream(start, 0 if is_head else size)
    first = await anext(pieces, b"")
    if is_head or len(first) == size:
        return Response(first, status, headers)
    return StreamingResponse(_chain(first, pieces), status, headers)


async def _chain(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """All pieces; none is kept once the next is requested."""
    yield first
    del first
    async for piece in pieces:
        yield piece
        del piece


def _headers_of(file: Served) -> dict[str, str]:
    headers = {"ETag": file.etag, "Cache-Control": file.cache_control, "Accept-Ranges": "bytes"}
    if file.modified is not None:
        headers["Last-Modified"] = format_datetime(file.modified.astimezone(UTC), usegmt=True)
    return headers


def _has_it(request: Request, file: Served) -> bool:
    """Whether the client already has these bytes, according to its headers."""
    tags = request.headers.get("if-none-match")
    if tags is not None:
        return tags.strip() == "*" or file.etag in (tag.strip().removeprefix("W/") for tag in tags.split(","))
    since = _parse_date(request.headers.get("if-modified-since"))
    return since is not None and file.modified is not None and file.modified.replace(microsecond=0) <= since


def _is_meant(request: Request, file: Served) -> bool:
    """Whether the range refers to these bytes, and not to an older version of which the client has a part."""
    condition = request.headers.get("if-range")
    if condition is None or condition.strip() == file.etag:
        return True
    exactly = _parse_date(condition)
    return (
        exactly is not None and file.modified is not None and exactly == file.modified.replace(microsecond=0)
    )


def _parse_date(text: str | None) -> datetime | None:
    try:
        found = None if text is None else parsedate_to_datetime(text)
    except ValueError:
        return None
    return None if found is None or found.tzinfo is None else found
