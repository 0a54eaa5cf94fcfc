"""The buckets that a database's artifacts need, made where they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdall import Database

__all__ = ["ensure_buckets"]


def ensure_buckets(db: Database) -> dict[str, bool]:
    """Make the buckets of the service of artifacts, and of its mirrors; each with whether it was made."""
    from holdall.backends.s3 import S3Service

    made: dict[str, bool] = {}
    for name, url in _services(db):
        service = db._services.service(name)
        if isinstance(service, S3Service):
            bucket = url.removeprefix("s3://").partition("?")[0].partition("/")[0]
            there = service.bucket_exists()
            if not there:
                service.create_bucket()
            made[bucket] = not there or made.get(bucket, False)
    return made


def _services(db: Database) -> Iterator[tuple[str, str]]:
    """The service of artifacts, or those that it is made of, by name, with their URLs."""
    settings = db._context.settings
    urls = dict(settings.files)
    from holdall.artifacts.settings import artifact_settings

    chosen = artifact_settings(settings).service or settings.default_service
    url = urls.get(chosen or "", "")
    names = url.removeprefix("mirror:").split(",") if url.startswith("mirror:") else [chosen or ""]
    for name in names:
        if name.strip():
            yield name.strip(), urls.get(name.strip(), "")
