"""Events of attachments: each change reaches each handler through a worker, at least once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from attachments_rig import Rig, everywhere, file, in_memory

from holdall.attachments import AttachmentEvent, on
from holdall.errors import JobDefinitionError
from holdall.jobs.declaration import declared_jobs


@pytest.fixture(autouse=True)
def _remove_handlers() -> Iterator[None]:
    """Remove a test's handlers after it."""
    yield
    jobs = declared_jobs()
    for name in [name for name, each in jobs.items() if each.topics]:
        del jobs[name]


def listen(*kinds: Any) -> list[AttachmentEvent]:
    received: list[AttachmentEvent] = []
    on(*(kinds or ("attached", "detached", "purged")), name=f"listener{len(kinds)}")(received.append)
    return received


async def count_jobs(db: Rig) -> int:
    listing = db.database.jobs.list()
    return len(await listing if db.way.colour == "awaiting" else listing)


@everywhere
async def test_handlers_receive_an_event_for_each_file_attached_detached_and_purged(db: Rig) -> None:
    received = listen()
    person = await db.create(avatar=file(), documents=[file(), file()])
    avatar, documents = person.avatar.attachment, list(person.documents)
    assert await count_jobs(db) == 1
    await db.drain()
    place = db.model.__name__, person.id
    assert {(event.kind, event.attachment_id, event.blob_id) for event in received} == {
        ("attached", each.id, each.blob.id) for each in (avatar, *documents)
    }
    assert {(event.record_type, event.record_id) for event in received} == {place}
    assert sorted(str(event.name) for event in received) == ["avatar", "documents", "documents"]
    assert len({event.id for event in received}) == 3
    received.clear()
    async with db.db.transaction() as tx:
        found = await tx.get(db.model, person.id)
        found.avatar = file(name="new.txt")
        found.documents.detach(documents[0])
    await db.drain()
    (new,) = [event for event in received if event.kind == "attached"]
    (gone,) = [event for event in received if event.kind == "purged"]
    assert (new.name, new.at.utcoffset() is not None) == ("avatar", True)
    assert {event.attachment_id for event in received if event.kind == "detached"} == {
        avatar.id,
        documents[0].id,
    }
    assert (gone.blob_id, gone.attachment_id, gone.record_type, gone.record_id, gone.name) == (
        avatar.blob.id,
        None,
        None,
        None,
        None,
    )
    assert len(received) == 4


@in_memory
async def test_each_handler_receives_only_its_kinds_and_only_committed_changes(db: Rig) -> None:
    purged, rest = listen("purged"), listen("attached", "detached")
    blob = await db.blobs.create_and_upload(b"bytes", filename="a.txt")
    held = (await db.create(avatar=file())).avatar.blob
    with suppress(RuntimeError):
        async with db.db.transaction() as tx:
            tx.create(db.model, name="Bob").avatar = blob
            raise RuntimeError
    assert await db.blobs.purge(blob)
    assert await db.blobs.purge(held) is False
    await db.drain()
    assert [event.blob_id for event in purged] == [blob.id]
    assert [(event.kind, event.blob_id) for event in rest] == [("attached", held.id)]


@in_memory
async def test_nothing_is_enqueued_without_handlers(db: Rig) -> None:
    await db.create(avatar=file(), documents=[file()])
    assert await count_jobs(db) == 0


def test_unknown_kinds_are_refused() -> None:
    for kinds in ((), ("attach",), ("purged", "uploaded")):
        with pytest.raises(JobDefinitionError, match="a handler names"):
            on(*kinds)(lambda event: None)
    assert not any(each.topics for each in declared_jobs().values())
