"""Digests: bytes that do not have the expected digest are not stored."""

from __future__ import annotations

from typing import Any

from holdall.core.objects import ObjectHeaders, ObjectInfo
from holdall.errors import IntegrityError, ObjectNotFoundError
from holdall.testing.file_contract.check import Service, check, md5_of, refused, sha256_of

BODY = b"the very bytes"
WRONG: tuple[dict[str, Any], ...] = (
    {"md5": md5_of(b"others")},
    {"sha256": sha256_of(b"others")},
    {"md5": md5_of(BODY), "sha256": sha256_of(b"others")},
    {"md5": md5_of(b"others"), "sha256": sha256_of(BODY)},
)


def _true(info: ObjectInfo, body: bytes) -> bool:
    return info.md5 in (None, md5_of(body)) and info.sha256 in (None, sha256_of(body))


@check()
async def bytes_with_their_digests_are_stored(service: Service) -> None:
    for body in (BODY, b""):
        for digests in (
            {"md5": md5_of(body)},
            {"sha256": sha256_of(body)},
            {"md5": md5_of(body), "sha256": sha256_of(body)},
        ):
            await service.put(body=body, **digests)
            assert await service.body() == body
            await service.delete()


@check()
async def bytes_with_other_digests_are_not_stored(service: Service) -> None:
    for digests in WRONG:
        with refused(IntegrityError):
            await service.put(body=BODY, **digests)
        with refused(ObjectNotFoundError):
            await service.head()
        assert await service.names() == []


@check()
async def bytes_with_other_digests_replace_nothing(service: Service) -> None:
    headers = ObjectHeaders("text/plain", metadata={"colour": "red"})
    there = await service.put(body=b"there", headers=headers)
    for digests in WRONG:
        with refused(IntegrityError):
            await service.put(body=BODY, headers=ObjectHeaders("text/css"), **digests)
        found = await service.get()
        assert (found.body, found.info.etag, found.info.headers) == (b"there", there.etag, headers)


@check()
async def an_empty_body_has_digests_too(service: Service) -> None:
    with refused(IntegrityError):
        await service.put(body=b"", md5=md5_of(BODY))
    with refused(IntegrityError):
        await service.put(body=BODY, sha256=sha256_of(b""))
    assert await service.names() == []


@check("conditional_puts")
async def a_creation_with_other_digests_leaves_the_key_free(service: Service) -> None:
    for digests in WRONG:
        with refused(IntegrityError):
            await service.put(body=BODY, if_absent=service.port.new_id(), **digests)
    await service.put(body=BODY, if_absent=service.port.new_id(), md5=md5_of(BODY), sha256=sha256_of(BODY))
    assert await service.body() == BODY


@check()
async def an_upload_can_be_completed_with_its_digests(service: Service) -> None:
    upload, part = await service.begin_with(BODY)
    done = await service.complete(upload, part, md5=md5_of(BODY), sha256=sha256_of(BODY))
    assert _true(done, BODY)
    assert _true(await service.head(), BODY)
    assert await service.body() == BODY


@check()
async def digests_that_a_service_reports_are_those_of_the_bytes(service: Service) -> None:
    assert _true(await service.put("plain", BODY), BODY)
    assert _true(await service.put("given", BODY, md5=md5_of(BODY), sha256=sha256_of(BODY)), BODY)
    assert _true(await service.upload("in parts", BODY), BODY)
    assert _true(await service.copy("given", "copied"), BODY)
    for name in ("plain", "given", "in parts", "copied"):
        assert _true(await service.head(name), BODY)
        assert _true((await service.get(name)).info, BODY)
        assert _true((await service.get(name, start=3, size=2)).info, BODY)
    await service.put("given", b"others")
    assert _true(await service.head("given"), b"others")
