"""Helpers for tests of the application that serves files: a database with files on disk, and URLs of its blobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from httpx import Response
from web_rig import ask_app

from holdall import Database
from holdall.attachments import Blob
from holdall.attachments.blob.address import url_of
from holdall.web import create_app

__all__ = ["SECRET", "Place", "open_place"]

SECRET = "a secret of some length"


@dataclass
class Place:
    """A database, the directory of its files, and the application that serves them."""

    db: Database
    files: Path
    app: Any

    def store(self, data: bytes = b"words", filename: str = "a.txt", **options: Any) -> Blob:
        """Store a blob."""
        return self.db.blobs.create_and_upload(data, filename=filename, **options)

    def url(self, blob: Blob, **options: Any) -> str:
        """The URL of a blob, as ``attached.url()`` returns it."""
        return url_of(self.db._context.settings, blob, **options)

    def proxy_url(self, blob: Blob, **options: Any) -> str:
        """The URL by which the application sends a blob's bytes itself."""
        return self.url(blob, proxied=True, **options)

    def get(self, url: str, method: str = "GET", *, app: Any = None, **headers: str) -> Response:
        """Send a request to the application; return its response."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return ask_app(app or self.app, method, url, headers=named)

    def path_of(self, blob: Blob) -> Path:
        """The path of a blob's bytes."""
        return self.files / blob.key[:2] / blob.key[2:4] / blob.key


@contextmanager
def open_place(folder: Path, url: str = "memory:", **options: Any) -> Iterator[Place]:
    """A database with files on disk; ``options`` are those of ``create_app``."""
    with Database(url, files=f"file:{folder / 'files'}", secret=SECRET, durability="normal") as db:
        yield Place(db, folder / "files", create_app(db, **options))
