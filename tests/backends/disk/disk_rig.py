"""Short calls of a service on disk, and ways to inspect its files."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdall.backends.disk import DiskService
from holdall.core.objects import (
    BeginUpload,
    CompleteUpload,
    DeleteObject,
    GetObject,
    GetTags,
    HeadObject,
    ListObjects,
    ObjectHeaders,
    ObjectInfo,
    ObjectRange,
    Part,
    PutObject,
    Upload,
    UploadPart,
)
from holdall.core.rules.object import check_key
from holdall.errors import InvalidObjectKeyError

NAME = "disk"
RAILS_KEY = "xtapjjcjiudrlk3tmwyjgpuobabd"
"""A key as Active Storage generates it."""


class Disk:
    """A service on disk with short methods."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.service = DiskService(root)

    def put(self, key: str, body: bytes = b"words", **options: Any) -> ObjectInfo:
        content_type = options.pop("content_type", None)
        return self.service.send_blocking(PutObject(NAME, key, body, ObjectHeaders(content_type), **options))

    def get(self, key: str) -> ObjectRange:
        return self.service.send_blocking(GetObject(NAME, key))

    def head(self, key: str) -> ObjectInfo:
        return self.service.send_blocking(HeadObject(NAME, key))

    def tags(self, key: str) -> Mapping[str, str]:
        return self.service.send_blocking(GetTags(NAME, key))

    def delete(self, key: str, if_match: str | None = None) -> None:
        self.service.send_blocking(DeleteObject(NAME, key, if_match))

    def keys(self, prefix: str = "", limit: int = 1000) -> list[str]:
        """List all keys, page by page."""
        found: list[str] = []
        after: str | None = None
        while True:
            page = self.service.send_blocking(ListObjects(NAME, prefix, after, limit))
            assert len(page.objects) <= limit
            found += [each.key for each in page.objects]
            after = page.next
            if after is None:
                return found

    def begin(self, key: str = "big", content_type: str | None = None) -> Upload:
        return self.service.send_blocking(BeginUpload(NAME, key, ObjectHeaders(content_type)))

    def part(self, upload: Upload, number: int, body: bytes) -> Part:
        return self.service.send_blocking(UploadPart(NAME, upload, number, body))

    def complete(self, upload: Upload, *parts: Part, **options: str) -> ObjectInfo:
        return self.service.send_blocking(CompleteUpload(NAME, upload, parts, **options))

    def files(self) -> set[str]:
        """All files below the root, relative to it."""
        return {
            str(Path(place, name).relative_to(self.root))
            for place, _, names in os.walk(self.root)
            for name in names
        }

    def directories(self) -> set[str]:
        """All directories below the root, relative to it."""
        return {
            str(Path(place, name).relative_to(self.root))
            for place, names, _ in os.walk(self.root)
            for name in names
        }

    def bytes_of(self, key: str) -> Path:
        """The file with an object's bytes."""
        from holdall.backends.disk.path import place_of

        directories, name = place_of(key)
        return self.root.joinpath(*directories, name)


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Simulate a full disk: no file can grow beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def is_allowed(key: str) -> bool:
    """Whether an object can have this key."""
    try:
        check_key(key)
    except InvalidObjectKeyError:
        return False
    return True
