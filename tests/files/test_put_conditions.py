"""Puts with tags, and puts that replace a certain version: small objects at once, large ones in parts."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest
from rig.wrapper import Wrapper

from holdall import AsyncDatabase, Database
from holdall.backends.memory import MemoryService
from holdall.core.objects import GetTags, ListUploads, ObjectInfo, UploadPart
from holdall.core.port import Send
from holdall.core.requests import Request
from holdall.errors import InvalidRequestError, PreconditionFailedError

TAGS = {"colour": "red", "größe": ""}
LARGE = bytes(9 * 1024 * 1024)
SOURCES: dict[str, Any] = {
    "small": lambda: b"words",
    "small stream": lambda: io.BytesIO(b"words"),
    "large": lambda: LARGE,
    "large stream": lambda: io.BytesIO(LARGE),
}


class Place:
    """A service in memory, used through databases of one colour."""

    def __init__(self, colour: str) -> None:
        self._colour = colour
        self.parts = 0
        self.service = MemoryService()

    def put(self, key: str, source: Any, **options: Any) -> ObjectInfo:
        if self._colour == "blocking":
            with Database("memory:", files={"main": self._open_service()}) as db:
                return db.files.put(key, source, **options)

        async def flow() -> ObjectInfo:
            async with AsyncDatabase("memory:", files={"main": self._open_service()}) as db:
                return await db.files.put(key, source, **options)

        return asyncio.run(flow())

    def tags(self, key: str) -> Any:
        return self.service.send_blocking(GetTags("main", key))

    def _open_service(self) -> Any:
        place = self

        class UnclosedService(Wrapper):
            """The service, which stays open when a database closes it."""

            async def _answer(self, send: Send, request: Request[Any]) -> Any:
                place.parts += isinstance(request, UploadPart)
                return await send(self.inner, request)

            def close(self) -> None:
                pass

        return UnclosedService(self.service)


@pytest.fixture(params=["blocking", "awaiting"])
def place(request: pytest.FixtureRequest) -> Place:
    return Place(request.param)


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_an_object_is_put_with_its_tags(place: Place, source: Any) -> None:
    place.put("a", source(), tags=TAGS)
    assert place.tags("a") == TAGS
    place.put("a", source())
    assert place.tags("a") == {}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_put_can_replace_only_the_known_version(place: Place, source: Any) -> None:
    first = place.put("a", b"first")
    second = place.put("a", source(), if_match=first.etag, tags=TAGS)
    assert place.tags("a") == TAGS
    with pytest.raises(PreconditionFailedError):
        place.put("a", source(), if_match=first.etag)
    third = place.put("a", b"third", if_match=second.etag)
    assert third.etag != second.etag


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("there", [b"another", None], ids=["another", "missing"])
def test_a_put_that_will_be_refused_sends_no_parts(place: Place, source: Any, there: bytes | None) -> None:
    if there is not None:
        place.put("a", there)
    with pytest.raises(PreconditionFailedError):
        place.put("a", source(), if_match="unknown")
    assert place.parts == 0
    assert place.service.send_blocking(ListUploads("main")) == ()


class Untouched:
    """A stream that must not be read."""

    def read(self, size: int) -> bytes:
        raise AssertionError("it was read")


@pytest.mark.parametrize(
    "options",
    [{"tags": {"a&b": "c"}}, {"tags": {"aws:a": "b"}}, {"if_match": "etag", "if_absent": True}],
    ids=["invalid character", "reserved tag", "both conditions"],
)
def test_options_that_no_service_accepts_are_refused_before_anything_is_read(
    place: Place, options: Any
) -> None:
    with pytest.raises(InvalidRequestError):
        place.put("a", Untouched(), **options)
