"""Blobs that clients uploaded directly: until their first bytes are read, their type is only what the client said."""

from __future__ import annotations

from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.content_type import HEAD_BYTES, identify
from holdall.attachments.home import find_home
from holdall.attachments.record import BlobRow
from holdall.attachments.stored import find_row, update_row
from holdall.core.context import Context
from holdall.core.objects import GetObject
from holdall.errors import ObjectNotFoundError
from holdall.files.mirror import mirror
from holdall.tables.record import fetch


async def identify_blob(context: Context, row: BlobRow) -> BlobRow:
    """Determine and store a row's true content type, and return the row; unchanged if that was done before.

    `ObjectNotFoundError` if the client has not uploaded the bytes.
    """
    if row.metadata.get("identified") is True:
        return row
    head = b""
    if row.byte_size:
        try:
            part = await context.port.send(GetObject(row.service_name, row.key, 0, HEAD_BYTES))
        except ObjectNotFoundError as error:
            raise ObjectNotFoundError(
                f"the bytes of blob {row.id} have not been uploaded",
                hint="attach the blob after the client has finished its upload",
            ) from error
        head = part.body
    await mirror(context, row.service_name, row.key)  # before the type is stored; doing it twice is harmless
    found = identify(head, name=row.filename, declared=row.content_type)
    identified = BlobRow.metadata.set_entry("identified", True)
    await update_row(context, row, BlobRow.content_type.set(found), identified)
    return await fetch(context.port, BlobRow(row.address))


async def identify_stored(context: Context, blob: Blob | str) -> Blob:
    """The blob with its true content type: no parser sees bytes whose type only their sender has stated."""
    if isinstance(blob, Blob) and blob.is_identified:
        return blob
    row = await find_row(context, await find_home(context), blob)
    return Blob.of(await identify_blob(context, row))
