"""Where the tests of ``db.files`` run: every kind of service, both colours, and a recorder that acts between requests.

A test is written once, as ``async def test(files: Rig)``. In the awaiting colour it runs on an event loop; in the
blocking one it never suspends. A test can await the methods of `Rig` in both.

- ``@everywhere``: in memory, and in turn on disk, on a mirror, or in S3 on ministack.
- ``@in_small_parts``: on services with parts of a few bytes, so that small objects count as large: one part at a time
  and several, in both colours, in memory and on disk.
- ``@in_memory``: in memory only, for tests that do not depend on the service.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from inspect import isawaitable
from pathlib import Path
from random import Random
from typing import Any, TypeVar, cast
from uuid import uuid4

from holdall import AsyncDatabase, Database
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.disk import DiskService
from holdall.backends.memory import MemoryService
from holdall.backends.s3 import S3Service
from holdall.core.objects import (
    DescribeService,
    GetObject,
    ListParts,
    ListUploads,
    PutObject,
    ServiceTraits,
    Upload,
    UploadPart,
)
from holdall.core.port import Backend, Send
from holdall.core.requests import Request
from holdall.files import AsyncFiles
from holdall.worker import WorkerMetrics
from rig.colour import COLOURS, AsyncView, Awaited, Colour, here_and_elsewhere, in_turn, run_in, take_turns
from rig.recorder import Recorder
from rig.servers import ENVIRONMENT, start_server

__all__ = [
    "PART",
    "InterceptedService",
    "Rig",
    "Way",
    "bucket_service",
    "everywhere",
    "in_memory",
    "in_small_parts",
    "open_rig",
    "pattern",
    "s3_service",
    "service_at",
]

R = TypeVar("R")

PART = 100
"""Bytes in a part where parts are small; twice as many fit into a single put."""

SECRET = "a secret of the tests, long enough"
BUCKET = "holdall-files"


def pattern(size: int) -> bytes:
    """Reproducible bytes in which no two parts are equal."""
    return Random(17).randbytes(size)


class InterceptedService(Recorder):
    """A service in front of another, so that a test can act between requests.

    ``traits`` replace the service's own.
    """

    def __init__(self, service: Backend, traits: ServiceTraits | None = None) -> None:
        super().__init__(service)
        self.traits = traits

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        if self.traits and isinstance(request, DescribeService):
            return self.traits
        return await super()._answer(send, request)

    @property
    def bytes_in(self) -> int:
        """The number of bytes sent to be stored."""
        return sum(len(request.body) for request in [*self.list_sent(PutObject), *self.list_sent(UploadPart)])

    @property
    def largest_get(self) -> int:
        """The largest number of bytes requested at once."""
        return max(int(request.size) for request in self.list_sent(GetObject))


# --- the rig --------------------------------------------------------------------------------------------


class Rig:
    """A database with a service, in one colour; ``prefix`` is the service's prefix in a bucket."""

    prefix = ""

    def __init__(self, way: Way, service: InterceptedService, directory: Path, **more: Any) -> None:
        self.way = way
        self.colour = way.colour
        self.service = service
        self.directory = directory
        kind: Any = Database if way.colour == "blocking" else AsyncDatabase
        named: dict[str, Any] = {"main": service}
        if way.kind == "mirror":
            named |= {"copy": InterceptedService(MemoryService()), "mirrored": "mirror:main,copy"}
        named |= more.pop("files", {})
        more.setdefault("default_service", "mirrored" if way.kind == "mirror" else "main")
        self.db: Any = kind("memory:", files=named, secret=SECRET, **more)

    @property
    def files(self) -> AsyncFiles:
        """``db.files``, awaited in both colours."""
        return cast("AsyncFiles", Awaited(self.db.files))

    def at(self, service: str) -> AsyncFiles:
        """The files of another service, awaited in both colours."""
        return cast("AsyncFiles", Awaited(self.db.files[service]))

    @property
    def root(self) -> Path:
        """The directory of the service on disk."""
        return self.directory / "files"

    def file(self, data: bytes, name: str = "source") -> Path:
        """Write a file with these bytes, old enough that any later write changes its time."""
        path = self.directory / name
        path.write_bytes(data)
        os.utime(path, (1_000_000_000, 1_000_000_000))
        return path

    def object_file(self, data: bytes) -> Path:
        """The file in which the service on disk stores these bytes."""
        size = len(data)
        (found,) = [
            path
            for path in self.root.rglob("*")
            if path.is_file() and path.stat().st_size == size and path.read_bytes() == data
        ]
        return found

    async def keys(self, prefix: str = "", service: str | None = None) -> list[str]:
        listing = (self.db.files if service is None else self.db.files[service]).list(prefix)
        if self.colour == "blocking":
            return [each.key for each in listing]
        return [each.key async for each in listing]

    def uploads_now(self) -> tuple[Upload, ...]:
        """The unfinished uploads, blocking in both colours."""
        return self.service.inner.send_blocking(ListUploads("main"))

    def parts_of(self, upload: Upload) -> dict[int, int]:
        """The numbers and sizes of an upload's parts."""
        page = self.service.inner.send_blocking(ListParts("main", upload))
        return {part.number: part.size for part in page.parts}

    async def uploads(self, service: str = "main") -> tuple[Upload, ...]:
        """The unfinished uploads."""
        return await self.send(ListUploads(service))

    async def send(self, request: Request[R]) -> R:
        """Send a request that the recorder does not see."""
        service = self.db._services.service(request.service)  # type: ignore[attr-defined]
        while isinstance(service, InterceptedService):
            service = service.inner
        if self.colour == "blocking":
            return cast("R", service.send_blocking(request))
        return cast("R", await service.send_awaiting(request))

    async def is_clean(self) -> bool:
        """Whether the service has neither objects nor unfinished uploads."""
        return await self.keys() == [] and await self.uploads() == ()

    def open_handle(self, key: str) -> Any:
        """Open a handle for ``async with`` in both colours."""
        handle = self.db.files.open(key)
        return HandleView(handle) if self.colour == "blocking" else handle

    async def drain(self, **options: Any) -> WorkerMetrics:
        """Let a worker run all due jobs."""
        result = self.db.worker(poll_interval=0.02, **options).drain()
        return cast("WorkerMetrics", await result if isawaitable(result) else result)


class HandleView(AsyncView):
    """A blocking handle that is read like an async one."""

    async def pieces(self, *args: Any, **options: Any) -> Any:
        for piece in self._inner.pieces(*args, **options):
            yield piece


# --- where a test runs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A kind of service, the colour to use it in, and the number of parallel parts if parts are small."""

    kind: str
    colour: Colour
    parallel: int | None = None

    def __str__(self) -> str:
        small = f", {self.parallel} at a time" if self.parallel else ""
        return f"{self.kind}, {self.colour}{small}"

    @property
    def traits(self) -> ServiceTraits | None:
        """The traits that replace the service's own, if parts are small."""
        return ServiceTraits(2 * PART, PART, self.parallel) if self.parallel else None


@contextmanager
def open_rig(way: Way, **more: Any) -> Iterator[Rig]:
    """A rig with a new, empty service."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        prefix = f"files/{uuid4().hex}"
        rig = Rig(
            way, InterceptedService(_service(way.kind, directory, prefix), way.traits), directory, **more
        )
        rig.prefix = prefix
        try:
            yield rig
        finally:
            (rig.db if way.colour == "blocking" else rig.db.sync).close()


def _service(kind: str, directory: Path, prefix: str) -> Backend:
    if kind == "S3":
        return bucket_service(prefix)
    if kind == "memory":
        return MemoryService(secret=[SECRET], base_url="https://app.example/files")
    return DiskService(directory / "files", secret=[SECRET], base_url="https://app.example/files")


def bucket_service(prefix: str) -> S3Service:
    """A service in S3 on ministack, below a prefix."""
    url = start_server("ministack")
    _make_bucket(url)
    return s3_service(url, prefix)


def s3_service(url: str, prefix: str = "") -> S3Service:
    """A service in S3 on a known server, below a prefix."""
    endpoint = resolve_endpoint("s3", endpoint=url, environment=ENVIRONMENT)
    return S3Service(BUCKET, endpoint, find_credentials(environment=ENVIRONMENT), prefix=prefix)


def service_at(where: str) -> Backend:
    """The service at ``file:DIRECTORY``, or at an S3 server's URL followed by a prefix."""
    if where.startswith("file:"):
        return DiskService(where.removeprefix("file:"))
    return s3_service(*where.split())


@cache
def _make_bucket(url: str) -> None:
    service = s3_service(url)
    service.create_bucket()
    service.close()


def _all_kinds(name: str) -> list[Way]:
    return [Way(*way) for way in here_and_elsewhere(["disk", "mirror", "S3"], name)]


def _small(name: str) -> list[Way]:
    turn = take_turns(name)
    return [
        Way("memory", COLOURS[turn], 1),
        Way("memory", COLOURS[1 - turn], 3),
        Way("disk", COLOURS[1 - turn], 1),
        Way("disk", COLOURS[turn], 3),
    ]


in_memory = run_in(lambda name: [Way("memory", colour) for colour in in_turn(name)], open_rig)
everywhere = run_in(_all_kinds, open_rig)
in_small_parts = run_in(_small, open_rig)
