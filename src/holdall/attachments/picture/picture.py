"""Pictures made from blobs: variants of pictures, previews of PDFs and videos. Each is made once, and stored.

Why it is safe wherever the process dies, even if another process makes the same picture: the bytes are uploaded first,
after a marker that leads the sweep to them. One transaction then writes the picture's blob, its attachment, the slot
and the variant's record, on the condition that the source blob still exists. So a record is never seen without its
picture. Of two processes one is refused: it finds the other's picture, and deletes its own bytes.
"""

from __future__ import annotations

from typing import Any

from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.content_type import extension_of
from holdall.attachments.blob.handle import fetch_copy
from holdall.attachments.blob.identification import identify_stored
from holdall.attachments.home import Home, Owner, find_home
from holdall.attachments.owner.declaration import HasOne
from holdall.attachments.owner.given import NewFile
from holdall.attachments.owner.participant import AttachmentsParticipant, Order, Uploads
from holdall.attachments.owner.proxy import Pending, Removed
from holdall.attachments.picture.derived import preview_owner, variant_owner
from holdall.attachments.picture.representation import (
    Representation,
    check_previewable,
    check_representable,
    check_variable,
)
from holdall.attachments.picture.variant import Variant, complete_variant
from holdall.attachments.record import BlobRow, Slot, VariantRow
from holdall.attachments.settings import attachment_settings
from holdall.attachments.stored import explain_no_blob, read_blobs, read_rows
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.media import DrawPreview, Picture, TransformImage
from holdall.core.requests import Request
from holdall.errors import HoldallError, InvalidOptionsError, RecordNotFound
from holdall.local.temporary import remove_directory
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit, is_plain_no
from holdall.tables.record import fetch


async def variant(context: Context, blob: Blob | str, variant: Variant) -> Blob:
    """Return the blob of a picture's variant, and make it first if necessary.

    `InvariableError` if the file is not a picture.
    """
    if not isinstance(variant, Variant):
        raise InvalidOptionsError(
            f"variant must be a Variant, not {variant!r:.60}",
            hint="as in Variant(resize_to_limit=(100, 100))",
        )
    source = await identify_stored(context, blob)
    check_variable(source)
    return await _make_variant(context, source, variant)


async def preview(context: Context, blob: Blob | str, variant: Variant | None = None) -> Blob:
    """Return the blob of a preview, or of a variant of the preview, and make it first if necessary.

    A preview shows the first page of a PDF or the first frame of a video. `UnpreviewableError` if the file is neither.
    """
    source = await identify_stored(context, blob)
    check_previewable(source)
    drawn = await _draw_preview(context, source)
    return drawn if variant is None else await _make_variant(context, drawn, variant)


async def representation(
    context: Context, blob: Blob | Representation | str, variant: Variant | None = None
) -> Blob:
    """Return the blob of a picture of the file, and make it first if necessary.

    That is the variant of a picture, or the preview of a PDF or video. `UnrepresentableError` for other files.
    """
    given, wanted = (blob.blob, blob.variant) if isinstance(blob, Representation) else (blob, variant)
    source = await identify_stored(context, given)
    check_representable(source)
    if source.is_previewable:
        return await preview(context, source, wanted)
    return source if wanted is None else await _make_variant(context, source, wanted)


# --- where pictures are -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a picture belongs: its owner, its name there, and the digest of the variant if it is one."""

    owner: Owner
    name: str
    source_id: str
    digest: str | None = None


async def _find(context: Context, home: Home, place: _Place) -> Blob | None:
    """Find the picture at a place: by its slot, or in the list if another program made it without a slot."""
    slot = Slot(home.slot(place.owner, place.name))
    if place.digest is None:
        slot = await fetch(context.port, slot)
    else:
        record, slot = await fetch(context.port, _record(home, place), slot)
        if not record.is_stored:
            return None
    ids = [] if slot.blob_id is None else [slot.blob_id]
    if not ids:
        ids = [row.blob_id for row in await read_rows(context, home, place.owner, place.name, slot)]
    found = [row for row in (await read_blobs(context, home, ids)).values() if row.is_stored]
    return Blob.of(found[0]) if found else None


def _record(home: Home, place: _Place) -> VariantRow:
    assert place.digest is not None
    return VariantRow(home.variant(place.source_id, place.digest))


# --- making them ------------------------------------------------------------------------------------------


async def _make_variant(context: Context, source: Blob, wanted: Variant) -> Blob:
    home = await find_home(context)
    complete = complete_variant(wanted, source.content_type, source.filename)
    digest = complete.digest(attachment_settings(context.settings).variation_digest)
    place = _Place(variant_owner(source.id, digest), "image", source.id, digest)
    format = complete.format or "png"
    operations = tuple(
        (name, value) for name, value in complete.transformations.items() if name not in ("format", "convert")
    )

    def draw(path: str, target: str) -> Request[Picture]:
        return TransformImage(path, target, source.content_type or "", operations, format)

    return await _find(context, home, place) or await _make(context, home, source, place, draw, format)


async def _draw_preview(context: Context, source: Blob) -> Blob:
    home = await find_home(context)
    place = _Place(preview_owner(source.id), "preview_image", source.id)

    def draw(path: str, target: str) -> Request[Picture]:
        return DrawPreview(path, target, source.content_type or "")

    return await _find(context, home, place) or await _make(context, home, source, place, draw, None)


async def _make(
    context: Context, home: Home, source: Blob, place: _Place, draw: Any, format: str | None
) -> Blob:
    """Make a picture from a copy of the source, and store it."""
    path = await fetch_copy(context, source)
    target = path.with_name("picture")
    try:
        picture: Picture = await context.port.send(draw(str(path), str(target)))
        extension = format or extension_of(picture.content_type)
        file = NewFile(
            target,
            f"{source.filename.base}.{extension}",
            picture.content_type,
            {"width": picture.width, "height": picture.height, "analyzed": True},
            identify=False,
            service=source.service_name,
            given=target,
        )
        return await _store(context, home, source, place, file)
    finally:
        await context.port.offload(remove_directory, path.parent, None)


async def _store(context: Context, home: Home, source: Blob, place: _Place, file: NewFile) -> Blob:
    """Upload a picture, then write its records; return the other picture if one was stored meanwhile."""
    declaration = HasOne(dependent="purge_later", analyze="lazily", name=place.name)
    order = Order(
        declaration.wish(place.owner, Pending((Removed(None, "purge_later"),), (file,))), declaration, None
    )
    uploads = Uploads()
    upload = AttachmentsParticipant(uploads)

    participant = upload

    async def body(change: Change) -> Blob | None:
        nonlocal participant
        found = await _find(context, home, place)
        if found is not None:
            return found
        _state_source(change, home, place)
        participant = AttachmentsParticipant(uploads, upload)
        participant.add(order)
        change.join(participant)
        return None

    try:
        await upload.upload(context, [order])
        other = await commit(context, body, f"the picture {file.filename!r} of the blob {source.id}")
    except HoldallError as refusal:
        if is_plain_no(refusal):  # if the outcome is unknown, the bytes are left to the sweep
            await upload.abandon(context.port)
        raise
    if other is not None:
        await upload.abandon(context.port)
        return other
    assert order.result is not None
    (row,) = order.result.added
    return participant.attachment_of(row).blob


def _state_source(change: Change, home: Home, place: _Place) -> None:
    """Demand that the source blob exists; for a variant, also note its digest there, and write its record."""
    source = BlobRow(home.blob(place.source_id))
    exists = source.address.exists

    def explain(_: object) -> RecordNotFound:
        return explain_no_blob(place.source_id)

    if place.digest is None:
        change.require(source, exists, refused=explain)
        return
    change.update(source, BlobRow.variants.add([place.digest]), expect=[exists], refused=explain)
    record = _record(home, place)
    change.put(
        VariantRow.new(
            record.address,
            VariantRow.blob_id.set(place.source_id),
            VariantRow.digest.set(place.digest),
            VariantRow.entity.set("VariantRecord"),
        )
    )
