"""Direct uploads: the client describes a file, and the reply says where it can put the bytes.

The request and the reply are those of Rails, so ``@rails/activestorage`` works with it unchanged.
"""

from __future__ import annotations

import json
from datetime import UTC
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdall.attachments import Accept, Blob
from holdall.errors import BodyTooLargeError, InvalidFileError, InvalidRequestError
from holdall.files import SignedUrl
from holdall.web.serving.access import Asked
from holdall.web.serving.refusal import NO_CACHE, RefusedError
from holdall.web.serving.site import Site

_MOST = 64 * 1024


def list_routes(site: Site) -> list[Route]:
    """The route for direct uploads."""
    return [Route("/direct_uploads", partial(_create, site), methods=["POST"])]


async def _create(site: Site, request: Request) -> Response:
    await site.access.check_origin(request)
    stated = _parse(await _read(request))
    check_accepted(site.accept, stated["byte_size"], stated["content_type"])
    asked = {name: stated[name] for name in ("filename", "content_type", "byte_size")}
    await site.access.check(request, Asked("upload", **asked))
    try:
        blob, signed = await site.db.blobs.create_before_direct_upload(**stated)
    except InvalidRequestError:
        raise RefusedError(422, "The description of the file is not valid.") from None
    signed_id = await site.db.blobs.signed_id(blob, purpose="attach")
    return JSONResponse(_describe(blob, signed_id, signed), 200, NO_CACHE)


def check_accepted(accept: Accept, byte_size: int, content_type: str | None) -> None:
    """Refuse a file that clients may not upload, judged by the size and type that they claim."""
    try:
        accept.check_size("upload", byte_size)
    except InvalidFileError:
        raise RefusedError(413, f"A file may have at most {accept.max_bytes:,} bytes.") from None
    try:
        accept.check_type("upload", content_type or "application/octet-stream")
    except InvalidFileError:
        raise RefusedError(415, f"The accepted types are {', '.join(accept.types)}.") from None


async def _read(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST:
            raise BodyTooLargeError(f"the description of a file to upload has more than {_MOST:,} bytes")
    return body


def _parse(body: bytes) -> dict[str, Any]:
    """The client's description of the file."""
    try:
        blob = json.loads(body)["blob"]
        stated = {
            "filename": blob["filename"],
            "byte_size": blob["byte_size"],
            "checksum": blob["checksum"],
            "content_type": blob.get("content_type") or None,
            "metadata": blob.get("metadata") or {},
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RefusedError(
            422, 'The body must be JSON: {"blob": {"filename": …, "byte_size": …, "checksum": …}}.'
        ) from None
    kinds = {"filename": str, "byte_size": int, "checksum": str, "content_type": str | None, "metadata": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(stated[name], kind)]
    if wrong or not stated["filename"] or isinstance(stated["byte_size"], bool):
        raise RefusedError(422, f"These values are missing or not valid: {', '.join(wrong) or 'filename'}.")
    return stated


def _describe(blob: Blob, signed_id: str, signed: SignedUrl) -> dict[str, Any]:
    created = blob.created_at
    # pages must not set a length: browsers send the right one themselves
    headers = {name: value for name, value in signed.headers.items() if name.lower() != "content-length"}
    return {
        "id": blob.id,
        "key": blob.key,
        "filename": str(blob.filename),
        "content_type": blob.content_type,
        "metadata": blob.metadata,
        "service_name": blob.service_name,
        "byte_size": blob.byte_size,
        "checksum": blob.checksum,
        "created_at": None
        if created is None
        else created.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "signed_id": signed_id,
        "direct_upload": {"url": signed.url, "headers": headers},
    }
