"""Resumable uploads over HTTP, as the protocol tus 1.0.0 describes them: its core, and the extensions in `_EXTENSIONS`.

The URL of an upload contains a signed id, and is a capability: any client that has it may continue and end the upload,
so no hook is called again. ``db.blobs`` implements the uploads themselves; this module only handles headers and
statuses. The reply to a complete upload has a signed id for attaching it in ``Holdall-Signed-Id``.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from email.utils import format_datetime
from functools import partial
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from holdall.attachments import ResumableUpload
from holdall.errors import HoldallError, IntegrityError, InvalidRequestError, UploadConflictError
from holdall.web.serving.access import Asked
from holdall.web.serving.body import Body
from holdall.web.serving.direct_upload import check_accepted
from holdall.web.serving.refusal import NO_CACHE, RefusedError, answer_error, answer_refusal, not_found
from holdall.web.serving.site import Site

_VERSION = "1.0.0"
_EXTENSIONS = "creation,creation-with-upload,expiration,checksum,termination"
_ALGORITHMS = ("md5", "sha1", "sha256")
_BODY_TYPE = "application/offset+octet-stream"
_MOST_METADATA = 8 * 1024
_MOST_BYTES = 5 * 1024**4
_METHODS = ["HEAD", "PATCH", "DELETE", "POST", "OPTIONS"]


def list_routes(site: Site) -> list[Route]:
    """The routes for resumable uploads."""
    answer = partial(_answer, site)
    return [
        Route("/uploads", answer, methods=["POST", "OPTIONS"]),
        Route("/uploads/{signed_id:path}", answer, methods=_METHODS),
    ]


async def _answer(site: Site, request: Request) -> Response:
    """The reply, which always states its version of the protocol."""
    try:
        response = await _dispatch(site, request)
    except RefusedError as error:
        response = await answer_refusal(request, error)
    except HoldallError as error:
        response = await answer_error(request, error)
    except ClientDisconnect:
        response = Response(status_code=400)  # the client is gone and will not read it
    response.headers["Tus-Resumable"] = _VERSION
    return response


async def _dispatch(site: Site, request: Request) -> Response:
    method = request.headers.get("x-http-method-override", request.method).upper()
    if method == "OPTIONS":
        return _describe(site)
    if request.headers.get("tus-resumable") != _VERSION:
        raise RefusedError(412, f"Tus-Resumable must be {_VERSION}.", {"Tus-Version": _VERSION})
    signed_id = request.path_params.get("signed_id")
    if signed_id is None:
        return await _create(site, request)
    if method not in ("HEAD", "PATCH", "DELETE"):
        raise RefusedError(405, "An upload accepts HEAD, PATCH and DELETE.", {"Allow": "HEAD, PATCH, DELETE"})
    upload = await site.db.blobs.find_signed_upload(signed_id)
    if upload is None:
        raise not_found()
    if method == "DELETE":
        await site.db.blobs.cancel_upload(upload)
        return Response(status_code=204, headers=NO_CACHE)
    if method == "PATCH":
        upload = await _continue(site, request, upload, _read_number(request, "Upload-Offset"))
        return Response(status_code=204, headers=await _show(site, upload))
    # the server died before it could complete the upload
    if upload.offset == upload.byte_size and not upload.is_complete:
        upload = await site.db.blobs.continue_upload(upload, upload.offset, b"")
    about = {"Upload-Length": str(upload.byte_size), "Upload-Metadata": str(upload.metadata.get("tus", ""))}
    shown = {name: text for name, text in about.items() if text}
    return Response(status_code=200, headers=shown | await _show(site, upload))


def _describe(site: Site) -> Response:
    headers = {
        "Tus-Version": _VERSION,
        "Tus-Extension": _EXTENSIONS,
        "Tus-Max-Size": str(_MOST_BYTES if site.accept.max_bytes is None else site.accept.max_bytes),
        "Tus-Checksum-Algorithm": ",".join(_ALGORITHMS),
    }
    return Response(status_code=204, headers=headers)


async def _create(site: Site, request: Request) -> Response:
    await site.access.check_origin(request)
    size = _read_number(request, "Upload-Length")
    if size > _MOST_BYTES:
        raise RefusedError(413, f"A file may have at most {_MOST_BYTES:,} bytes.")
    raw = request.headers.get("upload-metadata", "")
    stated = _parse_metadata(raw)
    filename = stated.get("filename") or stated.get("name") or "file"
    content_type = stated.get("filetype") or stated.get("type") or None
    check_accepted(site.accept, size, content_type)
    asked = Asked("upload", filename=filename, content_type=content_type, byte_size=size)
    await site.access.check(request, asked)
    metadata = {"tus": raw} if raw else None
    try:
        upload = await site.db.blobs.start_upload(
            filename=filename, byte_size=size, content_type=content_type, metadata=metadata
        )
    except InvalidRequestError:
        raise RefusedError(400, "The file's name or type is not valid.") from None
    signed_id = await site.db.blobs.signed_id(upload.id, purpose="upload")
    if request.headers.get("content-type") == _BODY_TYPE:
        upload = await _continue(site, request, upload, 0)
    headers = {"Location": f"{request.url.path.rstrip('/')}/{quote(signed_id, safe='')}"}
    return Response(status_code=201, headers=headers | await _show(site, upload))


async def _continue(site: Site, request: Request, upload: ResumableUpload, offset: int) -> ResumableUpload:
    """Append the bytes of a request to an upload."""
    if request.headers.get("content-type") != _BODY_TYPE:
        raise RefusedError(415, f"Content-Type must be {_BODY_TYPE}.")
    checksum = _read_checksum(request)
    left = upload.byte_size - upload.offset
    if offset == upload.offset and int(request.headers.get("content-length", "0")) > left:
        raise RefusedError(413, f"The upload needs {left} more bytes, but the request has more than that.")
    try:
        return await site.db.blobs.continue_upload(upload, offset, Body(request), checksum=checksum)
    except UploadConflictError as error:
        where = {"Upload-Offset": str(error.offset)}
        raise RefusedError(409, f"The upload must continue at offset {error.offset}.", where) from None
    except IntegrityError:
        if checksum is None:
            raise RefusedError(
                410, "The bytes received so far are lost. Please start a new upload."
            ) from None
        raise RefusedError(460, "The bytes do not match the checksum sent with them.") from None
    except InvalidRequestError:
        raise RefusedError(413, "More bytes arrived than the upload was started with.") from None


async def _show(site: Site, upload: ResumableUpload) -> dict[str, str]:
    """The headers that describe how far an upload is."""
    headers = {**NO_CACHE, "Upload-Offset": str(upload.offset)}
    if upload.is_complete:
        headers["Holdall-Signed-Id"] = await site.db.blobs.signed_id(upload.id, purpose="attach")
    else:
        headers["Upload-Expires"] = format_datetime(upload.expires_at, usegmt=True)
    return headers


# --- headers ----------------------------------------------------------------------------------------------


def _read_number(request: Request, name: str) -> int:
    text = request.headers.get(name.lower(), "")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise RefusedError(400, f"{name} must be a number.")
    return int(text)


def _read_checksum(request: Request) -> str | None:
    """The checksum in the form that ``continue_upload`` expects."""
    text = request.headers.get("upload-checksum")
    if text is None:
        return None
    algorithm, _, digest = text.partition(" ")
    if algorithm not in _ALGORITHMS or not _decode(digest):
        raise RefusedError(
            400, f"Upload-Checksum must be one of {', '.join(_ALGORITHMS)}, a space, and a base64 digest."
        )
    return f"{algorithm}:{digest}"


def _parse_metadata(text: str) -> dict[str, str]:
    """The pairs of names and texts."""
    found: dict[str, str] = {}
    for pair in text.split(",") if text else ():
        name, _, encoded = pair.strip().partition(" ")
        value = _decode(encoded)
        if not name or not name.isascii() or name in found or value is None or len(text) > _MOST_METADATA:
            raise RefusedError(400, "Upload-Metadata must be pairs of a unique name and a base64 value.")
        found[name] = value.decode(errors="replace")
    return found


def _decode(encoded: str) -> bytes | None:
    try:
        return b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
