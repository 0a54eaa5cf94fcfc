"""Conditional deletions through a mirror: the primary checks the condition, then every service deletes the object."""

from __future__ import annotations

import asyncio

import pytest

from holdall.backends.memory import MemoryService
from holdall.backends.services import MirrorService
from holdall.core.objects import DeleteObject, HeadObject, PutObject
from holdall.core.port import Backend
from holdall.errors import ObjectNotFoundError, PreconditionFailedError


class MirroredPair:
    """A primary service and its mirror, whose etags of the same bytes differ."""

    def __init__(self) -> None:
        self.main, self.copy = MemoryService(), MemoryService()
        self.copy.send_blocking(PutObject("copy", "other", b""))
        self.etag = self.main.send_blocking(PutObject("main", "a", b"words")).etag
        assert self.copy.send_blocking(PutObject("copy", "a", b"words")).etag != self.etag
        services: dict[str, Backend] = {"main": self.main, "copy": self.copy}
        self.mirror = MirrorService(services.__getitem__, "main", ("copy",))

    def delete(self, colour: str, etag: str) -> None:
        request = DeleteObject("safe", "a", if_match=etag)
        if colour == "blocking":
            self.mirror.send_blocking(request)
        else:
            asyncio.run(self.mirror.send_awaiting(request))


@pytest.mark.parametrize("colour", ["blocking", "awaiting"])
def test_an_object_with_the_expected_etag_is_deleted_everywhere(colour: str) -> None:
    pair = MirroredPair()
    pair.delete(colour, pair.etag)
    for service in (pair.main, pair.copy):
        with pytest.raises(ObjectNotFoundError):
            service.send_blocking(HeadObject("", "a"))


@pytest.mark.parametrize("colour", ["blocking", "awaiting"])
def test_an_object_with_another_etag_is_deleted_nowhere(colour: str) -> None:
    pair = MirroredPair()
    with pytest.raises(PreconditionFailedError):
        pair.delete(colour, "another")
    for service in (pair.main, pair.copy):
        assert service.send_blocking(HeadObject("", "a")).size == 5
