"""``db.artifacts`` for tests that are written once: sync and async, embedded with files on disk, on DynamoDB and S3.

Tests call a place's methods without ``await``, sync or async, and get a list where a method iterates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from inspect import isawaitable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from rig.servers import ENVIRONMENT, start_server

from holdall import ArtifactSettings, AsyncDatabase, Database

__all__ = ["NEAR", "WAYS", "Place", "open_place"]

WAYS = ["embedded, blocking", "memory, awaiting", "wire, blocking", "wire, awaiting"]
NEAR = WAYS[:2]
"""On this machine, in each colour: for rules that do not depend on the store."""


class Plain:
    """Wraps an object of either colour so that its methods are called without ``await``."""

    def __init__(self, inner: Any, runner: asyncio.Runner) -> None:
        self._inner = inner
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def call(*args: Any, **options: Any) -> Any:
            async def within() -> Any:
                result = method(*args, **options)
                if hasattr(result, "__aiter__"):
                    return [each async for each in result]
                return await result if isawaitable(result) else result

            if isinstance(self._inner, type(self)) or not _is_async(self._inner):
                result = method(*args, **options)
                return list(result) if hasattr(result, "__next__") else result
            return self._runner.run(within())

        return call


def _is_async(thing: Any) -> bool:
    return type(thing).__name__.startswith("Async")


class Place:
    """A database with artifacts, and direct access to its rows and objects."""

    def __init__(self, db: Any, sync: Database, runner: asyncio.Runner) -> None:
        self.db = db
        self.sync = sync
        self.artifacts: Any = Plain(db.artifacts, runner)
        self.files = sync.files

    def rows(self, pk: str) -> list[dict[str, Any]]:
        """The items of a partition, as stored."""
        from holdall.core import KeyCondition, Query

        layout = self.sync.table.layout()
        key = KeyCondition(layout.partition.name, {"S": pk})
        return [
            dict(item)
            for page in self.sync.pages(Query(layout.table, key, consistent=True))
            for item in page.items
        ]

    def objects(self) -> list[str]:
        """The keys of all objects."""
        return [each.key for each in self.files.list()]


def open_place(
    way: str, directory: Path, monkeypatch: pytest.MonkeyPatch, *, bucket: bool = True
) -> Iterator[Place]:
    """Open a new place; where it needs a bucket, create it unless ``bucket`` is false."""
    kind, colour = way.split(", ")
    settings = ArtifactSettings(suffix=".txt")
    if kind == "wire":
        url = start_server("ministack")
        for name, value in ENVIRONMENT.items():
            monkeypatch.setenv(name, value)
        sync = Database(
            f"dynamodb://artifacts-{uuid4().hex}",
            endpoint=url,
            region="us-east-1",
            manage_table=True,
            files=f"s3://artifacts-{uuid4().hex}?endpoint={url}&region=us-east-1",
            artifacts=settings,
        )
        if bucket:
            sync._services.service("default").create_bucket()  # type: ignore[attr-defined]
    elif kind == "memory":
        sync = Database("memory:", artifacts=settings)
    else:
        sync = Database(f"embedded:{directory}/app.db", durability="normal", artifacts=settings)
    with sync, asyncio.Runner() as runner:
        db: Database | AsyncDatabase = sync.aio if colour == "awaiting" else sync
        yield Place(db, sync, runner)
        if kind == "wire":
            sync.table.delete()
