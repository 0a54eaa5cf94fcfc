"""Holdall and the package versioned, 1.0.1, taking turns on the same table and bucket."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from interop_versioned import VersionedError
from interop_world import (
    PREFIX,
    SUFFIX,
    World,
    alias_rows,
    digest,
    iso,
    list_versions,
    open_world,
    our_history,
    rows,
    their_history,
)

from holdall.errors import ArtifactNotFoundError


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with open_world() as opened:
        yield opened


@pytest.fixture
def turns(world: World) -> World:
    """A new artifact in the module's world: the package takes a while to set up a new table."""
    return world.rename()


def test_holdall_reads_what_the_package_wrote(turns: World) -> None:
    their_history(turns)
    ours = turns.ours
    assert list_versions(ours.versions(turns.name)) == [
        ("LATEST", digest(b"their latest")),
        ("3", digest(b"their latest")),
        ("2", digest(b"their 2")),
    ]
    second = ours.get(turns.name, 2)
    assert (second.content_type, second.metadata, second.tags, second.aliases) == (
        "application/zip",
        {"build": "2"},
        {"team": "theirs"},
        ("canary", "prod"),
    )
    assert [ours.download(turns.name, each) for each in (None, 2, "prod")] == [
        b"their latest",
        b"their 2",
        b"their 2",
    ]
    assert ours.alias(turns.name, "canary").shares == {"2": 0.7, "3": 0.3}
    with pytest.raises(ArtifactNotFoundError):
        ours.get(turns.name, 1)


def test_times_are_the_same_on_both_sides(turns: World) -> None:
    their_history(turns)
    turns.ours.put_alias(turns.name, "ours", 3)
    theirs = {
        each["version"]: each["update_at"] for each in turns.theirs("list_artifact_versions", name=turns.name)
    }
    assert {each.version: iso(each.update_at) for each in turns.ours.versions(turns.name)} == theirs
    aliases = {each["alias"]: each["update_at"] for each in turns.theirs("list_aliases", name=turns.name)}
    assert {each.alias: iso(each.update_at) for each in turns.ours.aliases(turns.name)} == aliases


def test_a_reindex_adds_the_package_s_artifacts_to_the_catalogue(turns: World) -> None:
    their_history(turns)
    assert turns.name not in turns.ours.names()
    turns.ours.reindex()
    assert turns.name in turns.ours.names()


def test_holdall_continues_where_the_package_stopped(turns: World) -> None:
    theirs, ours = turns.theirs, turns.ours
    their_history(turns)
    same = ours.publish(turns.name)  # nothing has changed since the package's third version
    assert same.number == 3
    ours.put(
        turns.name, b"our fourth", content_type="text/plain", metadata={"build": "4"}, tags={"team": "ours"}
    )
    assert ours.publish(turns.name).number == 4
    ours.restore(turns.name, 1)
    ours.put_alias(turns.name, "prod", 4, 1, 25, by="mia")
    ours.delete_alias(turns.name, "canary")
    ours.delete(turns.name, 3)

    assert [each["version"] for each in theirs("list_artifact_versions", name=turns.name)] == [
        "LATEST",
        "4",
        "2",
        "1",
    ]
    fourth = theirs("get_artifact_version", name=turns.name, version=4)
    assert fourth["sha256"] == digest(b"our fourth")
    assert fourth["s3uri"] == f"s3://{turns.bucket.name}/{PREFIX}/{turns.name}/000004{SUFFIX}"
    assert [theirs("content", name=turns.name, version=each) for each in (None, 4, 2, 1)] == [
        "our fourth",
        "our fourth",
        "their 2",
        "their 1",
    ]
    assert theirs("contents", name=turns.name, alias="prod") == ["our fourth", "their 1"]
    with pytest.raises(VersionedError) as caught:
        theirs("get_artifact_version", name=turns.name, version=3)
    assert caught.value.name == "ArtifactNotFoundError"
    assert [each["alias"] for each in theirs("list_aliases", name=turns.name)] == ["prod"]
    assert [each.action for each in ours.alias_history(turns.name, "prod")] == ["set", "found"]
    assert [each.action for each in ours.alias_history(turns.name, "canary")] == ["deleted", "found"]


def test_the_package_reads_what_holdall_wrote(turns: World) -> None:
    our_history(turns)
    theirs = turns.theirs
    assert turns.name in theirs("list_artifact_names")
    found = theirs("list_artifact_versions", name=turns.name)
    assert [(each["version"], each["sha256"]) for each in found] == list_versions(
        turns.ours.versions(turns.name)
    )
    assert [each["version"] for each in found] == ["LATEST", "3", "2"]
    assert [theirs("content", name=turns.name, version=each) for each in (None, 2, "000003")] == [
        "our latest",
        "our 2",
        "our latest",
    ]
    canary = theirs("get_alias", name=turns.name, alias="canary")
    assert (canary["version"], canary["secondary_version"], canary["secondary_version_weight"]) == (
        "2",
        "3",
        30,
    )
    assert theirs("contents", name=turns.name, alias="canary") == ["our 2", "our latest"]
    with pytest.raises(VersionedError) as caught:
        theirs("get_artifact_version", name=turns.name, version=1)
    assert caught.value.name == "ArtifactNotFoundError"


def test_both_write_the_same_rows_and_objects(turns: World) -> None:
    other = turns.rename()
    our_history(turns)
    their_history(other)
    ours, theirs = ([_nameless(row) for row in rows(each)] for each in (turns, other))
    assert ours == theirs
    ours, theirs = ([_nameless(row) for row in alias_rows(each)] for each in (turns, other))
    assert ours == theirs
    for version in ("000001", "000002", "000003", "LATEST"):
        mine, same = turns.object(version), other.object(version)
        assert mine.metadata.keys() == same.metadata.keys()
        assert mine.tags.keys() == same.tags.keys()
        if same.tags:  # ministack's default type is not S3's
            assert mine.content_type == same.content_type == "application/zip"


def _nameless(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the attributes that must differ."""
    return {name: value for name, value in row.items() if name not in ("pk", "sha256")}


def test_the_package_continues_where_holdall_stopped(turns: World) -> None:
    theirs, ours = turns.theirs, turns.ours
    our_history(turns)
    theirs(
        "put_artifact",
        name=turns.name,
        content="their fourth",
        content_type="text/plain",
        tags={"team": "theirs"},
    )
    latest = ours.get(turns.name)  # Holdall's note of LATEST is out of date
    assert (latest.sha256, latest.content_type, latest.tags) == (
        digest(b"their fourth"),
        "text/plain",
        {"team": "theirs"},
    )
    assert theirs("publish_artifact_version", name=turns.name)["version"] == "4"
    assert ours.download(turns.name, 4) == b"their fourth"
    ours.put(turns.name, b"our fifth")
    assert ours.publish(turns.name).number == 5  # although Holdall had counted to 3
    assert theirs("publish_artifact_version", name=turns.name)["version"] == "6"
    assert ours.publish(turns.name, force=True).number == 7
    assert [theirs("content", name=turns.name, version=each) for each in (4, 5, 6, 7)] == [
        "their fourth",
        *["our fifth"] * 3,
    ]


def test_a_version_that_the_package_publishes_keeps_holdall_s_metadata_and_tags(turns: World) -> None:
    ours = turns.ours
    ours.create_table()
    ours.put(turns.name, b"one", content_type="text/plain", metadata={"build": "1"}, tags={"team": "ours"})
    turns.theirs("publish_artifact_version", name=turns.name)
    first = ours.get(turns.name, 1)
    assert (first.content_type, first.metadata, first.tags) == (
        "text/plain",
        {"build": "1"},
        {"team": "ours"},
    )
    assert ours.publish(turns.name).number == 1  # for Holdall that is the same content


def test_each_side_respects_the_deletions_of_the_other(turns: World) -> None:
    theirs, ours = turns.theirs, turns.ours
    our_history(turns)
    ours.delete_alias(turns.name, "canary")
    theirs("delete_artifact_version", name=turns.name, version=3)
    theirs("delete_artifact_version", name=turns.name)
    with pytest.raises(ArtifactNotFoundError):
        ours.get(turns.name)
    with pytest.raises(ArtifactNotFoundError):
        ours.publish(turns.name)
    assert ours.restore(turns.name, 3).metadata == {}
    ours.put(turns.name, b"our latest")  # the package would leave LATEST deleted, as the bytes are the same
    assert [each["version"] for each in theirs("list_artifact_versions", name=turns.name)] == [
        "LATEST",
        "3",
        "2",
    ]
    ours.delete(turns.name)
    assert [each["version"] for each in theirs("list_artifact_versions", name=turns.name)] == ["3", "2"]


def test_the_package_s_deletion_of_a_missing_version_does_not_create_one(turns: World) -> None:
    theirs, ours = turns.theirs, turns.ours
    our_history(turns)
    theirs("delete_artifact_version", name=turns.name, version=9)
    assert [each.version for each in ours.versions(turns.name, where={"deleted": None})] == [
        "LATEST",
        "3",
        "2",
        "1",
    ]
    with pytest.raises(ArtifactNotFoundError):
        ours.get(turns.name, 9, deleted=True)
    ours.put(turns.name, b"ten")
    assert ours.publish(turns.name).number == 4
    assert theirs("publish_artifact_version", name=turns.name)["version"] == "10"  # its deletion counts as 9
    ours.put(turns.name, b"eleven")
    assert ours.publish(turns.name).number == 11


def test_numbers_continue_after_the_package_purged_everything(turns: World) -> None:
    theirs, ours = turns.theirs, turns.ours
    our_history(turns)
    theirs("purge_artifact", name=turns.name)
    with pytest.raises(ArtifactNotFoundError):
        ours.get(turns.name)
    assert ours.aliases(turns.name) == []
    ours.put(turns.name, b"our latest")
    fourth = ours.publish(turns.name)
    assert (fourth.number, ours.download(turns.name, 4)) == (4, b"our latest")
    assert theirs("content", name=turns.name, version=4) == "our latest"


def test_the_package_publishes_after_holdall_purged_a_version(turns: World) -> None:
    theirs, ours = turns.theirs, turns.ours
    our_history(turns)
    ours.purge(turns.name, 3, drop_aliases=True)
    assert (
        theirs("publish_artifact_version", name=turns.name)["version"] == "3"
    )  # the package keeps no counter
    assert ours.download(turns.name, 3) == b"our latest"
    ours.put(turns.name, b"our fourth")
    assert ours.publish(turns.name).number == 4
    assert theirs("content", name=turns.name, version=4) == "our fourth"


def test_each_side_sees_versions_that_the_other_pruned_as_deleted(turns: World) -> None:
    theirs, ours = turns.theirs, turns.ours
    our_history(turns)
    ours.restore(turns.name, 1)
    ours.delete_alias(turns.name, "canary")
    assert ours.prune(turns.name, keep_last=1, older_than=timedelta()).versions == ("1",)
    assert [each["version"] for each in theirs("list_artifact_versions", name=turns.name)] == [
        "LATEST",
        "3",
        "2",
    ]
    theirs("purge_artifact_versions", name=turns.name, keep_last_n=0, purge_older_than_secs=-5)
    assert [each.version for each in ours.versions(turns.name)] == ["LATEST"]
    assert ours.restore(turns.name, 3).version == "3"


def test_the_metadata_is_new_after_the_package_put_the_same_bytes_again(turns: World) -> None:
    turns.ours.create_table()
    for _ in range(20):  # until all writes fall into one second, so that the row is equal to the old one
        again = turns.rename()
        put = again.ours.put(again.name, b"one", metadata={"build": "1"}, tags={"team": "ours"})
        again.theirs("put_artifact", name=again.name, content="two")
        given = {"metadata": {"build": "2"}, "tags": {"team": "theirs"}}
        last = again.theirs("put_artifact", name=again.name, content="one", **given)
        latest = again.ours.get(again.name)
        assert (latest.metadata, latest.tags) == ({"build": "2"}, {"team": "theirs"})
        if last["update_at"] == iso(put.update_at):
            return
    raise AssertionError("in each of 20 rounds, the writes took more than a second")
