"""What a check of a file service is, what it gets, and how it is run."""

from __future__ import annotations

import asyncio
import os
import threading
import traceback
from base64 import b64encode
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import md5, sha256
from typing import Any, Literal, TypeAlias, TypeVar
from uuid import uuid4

from holdall.backends.port.awaiting import AwaitingPort
from holdall.backends.port.blocking import BlockingPort
from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CompleteUpload,
    CopyObject,
    DeleteObject,
    DeleteObjects,
    GetObject,
    GetTags,
    HeadObject,
    ListObjects,
    ListUploads,
    ObjectInfo,
    ObjectPage,
    ObjectRange,
    Part,
    PutObject,
    Upload,
    UploadPart,
)
from holdall.core.port import Backend, Port, run
from holdall.core.requests import Request
from holdall.core.rules.object import MIN_PART
from holdall.errors import ObjectNotFoundError, PreconditionFailedError
from holdall.testing.table_contract.check import Calls, refused

__all__ = [
    "NAME",
    "RACERS",
    "Calls",
    "Service",
    "ServiceCapability",
    "ServiceCheck",
    "check",
    "full_part",
    "md5_of",
    "refused",
    "run_service_check",
    "sha256_of",
]

ServiceCapability: TypeAlias = Literal[
    "conditional_copies",
    "conditional_deletions",
    "conditional_puts",
    "conditional_replacements",
    "digests_of_parts",
    "fork",
    "long_keys",
    "replaced_tags",
    "served_urls",
    "signed_urls",
    "tags",
    "tags_of_uploads",
]
"""Capabilities that a service may lack: to copy and put only if the key is free, to put and delete only a certain
object, to report digests of an object that was uploaded in parts, to work in a forked child, to accept keys of 1,024
bytes, to serve URLs over HTTP, to sign URLs, to keep tags, to keep the tags of an object that was uploaded in parts,
and to remove all tags by a put without any."""

NAME = "contract"
"""The service's name in requests; a service ignores it."""

RACERS = 8
"""How many requests try the same at once."""

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class ServiceCheck:
    """One rule of the contract of file services."""

    flow: Callable[[Service], Awaitable[None]]
    requires: frozenset[ServiceCapability] = frozenset()

    def __str__(self) -> str:
        subject = self.flow.__module__.rpartition(".")[2]
        return f"{subject}: {self.flow.__name__.replace('_', ' ')}"


def check(*requires: ServiceCapability) -> Callable[[Callable[[Service], Awaitable[None]]], ServiceCheck]:
    """Decorator that makes a check out of a flow; it needs these capabilities."""
    return lambda flow: ServiceCheck(flow, frozenset(requires))


class Service:
    """A service under test: its port, keys for one check alone, and shortcuts for common requests.

    If a method takes a ``name``, the key is that name below the check's own prefix.
    """

    def __init__(self, backend: Backend, calls: Calls, prefix: str | None = None) -> None:
        self.backend = backend
        self.calls = calls
        self.port: Port = BlockingPort(backend) if calls == "blocking" else AwaitingPort(backend)
        self.prefix = prefix or f"holdall-contract-{uuid4().hex[:12]}/"
        self._strays: list[str] = []
        self._closed = False

    def key(self, name: str = "a") -> str:
        """The key that a name stands for."""
        return self.prefix + name

    def stray(self, key: str) -> str:
        """A key outside the prefix, which is deleted as well in the end."""
        self._strays.append(key)
        return key

    async def send(self, request: Request[R]) -> R:
        """Send a request."""
        return await self.port.send(request)

    async def put(self, name: str = "a", body: bytes = b"", **options: Any) -> ObjectInfo:
        """Put bytes."""
        return await self.send(PutObject(NAME, self.key(name), body, **options))

    async def head(self, name: str = "a") -> ObjectInfo:
        """An object's properties, without its bytes."""
        return await self.send(HeadObject(NAME, self.key(name)))

    async def get(self, name: str = "a", **options: Any) -> ObjectRange:
        """Read an object."""
        return await self.send(GetObject(NAME, self.key(name), **options))

    async def body(self, name: str = "a") -> bytes | None:
        """The bytes under a name, None if there is no object."""
        try:
            return (await self.get(name)).body
        except ObjectNotFoundError:
            return None

    async def copy(self, source: str, name: str, **options: Any) -> ObjectInfo:
        """Copy an object."""
        return await self.send(CopyObject(NAME, self.key(source), self.key(name), **options))

    async def delete(self, name: str = "a") -> None:
        """Delete an object."""
        await self.send(DeleteObject(NAME, self.key(name)))

    async def delete_match(self, name: str, etag: str) -> None:
        """Delete an object if it has this etag."""
        await self.send(DeleteObject(NAME, self.key(name), if_match=etag))

    async def tags(self, name: str = "a") -> Mapping[str, str]:
        """The tags of an object."""
        return await self.send(GetTags(NAME, self.key(name)))

    async def begin(self, name: str = "a", **options: Any) -> Upload:
        """Begin an upload."""
        return await self.send(BeginUpload(NAME, self.key(name), **options))

    async def part(self, upload: Upload, number: int, body: bytes) -> Part:
        """Upload a part."""
        return await self.send(UploadPart(NAME, upload, number, body))

    async def complete(self, upload: Upload, *parts: Part, **options: Any) -> ObjectInfo:
        """Complete an upload with these parts."""
        return await self.send(CompleteUpload(NAME, upload, parts, **options))

    async def upload(self, name: str, *bodies: bytes, **options: Any) -> ObjectInfo:
        """Upload an object in these parts."""
        upload = await self.begin(name, **options)
        parts = [await self.part(upload, number, body) for number, body in enumerate(bodies, 1)]
        return await self.complete(upload, *parts)

    async def pages(self, prefix: str = "", limit: int = 1000) -> list[ObjectPage]:
        """All pages of a listing below a prefix of names."""
        pages: list[ObjectPage] = []
        after = None
        while not pages or after is not None:
            page = await self.send(ListObjects(NAME, self.key(prefix), after, limit))
            assert len(page.objects) <= limit
            assert after is None or page.next != after, "the listing continues where it already was"
            pages.append(page)
            after = page.next
        return pages

    async def names(self, prefix: str = "", limit: int = 1000) -> list[str]:
        """All names of a listing, in its order."""
        pages = await self.pages(prefix, limit)
        return [listed.key.removeprefix(self.prefix) for page in pages for listed in page.objects]

    async def side_by_side(self, flows: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """The results of flows that run concurrently; all of them must succeed."""
        return [outcome.result() for outcome in await self.port.gather(flows)]

    async def race(self, flows: Iterable[Coroutine[Any, Any, T]]) -> int:
        """Run flows concurrently, of which exactly one must succeed; return its position."""
        outcomes = await self.port.gather(flows, limit=RACERS)
        losses = [outcome.error for outcome in outcomes if outcome.error is not None]
        assert all(isinstance(loss, PreconditionFailedError) for loss in losses), losses
        winners = [place for place, outcome in enumerate(outcomes) if outcome.error is None]
        assert len(winners) == 1, f"{len(winners)} of {len(outcomes)} succeeded"
        return winners[0]

    async def begin_with(self, body: bytes, name: str = "a", **options: Any) -> tuple[Upload, Part]:
        """Begin an upload, and upload its first part."""
        upload = await self.begin(name, **options)
        return upload, await self.part(upload, 1, body)

    async def elsewhere(self, flow: Callable[[Service], Coroutine[Any, Any, None]], calls: Calls) -> None:
        """Run a flow on the same service in another thread; if async, in another event loop there."""
        twin = Service(self.backend, calls, self.prefix)
        outcomes: list[BaseException | None] = []

        def work() -> None:
            try:
                twin.run(flow(twin))
            except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
                outcomes.append(error)
            else:
                outcomes.append(None)

        thread = threading.Thread(target=work)
        thread.start()
        await self.wait_for(thread.join)
        (error,) = outcomes
        if error is not None:
            raise error

    async def in_a_child(self, flow: Callable[[Service], Coroutine[Any, Any, None]]) -> None:
        """Run a flow on the same service in a forked child, which must succeed."""
        child = os.fork()
        if child == 0:
            status = 1
            try:
                twin = Service(self.backend, self.calls, self.prefix)
                twin.run(flow(twin))
                status = 0
            except BaseException:  # noqa: BLE001 - a child must never return into the parent's code
                traceback.print_exc()
            finally:
                os._exit(status)
        _, status = await self.wait_for(lambda: os.waitpid(child, 0))
        assert status == 0, "the forked child failed; its traceback is on stderr"

    async def wait_for(self, wait: Callable[[], R]) -> R:
        """The result of a blocking function, without blocking the event loop if there is one."""
        return wait() if self.calls == "blocking" else await asyncio.to_thread(wait)

    def run(self, flow: Coroutine[Any, Any, None]) -> None:
        """Run a flow to its end, sync or async."""
        if self.calls == "blocking":
            run(flow)
        else:
            asyncio.run(flow)

    def close(self) -> None:
        """Close the service, so that nothing is deleted in the end."""
        self._closed = True
        self.backend.close()

    async def clear(self) -> None:
        """Delete everything that this check has left."""
        if self._closed:
            return
        for upload in await self.send(ListUploads(NAME, self.prefix)):
            await self.send(AbortUpload(NAME, upload))
        keys = [listed.key for page in await self.pages() for listed in page.objects] + self._strays
        for start in range(0, len(keys), 1000):
            report = await self.send(DeleteObjects(NAME, tuple(keys[start : start + 1000])))
            assert report.failures == {}


def md5_of(body: bytes) -> str:
    """The MD5 of bytes, as requests carry it."""
    return b64encode(md5(body, usedforsecurity=False).digest()).decode()


def sha256_of(body: bytes) -> str:
    """The SHA-256 of bytes, as requests carry it."""
    return b64encode(sha256(body).digest()).decode()


@cache
def full_part(seed: int = 0) -> bytes:
    """Enough bytes for a part that is not the last, even if the service is strict; different for each seed."""
    block = bytes((place * 31 + seed * 7 + place // 256) % 256 for place in range(65536))
    return block * (MIN_PART // len(block))


def run_service_check(check: ServiceCheck, service: Backend, calls: Calls) -> None:
    """Run one check on a service, with blocking (sync) or awaiting (async) calls; raise if it breaks the contract."""
    rig = Service(service, calls)
    rig.run(_run_check(check, rig))


async def _run_check(check: ServiceCheck, service: Service) -> None:
    try:
        await check.flow(service)
    finally:
        await service.clear()
