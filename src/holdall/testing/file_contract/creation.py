"""Creating objects only if their key is free: the first put wins, and its id proves it."""

from __future__ import annotations

from holdall.core.objects import ObjectHeaders
from holdall.errors import PreconditionFailedError
from holdall.testing.file_contract.check import RACERS, Service, check, refused


@check("conditional_puts")
async def a_creation_leaves_its_id(service: Service) -> None:
    mine = service.port.new_id()
    assert (await service.put(body=b"mine", if_absent=mine)).put_id == mine
    assert (await service.head()).put_id == mine
    assert (await service.get()).info.put_id == mine
    assert (await service.get(start=1, size=1)).info.put_id == mine


@check()
async def a_plain_put_leaves_no_id(service: Service) -> None:
    assert (await service.put(body=b"plain")).put_id is None
    assert (await service.head()).put_id is None


@check("conditional_puts")
async def an_id_is_not_metadata(service: Service) -> None:
    headers = ObjectHeaders("text/plain", metadata={"colour": "red"})
    put = await service.put(body=b"mine", headers=headers, if_absent=service.port.new_id())
    assert put.headers == headers
    assert (await service.head()).headers == headers


@check("conditional_puts")
async def a_second_creation_is_refused_and_changes_nothing(service: Service) -> None:
    mine = service.port.new_id()
    headers = ObjectHeaders("text/plain", metadata={"colour": "red"})
    first = await service.put(body=b"mine", headers=headers, if_absent=mine)
    with refused(PreconditionFailedError):
        await service.put(body=b"yours", if_absent=service.port.new_id())
    found = await service.get()
    assert found.body == b"mine"
    assert (found.info.etag, found.info.headers, found.info.put_id) == (first.etag, headers, mine)


@check("conditional_puts")
async def an_object_from_a_plain_put_prevents_a_creation(service: Service) -> None:
    await service.put(body=b"")
    with refused(PreconditionFailedError):
        await service.put(body=b"mine", if_absent=service.port.new_id())
    assert await service.body() == b""


@check("conditional_puts")
async def a_repeated_creation_can_be_told_from_another(service: Service) -> None:
    mine = service.port.new_id()
    await service.put(body=b"mine", if_absent=mine)
    try:
        assert (await service.put(body=b"mine", if_absent=mine)).put_id == mine
    except PreconditionFailedError:
        assert (await service.head()).put_id == mine


@check("conditional_puts")
async def a_put_over_it_forgets_the_id(service: Service) -> None:
    await service.put(body=b"mine", if_absent=service.port.new_id())
    await service.put(body=b"plain")
    assert (await service.head()).put_id is None


@check("conditional_puts")
async def after_a_deletion_the_key_is_free(service: Service) -> None:
    for body in (b"first", b"second"):
        mine = service.port.new_id()
        await service.put(body=body, if_absent=mine)
        assert ((await service.get()).body, (await service.head()).put_id) == (body, mine)
        await service.delete()


@check("conditional_puts")
async def of_many_creations_at_once_one_wins(service: Service) -> None:
    for race in ("a", "b"):
        ids = [service.port.new_id() for _ in range(RACERS)]
        flows = [service.put(race, mine.encode() * 100, if_absent=mine) for mine in ids]
        winner = ids[await service.race(flows)]
        found = await service.get(race)
        assert (found.body, found.info.put_id) == (winner.encode() * 100, winner)


@check("conditional_puts")
async def an_upload_can_be_a_creation(service: Service) -> None:
    upload, part = await service.begin_with(b"mine", headers=ObjectHeaders("text/plain"))
    done = await service.complete(upload, part, if_absent=service.port.new_id())
    assert (done.size, done.headers) == (4, ObjectHeaders("text/plain"))
    assert await service.body() == b"mine"
    with refused(PreconditionFailedError):
        await service.put(body=b"yours", if_absent=service.port.new_id())


@check("conditional_puts")
async def an_upload_that_creates_is_refused_if_the_key_is_taken(service: Service) -> None:
    upload, part = await service.begin_with(b"mine")
    there = await service.put(body=b"yours")
    with refused(PreconditionFailedError):
        await service.complete(upload, part, if_absent=service.port.new_id())
    found = await service.get()
    assert (found.body, found.info.etag) == (b"yours", there.etag)


@check("conditional_puts")
async def of_many_uploads_that_create_one_wins(service: Service) -> None:
    uploads = [await service.begin() for _ in range(RACERS)]
    parts = [await service.part(upload, 1, upload.id.encode()) for upload in uploads]
    flows = [
        service.complete(upload, part, if_absent=service.port.new_id())
        for upload, part in zip(uploads, parts, strict=True)
    ]
    winner = uploads[await service.race(flows)]
    assert await service.body() == winner.id.encode()
