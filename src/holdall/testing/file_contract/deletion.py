"""Deleting one object, or many at once; a missing object is not an error."""

from __future__ import annotations

from holdall.core.objects import DeleteObjects
from holdall.errors import ObjectNotFoundError, PreconditionFailedError
from holdall.testing.file_contract.check import NAME, Service, check, refused


async def _delete_many(service: Service, *names: str) -> None:
    report = await service.send(DeleteObjects(NAME, tuple(service.key(name) for name in names)))
    assert report.failures == {}


@check()
async def a_deleted_object_is_gone(service: Service) -> None:
    await service.put(body=b"words")
    await service.delete()
    for ask in (service.head, service.get):
        with refused(ObjectNotFoundError):
            await ask()
    assert await service.names() == []


@check()
async def deleting_a_missing_object_is_not_an_error(service: Service) -> None:
    await service.delete("missing")
    await service.put(body=b"words")
    await service.delete()
    await service.delete()


@check("conditional_deletions")
async def a_deletion_with_the_current_etag_deletes_the_object(service: Service) -> None:
    etag = (await service.put(body=b"words")).etag
    await service.put("b", b"neighbour")
    await service.delete_match("a", etag)
    assert await service.names() == ["b"]


@check("conditional_deletions")
async def a_deletion_with_an_old_etag_deletes_nothing(service: Service) -> None:
    etag = (await service.put(body=b"words")).etag
    there = await service.put(body=b"newer")
    with refused(PreconditionFailedError):
        await service.delete_match("a", etag)
    found = await service.get()
    assert (found.body, found.info.etag) == (b"newer", there.etag)


@check("conditional_deletions")
async def deleting_a_missing_object_by_its_etag_is_not_an_error(service: Service) -> None:
    etag = (await service.put(body=b"words")).etag
    await service.delete_match("missing", etag)
    await service.delete_match("never/was", etag)
    await service.delete_match("a", etag)
    await service.delete_match("a", etag)
    assert await service.names() == []


@check()
async def a_key_can_be_used_again_after_a_deletion(service: Service) -> None:
    await service.put(body=b"first")
    await service.delete()
    await service.put(body=b"second")
    assert await service.body() == b"second"


@check()
async def a_deletion_leaves_the_neighbours(service: Service) -> None:
    names = ["a", "a/", "a/b", "a/b/c", "ab", "A"]
    for name in names:
        await service.put(name, name.encode())
    await service.delete("a")
    await service.delete("a/b")
    left = ["A", "a/", "a/b/c", "ab"]
    assert await service.names() == left
    for name in left:
        assert await service.body(name) == name.encode()


@check()
async def many_objects_are_deleted_at_once_and_missing_ones_are_ignored(service: Service) -> None:
    for name in ("a", "b", "c", "d", "a/b"):
        await service.put(name, b"words")
    await _delete_many(service, "a", "missing", "c", "never/was", "a/b")
    assert await service.names() == ["b", "d"]


@check()
async def a_key_can_be_named_twice_for_deletion(service: Service) -> None:
    await service.put(body=b"words")
    await _delete_many(service, "a", "a")
    assert await service.names() == []


@check()
async def a_thousand_objects_are_deleted_at_once(service: Service) -> None:
    for name in ("0000", "0500", "0999", "1000"):
        await service.put(name, b"words")
    await _delete_many(service, *(f"{number:04}" for number in range(1000)))
    assert await service.names() == ["1000"]
