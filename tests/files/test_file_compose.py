"""Composing one object from several of any size; the service copies their bytes itself if it can."""

from __future__ import annotations

from typing import Any

import pytest
from rig.files import Rig, everywhere, in_memory, pattern

from holdall.core.objects import CopyPart, GetObject, ObjectHeaders, PutObject, UploadPart
from holdall.core.rules.object import MIN_PART
from holdall.errors import InvalidOptionsError, ObjectNotFoundError, PreconditionFailedError

FEW, LEAST = 1000, MIN_PART
SIZES = {
    "nothing": [0],
    "nothing, twice": [0, 0],
    "one": [FEW],
    "few": [FEW, 0, FEW + 1, 3],
    "just too few for parts": [LEAST - 1],
    "just enough": [LEAST],
    "few that are enough together": [LEAST // 2, LEAST // 2, 5],
    "large ones": [LEAST, LEAST + 1],
    "small, large": [FEW, LEAST + FEW],
    "small, just large": [FEW, LEAST],
    "large, small": [LEAST + 1, FEW],
    "large, nothing, small, large, small": [LEAST, 0, FEW, 2 * LEAST + 7, FEW],
    "small in a row": [FEW, FEW, LEAST, FEW, FEW],
}


@everywhere
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
async def test_objects_of_any_sizes_are_composed_into_one(files: Rig, sizes: list[int]) -> None:
    bodies = [bytes([number + 1]) * 7 + pattern(size) for number, size in enumerate(sizes)]
    bodies = [body[:size] for body, size in zip(bodies, sizes, strict=True)]
    for number, body in enumerate(bodies):
        await files.files.put(f"source/{number}", body)
    files.service.requests.clear()
    info = await files.files.compose([f"source/{number}" for number in range(len(bodies))], "it")
    assert info.size == sum(sizes)
    parts = files.service.list_sent(UploadPart) + files.service.list_sent(CopyPart)
    by_number = {part.number: part.size if isinstance(part, CopyPart) else len(part.body) for part in parts}
    assert all(size >= LEAST for number, size in by_number.items() if number < len(by_number)), (
        "as S3 requires"
    )
    assert await files.files.get("it") == b"".join(bodies)
    assert await files.uploads() == ()
    assert [await files.files.get(f"source/{number}") for number in range(len(bodies))] == bodies


@in_memory
async def test_large_objects_are_copied_by_the_service(files: Rig) -> None:
    sizes = {"small": FEW, "large": 3 * LEAST, "larger": 4 * LEAST + 5}
    for name, size in sizes.items():
        await files.files.put(name, pattern(size))
    files.service.requests.clear()
    await files.files.compose(["large", "larger"], "it")
    assert [request.size for request in files.service.list_sent(CopyPart)] == [3 * LEAST, 4 * LEAST + 5]
    assert not files.service.list_sent(GetObject)
    files.service.requests.clear()
    await files.files.compose(["small", "large", "larger"], "it")
    assert files.service.bytes_in == LEAST, "the bytes that the first part lacked"
    assert len(files.service.list_sent(UploadPart)) == 1


@everywhere
async def test_an_object_can_be_appended_to_and_used_more_than_once(files: Rig) -> None:
    large = pattern(LEAST + 1)
    await files.files.put("it", large)
    await files.files.put("more", b"more")
    await files.files.compose(["it", "more", "it", "more"], "it")
    assert await files.files.get("it") == large + b"more" + large + b"more"


@everywhere
async def test_the_composed_object_has_the_headers_that_the_caller_passes(files: Rig) -> None:
    given: Any = {"content_type": "text/csv", "disposition": "attachment", "cache_control": "no-store"}
    for size in (FEW, LEAST):
        await files.files.put("source", pattern(size), content_type="text/plain")
        await files.files.compose(["source", "source"], "it", metadata={"of": "two"}, **given)
        found = await files.files.head("it")
        assert found.headers == ObjectHeaders("text/csv", "attachment", "no-store", {"of": "two"})


@everywhere
async def test_with_if_absent_nothing_is_replaced(files: Rig) -> None:
    for key, size in (("small", FEW), ("large", LEAST)):
        await files.files.put("source", pattern(size))
        await files.files.compose(["source", "source"], key, if_absent=True)
        with pytest.raises(PreconditionFailedError):
            await files.files.compose(["source"], key, if_absent=True)
        assert (await files.files.head(key)).size == 2 * size
    assert await files.uploads() == ()


@in_memory
async def test_an_impossible_composition_is_refused_before_anything_is_written(files: Rig) -> None:
    await files.files.put("source", b"x")
    none: list[str] = []
    for given in (none, "source"):
        with pytest.raises(InvalidOptionsError):
            await files.files.compose(given, "it")
    with pytest.raises(ObjectNotFoundError):
        await files.files.compose(["source", "missing"], "it")
    assert len(files.service.list_sent(PutObject)) == 1
    assert await files.keys() == ["source"]
