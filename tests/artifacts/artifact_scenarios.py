"""Every change of an artifact, with the state it starts from. Tests interrupt them at any step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from holdall.artifacts import AsyncArtifacts

__all__ = ["NAME", "OTHER", "SCENARIOS", "Scenario", "trees"]

NAME, OTHER = "model", "other"
ONE, TWO, THREE, FOUR = b"one", b"two, which is longer", b"three", b"the fourth"

Step = Callable[[AsyncArtifacts, Path], Awaitable[Any]]


class Scenario(NamedTuple):
    """How to create the initial state, and the change; repeating the change must lead to the same state."""

    name: str
    before: Step
    change: Step

    def __str__(self) -> str:
        return self.name


def trees(directory: Path) -> None:
    """Write two directories that have a file in common."""
    for name, files in {"first": {"a": ONE, "b/c": TWO}, "second": {"a": ONE, "d": THREE}}.items():
        for path, body in files.items():
            place = directory / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(body)


async def _do_nothing(artifacts: AsyncArtifacts, place: Path) -> None:
    pass


async def _put(artifacts: AsyncArtifacts, place: Path) -> None:
    await artifacts.put(NAME, ONE)


async def _publish_three(artifacts: AsyncArtifacts, place: Path) -> None:
    """Publish three versions, and put a LATEST that differs from all of them."""
    for body in (ONE, TWO, THREE):
        await artifacts.put(NAME, body, metadata={"size": str(len(body))})
        await artifacts.publish(NAME)
    await artifacts.put(NAME, FOUR)


async def _put_aliases(artifacts: AsyncArtifacts, place: Path) -> None:
    await _publish_three(artifacts, place)
    await artifacts.put_alias(NAME, "prod", 1, 2, 20)
    await artifacts.put_alias(NAME, "next", weights={1: 1, 2: 1, 3: 2})
    await artifacts.put_alias(NAME, "newest")


async def _directory(artifacts: AsyncArtifacts, place: Path) -> None:
    await artifacts.put(NAME, place / "first")


async def _directories(artifacts: AsyncArtifacts, place: Path) -> None:
    await artifacts.put(NAME, place / "first")
    await artifacts.publish(NAME)
    await artifacts.put(NAME, place / "second")
    await artifacts.publish(NAME)


async def _delete_two(artifacts: AsyncArtifacts, place: Path) -> None:
    await _publish_three(artifacts, place)
    await artifacts.delete(NAME, 2)
    await artifacts.delete(NAME)


SCENARIOS = [
    Scenario("put the first", _do_nothing, lambda a, _: a.put(NAME, ONE)),
    Scenario("put another", _put, lambda a, _: a.put(NAME, TWO, tags={"by": "me"})),
    Scenario("put other metadata", _put, lambda a, _: a.put(NAME, ONE, metadata={"by": "me"})),
    Scenario("put over a deleted one", _delete_two, lambda a, _: a.put(NAME, FOUR)),
    Scenario("put a directory", _do_nothing, lambda a, p: a.put(NAME, p / "first")),
    Scenario("put a directory over another", _directories, lambda a, p: a.put(NAME, p / "first")),
    Scenario("put bytes over a directory", _directory, lambda a, _: a.put(NAME, ONE)),
    Scenario("publish the first", _put, lambda a, _: a.publish(NAME)),
    Scenario("publish", _publish_three, lambda a, _: a.publish(NAME)),
    Scenario("publish a directory", _directory, lambda a, _: a.publish(NAME)),
    Scenario("publish a content", _publish_three, lambda a, _: a.publish(NAME, TWO, tags={"by": "me"})),
    Scenario("publish a content of files", _directories, lambda a, p: a.publish(NAME, p / "first")),
    Scenario("set an alias", _publish_three, lambda a, _: a.put_alias(NAME, "prod", 2)),
    Scenario("split an alias", _put_aliases, lambda a, _: a.put_alias(NAME, "prod", 3, 2, 50)),
    Scenario(
        "split many ways", _put_aliases, lambda a, _: a.put_alias(NAME, "prod", weights={1: 5, 2: 4, 3: 3})
    ),
    Scenario("alias LATEST", _put_aliases, lambda a, _: a.put_alias(NAME, "prod")),
    Scenario("delete an alias", _put_aliases, lambda a, _: a.delete_alias(NAME, "prod")),
    Scenario("delete", _publish_three, lambda a, _: a.delete(NAME, 2)),
    Scenario("delete LATEST", _publish_three, lambda a, _: a.delete(NAME)),
    Scenario("delete with aliases", _put_aliases, lambda a, _: a.delete(NAME, 2, drop_aliases=True)),
    Scenario("delete LATEST with aliases", _put_aliases, lambda a, _: a.delete(NAME, drop_aliases=True)),
    Scenario("restore", _delete_two, lambda a, _: a.restore(NAME, 2)),
    Scenario("restore LATEST", _delete_two, lambda a, _: a.restore(NAME)),
    Scenario("prune", _put_aliases, lambda a, _: a.prune(NAME, keep_last=0, older_than=0)),
    Scenario(
        "prune unserved versions", _publish_three, lambda a, _: a.prune(NAME, keep_last=1, older_than=0)
    ),
    Scenario("purge a version", _put_aliases, lambda a, _: a.purge(NAME, 2, drop_aliases=True)),
    Scenario("purge LATEST", _put_aliases, lambda a, _: a.purge(NAME, "LATEST", drop_aliases=True)),
    Scenario("purge all", _put_aliases, lambda a, _: a.purge(NAME, drop_aliases=True)),
    Scenario("purge directories", _directories, lambda a, _: a.purge(NAME)),
]
