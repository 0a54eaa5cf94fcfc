"""Flows that copy and delete objects, and sign URLs for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from math import inf

from holdall.core.object_url import DirectUpload, Download, verified_download, verified_upload
from holdall.core.objects import (
    CopyObject,
    DeleteObject,
    DeleteObjects,
    ObjectHeaders,
    ObjectInfo,
    SignedUrl,
    SignUrl,
)
from holdall.core.rules.object import check_key
from holdall.errors import InvalidOptionsError, ServiceError
from holdall.files.listing import Listing
from holdall.files.mirror import mirror
from holdall.files.shelf import Shelf


async def copy(
    shelf: Shelf,
    source: str,
    key: str,
    *,
    if_match: str | None = None,
    if_absent: bool = False,
) -> ObjectInfo:
    """Copy an object, with its headers, to another key of its service.

    With ``if_match`` the copy happens only if the source has this etag, with ``if_absent`` only if the new key is free;
    otherwise `PreconditionFailedError` is raised.
    """
    context, service = shelf.context, shelf.service
    put_id = context.port.new_id() if if_absent else None
    info = await context.port.send(CopyObject(service, source, key, if_match, put_id))
    await mirror(context, service, key)
    return info


async def delete(shelf: Shelf, key: str) -> None:
    """Delete an object; do nothing if it is missing."""
    await shelf.context.port.send(DeleteObject(shelf.service, key))


async def delete_many(shelf: Shelf, keys: Iterable[str]) -> int:
    """Delete many objects, a thousand at a time; return the number of distinct keys."""
    if isinstance(keys, str):
        raise InvalidOptionsError(
            "delete_many needs a list of keys, not text", hint="pass a list, or use delete for a single key"
        )
    wanted = list(dict.fromkeys(keys))
    for key in wanted:
        check_key(key)  # all of them before any is deleted
    for at in range(0, len(wanted), DeleteObjects.most):
        await _delete_some(shelf, wanted[at : at + DeleteObjects.most])
    return len(wanted)


async def _delete_some(shelf: Shelf, keys: list[str]) -> None:
    report = await shelf.context.port.send(DeleteObjects(shelf.service, tuple(keys)))
    if report.failures:
        key, why = next(iter(report.failures.items()))
        raise ServiceError(
            f"{len(report.failures):,} of {len(keys):,} objects could not be deleted, the first {key!r:.80}: {why}",
            hint="the others are deleted; try again to delete the rest",
        )


async def delete_prefix(shelf: Shelf, prefix: str) -> int:
    """Delete all objects whose keys begin with a prefix, page by page; return how many were deleted."""
    if not prefix:
        raise InvalidOptionsError("an empty prefix would delete every object", hint="pass a prefix")
    deleted = 0
    listing = Listing(shelf.context, shelf.service, prefix)
    while (page := await listing.next_page()) is not None:
        keys = [each.key for each in page.objects]
        if keys:
            await _delete_some(shelf, keys)
        deleted += len(keys)
    return deleted


async def url(
    shelf: Shelf,
    key: str,
    *,
    expires: float | timedelta = 300,
    disposition: str | None = None,
    filename: str | None = None,
    content_type: str | None = None,
) -> str:
    """Sign a URL with which anyone can download the object until it expires, served with these headers."""
    headers = ObjectHeaders(content_type, disposition_of(disposition, filename))
    signed = await shelf.context.port.send(SignUrl(shelf.service, key, "GET", seconds(expires), headers))
    return signed.url


async def upload_url(
    shelf: Shelf,
    key: str,
    *,
    size: int,
    md5: str | None = None,
    expires: float | timedelta = 300,
    content_type: str | None = None,
    disposition: str | None = None,
    filename: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> SignedUrl:
    """Sign a URL with which anyone can upload the object until it expires; returns it with the headers to send.

    The URL is bound to the size, the type and, if given, the MD5 (base64): other bytes are refused.
    """
    headers = ObjectHeaders(content_type, disposition_of(disposition, filename), None, dict(metadata or {}))
    request = SignUrl(shelf.service, key, "PUT", seconds(expires), headers, size, md5)
    return await shelf.context.port.send(request)


async def verify_download(shelf: Shelf, token: str) -> Download:
    """Return what the token at the end of a URL from `url` permits, for services that have no web server.

    Raises `InvalidTokenError` if the token was changed or has expired. It was signed with the database's secret.
    """
    context = shelf.context
    return verified_download(token, context.settings.secret, context.port.now().timestamp())


async def verify_upload(shelf: Shelf, token: str) -> DirectUpload:
    """Return what the token at the end of a URL from `upload_url` permits, for services that have no web server.

    Raises `InvalidTokenError` if the token was changed or has expired. It was signed with the database's secret.
    """
    context = shelf.context
    return verified_upload(token, context.settings.secret, context.port.now().timestamp())


def seconds(duration: float | timedelta) -> int:
    """A duration in whole seconds."""
    found = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if isinstance(found, bool) or not isinstance(found, int | float) or not 1 <= found < inf:
        raise InvalidOptionsError(
            f"expires must be a number of seconds or a timedelta, from 1 second up, not {duration!r:.60}"
        )
    return int(found)


def disposition_of(disposition: str | None, filename: str | None) -> str | None:
    """A Content-Disposition with the filename in two forms: one for every client, one for those that know Unicode."""
    if filename is None:
        return disposition
    kind = disposition or "inline"
    if kind not in ("inline", "attachment"):
        raise InvalidOptionsError(
            f"disposition must be inline or attachment if there is a filename, not {disposition!r:.60}"
        )
    from unicodedata import normalize
    from urllib.parse import quote

    plain = normalize("NFKD", filename).encode("ascii", "ignore").decode() or "file"
    escaped = quote(plain, safe=" !#$&'()+,-.;=@[]^_`{}~")
    encoded = quote(filename, safe="!#$&+-.^_`|~", errors="replace")
    return f"{kind}; filename=\"{escaped}\"; filename*=UTF-8''{encoded}"
