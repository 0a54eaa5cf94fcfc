"""The flows of ``db.blobs`` that find and change blobs, which need no owner."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from holdall.attachments.blob.address import (
    SignedFile,
    parse_address,
    sign_with,
    verify_variation,
    verify_with,
)
from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.signed_id import Purpose, read_expiry
from holdall.attachments.home import find_home
from holdall.attachments.owner.attachment import Attachment
from holdall.attachments.picture.representation import Representation
from holdall.attachments.record import AttachmentRow, BlobRow
from holdall.attachments.settings import attachment_settings
from holdall.attachments.stored import find_row, read_references, update_row
from holdall.attachments.upkeep.purge import purge, purge_row
from holdall.core.context import Context
from holdall.core.option import check_count
from holdall.errors import ForeignKeyViolation, InvalidOptionsError, InvalidTokenError, RecordNotFound
from holdall.files import upkeep
from holdall.jobs.outbox import enqueue_alone
from holdall.tables.record import fetch, fetch_all


async def find(context: Context, id: str) -> Blob:
    """Return the blob with this id; `RecordNotFound` if there is none."""
    return Blob.of(await find_row(context, await find_home(context), id))


async def find_signed(context: Context, signed_id: str, *, purpose: Purpose = "blob") -> Blob | None:
    """Return the blob that a signed id identifies.

    None if the id is invalid, has expired or was signed for another purpose, or if the blob does not exist.
    """
    try:
        id = verify_with(context.settings, signed_id, purpose, context.port.now())
        return await find(context, str(id))
    except (InvalidTokenError, RecordNotFound):
        return None


async def find_by_url(context: Context, path: str) -> SignedFile | None:
    """Return the file that a URL's path in the web application identifies; ``attached.url()`` returns such paths.

    None if the path was tampered with, has expired, or its blob does not exist.
    """
    own = attachment_settings(context.settings)
    address = parse_address(own.path, path)
    if address is None:
        return None
    now, picture = context.port.now(), None
    blob = await find_signed(context, address.signed_id)
    if blob is None:
        return None
    if address.variation is not None:
        try:
            variant = verify_variation(context.settings, address.variation, now)
        except (InvalidTokenError, InvalidOptionsError):
            return None
        picture = Representation(context.settings, blob, variant)
    until = read_expiry(address.signed_id, form=own.signed_ids)
    return SignedFile(blob, picture, address.proxied, None if until is None else until - now)


async def signed_id(
    context: Context, blob: Blob | str, *, purpose: Purpose = "blob", expires: float | timedelta | None = None
) -> str:
    """Return a signed id of the blob, valid for one purpose: ``"blob"`` to view it, ``"attach"`` to attach it.

    ``expires`` is a number of seconds or a timedelta; without it, the signed id never expires.
    """
    until = None if expires is None else context.port.now() + timedelta(seconds=upkeep.seconds(expires))
    return sign_with(context.settings, blob if isinstance(blob, str) else blob.id, purpose, until)


async def attachments(context: Context, blob: Blob | str, *, limit: int | None = None) -> list[Attachment]:
    """List the attachments of a blob, at most ``limit``, in no particular order.

    Those that a Rails application wrote are found only after `reindex`.
    """
    if limit is not None:
        check_count(limit, "limit")
    home = await find_home(context)
    row = await find_row(context, home, blob)
    places = await read_references(context, home, row, limit)
    wanted = [AttachmentRow(home.attachment(*home.parse_place(place), id)) for id, place in places.items()]
    found = await fetch_all(context.port, wanted)
    return [
        Attachment.of(context.settings, each, Blob.of(row))
        for each in found
        if each.is_stored and each.blob_id == row.id
    ]


async def update_metadata(context: Context, blob: Blob | str, changes: Mapping[str, Any]) -> Blob:
    """Set these entries of a blob's metadata, and leave the others; the value None removes an entry.

    Other processes may change other entries at the same time.
    """
    home = await find_home(context)
    row = await find_row(context, home, blob)
    if changes:
        await update_row(context, row, *(BlobRow.metadata.set_entry(*each) for each in changes.items()))
    return Blob.of(await find_row(context, home, row.id))


async def delete(context: Context, blob: Blob | str) -> None:
    """Delete a blob and its bytes. `ForeignKeyViolation` if it is attached; a missing blob is not an error."""
    if not await purge_now(context, blob):
        id = blob if isinstance(blob, str) else blob.id
        raise ForeignKeyViolation(
            f"blob {id} cannot be deleted while it is attached",
            hint="detach it first; db.blobs.attachments(blob) lists where it is attached",
        )


async def purge_now(context: Context, blob: Blob | str) -> bool:
    """Delete a blob and its bytes, unless it is attached; return False if it is."""
    home = await find_home(context)
    row = await fetch(context.port, BlobRow(home.blob(blob if isinstance(blob, str) else blob.id)))
    return not row.is_stored or await purge_row(context, home, row)


async def purge_later(context: Context, *blobs: Blob | str) -> None:
    """Enqueue a job that deletes blobs and their bytes, except those that are attached when it runs."""
    ids = [each if isinstance(each, str) else each.id for each in blobs]
    await enqueue_alone(context, purge, *ids)
