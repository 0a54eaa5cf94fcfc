"""Many threads and processes publish one artifact: each gets its own number, and no number is skipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from artifact_audit import audit, digest
from artifact_crowd import NAME, crowd, publish
from artifact_rig import Kind, Rig, Store, open_store
from rig.torture import ROUNDS, TORTURE, Child

from holdall import Database

pytestmark = pytest.mark.torture

THREADS = 50
EACH = max(1, ROUNDS // 4)
EACH_CONTENT = 25 if TORTURE else 10


def open_database(store: Store) -> Database:
    """A database on the store, with the real clock; it leaves the store open."""
    return Database(store.url, backend=store.table, files={"main": store.service}, **store.settings)


def audit_versions(store: Store, numbers: list[int], count: int | None = None) -> None:
    """Check that exactly these versions exist with their bytes, numbered from 1 to ``count`` if that is given."""
    rig = Rig("blocking", store)
    rig.db.artifacts.get(NAME)
    audit(store, rig.home, settled=True)
    assert sorted(each.number for each in rig.db.artifacts.versions(NAME) if each.number) == sorted(numbers)
    assert len(set(numbers)) == len(numbers)
    if count is not None:
        assert sorted(numbers) == list(range(1, count + 1))


@pytest.mark.parametrize("kind", ["disk", "wire"])
def test_fifty_threads_publish_consecutive_numbers(kind: Kind) -> None:
    with open_store(kind) as store:
        db = open_database(store)
        db.artifacts.put(NAME, b"content")
        audit_versions(store, crowd(THREADS, publish(db, EACH)), THREADS * EACH)


def test_processes_with_threads_publish_consecutive_numbers() -> None:
    processes, threads = 4, 6
    with open_store("disk") as store:
        db = open_database(store)
        db.artifacts.put(NAME, b"content")
        place = store.directory
        arguments = (place / "store.db", place / "files", threads, EACH)
        children = [Child("artifact_crowd.py", *arguments) for _ in range(processes)]
        try:
            numbers = [int(each) for child in children for each in " ".join(child.finish()).split()]
        finally:
            for child in children:
                child.__exit__(None, None, None)
        audit_versions(store, numbers, processes * threads * EACH)


@pytest.mark.parametrize("kind", ["memory", "disk", "wire"])
def test_versions_match_their_rows_after_threads_put_and_publish(kind: Kind) -> None:
    with open_store(kind) as store:
        db = open_database(store)
        db.artifacts.put(NAME, b"content")

        def put(number: int) -> list[Any]:
            for turn in range(EACH):
                body = b"content %d of %d" % (turn, number)
                found = db.artifacts.put(NAME, body, metadata={"by": str(number)})
                assert found.sha256 == digest(body)
            return []

        def read(number: int) -> list[Any]:
            for _ in range(EACH):
                found = db.artifacts.get(NAME)
                assert found.sha256 is not None
            return []

        works: list[Callable[[int], list[Any]]] = [put, publish(db, EACH), read]
        audit_versions(store, crowd(24, *works))


@pytest.mark.parametrize("kind", ["memory", "disk", "wire"])
def test_each_content_published_by_threads_becomes_its_own_version(kind: Kind) -> None:
    with open_store(kind) as store:
        db = open_database(store)

        def publish_each(number: int) -> list[tuple[int | None, bytes]]:
            contents = [b"content %d of %d" % (turn, number) for turn in range(EACH_CONTENT)]
            return [(db.artifacts.publish(NAME, each).number, each) for each in contents]

        published = crowd(4, publish_each)
        audit_versions(store, [number for number, _ in published], 4 * EACH_CONTENT)
        assert all(db.artifacts.download(NAME, number) == content for number, content in published)
        assert db.artifacts.download(NAME) in {content for _, content in published}
