"""Uploads in parts: begun, filled in any order, listed, resumed, aborted."""

from __future__ import annotations

from typing import Any

from holdall.core.objects import (
    AbortUpload,
    CompleteUpload,
    CopyPart,
    ListParts,
    ListUploads,
    ObjectRequest,
    Part,
    PartPage,
    Upload,
    UploadPart,
)
from holdall.core.rules.object import MAX_PARTS
from holdall.errors import ObjectNotFoundError
from holdall.testing.file_contract.check import NAME, Service, check, full_part, refused

STRANGE_IDS = (
    "unknown",
    "..",
    "../..",
    "/etc",
    "a/b",
    "a\\b",
    "\x00",
    "ü 😀",
    "%2e%2e",
    "?uploads",
    "x" * 300,
)


async def parts_of(service: Service, upload: Upload) -> tuple[Part, ...]:
    """Every part that the service has of an upload."""
    found: list[Part] = []
    page = PartPage((), 0)
    while page.next is not None:
        page = await service.send(ListParts(NAME, upload, page.next or None))
        found += page.parts
    return tuple(found)


@check()
async def an_upload_names_its_key_and_has_its_own_id(service: Service) -> None:
    uploads = [await service.begin() for _ in range(3)]
    assert {upload.key for upload in uploads} == {service.key()}
    assert len({upload.id for upload in uploads}) == 3
    assert all(upload.id for upload in uploads)


@check()
async def a_part_reports_its_number_and_size(service: Service) -> None:
    upload = await service.begin()
    part = await service.part(upload, 3, b"words")
    assert (part.number, part.size) == (3, 5)
    assert part.etag


@check()
async def nothing_of_an_upload_is_visible_before_its_end(service: Service) -> None:
    upload = await service.begin()
    assert await service.body() is None
    part = await service.part(upload, 1, b"words")
    assert await service.body() is None
    with refused(ObjectNotFoundError):
        await service.head()
    assert await service.names() == []
    await service.complete(upload, part)
    assert await service.body() == b"words"
    assert await service.names() == ["a"]


@check()
async def an_existing_object_stays_until_the_upload_ends(service: Service) -> None:
    there = await service.put(body=b"there")
    upload, part = await service.begin_with(b"words")
    assert ((await service.get()).body, (await service.head()).etag) == (b"there", there.etag)
    done = await service.complete(upload, part)
    assert ((await service.get()).body, (await service.head()).etag) == (b"words", done.etag)
    assert done.etag != there.etag


@check()
async def parts_can_be_sent_in_any_order(service: Service) -> None:
    upload = await service.begin()
    bodies = {1: full_part(1), 2: full_part(2), 3: b"the end"}
    parts = {number: await service.part(upload, number, bodies[number]) for number in (3, 1, 2)}
    done = await service.complete(upload, parts[1], parts[2], parts[3])
    assert done.size == sum(len(body) for body in bodies.values())
    found = await service.get()
    assert found.info.size == done.size
    assert found.body == full_part(1) + full_part(2) + b"the end"
    across = await service.get(start=len(full_part()) - 3, size=6)
    assert across.body == full_part(1)[-3:] + full_part(2)[:3]


@check()
async def parts_can_be_sent_concurrently(service: Service) -> None:
    upload = await service.begin()
    bodies = [full_part(1), full_part(2), b"the end"]
    flows = [service.part(upload, number, body) for number, body in enumerate(bodies, 1)]
    parts = await service.side_by_side(flows)
    await service.complete(upload, *parts)
    assert await service.body() == b"".join(bodies)


@check()
async def numbers_of_parts_may_have_gaps(service: Service) -> None:
    upload = await service.begin()
    last = await service.part(upload, MAX_PARTS, b"the end")
    first = await service.part(upload, 7, full_part())
    await service.complete(upload, first, last)
    assert await service.body() == full_part() + b"the end"


@check()
async def an_upload_can_be_one_small_or_empty_part(service: Service) -> None:
    for body in (b"x", b""):
        assert (await service.upload("a", body)).size == len(body)
        assert await service.body() == body


@check()
async def a_part_of_the_same_number_is_replaced(service: Service) -> None:
    upload = await service.begin()
    await service.part(upload, 1, b"first")
    second = await service.part(upload, 1, b"second one")
    assert await parts_of(service, upload) == (second,)
    await service.complete(upload, second)
    assert await service.body() == b"second one"


@check()
async def the_parts_of_an_upload_are_listed_by_number(service: Service) -> None:
    upload = await service.begin()
    assert await parts_of(service, upload) == ()
    sent = {number: await service.part(upload, number, b"x" * number) for number in (11, 2, 1, 10, 3)}
    assert await parts_of(service, upload) == tuple(sent[number] for number in (1, 2, 3, 10, 11))
    page = await service.send(ListParts(NAME, upload, 2))
    assert page.parts == tuple(sent[number] for number in (3, 10, 11))
    assert (await service.send(ListParts(NAME, upload, 11))).parts == ()


@check()
async def an_upload_is_resumed_with_its_existing_parts(service: Service) -> None:
    begun = await service.begin()
    await service.part(begun, 1, full_part())
    (found,) = await service.send(ListUploads(NAME, service.key()))
    assert found == begun
    await service.part(found, 2, b"the end")
    await service.complete(found, *await parts_of(service, found))
    assert await service.body() == full_part() + b"the end"


@check()
async def uploads_are_listed_by_the_prefix_of_their_keys(service: Service) -> None:
    begun = [await service.begin(name) for name in ("a", "a", "a/b", "b")]
    for prefix, wanted in (("", begun), ("a", begun[:3]), ("a/", begun[2:3]), ("b", begun[3:]), ("c", [])):
        found = await service.send(ListUploads(NAME, service.key(prefix)))
        assert len(found) == len(wanted)
        assert set(found) == set(wanted)


@check()
async def uploads_to_one_key_do_not_mix(service: Service) -> None:
    first, second = await service.begin(), await service.begin()
    first_part = await service.part(first, 1, b"first")
    second_part = await service.part(second, 1, b"second one")
    await service.complete(second, second_part)
    assert await service.body() == b"second one"
    await service.complete(first, first_part)
    assert await service.body() == b"first"


@check()
async def an_aborted_upload_is_gone(service: Service) -> None:
    await service.put(body=b"there")
    upload, part = await service.begin_with(b"words")
    await service.send(AbortUpload(NAME, upload))
    assert await service.send(ListUploads(NAME, service.prefix)) == ()
    requests: tuple[ObjectRequest[Any], ...] = (
        UploadPart(NAME, upload, 2, b"more"),
        CompleteUpload(NAME, upload, (part,)),
        ListParts(NAME, upload),
    )
    for request in requests:
        with refused(ObjectNotFoundError):
            await service.send(request)
    assert await service.body() == b"there"


@check()
async def aborting_a_missing_upload_is_not_an_error(service: Service) -> None:
    upload = await service.begin()
    await service.send(AbortUpload(NAME, upload))
    await service.send(AbortUpload(NAME, upload))
    done = await service.begin()
    await service.complete(done, await service.part(done, 1, b"words"))
    await service.send(AbortUpload(NAME, done))
    assert await service.body() == b"words"


@check()
async def a_completed_upload_is_gone(service: Service) -> None:
    upload = await service.begin()
    await service.complete(upload, await service.part(upload, 1, b"words"))
    assert await service.send(ListUploads(NAME, service.prefix)) == ()
    with refused(ObjectNotFoundError):
        await service.send(ListParts(NAME, upload))
    with refused(ObjectNotFoundError):
        await service.part(upload, 2, b"more")


@check()
async def an_unknown_upload_is_not_found(service: Service) -> None:
    await service.put("source", b"words")
    begun, part = await service.begin_with(b"words", "begun")
    unknown = [Upload(service.key(), id) for id in STRANGE_IDS]
    for upload in [*unknown, Upload(service.key("other"), begun.id)]:
        requests: tuple[ObjectRequest[Any], ...] = (
            UploadPart(NAME, upload, 1, b"words"),
            CopyPart(NAME, upload, 1, service.key("source"), 0, 5),
            ListParts(NAME, upload),
            CompleteUpload(NAME, upload, (part,)),
        )
        for request in requests:
            with refused(ObjectNotFoundError):
                await service.send(request)
        await service.send(AbortUpload(NAME, upload))
    assert await service.names() == ["source"]
    assert await parts_of(service, begun) == (part,)
