"""The inventory: all blobs of a table, page by page, and the pictures derived from a blob."""

from __future__ import annotations

import io

import pytest
from attachments_rig import Rig, everywhere, in_memory
from PIL import Image

from holdall import Variant
from holdall.errors import InvalidOptionsError, RecordNotFound


@everywhere
async def test_all_blobs_are_found_page_by_page(db: Rig) -> None:
    stored = {(await db.blobs.create_and_upload(b"x", filename=f"{n}.txt")).id for n in range(7)}
    page = await db.blobs.scan(limit=3)
    seen = [blob.id for blob in page.blobs]
    while page.next is not None:
        assert (len(page.blobs), page.complete) == (3, False)
        page = await db.blobs.scan(limit=3, after=page.next)
        seen += [blob.id for blob in page.blobs]
    assert page.complete
    assert len(seen) == 7
    assert set(seen) == stored
    whole = await db.blobs.scan(limit=7)
    assert (len(whole.blobs), whole.complete or whole.next is not None) == (7, True)


@in_memory
async def test_a_scan_ends_after_the_number_of_items_that_the_caller_permits(db: Rig) -> None:
    for n in range(260):
        await db.blobs.create_and_upload(b"", filename=f"{n}.txt")
    page = await db.blobs.scan(limit=10_000, most_scanned=1)
    assert page.scanned == 500
    assert (page.next, page.complete) == (None, False)
    assert 0 < len(page.blobs) < 600
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(InvalidOptionsError, match="limit must be a whole number"):
            await db.blobs.scan(limit=wrong)
        with pytest.raises(InvalidOptionsError, match="most_scanned must be a whole number"):
            await db.blobs.scan(most_scanned=wrong)


@in_memory
async def test_the_pictures_derived_from_a_blob_are_listed(db: Rig) -> None:
    target = io.BytesIO()
    Image.new("RGB", (40, 30), "#c60").save(target, "PNG")
    blob = await db.blobs.create_and_upload(target.getvalue(), filename="a.png")
    assert await db.blobs.pictures(blob) == []
    made = [await db.blobs.variant(blob, Variant(resize_to_limit=(size, size))) for size in (10, 20)]
    found = await db.blobs.pictures(blob)
    assert {each.blob.id for each in found} == {each.id for each in made}
    assert {each.name for each in found} == {"image"}
    assert {each.source_id for each in found} == {blob.id}
    await db.blobs.attach(blob, record_type="Thing", record_id="1", name="files")
    assert [each.source_id for each in await db.blobs.attachments(blob)] == [None]
    with pytest.raises(RecordNotFound):
        await db.blobs.pictures("none")
