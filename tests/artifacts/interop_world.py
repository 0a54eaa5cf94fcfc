"""A table and a bucket for artifacts on a real server, used by Holdall and by the package versioned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import uuid4

import pytest
from interop_s3 import Bucket, StoredObject
from interop_versioned import REGION, Repository, start_versioned
from rig.servers import ENVIRONMENT, start_server

from holdall import Database
from holdall.artifacts import Artifact, Artifacts, ArtifactSettings
from holdall.core import Query
from holdall.core.expressions import KeyCondition

__all__ = [
    "NAME",
    "PREFIX",
    "SUFFIX",
    "World",
    "alias_rows",
    "digest",
    "iso",
    "list_versions",
    "open_world",
    "our_history",
    "rows",
    "their_history",
    "without_times",
]

SUFFIX = ".zip"
PREFIX = "versioned-artifacts"
NAME = "my-app"


class World:
    """A new table and a new bucket, with a database on both."""

    def __init__(self) -> None:
        url = start_server("ministack")
        unique = uuid4().hex
        self.name = NAME
        self.table = f"versioned-artifacts-{unique}"
        self.bucket = Bucket(url, f"interop-{unique}")
        self.db = Database(
            f"dynamodb://unused?endpoint={url}&region={REGION}",
            files=f"s3://{self.bucket.name}?endpoint={url}&region={REGION}&style=path",
            artifacts=ArtifactSettings(table=self.table, suffix=SUFFIX),
        )

    def rename(self) -> World:
        """The same world, with another artifact name."""
        other = copy(self)
        other.name = f"app-{uuid4().hex}"
        return other

    @property
    def ours(self) -> Artifacts:
        """Holdall's artifacts."""
        return self.db.artifacts

    @property
    def theirs(self) -> Repository:
        """The package's repository."""
        return Repository(start_versioned(), self.bucket.name, self.table, SUFFIX)

    def items(self, partition: str) -> list[dict[str, Any]]:
        """The items of a partition, exactly as stored."""
        key = KeyCondition("pk", {"S": partition})
        page = self.db.send(Query(self.table, key, consistent=True))
        assert page.last_key is None
        return [dict(item) for item in page.items]

    def object(self, version: str) -> StoredObject:
        """The object of a version."""
        return self.bucket.get(f"{PREFIX}/{self.name}/{version}{SUFFIX}")


@contextmanager
def open_world() -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        world = World()
        yield world
        world.db.close()
        world.bucket.close()


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def without_times(items: list[dict[str, Any]], fraction: str) -> list[dict[str, Any]]:
    """Check that the times of rows have versioned's form, and remove them; ``fraction`` matches the microseconds."""
    for item in items:
        text = item["update_at"]["S"]
        assert len(text) == 31
        assert re.fullmatch(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.{fraction}\+0000", text), text
    return [{name: value for name, value in item.items() if name != "update_at"} for item in items]


def rows(world: World) -> list[dict[str, Any]]:
    """The rows of the artifact, without times, which come from S3 in whole seconds."""
    return without_times(world.items(world.name), "000000")


def alias_rows(world: World) -> list[dict[str, Any]]:
    """The rows of its aliases, without times, which come from a clock."""
    return without_times(world.items(f"__{world.name}-alias"), r"\d{6}")


def list_versions(found: Iterator[Artifact]) -> list[tuple[str, str | None]]:
    return [(each.version, each.sha256) for each in found]


def iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def their_history(world: World) -> None:
    """Let the package write a history: three versions, two aliases, the first version deleted."""
    theirs = world.theirs
    for number in (1, 2):
        theirs(
            "put_artifact",
            name=world.name,
            content=f"their {number}",
            content_type="application/zip",
            metadata={"build": str(number)},
            tags={"team": "theirs"},
        )
        assert theirs("publish_artifact_version", name=world.name)["version"] == str(number)
    theirs("put_artifact", name=world.name, content="their latest")
    assert theirs("publish_artifact_version", name=world.name)["version"] == "3"
    theirs("put_alias", name=world.name, alias="prod", version=2)
    theirs(
        "put_alias",
        name=world.name,
        alias="canary",
        version="2",
        secondary_version=3,
        secondary_version_weight=30,
    )
    theirs("delete_artifact_version", name=world.name, version=1)


def our_history(world: World) -> None:
    """Write the same history with Holdall."""
    ours = world.ours
    ours.create_table()
    for number in (1, 2):
        ours.put(
            world.name,
            f"our {number}".encode(),
            content_type="application/zip",
            metadata={"build": str(number)},
            tags={"team": "ours"},
        )
        assert ours.publish(world.name).number == number
    ours.put(world.name, b"our latest")
    assert ours.publish(world.name).number == 3
    ours.put_alias(world.name, "prod", 2)
    ours.put_alias(world.name, "canary", 2, 3, 30)
    ours.delete(world.name, 1)
