"""Copies within a service."""

from __future__ import annotations

from holdall.core.objects import ObjectHeaders
from holdall.errors import ObjectNotFoundError, PreconditionFailedError
from holdall.testing.file_contract.check import RACERS, Service, check, refused, sha256_of
from holdall.testing.file_contract.headers import EVERY_HEADER
from holdall.testing.file_contract.objects import some_bytes


@check()
async def a_copy_has_the_bytes_and_the_headers(service: Service) -> None:
    await service.put("source", b"words", headers=EVERY_HEADER)
    copied = await service.copy("source", "copy")
    assert (copied.key, copied.size, copied.headers) == (service.key("copy"), 5, EVERY_HEADER)
    found = await service.get("copy")
    assert (found.body, found.info.headers, found.info.etag) == (b"words", EVERY_HEADER, copied.etag)
    assert await service.body("source") == b"words"


@check()
async def a_copy_replaces_an_existing_object(service: Service) -> None:
    await service.put("source", b"words")
    await service.put("copy", b"others", headers=ObjectHeaders("text/css", metadata={"old": "yes"}))
    await service.copy("source", "copy")
    found = await service.get("copy")
    assert (found.body, dict(found.info.headers.metadata)) == (b"words", {})
    assert found.info.headers.content_type != "text/css"


@check()
async def a_copy_is_independent_of_its_source(service: Service) -> None:
    await service.put("source", b"words")
    await service.copy("source", "copy")
    await service.put("source", b"changed")
    assert await service.body("copy") == b"words"
    await service.delete("source")
    assert await service.body("copy") == b"words"
    await service.put("copy", b"others")
    assert await service.body("source") is None


@check()
async def objects_of_any_size_are_copied(service: Service) -> None:
    for size in (0, 1, 3 * 1024 * 1024 + 7):
        body = some_bytes(size)
        await service.put("source", body)
        assert (await service.copy("source", "copy")).size == size
        assert sha256_of(await service.body("copy") or b"") == sha256_of(body)


@check()
async def a_copy_of_a_missing_object_is_refused_and_changes_nothing(service: Service) -> None:
    await service.put("copy", b"there")
    for source in ("missing", "cop", "copy/"):
        with refused(ObjectNotFoundError):
            await service.copy(source, "copy")
    assert await service.body("copy") == b"there"
    assert await service.names() == ["copy"]


@check()
async def a_copy_can_require_the_etag_of_its_source(service: Service) -> None:
    etag = (await service.put("source", b"words")).etag
    await service.copy("source", "copy", if_match=etag)
    assert await service.body("copy") == b"words"


@check()
async def a_copy_of_a_source_that_changed_is_refused_and_changes_nothing(service: Service) -> None:
    etag = (await service.put("source", b"words")).etag
    await service.put("source", b"changed")
    with refused(PreconditionFailedError):
        await service.copy("source", "copy", if_match=etag)
    assert await service.names() == ["source"]
    await service.put("copy", b"there")
    with refused(PreconditionFailedError):
        await service.copy("source", "copy", if_match=etag)
    assert await service.body("copy") == b"there"


@check()
async def a_copy_onto_itself_leaves_the_object_as_it_is(service: Service) -> None:
    etag = (await service.put("a", b"words", headers=EVERY_HEADER)).etag
    assert (await service.copy("a", "a")).headers == EVERY_HEADER
    found = await service.get("a")
    assert (found.body, found.info.headers) == (b"words", EVERY_HEADER)
    with refused(PreconditionFailedError):
        await service.copy("a", "a", if_match=etag + "other")
    with refused(ObjectNotFoundError):
        await service.copy("missing", "missing")


@check("conditional_copies")
async def a_copy_can_be_a_creation(service: Service) -> None:
    mine = service.port.new_id()
    await service.put("source", b"words", headers=EVERY_HEADER)
    assert (await service.copy("source", "copy", if_absent=mine)).put_id == mine
    head = await service.head("copy")
    assert (head.size, head.headers, head.put_id) == (5, EVERY_HEADER, mine)


@check("conditional_copies")
async def a_copy_that_creates_is_refused_if_the_key_is_taken(service: Service) -> None:
    await service.put("source", b"words")
    there = await service.put("copy", b"there")
    for target in ("copy", "source"):
        with refused(PreconditionFailedError):
            await service.copy("source", target, if_absent=service.port.new_id())
    found = await service.get("copy")
    assert (found.body, found.info.etag, found.info.put_id) == (b"there", there.etag, None)


@check("conditional_copies")
async def of_many_copies_that_create_one_wins(service: Service) -> None:
    ids = [service.port.new_id() for _ in range(RACERS)]
    for position, mine in enumerate(ids):
        await service.put(f"source {position}", mine.encode())
    flows = [service.copy(f"source {position}", "copy", if_absent=mine) for position, mine in enumerate(ids)]
    winner = ids[await service.race(flows)]
    found = await service.get("copy")
    assert (found.body, found.info.put_id) == (winner.encode(), winner)
