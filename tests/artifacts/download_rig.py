"""Where downloads of artifacts are tested: every kind of service, both colours, with a cache.

A test is written once, as ``async def test(store: Store)``, and runs in the colours of `rig.files`, on its services:
a recorder can act between requests, and parts may be small.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from rig.colour import Test, run_in
from rig.files import PART, InterceptedService, Rig, Way, open_rig, pattern

from holdall.artifacts.alias import flow as alias_flow
from holdall.artifacts.settings import ArtifactSettings
from holdall.artifacts.version import delivery, intent, publication
from holdall.artifacts.version.artifact import Artifact
from holdall.core.objects import GetObject

__all__ = [
    "BOTH",
    "EVERYWHERE",
    "PART",
    "SMALL",
    "InterceptedService",
    "Store",
    "Way",
    "on",
    "open_download_store",
    "pattern",
    "tree_of",
]

BOTH = (Way("memory", "blocking"), Way("memory", "awaiting"))
SMALL = (Way("disk", "blocking", 1), Way("memory", "awaiting", 3))
EVERYWHERE = (*BOTH, Way("disk", "blocking"), Way("S3", "awaiting"))


class Store:
    """The artifacts of a database, awaited in both colours."""

    def __init__(self, rig: Rig, cache: Path) -> None:
        self.rig = rig
        self.service = rig.service
        self.directory = rig.directory / "here"
        self.directory.mkdir()
        self.cache = cache
        self.context = rig.db._context
        self.put = partial(intent.put, self.context)
        self.publish = partial(publication.publish, self.context)
        self.put_alias = partial(alias_flow.put_alias, self.context)
        self.download = partial(delivery.download, self.context)
        self.url = partial(delivery.url, self.context)

    async def put_and_publish(self, name: str, content: Any) -> Artifact:
        """Put this content and publish it as a version."""
        await self.put(name, content)
        return await self.publish(name)

    def gets(self) -> list[GetObject]:
        """Return the requests for bytes so far, and forget all requests."""
        found: list[GetObject] = self.service.list_sent(GetObject)
        self.service.requests.clear()
        return found

    def names(self) -> set[str]:
        """The names in the directory that downloads go to."""
        return {path.name for path in self.directory.iterdir()}

    def list_cache(self) -> set[str]:
        """The names of all files in the cache."""
        return {path.name for path in self.cache.rglob("*") if path.is_file()}

    def entry(self, data: bytes) -> Path:
        """The path of these bytes in the cache."""
        digest = sha256(data).hexdigest()
        return self.cache / digest[:2] / digest

    def fail_from(self, count: int, of: str = "") -> None:
        """After this many requests for bytes of objects with ``of`` in their keys, let every further one fail."""
        seen: list[Any] = []

        def fail(request: Any) -> None:
            if isinstance(request, GetObject) and of in request.key:
                seen.append(request)
                if len(seen) > count:
                    raise ConnectionResetError("the network is gone")

        self.service.before = fail

    def mend(self) -> None:
        """Let requests succeed again."""
        self.service.before = self.service.after = lambda request: None


@contextmanager
def open_download_store(way: Way, cache_size: int = 10**9, cached: bool = True) -> Iterator[Store]:
    """Open an empty store."""
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name) / "cache"
        settings = ArtifactSettings(cache=str(cache), cache_size=cache_size) if cached else ArtifactSettings()
        with open_rig(way, artifacts=settings) as rig:
            yield Store(rig, cache)


def on(*ways: Way, **options: Any) -> Callable[[Test], Callable[..., None]]:
    """Run a test in each of these ways."""
    return run_in(lambda name: ways, lambda way: open_download_store(way, **options))


def tree_of(directory: Path) -> dict[str, bytes | None]:
    """The content of a directory: files with their bytes, directories with None; a star marks executable files."""
    found: dict[str, bytes | None] = {}
    for path in sorted(directory.rglob("*")):
        star = "*" if path.is_file() and os.access(path, os.X_OK) else ""
        found[path.relative_to(directory).as_posix() + star] = path.read_bytes() if path.is_file() else None
    return found
