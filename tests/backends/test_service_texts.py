"""Every service returns keys and metadata unchanged, for any text that the rules allow."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from service_setups import Opening, make_s3_opening, open_disk_service, open_memory_service

from holdall.core.objects import DeleteObjects, ObjectHeaders, PutObject
from holdall.core.port import run
from holdall.core.rules.object import check_key, check_object_request
from holdall.errors import InvalidRequestError
from holdall.testing.file_contract.check import NAME, Service
from holdall.testing.file_contract.listing import in_order

SERVICES = pytest.mark.parametrize(
    "opened",
    [open_memory_service, open_disk_service, make_s3_opening("some where")],
    ids=["memory", "disk", "S3"],
)
FEW = settings(max_examples=10 if settings.default is not None and settings.default.derandomize else 500)


def is_key(text: str) -> bool:
    with suppress(InvalidRequestError):
        check_key(text)
        return True
    return False


def are_headers(headers: ObjectHeaders) -> bool:
    request: Any = PutObject(NAME, "key", b"", headers)
    with suppress(InvalidRequestError):
        check_object_request(request)
        return True
    return False


texts = st.text() | st.text("ab/.%+= ~_-:\\\n") | st.text("aAbB/üÜ\u0308\ufb01")
keys = st.lists(texts.map(lambda text: text[:200]).filter(is_key), min_size=1, max_size=8, unique=True)
values = st.text(max_size=120) | st.text("=?utf-8BbQq_ \t\"'%\\,;ü😀", max_size=60)
headers = st.builds(
    ObjectHeaders, metadata=st.dictionaries(st.text("ab-_.0", min_size=1, max_size=9), values, max_size=4)
)


@SERVICES
@FEW
@given(names=keys)
def test_any_valid_text_can_be_a_key(opened: Opening, names: list[str]) -> None:
    async def round_trip(service: Service) -> None:
        for name in names:
            await service.put(name, name.encode())
        assert await service.names() == in_order(names)
        assert await service.names(limit=2) == in_order(names)
        for name in names:
            assert await service.body(name) == name.encode()
            assert name in await service.names(name)
        await service.copy(names[0], "\x7f copy")
        assert await service.body("\x7f copy") == await service.body(names[0])
        gone = tuple(service.key(name) for name in {*names, "\x7f copy"})
        assert (await service.send(DeleteObjects(NAME, gone))).failures == {}
        assert await service.names() == []

    with opened() as backend:
        run(round_trip(Service(backend, "blocking")))


@SERVICES
@FEW
@given(headers=headers.filter(are_headers))
def test_any_valid_text_can_be_metadata(opened: Opening, headers: ObjectHeaders) -> None:
    async def round_trip(service: Service) -> None:
        await service.put(headers=headers)
        assert (await service.head()).headers == headers
        await service.copy("a", "b")
        assert (await service.get("b")).info.headers == headers
        await service.clear()

    with opened() as backend:
        run(round_trip(Service(backend, "blocking")))
