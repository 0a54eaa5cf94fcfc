# mypy: ignore-errors
"""What type checkers know about attachments: declarations, proxies, ``db.blobs``. E: an error, R: a revealed type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, reveal_type

from holdall import AsyncDatabase, Database, Model, Variant, has_many_attached, has_one_attached
from holdall.attachments import Accept, Attachment, AttachmentEvent, Blob, on


class User(Model):
    name: str
    avatar = has_one_attached(variants={"small": Variant(resize_to_limit=(100, 100))})
    documents = has_many_attached(dependent="purge", validate=Accept(types=["image/*"], max_count=3))
    wrong = has_one_attached(dependent="never")  # E
    detached = has_one_attached(dependent=True)  # E
    kept = has_one_attached(dependent=False)
    unread = has_one_attached(analyze=False)  # E
    wrong_too = has_many_attached(unknown=True)  # E


def declare(user: User) -> None:
    reveal_type(user.avatar)  # R: OneAttached
    reveal_type(user.documents)  # R: ManyAttached
    reveal_type(User.avatar)  # R: HasOne
    reveal_type(User.documents)  # R: HasMany


def change(user: User, blob: Blob, opened: BinaryIO, pieces: Iterator[bytes], attachment: Attachment) -> None:
    user.avatar = Path("ada.png")
    user.avatar = opened
    user.avatar = blob
    user.avatar = "a signed id"
    user.avatar = {"io": b"bytes", "filename": "ada.png"}
    user.avatar = None
    user.documents = [blob, Path("a.txt"), opened]
    user.documents = []
    user.documents = None
    user.documents = blob  # E
    reveal_type(user.documents)  # R: ManyAttached
    reveal_type(user.avatar)  # R: OneAttached
    user.avatar.attach(pieces, filename="a.txt", content_type="text/plain", metadata={"a": 1})
    user.avatar.attach(b"bytes", nmae="a.txt")  # E
    user.documents.attach(blob, opened)
    user.documents.purge(attachment)
    user.documents.purge(blob)  # E
    user.avatar.detach(attachment)  # E


def read(user: User) -> None:
    reveal_type(user.avatar.attached)  # R: bool
    reveal_type(user.avatar.blob)  # R: Blob | None
    reveal_type(user.avatar.attachment)  # R: Attachment | None
    reveal_type(user.avatar.filename)  # R: Filename | None
    reveal_type(user.avatar.url())  # R: str | None
    reveal_type(user.avatar.variant("small"))  # R: Representation | None
    reveal_type(len(user.documents))  # R: int
    reveal_type([each.blob.byte_size for each in user.documents])  # R: list[int]
    reveal_type(user.documents.blobs)  # R: list[Blob]


def use(db: Database, blob: Blob) -> None:
    reveal_type(db.blobs.create_and_upload(b"bytes", filename="a.txt", dedupe=True))  # R: Blob
    reveal_type(db.blobs.find("id"))  # R: Blob
    reveal_type(db.blobs.find_signed("text"))  # R: Blob | None
    reveal_type(db.blobs.signed_id(blob, purpose="attach"))  # R: str
    reveal_type(db.blobs.attachments(blob))  # R: list[Attachment]
    reveal_type(db.blobs.url(blob, disposition="attachment"))  # R: str
    reveal_type(db.blobs.purge(blob))  # R: bool
    reveal_type(db.blobs.delete(blob))  # R: None
    reveal_type(db.blobs.sweep(dry_run=True).blobs)  # R: int
    reveal_type(db.blobs.check().findings)  # R: tuple[Finding, ...]
    reveal_type(db.blobs.update_metadata(blob, {"width": 7}).metadata["width"])  # R: Any
    reveal_type(db.blobs.create_before_direct_upload(filename="a", byte_size=1, checksum="")[1].url)  # R: str
    reveal_type(next(iter(db.blobs.list("User", "7"))))  # R: Attachment
    with db.blobs.open(blob) as file:
        reveal_type(file.read())  # R: bytes
    db.blobs.find(7)  # E
    db.blobs.purge(None)  # E
    db.blobs.url(blob, disposition="floating")  # E
    db.blobs.signed_id(blob, purpose="anything")  # E
    db.blobs.create_before_direct_upload(filename="a")  # E


async def use_async(db: AsyncDatabase, blob: Blob) -> None:
    reveal_type(await db.blobs.create_and_upload(b"bytes", filename="a.txt"))  # R: Blob
    reveal_type(await db.blobs.purge(blob))  # R: bool
    reveal_type([each.name async for each in db.blobs.list("User", "7")])  # R: list[str]
    async with db.blobs.open(blob) as file:
        reveal_type(file.read())  # R: bytes
    db.blobs.find("id").strip()  # E


@on("attached", "purged")
def handle(event: AttachmentEvent) -> None:
    reveal_type(event.record_id)  # R: str | None


on("uploaded")  # E
