"""Completing uploads: which parts the object consists of, and when the completion is refused."""

from __future__ import annotations

from holdall.core.objects import CopyPart, ObjectHeaders, Part
from holdall.errors import HoldallError, IntegrityError, ObjectNotFoundError, PreconditionFailedError
from holdall.testing.file_contract.check import NAME, Service, check, full_part, md5_of, refused, sha256_of


@check()
async def an_object_consists_of_the_named_parts_only(service: Service) -> None:
    upload = await service.begin()
    parts = [await service.part(upload, number, b"part %d" % number) for number in (1, 2, 3)]
    await service.complete(upload, parts[1])
    assert await service.body() == b"part 2"


@check()
async def an_object_cannot_be_made_of_a_part_that_was_replaced(service: Service) -> None:
    upload, first = await service.begin_with(b"first")
    second = await service.part(upload, 1, b"second one")
    with refused(HoldallError):
        await service.complete(upload, first)
    assert await service.body() is None
    await service.complete(upload, second)
    assert await service.body() == b"second one"


@check()
async def an_object_cannot_be_made_of_a_part_that_was_never_sent(service: Service) -> None:
    upload, part = await service.begin_with(full_part())
    with refused(HoldallError):
        await service.complete(upload, part, Part(2, part.etag, part.size))
    assert await service.body() is None
    await service.complete(upload, part)
    assert await service.body() == full_part()


@check()
async def a_completion_returns_the_stored_object(service: Service) -> None:
    headers = ObjectHeaders("text/plain", metadata={"colour": "red"})
    done = await service.upload("a", full_part(), b"the end", headers=headers)
    head = await service.head()
    assert (done.key, done.size, done.etag, done.headers) == (head.key, head.size, head.etag, head.headers)
    assert (head.size, head.headers) == (len(full_part()) + 7, headers)
    other = await service.upload("a", full_part(), b"the END", headers=headers)
    assert other.etag != done.etag


@check("digests_of_parts")
async def an_upload_is_held_to_its_digests(service: Service) -> None:
    body = full_part() + b"the end"
    for digests in ({"md5": md5_of(body)}, {"sha256": sha256_of(body)}):
        upload, first = await service.begin_with(full_part())
        second = await service.part(upload, 2, b"the end")
        await service.complete(upload, first, second, **digests)
        assert await service.body() == body
        await service.delete()


@check("digests_of_parts")
async def an_upload_with_other_digests_replaces_nothing(service: Service) -> None:
    for digests in ({"md5": md5_of(b"others")}, {"sha256": sha256_of(b"others")}):
        upload, part = await service.begin_with(b"words")
        with refused(IntegrityError):
            await service.complete(upload, part, **digests)
        assert await service.body() is None
        await service.put(body=b"there")
        again, part = await service.begin_with(b"words")
        with refused(IntegrityError):
            await service.complete(again, part, **digests)
        assert await service.body() == b"there"
        await service.delete()


@check()
async def a_part_can_be_taken_from_an_object(service: Service) -> None:
    etag = (await service.put("source", full_part(1) + b"and more")).etag
    upload = await service.begin()
    size = len(full_part())
    parts = [
        await service.send(CopyPart(NAME, upload, 1, service.key("source"), 3, size, etag)),
        await service.part(upload, 2, full_part(2)),
        await service.send(CopyPart(NAME, upload, 3, service.key("source"), size, 8)),
    ]
    assert [part.number for part in parts] == [1, 2, 3]
    assert [part.size for part in parts] == [size, size, 8]
    await service.complete(upload, *parts)
    assert await service.body() == full_part(1)[3:] + b"and" + full_part(2) + b"and more"


@check()
async def a_part_can_be_a_whole_object(service: Service) -> None:
    await service.put("source", b"words")
    upload = await service.begin()
    part = await service.send(CopyPart(NAME, upload, 1, service.key("source"), 0, 5))
    await service.complete(upload, part)
    assert await service.body() == b"words"


@check()
async def no_part_is_taken_from_an_object_that_is_missing_or_changed(service: Service) -> None:
    etag = (await service.put("source", b"words")).etag
    await service.put("source", b"other words")
    upload = await service.begin()
    with refused(ObjectNotFoundError):
        await service.send(CopyPart(NAME, upload, 1, service.key("missing"), 0, 5))
    with refused(PreconditionFailedError):
        await service.send(CopyPart(NAME, upload, 1, service.key("source"), 0, 5, etag))
    part = await service.part(upload, 2, b"the end")
    await service.complete(upload, part)
    assert await service.body() == b"the end"


@check()
async def no_part_is_taken_from_beyond_the_end_of_an_object(service: Service) -> None:
    await service.put("source", b"words")
    upload = await service.begin()
    for start, size in ((0, 6), (4, 2), (5, 1), (100, 1)):
        with refused(HoldallError):
            await service.send(CopyPart(NAME, upload, 1, service.key("source"), start, size))
