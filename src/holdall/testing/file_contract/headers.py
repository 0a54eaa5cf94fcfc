"""Headers that are stored with objects: types, dispositions, caching, and the user's metadata."""

from __future__ import annotations

from holdall.core.objects import ObjectHeaders
from holdall.core.rules.object import MAX_METADATA
from holdall.errors import InvalidRequestError
from holdall.testing.file_contract.check import Service, check, refused

UNSAID = (None, "application/octet-stream", "binary/octet-stream")
"""The types that a service may report for an object that was put without one."""

EVERY_HEADER = ObjectHeaders(
    "text/plain; charset=utf-8",
    "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20%C3%BC.txt",
    "public, max-age=31536000, immutable",
    {"colour": "red", "shape": "Grüße 😀"},
)

VALUES = (
    "",
    "plain",
    "a, b; c=d",
    'quoted "words" \\ and \' more',
    "two  spaces   inside",
    "a tab\tinside",
    "100%",
    "%41%C3%BC",
    "a+b&c=d#e?f",
    "<&>",
    "=?utf-8?b?w7w=?=",
    "=?UTF-8?Q?=C3=BC?=",
    "utf-8''%C3%BC",
    "ü",
    "Grüße aus Köln",
    "日本語",
    "😀 and 👩‍👩‍👧",
    "e\u0301 is not é",
    "\u00a0kept\u00a0",
    "\u2028",
    "\u0080\u0085",
    "x" * 700,
    "ü" * 200,
)


@check()
async def headers_come_back_with_the_object(service: Service) -> None:
    put = await service.put(body=b"words", headers=EVERY_HEADER)
    assert put.headers == EVERY_HEADER
    assert (await service.head()).headers == EVERY_HEADER
    assert (await service.get()).info.headers == EVERY_HEADER


@check()
async def an_object_without_headers_has_none(service: Service) -> None:
    await service.put(body=b"words")
    headers = (await service.head()).headers
    assert headers.content_type in UNSAID
    assert (headers.disposition, headers.cache_control, dict(headers.metadata)) == (None, None, {})


@check()
async def each_header_can_be_alone(service: Service) -> None:
    for headers in (
        ObjectHeaders(content_type="image/png"),
        ObjectHeaders(disposition="inline"),
        ObjectHeaders(cache_control="no-cache"),
        ObjectHeaders(metadata={"a": "1"}),
    ):
        await service.put(headers=headers)
        found = (await service.head()).headers
        assert found.content_type == headers.content_type or headers.content_type is None
        assert found.disposition == headers.disposition
        assert found.cache_control == headers.cache_control
        assert found.metadata == headers.metadata


@check()
async def metadata_can_be_any_text(service: Service) -> None:
    for value in VALUES:
        await service.put(headers=ObjectHeaders(metadata={"value": value}))
        assert (await service.head()).headers.metadata == {"value": value}
        assert (await service.get()).info.headers.metadata == {"value": value}


@check()
async def metadata_stays_when_the_mapping_it_was_given_in_changes(service: Service) -> None:
    metadata = {"colour": "red"}
    await service.put(headers=ObjectHeaders(metadata=metadata))
    upload = await service.begin("b", headers=ObjectHeaders(metadata=metadata))
    metadata["colour"] = "blue"
    await service.complete(upload, await service.part(upload, 1, b"words"))
    for name in ("a", "b"):
        assert (await service.head(name)).headers.metadata == {"colour": "red"}


@check()
async def metadata_keeps_its_names(service: Service) -> None:
    metadata = {
        name: f"of {name}" for name in ("a", "0", "a-b", "a_b", "a.b", "x" * 100, "content-type", "etag")
    }
    await service.put(headers=ObjectHeaders(metadata=metadata))
    assert (await service.head()).headers.metadata == metadata


@check()
async def metadata_can_be_as_large_as_the_limit(service: Service) -> None:
    metadata = {f"name-{place}": "x" * 95 for place in range(10)}
    room = MAX_METADATA - sum(len(name) + len(value) for name, value in metadata.items())
    metadata["rest"] = "y" * (room - len("rest"))
    await service.put(headers=ObjectHeaders(metadata=metadata))
    assert (await service.head()).headers.metadata == metadata
    metadata["rest"] += "y"
    with refused(InvalidRequestError):
        await service.put(headers=ObjectHeaders(metadata=metadata))


@check()
async def an_object_uploaded_in_parts_has_its_headers(service: Service) -> None:
    done = await service.upload("a", b"words", headers=EVERY_HEADER)
    assert done.headers == EVERY_HEADER
    assert (await service.head()).headers == EVERY_HEADER
    assert (await service.get()).info.headers == EVERY_HEADER
