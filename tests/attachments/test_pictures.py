"""Pictures derived from blobs, and the analysis of blobs: what happens, and when."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import md5
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from attachments_rig import SECRET, Rig, in_memory
from gem import Gem
from PIL import Image

from holdall import Database, Model, Variant, has_one_attached
from holdall.attachments import AttachmentSettings, Blob, Filename, analyzer
from holdall.attachments.blob.address import sign_variation, verify_variation
from holdall.attachments.blob.signed_id import sign_id
from holdall.attachments.picture.analysis import _declared
from holdall.attachments.picture.derivation import Derivation, carry_out
from holdall.attachments.picture.derived import preview_owner, variant_owner
from holdall.attachments.picture.marshal import Symbol
from holdall.attachments.picture.variant import complete_variant, pack_variant, unpack_variant
from holdall.core.frozen import replace
from holdall.core.media import ProbeMedia
from holdall.core.objects import GetObject
from holdall.core.requests import TransactWrite, UpdateItem
from holdall.errors import (
    InvalidOptionsError,
    InvariableError,
    MalformedMediaError,
    MediaPackageMissingError,
    RecordNotFound,
    UnpreviewableError,
    UnrepresentableError,
)

SMALL = Variant(resize_to_limit=(10, 10))


class Picture(Model, abstract=True):
    now = has_one_attached(variants={"thumb": Variant(resize_to_fill=(8, 8), process="immediately")})
    later = has_one_attached(variants={"thumb": Variant(resize_to_fill=(8, 8), process="later")})
    lazy = has_one_attached(analyze="lazily", variants={"thumb": Variant(resize_to_fill=(8, 8))})


class Shot(Picture):
    """In the one table (mode A)."""


class Frame(Picture, table="frames"):
    """In its own table, as mode B needs."""


def draw(width: int = 40, height: int = 20, format: str = "PNG") -> bytes:
    """Draw a picture."""
    data = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(data, format)
    return data.getvalue()


def photo(data: bytes | None = None) -> dict[str, Any]:
    """A picture to attach."""
    return {"io": draw() if data is None else data, "filename": "photo.png"}


def write_pdf() -> bytes:
    """Write a document of three pages."""
    document, data = pypdfium2.PdfDocument.new(), io.BytesIO()
    for _ in range(3):
        document.new_page(60, 30)
    document.save(data)
    return data.getvalue()


async def upload(db: Rig, data: bytes | None = None, name: str = "photo.png") -> Blob:
    """Upload an unattached blob."""
    return await db.blobs.create_and_upload(draw() if data is None else data, filename=name)  # type: ignore[no-any-return]


async def size_of(db: Rig, blob: Blob) -> tuple[int, int]:
    """The size of a picture, read from its bytes."""
    return Image.open(io.BytesIO(await db.blobs.download(blob))).size


async def create(db: Rig, **attached: Any) -> Any:
    """Create a shot with these files."""
    async with db.db.transaction() as tx:
        shot = tx.create(Shot if db.way.mode == "A" else Frame)
        for name, given in attached.items():
            setattr(shot, name, given)
    return shot


def list_keys(db: Rig) -> set[str]:
    """The keys of all stored objects."""
    service: Any = db.service.inner
    return set(service._objects)


@in_memory
async def test_a_variant_is_made_once_and_purged_with_its_blob(db: Rig) -> None:
    shot = await create(db, lazy=photo())
    made = await db.blobs.variant(shot.lazy.blob, SMALL)
    assert await size_of(db, made) == (10, 5)
    assert (str(made.filename), made.content_type, made.service_name) == ("photo.png", "image/png", "default")
    assert made.metadata == {"identified": True, "analyzed": True, "width": 10, "height": 5}
    db.recorder.requests.clear()
    assert await db.blobs.variant(shot.lazy.blob, Variant(resize_to_limit=[10, 10])) == made
    assert len(db.recorder.requests) == 2  # the record with its slot, then the picture's blob
    await db.check()
    async with db.db.transaction() as tx:
        tx.delete(type(shot).key(shot.id))
    await db.drain()
    assert await db.find(made) is None
    assert list_keys(db) == set()
    await db.check()


@in_memory
async def test_variants_and_previews_are_stored_as_the_gem_stores_them(db: Rig) -> None:
    gem, blob, document = Gem(db), await upload(db), await upload(db, write_pdf(), "paper.pdf")
    made, drawn = await db.blobs.variant(blob, SMALL), await db.blobs.preview(document)
    digest = complete_variant(SMALL, blob.content_type, blob.filename).digest()
    (record,) = await gem.variants(blob.id)
    assert record["as_variation_digest"] == {"S": digest}
    assert record["as_entity"] == {"S": "VariantRecord"}
    (image,) = await gem.rows(variant_owner(blob.id, digest), "image")
    assert image["as_blob_id"] == {"S": made.id}
    (preview,) = await gem.rows(preview_owner(document.id), "preview_image")
    assert preview["as_blob_id"] == {"S": drawn.id}


@in_memory
async def test_the_gem_s_variants_are_found_and_its_unfinished_ones_are_made(db: Rig) -> None:
    gem, blob = Gem(db), await upload(db)
    digest = complete_variant(SMALL, blob.content_type, blob.filename).digest()
    await gem.create_variant(blob.id, digest)
    made = await db.blobs.variant(blob, SMALL)
    assert await size_of(db, made) == (10, 5)

    other = await upload(db)
    await gem.create_variant(other.id, digest)
    theirs = await gem.create_blob(b"a picture of the gem")
    await gem.attach(variant_owner(other.id, digest), "image", theirs)
    assert (await db.blobs.variant(other, SMALL)).id == theirs


@in_memory
async def test_of_two_processes_that_make_a_picture_one_wins_and_the_other_leaves_nothing(db: Rig) -> None:
    for blob, flow in ((await upload(db), "variant"), (await upload(db, write_pdf(), "a.pdf"), "preview")):
        arguments = (blob, SMALL) if flow == "variant" else (blob,)
        first: list[Blob] = []

        async def make(flow: str = flow, arguments: Any = arguments, first: Any = first) -> None:
            first.append(await getattr(db.blobs, flow)(*arguments))

        db.in_between(make, TransactWrite)
        before = list_keys(db)
        second = await getattr(db.blobs, flow)(*arguments)
        assert first == [second]
        assert list_keys(db) - before == {second.key}
    await db.check()


@in_memory
async def test_a_picture_of_a_blob_that_is_purged_meanwhile_is_not_kept(db: Rig) -> None:
    blob = await upload(db)

    async def purge() -> None:
        await db.blobs.purge(blob)

    db.in_between(purge, TransactWrite)
    with pytest.raises(RecordNotFound):
        await db.blobs.variant(blob, SMALL)
    assert list_keys(db) == set()
    await db.check()


@in_memory
async def test_representation_makes_a_variant_of_a_picture_or_of_a_preview(db: Rig) -> None:
    document, picture, text = (
        await upload(db, write_pdf(), "paper.pdf"),
        await upload(db),
        await upload(db, b"words", "words.txt"),
    )
    drawn = await db.blobs.preview(document)
    assert (str(drawn.filename), drawn.content_type) == ("paper.png", "image/png")
    small = await db.blobs.representation(document, SMALL)
    assert await size_of(db, small) == (10, 5)
    assert await db.blobs.variant(drawn, SMALL) == small
    assert await db.blobs.representation(picture, SMALL) == await db.blobs.variant(picture, SMALL)
    with pytest.raises(InvariableError):
        await db.blobs.variant(document, SMALL)
    with pytest.raises(UnpreviewableError):
        await db.blobs.preview(picture)
    with pytest.raises(UnrepresentableError):
        await db.blobs.representation(text, SMALL)
    assert await db.blobs.purge(document)
    assert await db.find(drawn) is None
    assert await db.find(small) is None


@in_memory
async def test_named_variants_are_made_at_the_time_that_they_declare(db: Rig) -> None:
    shot = await create(db, now=photo(), later=photo(), lazy=photo())
    thumb = Variant(resize_to_fill=(8, 8))

    async def is_made(blob: Blob) -> bool:
        before = list_keys(db)
        await db.blobs.variant(blob, thumb)
        return list_keys(db) == before

    assert shot.now.blob.metadata == {"identified": True, "analyzed": True, "width": 40, "height": 20}
    assert shot.later.blob.metadata == {"identified": True}
    assert await is_made(shot.now.blob)
    await db.drain()
    assert (await db.blobs.find(shot.later.blob.id)).metadata["width"] == 40
    assert not (await db.blobs.find(shot.lazy.blob.id)).is_analyzed
    assert await is_made(shot.later.blob)
    assert not await is_made(shot.lazy.blob)
    await db.check()


@in_memory
async def test_a_job_analyzes_a_client_s_upload_and_makes_its_variants(db: Rig) -> None:
    data = draw()
    blob, _ = await db.blobs.create_before_direct_upload(
        filename="x.txt", byte_size=len(data), checksum=b64encode(md5(data).digest()).decode()
    )
    await db.files.put(blob.key, data)
    signed = await db.blobs.signed_id(blob, purpose="attach")
    shot = await create(db, now=signed)
    assert shot.now.blob.content_type == "image/png"
    before = list_keys(db)
    db.clock.forward(61)
    await db.drain()
    found = await db.blobs.find(blob.id)
    assert (found.metadata["width"], found.is_analyzed) == (40, True)
    assert list_keys(db) == before


@in_memory
async def test_a_broken_file_is_refused_before_the_commit_or_marked_by_the_job(db: Rig) -> None:
    broken = draw()[:20]
    with pytest.raises(MalformedMediaError):
        await create(db, now=photo(broken))
    assert list_keys(db) == set()
    shot = await create(db, later=photo(broken))
    await db.drain()
    found = await db.blobs.find(shot.later.blob.id)
    assert found.metadata == {"identified": True, "analyzed": True, "media_error": "malformed-media"}
    with pytest.raises(MalformedMediaError):
        await db.blobs.variant(found, SMALL)
    assert list_keys(db) == {found.key}


@contextmanager
def register_analyzer(*types: str) -> Iterator[list[tuple[bytes, Blob]]]:
    seen: list[tuple[bytes, Blob]] = []

    @analyzer(*types)
    def look(path: Path, blob: Blob) -> dict[str, Any]:
        seen.append((path.read_bytes(), blob))
        return {"words": 2, "mood": [0.5], "identified": "no client says this"}

    try:
        yield seen
    finally:
        _declared.popitem()


@in_memory
async def test_analyzers_of_the_application_take_precedence(db: Rig) -> None:
    blob = await upload(db, b"two words", "a.txt")
    assert (await db.blobs.analyze(blob)).metadata == {"identified": True, "analyzed": True}
    with register_analyzer("text/*", "image/png") as seen:
        found = await db.blobs.analyze(blob)
        assert found.metadata == {"identified": True, "analyzed": True, "words": 2, "mood": [0.5]}
        assert seen == [(b"two words", blob)]
        shot = await create(db, later=photo())
        await db.drain()
        assert (await db.blobs.find(shot.later.blob.id)).metadata["words"] == 2


@in_memory
async def test_attachments_have_urls_of_their_pictures(db: Rig) -> None:
    shot = await create(db, lazy=photo(), now={"io": write_pdf(), "filename": "paper.pdf"})
    thumb = shot.lazy.variant("thumb")
    assert thumb.url().startswith("/attachments/representations/")
    assert thumb.url(proxied=True).startswith("/attachments/representations/proxy/")
    assert await size_of(db, await db.blobs.representation(thumb)) == (8, 8)
    assert await size_of(db, await db.blobs.representation(shot.now.preview())) == (126, 63)
    assert await size_of(db, await db.blobs.representation(shot.now.representation("thumb"))) == (8, 8)
    with pytest.raises(InvalidOptionsError, match="declared variants: thumb"):
        shot.lazy.variant("huge")
    with pytest.raises(InvariableError):
        shot.now.variant("thumb")
    assert shot.later.variant("thumb") is None
    (attachment,) = await db.blobs.attachments(shot.lazy.blob)
    await db.blobs.owners([attachment])
    assert attachment.variant("thumb").variant == thumb.variant


class _WithoutPackages:
    """The port of a machine without the media packages."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    async def send(self, request: Any) -> Any:
        if isinstance(request, ProbeMedia):
            raise MediaPackageMissingError("no Pillow here")
        return await self._port.send(request)


@in_memory
async def test_a_worker_without_the_packages_leaves_analysis_to_another(db: Rig) -> None:
    context = db.database._context
    shot = await create(db, lazy=photo())
    bare = replace(context, port=_WithoutPackages(context.port))
    wanted = [Derivation(shot.lazy.blob.id, True, (), is_urgent=False)]
    await carry_out(bare, wanted)
    assert not (await db.blobs.find(shot.lazy.blob.id)).is_analyzed
    await carry_out(context, wanted)
    assert (await db.blobs.find(shot.lazy.blob.id)).is_analyzed


@in_memory
@pytest.mark.parametrize("broken", [False, True])
async def test_a_blob_that_is_purged_while_its_job_runs_is_not_a_failure(db: Rig, broken: bool) -> None:
    context = db.database._context
    blob = await upload(db, draw()[:20] if broken else draw(), "a.png")
    kinds = (UpdateItem, TransactWrite) if broken else (GetObject,)
    db.in_between(lambda: db.blobs.delete(blob.id), *kinds)
    await carry_out(context, [Derivation(blob.id, True, (SMALL,), is_urgent=False)])
    with pytest.raises(RecordNotFound):
        await db.blobs.find(blob.id)
    assert list_keys(db) == set()


def test_packed_variants_keep_their_order_and_symbols() -> None:
    given = Variant(rotate=90, resize_to_fill=[8, 8, {"gravity": "north"}], format=Symbol("png"))
    arrived = unpack_variant(json.loads(json.dumps(pack_variant(given))))
    assert arrived.digest("rails") == given.digest("rails")
    assert arrived.digest() == given.digest()
    with Database("memory:", secret=SECRET) as db:
        settings = db._context.settings
    now = datetime(2026, 11, 16, tzinfo=UTC)
    assert verify_variation(settings, sign_variation(settings, given), now) == given
    assert verify_variation(settings, sign_variation(settings, None), now) is None


@pytest.mark.parametrize(
    "hostile",
    [
        {"system": "ls"},
        {"self": 1, "rotate": 90},
        {"resize_to_limit": [10, 10], "saver": {"-write": "/tmp/x.php"}},
        {"resize_to_limit": [10**9, 10**9]},
        {"resize_to_fill": [10, 10, {"gravity": "north", "-set": "x"}]},
        {"resize_and_pad": [10, 10, {"background": "label:@/etc/passwd"}]},
        {"format": "msl:/tmp/x"},
        {"rotate": [90, "-write"]},
        {"crop": {"symbol": "all"}},
        ["rotate", 90],
        "rotate",
        7,
    ],
)
@pytest.mark.parametrize("form", ["holdall", "rails"])
def test_a_signed_variation_with_forbidden_operations_is_refused(hostile: Any, form: Any) -> None:
    with Database("memory:", secret=SECRET, attachments=AttachmentSettings(signed_ids=form)) as db:
        settings = db._context.settings
    now = datetime(2026, 11, 16, tzinfo=UTC)
    text = sign_id([SECRET], hostile, purpose="variation", form=form)
    with pytest.raises(InvalidOptionsError):
        verify_variation(settings, text, now)


@pytest.mark.parametrize(
    ("content_type", "filename", "format"),
    [
        ("image/jpeg", "a.jpeg", "jpeg"),
        ("image/jpeg", "a.png", "jpg"),
        ("image/webp", "a", "webp"),
        ("image/heic", "a.heic", "png"),
        ("image/vnd.adobe.photoshop", "a.psd", "png"),
    ],
)
def test_a_picture_keeps_its_format_only_if_its_name_matches_its_content(
    content_type: str, filename: str, format: str
) -> None:
    assert complete_variant(SMALL, content_type, Filename(filename)).format == format
    assert (
        complete_variant(Variant(rotate=90, format="gif"), content_type, Filename(filename)).format == "gif"
    )


def test_a_client_s_upload_is_mirrored_once_it_is_attached() -> None:
    services = {
        "main": "memory:?base_url=https://files.example",
        "copy": "memory:",
        "both": "mirror:main,copy",
    }
    with Database("memory:", files=services, default_service="both", secret=SECRET) as db:
        blob, _ = db.blobs.create_before_direct_upload(
            filename="a.txt", byte_size=5, checksum=b64encode(md5(b"bytes").digest()).decode()
        )
        db.files["main"].put(blob.key, b"bytes")  # the client's upload
        with db.transaction() as tx:
            tx.create(Shot).lazy = db.blobs.signed_id(blob, purpose="attach")
        db.worker().drain()
        assert db.files["copy"].get(blob.key) == b"bytes"
