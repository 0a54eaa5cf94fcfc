"""Signed URLs for file services without a web server: ``db.files.url`` and ``db.files.upload_url`` lead here.

Like a presigned URL of S3, such a URL is a capability: any client that has it may get, or put, exactly what it states,
until it expires. So no hook is called here, and pages of other origins may use it.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from holdall.errors import IntegrityError
from holdall.web.serving.body import Body
from holdall.web.serving.refusal import NO_CACHE, RefusedError
from holdall.web.serving.reply import Served, reply_with
from holdall.web.serving.site import Site

_BINARY = "application/octet-stream"


def list_routes(site: Site) -> list[Route]:
    """The routes for signed URLs."""
    return [
        Route("/disk/{token}", partial(_get, site)),
        Route("/disk/{token}", partial(_put, site), methods=["PUT"]),
    ]


async def _get(site: Site, request: Request) -> Response:
    permitted = await site.db.files.verify_download(request.path_params["token"])
    files, key, signed = site.db.files[permitted.service], permitted.key, permitted.headers
    info = await files.head(key)
    file = Served(
        size=info.size,
        etag=f'"{info.etag}"',
        modified=info.modified,
        content_type=signed.content_type or info.headers.content_type or _BINARY,
        disposition=signed.disposition or info.headers.disposition,
        cache_control=signed.cache_control or info.headers.cache_control or "private, no-cache",
        stream=lambda start, size: files.stream(key, start=start, size=size, if_match=info.etag),
    )
    return await reply_with(request, file)


async def _put(site: Site, request: Request) -> Response:
    permitted = await site.db.files.verify_upload(request.path_params["token"])
    signed = permitted.headers
    length = request.headers.get("content-length")
    for stated, demanded in (
        (length, None if permitted.size is None or length is None else str(permitted.size)),
        (request.headers.get("content-type"), signed.content_type),
        (request.headers.get("content-md5", permitted.md5), permitted.md5),
    ):
        if demanded is not None and stated != demanded:
            raise RefusedError(422, "The length, type or checksum does not match the signed URL.")
    try:
        await site.db.files[permitted.service].put(
            permitted.key,
            Body(request),
            content_type=signed.content_type,
            disposition=signed.disposition,
            cache_control=signed.cache_control,
            metadata=signed.metadata,
            md5=permitted.md5,
            size=permitted.size,
        )
    except IntegrityError:
        raise RefusedError(422, "The bytes do not match the size or checksum of the signed URL.") from None
    except ClientDisconnect:
        return Response(status_code=400)  # the client is gone and will not read it
    return Response(status_code=204, headers=NO_CACHE)
