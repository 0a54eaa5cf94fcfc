"""Streams of an object's bytes: in order, from one version of the object, with one request per piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rig.files import Rig, Way, everywhere, in_memory, open_rig, pattern

from holdall.core.objects import GetObject, HeadObject, ServiceTraits
from holdall.core.rules.object import MIN_PART
from holdall.errors import InvalidOptionsError, ObjectNotFoundError, PreconditionFailedError
from holdall.files.piece import FAR, NEAR


async def collect(pieces: Any) -> list[bytes]:
    """Collect all pieces, in either colour."""
    return list(pieces) if isinstance(pieces, Iterator) else [piece async for piece in pieces]


@everywhere
async def test_a_stream_yields_the_bytes_in_pieces(files: Rig) -> None:
    data = pattern(2_500_000)
    info = await files.files.put("it", data)
    for start, size in (
        (0, None),
        (5, None),
        (7, 1000),
        (2_000_000, 900_000),
        (2_500_000, None),
        (3_000_000, 5),
    ):
        pieces = await collect(files.db.files.stream("it", start=start, size=size, if_match=info.etag))
        assert b"".join(pieces) == data[start : None if size is None else start + size]
        assert max(map(len, pieces), default=0) <= 1024**2
    await files.files.put("empty", b"")
    assert await collect(files.db.files.stream("empty")) == []


@in_memory
async def test_a_stream_sends_one_request_for_each_piece_and_fails_if_the_object_is_replaced(
    files: Rig,
) -> None:
    old = await files.files.put("it", pattern(2 * NEAR + 1))
    assert [len(piece) for piece in await collect(files.db.files.stream("it"))] == [NEAR, NEAR, 1]
    assert len(files.service.list_sent(GetObject)) == 3
    assert files.service.list_sent(HeadObject) == []

    def replace(request: Any) -> None:
        files.service.after = lambda request: None
        files.service.inner.send_blocking(put)

    put = files.service.requests[0]
    files.service.after = replace
    with pytest.raises(PreconditionFailedError):
        await collect(files.db.files.stream("it"))
    with pytest.raises(PreconditionFailedError):
        await collect(files.db.files.stream("it", if_match=old.etag))


@pytest.mark.parametrize(
    ("parallel", "size", "sent"), [(1, NEAR, [1, 2, 3, 4, 5]), (2, FAR, [1, 3, 3, 5, 5])]
)
def test_a_stream_fetches_as_far_ahead_as_the_service_allows(
    parallel: int, size: int, sent: list[int]
) -> None:
    with open_rig(Way("memory", "blocking")) as files:
        files.service.traits = ServiceTraits(MIN_PART, MIN_PART, parallel)
        files.db.files.put("it", pattern(4 * size + 1))
        requests = [
            (len(piece), len(files.service.list_sent(GetObject))) for piece in files.db.files.stream("it")
        ]
    assert requests == [*zip([size] * 4, sent, strict=False), (1, sent[-1])]


@in_memory
async def test_a_stream_of_a_missing_object_is_refused_even_if_it_would_be_empty(files: Rig) -> None:
    for size in (None, 5, 0):
        with pytest.raises(ObjectNotFoundError):
            await collect(files.db.files.stream("missing", size=size))
    for options in ({"start": -1}, {"size": -1}):
        with pytest.raises(InvalidOptionsError):
            files.db.files.stream("missing", **options)
