"""The services that must satisfy the contract, and how to open each.

Besides each plain service: a mirror of two services, a bucket with a key prefix, and a bucket that is configured as if
its server ignored conditions, so that claims replace them (that one runs only the checks of conditions).
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from rig.colour import take_turns
from rig.servers import ENVIRONMENT, start_server
from rig.torture import TORTURE
from rig.wrapper import Wrapper

from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.disk import DiskService
from holdall.backends.memory import MemoryService
from holdall.backends.s3.service import S3Service
from holdall.backends.services import MirrorService
from holdall.core.port import Backend
from holdall.testing import ServiceCapability, ServiceCheck
from holdall.testing.file_contract import Calls

__all__ = ["SETUPS", "HeldClaims", "Opening", "Setup"]

R = TypeVar("R")
Opening = Callable[[], AbstractContextManager[Backend]]

SECRET = ("a secret of the tests, long enough",)
BASE_URL = "https://files.example/holdall"
BUCKET = "holdall-contract"


@dataclass(frozen=True)
class Setup:
    """A service. With ``about``, it runs only the checks that need one of those capabilities.

    Without a ``turn``, a service runs every check in both colours. With one, it runs each check in one colour, by
    turns, and in both under torture.
    """

    name: str
    opened: Opening
    turn: int | None = None
    lacks: frozenset[ServiceCapability] = frozenset()
    about: frozenset[ServiceCapability] | None = None
    sampled: bool = False
    """Whether half of the checks are enough for an everyday run, because the service is a variant of another one."""

    def colours(self, check: ServiceCheck) -> tuple[Calls, ...]:
        if TORTURE or self.turn is None:
            return BOTH
        return (BOTH[(take_turns(str(check)) + self.turn) % 2],)

    def takes(self, check: ServiceCheck) -> bool:
        if self.sampled and not TORTURE and take_turns(str(check), self.name):
            return False
        return self.about is None or bool(check.requires & self.about)

    def __str__(self) -> str:
        return self.name


@contextmanager
def open_memory_service() -> Iterator[MemoryService]:
    service = MemoryService(secret=SECRET, base_url=BASE_URL)
    try:
        yield service
    finally:
        service.close()


@contextmanager
def open_disk_service() -> Iterator[DiskService]:
    with tempfile.TemporaryDirectory() as directory:
        service = DiskService(directory, secret=SECRET, base_url=BASE_URL)
        try:
            yield service
        finally:
            service.close()


class _Mirror(Wrapper):
    """A mirror that closes its services, as a registry would."""

    def __init__(self, **services: Backend) -> None:
        super().__init__(MirrorService(services.__getitem__, "main", ("copy",)))
        self._services = services

    def close(self) -> None:
        for service in self._services.values():
            service.close()


@contextmanager
def open_mirror() -> Iterator[_Mirror]:
    with tempfile.TemporaryDirectory() as directory:
        main = MemoryService(secret=SECRET, base_url=BASE_URL)
        service = _Mirror(main=main, copy=DiskService(directory))
        try:
            yield service
        finally:
            service.close()


class HeldClaims:
    """Claims kept in the memory of this process."""

    def __init__(self) -> None:
        self._held: dict[str, str] = {}
        self._lock = threading.Lock()

    def claim_blocking(self, key: str, id: str) -> bool:
        with self._lock:
            return self._held.setdefault(key, id) == id

    async def claim_awaiting(self, key: str, id: str) -> bool:
        return self.claim_blocking(key, id)

    def release_blocking(self, key: str) -> None:
        with self._lock:
            self._held.pop(key, None)

    async def release_awaiting(self, key: str) -> None:
        self.release_blocking(key)


def make_s3_opening(prefix: str = "", *, claimed: bool = False) -> Opening:
    @contextmanager
    def open_s3() -> Iterator[S3Service]:
        url = start_server("ministack")
        _bucket(url)
        service = _s3_service(url, prefix, claimed)
        try:
            yield service
        finally:
            service.close()

    return open_s3


def _s3_service(url: str, prefix: str, claimed: bool) -> S3Service:
    return S3Service(
        BUCKET,
        resolve_endpoint("s3", endpoint=url, environment=ENVIRONMENT),
        find_credentials(environment=ENVIRONMENT),
        prefix=prefix,
        conditional_puts=False if claimed else None,
        claims=HeldClaims() if claimed else None,
    )


@cache
def _bucket(url: str) -> None:
    service = _s3_service(url, "", False)
    service.create_bucket()
    service.close()


TOKENS: frozenset[ServiceCapability] = frozenset({"served_urls"})
"""Missing in services whose URLs a web application must serve."""
PARTS: frozenset[ServiceCapability] = frozenset({"digests_of_parts"})
"""Missing in services that never see the whole of an object uploaded in parts."""
TAGS: frozenset[ServiceCapability] = frozenset({"replaced_tags", "tags_of_uploads"})
"""Missing where the server accepts tags only with a put, and keeps the existing tags with any other write."""
CREATION: frozenset[ServiceCapability] = frozenset({"conditional_puts", "conditional_copies"})

MATCHES: frozenset[ServiceCapability] = frozenset({"conditional_deletions", "conditional_replacements"})
"""Missing where the server ignores conditions, because claims cannot replace these."""

BOTH: tuple[Calls, ...] = ("blocking", "awaiting")
SETUPS = (
    Setup("memory", open_memory_service, 1, TOKENS),
    Setup("disk", open_disk_service, 0, TOKENS | PARTS),
    Setup("mirror", open_mirror, 1, TOKENS),
    Setup("S3", make_s3_opening(), 0, PARTS | TAGS),
    Setup(
        "S3 below a prefix", make_s3_opening("some/where ü"), 1, PARTS | TAGS | {"long_keys"}, sampled=True
    ),
    Setup("S3 with claims", make_s3_opening(claimed=True), lacks=PARTS | MATCHES, about=CREATION),
)
