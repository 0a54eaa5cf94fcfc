"""Requests that every service refuses before anything happens, so that programs work on all services alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CompleteUpload,
    CopyObject,
    CopyPart,
    DeleteObject,
    DeleteObjects,
    GetObject,
    GetTags,
    HeadObject,
    ListObjects,
    ListParts,
    ListUploads,
    ObjectHeaders,
    ObjectRequest,
    Part,
    PutObject,
    Upload,
    UploadPart,
)
from holdall.core.requests import GetItem
from holdall.errors import InvalidObjectKeyError, InvalidRequestError
from holdall.testing.file_contract.check import NAME, Service, check, md5_of, refused, sha256_of

BAD_KEYS: tuple[Any, ...] = (
    *("", "x" * 1025, "ü" * 513, "\x00", "a\x00b", "\ud800", "a\udfffb"),
    *(".", "..", "./a", "../a", "a/.", "a/..", "a/./b", "a/../b", "/..", "../../etc/passwd"),
    *(None, 7, b"bytes"),
)
BAD_DIGESTS: tuple[dict[str, Any], ...] = (
    *(
        {"md5": ""},
        {"md5": "no digest"},
        {"md5": sha256_of(b"words")},
        {"md5": "5d41402abc4b2a76b9719d911017c592"},
    ),
    *({"sha256": ""}, {"sha256": md5_of(b"words")}, {"sha256": "ü"}, {"sha256": 7}),
)
BAD_HEADERS = (
    ObjectHeaders(content_type="text/plain\r\nX-Other: 1"),
    ObjectHeaders(disposition="attachment; filename=\x00"),
    ObjectHeaders(disposition='attachment; filename="ü"'),
    ObjectHeaders(cache_control="a\nb"),
    ObjectHeaders(content_type=7),  # type: ignore[arg-type]
    ObjectHeaders(content_type=""),
    ObjectHeaders(disposition=" inline"),
    ObjectHeaders(metadata={"Upper": "case"}),
    ObjectHeaders(metadata={"with space": "x"}),
    ObjectHeaders(metadata={"": "x"}),
    ObjectHeaders(metadata={"ü": "x"}),
    ObjectHeaders(metadata={"a:b": "x"}),
    ObjectHeaders(metadata={"a": "line\nline"}),
    ObjectHeaders(metadata={"a": "\x00"}),
    ObjectHeaders(metadata={"a": "\x7f"}),
    ObjectHeaders(metadata={"a": " padded "}),
    ObjectHeaders(metadata={"a": "\ud800"}),
    ObjectHeaders(metadata={"a": 7}),  # type: ignore[dict-item]
    ObjectHeaders(metadata={"a": "x" * 3000}),
)


def _with_key(key: Any, good: str) -> Iterator[ObjectRequest[Any]]:
    """Every request that has a key, with this one."""
    upload = Upload(key, "id")
    yield HeadObject(NAME, key)
    yield GetObject(NAME, key)
    yield GetTags(NAME, key)
    yield PutObject(NAME, key, b"words")
    yield DeleteObject(NAME, key)
    yield DeleteObjects(NAME, (good, key))
    yield CopyObject(NAME, good, key)
    yield CopyObject(NAME, key, good)
    yield BeginUpload(NAME, key)
    yield UploadPart(NAME, upload, 1, b"words")
    yield CopyPart(NAME, upload, 1, good, 0, 1)
    yield CopyPart(NAME, Upload(good, "id"), 1, key, 0, 1)
    yield ListParts(NAME, upload)
    yield CompleteUpload(NAME, upload, (Part(1, "etag", 5),))
    yield AbortUpload(NAME, upload)


@check()
async def every_request_refuses_an_invalid_key(service: Service) -> None:
    there = await service.put(body=b"there")
    for key in BAD_KEYS:
        for request in _with_key(key, service.key()):
            with refused(InvalidObjectKeyError):
                await service.send(request)
    assert (await service.head()).etag == there.etag
    assert await service.names() == ["a"]


@check()
async def an_invalid_prefix_is_refused(service: Service) -> None:
    prefixes: tuple[Any, ...] = ("a\x00b", "\ud800", "x" * 1025, 7, None)
    for prefix in prefixes:
        for request in (ListObjects(NAME, prefix), ListUploads(NAME, prefix)):
            with refused(InvalidObjectKeyError):
                await service.send(cast("ObjectRequest[Any]", request))


@check()
async def headers_that_cannot_be_sent_are_refused(service: Service) -> None:
    there = await service.put(body=b"there")
    for headers in BAD_HEADERS:
        with refused(InvalidRequestError):
            await service.put(body=b"words", headers=headers)
        with refused(InvalidRequestError):
            await service.begin(headers=headers)
    assert (await service.head()).etag == there.etag


@check()
async def an_invalid_digest_is_refused(service: Service) -> None:
    for digests in BAD_DIGESTS:
        with refused(InvalidRequestError):
            await service.put(body=b"words", **digests)
    assert await service.names() == []


@check()
async def a_body_that_is_not_bytes_is_refused(service: Service) -> None:
    upload = await service.begin("b")
    for body in ("text", None, 7, ["list"]):
        with refused(InvalidRequestError):
            await service.put(body=body)  # type: ignore[arg-type]
        with refused(InvalidRequestError):
            await service.part(upload, 1, body)  # type: ignore[arg-type]
    assert await service.names() == []


@check()
async def invalid_ranges_are_refused(service: Service) -> None:
    await service.put(body=b"words")
    for start, size in ((-1, None), (-5, 5), (0, 0), (0, -1), (3, -2)):
        with refused(InvalidRequestError):
            await service.get(start=start, size=size)
    upload = await service.begin("b")
    for start, size in ((-1, 1), (0, 0), (0, -1)):
        with refused(InvalidRequestError):
            await service.send(CopyPart(NAME, upload, 1, service.key(), start, size))


@check()
async def a_page_has_from_one_to_a_thousand_objects(service: Service) -> None:
    for limit in (0, -1, 1001):
        with refused(InvalidRequestError):
            await service.send(ListObjects(NAME, service.prefix, None, limit))
    for limit in (1, 1000):
        await service.send(ListObjects(NAME, service.prefix, None, limit))


@check()
async def from_one_to_a_thousand_keys_are_deleted_at_once(service: Service) -> None:
    await service.put("0", b"words")
    for count in (0, 1001):
        keys = tuple(service.key(str(number)) for number in range(count))
        with refused(InvalidRequestError):
            await service.send(DeleteObjects(NAME, keys))
    assert await service.names() == ["0"]


@check()
async def parts_are_numbered_from_one_to_ten_thousand(service: Service) -> None:
    await service.put("source", b"words")
    upload = await service.begin()
    for number in (0, -1, 10_001):
        with refused(InvalidRequestError):
            await service.part(upload, number, b"words")
        with refused(InvalidRequestError):
            await service.send(CopyPart(NAME, upload, number, service.key("source"), 0, 5))
    assert (await service.send(ListParts(NAME, upload))).parts == ()


@check()
async def an_upload_ends_with_its_parts_in_order_each_once(service: Service) -> None:
    upload = await service.begin()
    one, two = await service.part(upload, 1, b"one"), await service.part(upload, 2, b"two")
    for parts in ((), (two, one), (one, one)):
        with refused(InvalidRequestError):
            await service.complete(upload, *parts)
    assert await service.body() is None
    await service.complete(upload, one)
    assert await service.body() == b"one"


@check()
async def if_absent_and_if_match_cannot_be_combined(service: Service) -> None:
    etag = (await service.put(body=b"there")).etag
    upload, part = await service.begin_with(b"words")
    with refused(InvalidRequestError):
        await service.put(body=b"words", if_absent="mine", if_match=etag)
    with refused(InvalidRequestError):
        await service.complete(upload, part, if_absent="mine", if_match=etag)
    assert await service.body() == b"there"


@check()
async def a_request_for_a_table_is_refused_by_name(service: Service) -> None:
    with refused(InvalidRequestError) as refusal:
        await service.send(GetItem("table", {"pk": {"S": "a"}}))
    assert "GetItem" in str(refusal.error)
