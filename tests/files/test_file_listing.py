"""Listing, copying and deleting: in order, many at a time, and only the requested objects."""

from __future__ import annotations

from typing import Any

import pytest
from rig.files import Rig, everywhere, in_memory, in_small_parts, pattern

from holdall.core.objects import DeleteObjects, ListObjects, PutObject
from holdall.errors import (
    InvalidObjectKeyError,
    InvalidOptionsError,
    ObjectNotFoundError,
    PreconditionFailedError,
)

KEYS = ["a", "a/", "a/b", "a/b/c", "aa", "B", "a%2Fb", "a b", "ü", "u\u0308", "😀", "\uffff", "a+b", "~"]


def sort_keys(keys: list[str]) -> list[str]:
    return sorted(keys, key=str.encode)


@everywhere
async def test_keys_with_a_prefix_are_listed_in_the_order_of_their_bytes(files: Rig) -> None:
    for key in KEYS:
        await files.files.put(key, key.encode())
    assert await files.keys() == sort_keys(KEYS)
    for prefix in ("a", "a/", "a/b", "ü", "nothing"):
        assert await files.keys(prefix) == sort_keys([key for key in KEYS if key.startswith(prefix)])
    listing = files.db.files.list("a/b/")
    (found,) = list(listing) if files.colour == "blocking" else [each async for each in listing]
    info = await files.files.head("a/b/c")
    assert (found.key, found.size, found.etag) == ("a/b/c", 5, info.etag)


@everywhere
async def test_thousands_of_objects_are_listed_and_deleted_page_by_page(files: Rig) -> None:
    names = [f"many/{number:05}" for number in range(2_500)]
    count = len(names) if files.way.kind == "memory" else 1_010
    names = names[:count]
    await files.files.put("manyfold", b"not one of them")
    put = files.service.inner.send_blocking
    for name in reversed(names):
        put(PutObject("main", name, b"x"))
    assert await files.keys("many/") == names
    pages = -(-count // 1000)
    assert len(files.service.list_sent(ListObjects)) == pages
    assert await files.files.delete_many(names[:1_005]) == 1_005
    assert len(files.service.list_sent(DeleteObjects)) == 2
    assert await files.keys("many/") == names[1_005:]
    assert await files.files.delete_prefix("many/") == count - 1_005
    assert await files.keys() == ["manyfold"]


@everywhere
async def test_deleted_objects_are_gone_and_deleting_missing_ones_is_fine(files: Rig) -> None:
    for key in ("a/1", "a/2", "a/3", "ab", "b"):
        await files.files.put(key, b"x")
    await files.files.delete("a/1")
    await files.files.delete("a/1")
    assert await files.files.delete_many(["a/2", "missing", "a/2"]) == 2
    assert await files.files.delete_many([]) == 0
    assert await files.keys() == ["a/3", "ab", "b"]
    assert await files.files.delete_prefix("a/") == 1
    assert await files.files.delete_prefix("a/") == 0
    assert await files.keys() == ["ab", "b"]
    with pytest.raises(ObjectNotFoundError):
        await files.files.get("a/3")


@in_small_parts
async def test_a_prefix_is_text_and_never_a_pattern(files: Rig) -> None:
    keys = sorted(["*", "a*/1", "a[b]/1", "ab/1", "abc/1", "a?c/1"])
    for key in keys:
        await files.files.put(key, b"x")
    for prefix, gone in (
        ("a*", "a*/1"),
        ("a[b]", "a[b]/1"),
        ("a?", "a?c/1"),
        ("*", "*"),
        ("{ab,abc}/", None),
    ):
        assert await files.files.delete_prefix(prefix) == (gone is not None)
        keys = [key for key in keys if key != gone]
        assert await files.keys() == keys


@in_memory
async def test_calls_that_could_delete_too_much_are_refused(files: Rig) -> None:
    for key in ("a", "b"):
        await files.files.put(key, b"x")
    with pytest.raises(InvalidOptionsError, match="every object"):
        await files.files.delete_prefix("")
    text: Any = "ab"
    with pytest.raises(InvalidOptionsError, match="list of keys, not text"):
        await files.files.delete_many(text)
    many = ["a", *(f"no/{number}" for number in range(1_200)), "b/../c"]
    with pytest.raises(InvalidObjectKeyError):
        await files.files.delete_many(many)
    assert await files.keys() == ["a", "b"]


@everywhere
async def test_a_copy_has_the_bytes_and_headers_of_its_source(files: Rig) -> None:
    for size in (3, 9_000_000):
        data = pattern(size)
        source = await files.files.put(
            "source", data, content_type="text/plain", cache_control="no-store", metadata={"colour": "grün"}
        )
        copy = await files.files.copy("source", "copy", if_match=source.etag)
        assert (copy.size, copy.headers) == (size, source.headers)
        assert await files.files.get("copy") == data
        with pytest.raises(PreconditionFailedError):
            await files.files.copy("source", "copy", if_absent=True)
        with pytest.raises(PreconditionFailedError):
            await files.files.copy("source", "other", if_match="0" * 32)
        assert await files.files.exists("other") is False
    with pytest.raises(ObjectNotFoundError):
        await files.files.copy("missing", "other")
    await files.files.copy("source", "new", if_absent=True)
    assert await files.keys() == ["copy", "new", "source"]
