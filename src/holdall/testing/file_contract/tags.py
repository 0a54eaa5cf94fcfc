"""Tags: stored, copied and deleted together with their object."""

from __future__ import annotations

from holdall.core.objects import ObjectHeaders
from holdall.core.rules.object import MAX_TAG_NAME, MAX_TAG_VALUE, MAX_TAGS
from holdall.errors import InvalidRequestError, ObjectNotFoundError
from holdall.testing.file_contract.check import Service, check, full_part, refused

TAGS = {"colour": "red", "Größe": "1 + 1 = 2", "a-b_c.d:e/f@g": "", "empty": "", " spaces ": " kept "}
BAD_TAGS = (
    {"": "value"},
    {"x" * (MAX_TAG_NAME + 1): "value"},
    {"\U00010400" * (MAX_TAG_NAME // 2 + 1): "value"},
    {"aws:name": "value"},
    {"AWS:name": "value"},
    {"name": "x" * (MAX_TAG_VALUE + 1)},
    *({name: "value"} for name in ("a&b", "a\nb", "a%b", "<a>", "a,b", "\x00", "\ud800", "😀", 7)),
    *({"name": value} for value in ("a&b", "line\n", "a%20b", "a;b", "\x00", "\udfff", "😀", None, 7)),
    {str(number): "" for number in range(MAX_TAGS + 1)},
    ["name"],
    "name",
    None,
)


@check("tags")
async def tags_are_kept_with_the_object(service: Service) -> None:
    await service.put(body=b"words", tags=TAGS)
    assert await service.tags() == TAGS


@check("tags")
async def tags_can_be_as_many_and_as_long_as_the_limits(service: Service) -> None:
    tags = {f"{number}".ljust(MAX_TAG_NAME, "ü"): "ü" * MAX_TAG_VALUE for number in range(MAX_TAGS)}
    await service.put(body=b"words", tags=tags)
    assert await service.tags() == tags


@check("tags")
async def an_object_without_tags_has_none(service: Service) -> None:
    await service.put(body=b"words")
    assert await service.tags() == {}
    await service.upload("b", b"words")
    assert await service.tags("b") == {}


@check("tags")
async def the_tags_of_a_missing_object_are_not_found(service: Service) -> None:
    await service.put("a/b", b"words", tags=TAGS)
    for name in ("missing", "a", "a/b/c"):
        with refused(ObjectNotFoundError):
            await service.tags(name)


@check("tags")
async def tags_are_not_headers(service: Service) -> None:
    headers = ObjectHeaders("text/plain", metadata={"colour": "blue"})
    put = await service.put(body=b"words", headers=headers, tags=TAGS)
    assert put.headers == (await service.head()).headers == (await service.get()).info.headers == headers


@check("tags")
async def a_replacement_has_its_own_tags(service: Service) -> None:
    await service.put(body=b"words", tags=TAGS)
    await service.put(body=b"words", tags={"colour": "blue"})
    assert await service.tags() == {"colour": "blue"}
    await service.delete()
    await service.put(body=b"words")
    assert await service.tags() == {}


@check("tags", "replaced_tags")
async def a_replacement_without_tags_has_none(service: Service) -> None:
    await service.put(body=b"words", tags=TAGS)
    await service.put(body=b"words")
    assert await service.tags() == {}


@check("tags")
async def a_copy_has_the_tags_of_its_source(service: Service) -> None:
    await service.put("without", b"words")
    for body in (b"", b"words"):
        await service.put("source", body, tags=TAGS)
        await service.put("copy", body, tags={"old": "yes"})
        await service.copy("source", "copy")
        assert await service.tags("copy") == TAGS
        await service.copy("without", "copy")
        assert await service.tags("copy") == {}


@check("tags")
async def a_copy_onto_itself_keeps_its_tags(service: Service) -> None:
    await service.put(body=b"words", tags=TAGS)
    await service.copy("a", "a")
    assert await service.tags() == TAGS


@check("tags", "conditional_copies")
async def a_copy_that_creates_has_the_tags_of_its_source(service: Service) -> None:
    for name, body in (("empty", b""), ("small", b"words"), ("large", full_part() + b"more")):
        await service.put("source", body, tags=TAGS)
        await service.copy("source", name, if_absent=service.port.new_id())
        assert await service.tags(name) == TAGS
        await service.put(f"{name} source", body)
        await service.copy(f"{name} source", f"{name} without", if_absent=service.port.new_id())
        assert await service.tags(f"{name} without") == {}


@check("tags", "conditional_puts")
async def a_creation_has_its_tags_and_a_refused_one_leaves_none(service: Service) -> None:
    await service.put(body=b"mine", tags=TAGS, if_absent=service.port.new_id())
    try:
        await service.put(body=b"yours", tags={"colour": "blue"}, if_absent=service.port.new_id())
    except Exception:  # noqa: BLE001 - another check tests which error it is
        assert await service.tags() == TAGS
    else:
        raise AssertionError("the object was replaced")


@check("tags", "tags_of_uploads")
async def an_object_made_of_parts_has_the_tags_of_its_upload(service: Service) -> None:
    await service.put("a", b"before", tags={"old": "yes"})
    await service.upload("a", full_part(), b"the end", tags=TAGS)
    assert await service.tags() == TAGS
    await service.upload("a", b"the end")
    assert await service.tags() == {}


@check()
async def invalid_tags_are_refused(service: Service) -> None:
    there = await service.put(body=b"there")
    for tags in BAD_TAGS:
        with refused(InvalidRequestError):
            await service.put(body=b"words", tags=tags)
        with refused(InvalidRequestError):
            await service.begin(tags=tags)
    assert (await service.head()).etag == there.etag
