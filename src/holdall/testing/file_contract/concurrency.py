"""One service used concurrently, by threads, tasks, event loops and forked children; and a closed service."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CopyObject,
    DeleteObject,
    DeleteObjects,
    DescribeService,
    GetObject,
    HeadObject,
    ListObjects,
    ListUploads,
    ObjectHeaders,
    PutObject,
    Upload,
)
from holdall.core.requests import Request
from holdall.errors import ObjectNotFoundError, PreconditionFailedError, StoreClosedError
from holdall.testing.file_contract.check import NAME, Calls, Service, check, refused


@check()
async def replies_to_concurrent_requests_do_not_mix(service: Service) -> None:
    async def round_trip(number: int) -> int:
        body = str(number).encode() * (1 + number * 1000)
        await service.put(f"{number:02}", body)
        found = await service.get(f"{number:02}")
        assert (found.body, found.info.key) == (body, service.key(f"{number:02}"))
        return number

    assert await service.side_by_side([round_trip(number) for number in range(24)]) == list(range(24))
    assert await service.names() == [f"{number:02}" for number in range(24)]


def _version(number: int) -> tuple[bytes, ObjectHeaders]:
    """Bytes and headers that belong together; all versions have the same size, as is common for changes."""
    return b"%04d" % number * 10_000, ObjectHeaders("text/plain", metadata={"version": f"{number:04}"})


@check()
async def a_reader_beside_a_writer_sees_the_old_object_or_the_new(service: Service) -> None:
    etags: dict[str, bytes] = {}

    async def write(start: int) -> None:
        for number in range(start, start + 15):
            body, headers = _version(number)
            await service.put(body=body, headers=headers)

    async def read() -> None:
        for _ in range(30):
            found = await service.get()
            body, headers = _version(int(found.body[:4]))
            assert found.body == body, "the bytes of two versions are mixed"
            assert found.info.headers == headers, "the headers belong to another version"
            assert etags.setdefault(found.info.etag, body) == body, "the etag belongs to another version"

    await write(0)
    await service.side_by_side([write(100), read(), read(), write(200), read()])


@check()
async def a_reader_in_pieces_beside_a_writer_notices_every_change(service: Service) -> None:
    await service.put(body=_version(0)[0])

    async def write() -> None:
        for number in range(30):
            await service.put(body=_version(number)[0])

    async def read() -> None:
        for _ in range(10):
            first = await service.get(start=0, size=15_000)
            try:
                second = await service.get(start=15_000, if_match=first.info.etag)
            except PreconditionFailedError:
                continue
            assert first.body + second.body == _version(int(first.body[:4]))[0], (
                "the pieces of two versions are mixed"
            )

    await service.side_by_side([write(), read(), read()])


@check()
async def puts_and_deletions_of_neighbours_do_not_disturb_each_other(service: Service) -> None:
    async def come_and_go(number: int) -> None:
        for round in range(8):
            name = f"deep/er/{number}" if round % 2 else f"deep/{number}/er"
            await service.put(name, name.encode())
            assert await service.body(name) == name.encode()
            assert name in await service.names("deep/")
            await service.delete(name)
            assert await service.body(name) is None

    await service.side_by_side([come_and_go(number) for number in range(6)])
    assert await service.names() == []


@check()
async def an_upload_aborted_while_its_parts_arrive_leaves_nothing(service: Service) -> None:
    async def send(upload: Upload, number: int) -> None:
        with suppress(ObjectNotFoundError):  # the upload was aborted before this part arrived
            await service.part(upload, number, b"words")

    async def give_up(upload: Upload) -> None:
        await service.send(AbortUpload(NAME, upload))

    for _ in range(3):
        upload = await service.begin()
        await service.side_by_side([send(upload, 1), send(upload, 2), give_up(upload), send(upload, 3)])
        await give_up(upload)  # with S3, a part that arrived in between would stay
        assert await service.send(ListUploads(NAME, service.prefix)) == ()
    assert await service.names() == []


@check()
async def a_cancelled_request_does_not_disturb_others(service: Service) -> None:
    """Only async requests can be cancelled."""
    large = _version(7)[0] * 20
    await service.put("large", large)
    await service.put("small", b"words")

    async def halfway(service: Service) -> None:
        requests: tuple[Request[Any], ...] = (
            GetObject(NAME, service.key("large")),
            PutObject(NAME, service.key("large"), large),
            ListObjects(NAME, service.prefix),
        )
        for steps in range(24):
            task = asyncio.ensure_future(service.backend.send_awaiting(requests[steps % 3]))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert await service.body("small") == b"words"

    if service.calls == "awaiting":
        await halfway(service)
    else:
        await service.elsewhere(halfway, "awaiting")
    assert await service.body("large") == large
    assert await service.names() == ["large", "small"]


@check()
async def a_service_works_in_another_thread_and_event_loop(service: Service) -> None:
    await service.put("here", b"words")

    async def there(service: Service) -> None:
        assert await service.body("here") == b"words"
        await service.put("there", b"others")

    for _ in range(2):
        await service.elsewhere(there, service.calls)
        assert await service.body("there") == b"others"
    assert await service.names() == ["here", "there"]


@check()
async def sync_and_async_requests_see_the_same_objects(service: Service) -> None:
    other: Calls = "awaiting" if service.calls == "blocking" else "blocking"

    async def there(twin: Service) -> None:
        assert await twin.body("here") == b"words"
        await twin.put("there", b"others")
        await twin.side_by_side([twin.put(f"there {number}", b"others") for number in range(4)])

    await service.put("here", b"words")
    await service.elsewhere(there, other)
    assert await service.body("there") == b"others"
    assert len(await service.names("there ")) == 4


@check("fork")
async def a_service_works_in_a_forked_child_and_in_its_parent(service: Service) -> None:
    await service.put("before", b"words")

    async def child(service: Service) -> None:
        assert await service.body("before") == b"words"
        for number in range(3):
            await service.put("child", b"x" * number)
            assert await service.body("child") == b"x" * number
        upload = await service.begin("in parts")
        await service.complete(upload, await service.part(upload, 1, b"words"))

    await service.in_a_child(child)
    assert await service.body("before") == b"words"
    await service.put("after", b"words")
    assert await service.body("after") == b"words"


@check()
async def a_closed_service_refuses_everything(service: Service) -> None:
    service.close()
    requests: tuple[Request[Any], ...] = (
        DescribeService(NAME),
        HeadObject(NAME, service.key()),
        GetObject(NAME, service.key()),
        PutObject(NAME, service.key(), b"words"),
        CopyObject(NAME, service.key(), service.key("b")),
        DeleteObject(NAME, service.key()),
        DeleteObjects(NAME, (service.key(),)),
        ListObjects(NAME, service.prefix),
        ListUploads(NAME, service.prefix),
        BeginUpload(NAME, service.key()),
    )
    for request in requests:
        with refused(StoreClosedError):
            await service.send(request)


@check()
async def closing_twice_is_harmless(service: Service) -> None:
    service.close()
    service.close()
