"""A deletion of a certain object through a mirror: the primary says which one it is, and then it is gone everywhere."""

from __future__ import annotations

import asyncio

import pytest

from holdall.backends.memory import MemoryService
from holdall.backends.services import MirrorService
from holdall.core.objects import DeleteObject, HeadObject, PutObject
from holdall.core.port import Backend
from holdall.errors import ObjectNotFoundError, PreconditionFailedError


class Two:
    """A primary and its mirror, whose etags of the same bytes differ."""

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
def test_the_object_that_is_known_is_deleted_everywhere(colour: str) -> None:
    two = Two()
    two.delete(colour, two.etag)
    for service in (two.main, two.copy):
        with pytest.raises(ObjectNotFoundError):
            service.send_blocking(HeadObject("", "a"))


@pytest.mark.parametrize("colour", ["blocking", "awaiting"])
def test_another_object_is_deleted_nowhere(colour: str) -> None:
    two = Two()
    with pytest.raises(PreconditionFailedError):
        two.delete(colour, "another")
    for service in (two.main, two.copy):
        assert service.send_blocking(HeadObject("", "a")).size == 5
