"""Single objects: put, described, read as a whole and in ranges, replaced."""

from __future__ import annotations

from datetime import timedelta

from holdall.core.objects import DescribeService, HeadObject, ObjectHeaders, ObjectInfo
from holdall.core.rules.object import MAX_PART, MIN_PART
from holdall.errors import ObjectNotFoundError, PreconditionFailedError
from holdall.testing.file_contract.check import NAME, Service, check, refused, sha256_of

SIZES = (0, 1, 2, 255, 4095, 4096, 4097, 65535, 65536, 65537, 1_000_000, 3 * 1024 * 1024 + 7)


def some_bytes(size: int) -> bytes:
    """Bytes of every value, in an order that reveals a missing piece."""
    block = bytes((place + place // 251) % 256 for place in range(65_521))
    return (block * (size // len(block) + 1))[:size]


def _essence(info: ObjectInfo) -> tuple[object, ...]:
    return info.key, info.size, info.etag, info.headers, info.put_id


@check()
async def a_missing_object_is_not_found_and_is_named(service: Service) -> None:
    for ask in (service.head, service.get):
        with refused(ObjectNotFoundError) as refusal:
            await ask("missing")
        assert service.key("missing") in str(refusal.error)


@check()
async def what_was_put_comes_back(service: Service) -> None:
    body = bytes(range(256)) + b"\r\n\r\n0\r\n\r\n"
    await service.put(body=body)
    found = await service.get()
    assert found.body == body
    assert found.start == 0
    assert (found.info.key, found.info.size) == (service.key(), len(body))


@check()
async def a_put_returns_the_stored_object(service: Service) -> None:
    headers = ObjectHeaders("text/plain", metadata={"colour": "red"})
    put = await service.put(body=b"words", headers=headers)
    assert _essence(put) == (service.key(), 5, put.etag, headers, None)
    assert put.etag
    assert _essence(await service.head()) == _essence(put)


@check()
async def a_get_reports_the_same_as_a_head(service: Service) -> None:
    await service.put(body=b"words", headers=ObjectHeaders("text/plain", metadata={"colour": "red"}))
    head = await service.head()
    for found in (await service.get(), await service.get(start=1, size=2), await service.get(start=99)):
        assert _essence(found.info) == _essence(head)
        assert found.info.modified == head.modified


@check()
async def the_time_of_a_change_is_in_utc(service: Service) -> None:
    put = await service.put(body=b"words")
    head = await service.head()
    assert put.modified.utcoffset() == head.modified.utcoffset() == timedelta(0)


@check()
async def a_put_replaces_the_bytes_and_the_headers(service: Service) -> None:
    first = await service.put(body=b"first", headers=ObjectHeaders("text/plain", metadata={"old": "yes"}))
    headers = ObjectHeaders("text/css", cache_control="no-store", metadata={"new": "yes"})
    second = await service.put(body=b"second one", headers=headers)
    found = await service.get()
    assert found.body == b"second one"
    assert found.info.headers == headers
    assert found.info.etag == second.etag != first.etag


@check()
async def the_etag_changes_with_the_bytes_and_stays_with_the_object(service: Service) -> None:
    etags = [(await service.put(body=body)).etag for body in (b"", b"a", b"b", b"aa")]
    assert len(set(etags)) == 4
    assert (await service.head()).etag == (await service.head()).etag == etags[-1]


@check()
async def the_etag_changes_however_quickly_the_bytes_do(service: Service) -> None:
    found: dict[bytes, set[str]] = {b"even": set(), b"odds": set()}
    for number in range(40):
        body = b"odds" if number % 2 else b"even"
        found[body].add((await service.put(body=body)).etag)
        found[body].add((await service.head()).etag)
        if number % 4 > 1:
            await service.delete()
    assert not found[b"even"] & found[b"odds"]


@check()
async def an_empty_object_is_an_object(service: Service) -> None:
    await service.put(body=b"")
    assert (await service.head()).size == 0
    assert (await service.get()).body == b""
    assert await service.names() == ["a"]


@check()
async def objects_of_many_sizes_come_back_exactly(service: Service) -> None:
    for size in SIZES:
        body = some_bytes(size)
        assert (await service.put(body=body)).size == size
        found = await service.get()
        assert found.info.size == len(found.body) == size
        assert sha256_of(found.body) == sha256_of(body)


@check()
async def a_range_has_the_requested_bytes(service: Service) -> None:
    body = b"0123456789"
    await service.put(body=body)
    for start, size in ((0, 1), (0, 10), (0, None), (3, 4), (5, 5), (9, 1), (9, None), (4, None)):
        found = await service.get(start=start, size=size)
        assert found.start == start
        assert found.body == (body[start:] if size is None else body[start : start + size])
        assert found.info.size == len(body)


@check()
async def a_range_ends_where_the_object_ends(service: Service) -> None:
    await service.put(body=b"0123456789")
    assert (await service.get(start=7, size=100)).body == b"789"
    assert (await service.get(start=0, size=10**15)).body == b"0123456789"


@check()
async def a_range_beyond_the_end_is_empty(service: Service) -> None:
    put = await service.put(body=b"0123456789", headers=ObjectHeaders("text/plain"))
    for start in (10, 11, 10**12):
        for size in (None, 1, 100):
            found = await service.get(start=start, size=size)
            assert (found.start, found.body) == (start, b"")
            assert _essence(found.info) == _essence(put)


@check()
async def every_range_of_an_empty_object_is_empty(service: Service) -> None:
    await service.put(body=b"")
    for start, size in ((0, None), (0, 1), (1, None), (5, 5)):
        found = await service.get(start=start, size=size)
        assert (found.body, found.info.size) == (b"", 0)


@check()
async def a_large_object_can_be_read_piece_by_piece(service: Service) -> None:
    body = some_bytes(2 * 1024 * 1024 + 333)
    etag = (await service.put(body=body)).etag
    size = 700_001
    pieces = [await service.get(start=at, size=size, if_match=etag) for at in range(0, len(body), size)]
    assert sha256_of(b"".join(piece.body for piece in pieces)) == sha256_of(body)


@check()
async def a_read_can_require_an_etag(service: Service) -> None:
    etag = (await service.put(body=b"words")).etag
    assert (await service.get(if_match=etag)).body == b"words"
    assert (await service.get(start=2, size=2, if_match=etag)).body == b"rd"
    assert (await service.get(start=5, if_match=etag)).body == b""


@check()
async def a_read_of_an_object_that_changed_is_refused(service: Service) -> None:
    etag = (await service.put(body=b"words")).etag
    await service.put(body=b"other words")
    for start, size in ((0, None), (2, 2)):
        with refused(PreconditionFailedError):
            await service.get(start=start, size=size, if_match=etag)


@check()
async def a_change_is_noticed_beyond_the_end_too(service: Service) -> None:
    etag = (await service.put(body=b"words")).etag
    await service.put(body=b"")
    with refused(PreconditionFailedError):
        await service.get(start=5, size=5, if_match=etag)


@check()
async def a_read_of_a_known_object_that_is_gone_finds_nothing(service: Service) -> None:
    etag = (await service.put(body=b"words")).etag
    await service.delete()
    with refused(ObjectNotFoundError):
        await service.get(if_match=etag)


@check()
async def a_service_describes_its_traits(service: Service) -> None:
    traits = await service.send(DescribeService(NAME))
    assert traits.single_put >= 1
    assert MIN_PART <= traits.part_size <= MAX_PART
    assert traits.parallel >= 1
    assert isinstance(traits.public, bool)


@check()
async def a_service_ignores_its_name_in_requests(service: Service) -> None:
    await service.put(body=b"words")
    assert (await service.send(HeadObject(NAME + " by another name", service.key()))).size == 5
