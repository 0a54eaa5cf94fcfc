"""Holdall's artifacts against a dump of what the package versioned wrote for a fixed history, both ways.

Holdall's rows and objects for the same history are compared with the dump. And the dump is loaded into a table and a
bucket, for Holdall to read and continue.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from interop_s3 import StoredObject
from interop_world import (
    NAME,
    PREFIX,
    SUFFIX,
    World,
    alias_rows,
    digest,
    iso,
    list_versions,
    open_world,
    rows,
    without_times,
)

from holdall.artifacts import Artifacts
from holdall.core import CreateTable, DescribeTable, KeyAttribute, PutItem, TableSchema
from holdall.errors import ArtifactInUseError, ArtifactNotFoundError

DUMP = json.loads(
    Path(__file__).parents[1].joinpath("fixtures", "artifacts", "versioned_dump.json").read_text("utf-8")
)
assert (DUMP["config"]["suffix"], DUMP["config"]["hybrid_prefix"]) == (SUFFIX, PREFIX)


@pytest.fixture
def world() -> Iterator[World]:
    with open_world() as opened:
        yield opened


def list_dumped_items(partition: str) -> list[dict[str, Any]]:
    return [item for item in DUMP["dynamodb"]["items"] if item["pk"]["S"] == partition]


def read_dumped_objects() -> dict[str, StoredObject]:
    return {
        each["Key"]: StoredObject(
            each["Body"]["utf8"].encode(), each["ContentType"], each["Metadata"], each["Tags"]
        )
        for each in DUMP["s3_hybrid"]
    }


def replay(ours: Artifacts) -> None:
    """Repeat the history of the dump with Holdall."""
    for number in (1, 2, 3):
        ours.put(
            NAME,
            f"content of version {number}".encode(),
            content_type="application/zip",
            metadata={"build": f"10{number}"},
            tags={"team": "interop"},
        )
        assert ours.publish(NAME).number == number
    ours.put(NAME, b"work in progress, not published")
    ours.put_alias(NAME, "prod", 2)
    ours.put_alias(NAME, "canary", 2, 3, 20)
    assert ours.delete(NAME, 1)


def load(world: World) -> None:
    """Write the dump, item for item and object for object, into a table created for it."""
    world.db.send(CreateTable(TableSchema(world.table, KeyAttribute("pk"), KeyAttribute("sk"))))
    for item in DUMP["dynamodb"]["items"]:
        world.db.send(PutItem(world.table, item))
    for key, each in read_dumped_objects().items():
        world.bucket.put(key, each)


def test_the_table_that_holdall_creates_has_the_schema_of_the_dump(world: World) -> None:
    world.ours.create_table()
    schema = world.db.send(DescribeTable(world.table)).schema
    wanted = DUMP["dynamodb"]["table"]
    types = {each["AttributeName"]: each["AttributeType"] for each in wanted["AttributeDefinitions"]}
    keys = [KeyAttribute(each["AttributeName"], types[each["AttributeName"]]) for each in wanted["KeySchema"]]
    assert [schema.partition, schema.sort] == keys
    assert list(schema.indexes) == wanted["GlobalSecondaryIndexes"] == []


def test_replaying_the_history_writes_the_rows_of_the_dump(world: World) -> None:
    world.ours.create_table()
    replay(world.ours)
    assert rows(world) == without_times(list_dumped_items(NAME), "000000")
    assert alias_rows(world) == without_times(list_dumped_items(f"__{NAME}-alias"), r"\d{6}")


def test_replaying_the_history_writes_the_objects_of_the_dump(world: World) -> None:
    world.ours.create_table()
    replay(world.ours)
    assert world.bucket.objects() == read_dumped_objects()


def test_the_time_of_a_row_is_that_of_its_object(world: World) -> None:
    world.ours.create_table()
    found = [world.ours.put(NAME, b"one"), world.ours.publish(NAME)]
    texts = {item["sk"]["S"]: item["update_at"]["S"] for item in world.items(NAME)}
    for artifact in found:
        modified = world.bucket.find_modified(f"{PREFIX}/{NAME}/{artifact.sk}{SUFFIX}")
        assert artifact.update_at == modified
        assert texts[artifact.sk] == modified.strftime("%Y-%m-%dT%H:%M:%S.%f+0000")


def test_the_dump_is_read(world: World) -> None:
    load(world)
    ours = world.ours
    view = DUMP["api_view"]["hybrid"]
    found = list(ours.versions(NAME))
    assert [{**each.to_dict(), "update_at": iso(each.update_at)} for each in found] == [
        {name: value for name, value in each.items() if name != "s3uri"}
        for each in view["list_artifact_versions"]
    ]
    aliases = [{**each.to_dict(), "update_at": iso(each.update_at)} for each in ours.aliases(NAME)]
    assert aliases == [
        {name: value for name, value in each.items() if not name.endswith("s3uri")}
        for each in view["list_aliases"]
    ]
    assert ours.alias(NAME, "canary").shares == {"2": 0.8, "3": 0.2}
    assert [each.aliases for each in found] == [(), ("canary",), ("canary", "prod")]


def test_a_version_of_the_dump_has_the_attributes_of_its_object(world: World) -> None:
    load(world)
    second = world.ours.get(NAME, 2)
    assert (second.size, second.content_type) == (20, "application/zip")
    assert (second.metadata, second.tags) == ({"build": "102"}, {"team": "interop"})
    assert second.update_at == datetime(2026, 11, 15, 2, 33, 10, tzinfo=UTC)
    latest = world.ours.get(NAME)
    assert (latest.size, latest.metadata, latest.tags) == (31, {}, {})
    assert latest.content_type is None  # the object was put without a type, so it has S3's default


def test_the_contents_of_the_dump_are_downloaded_and_checked(world: World, tmp_path: Path) -> None:
    load(world)
    ours = world.ours
    assert ours.download(NAME) == b"work in progress, not published"
    assert ours.download(NAME, 3, tmp_path / "three") == tmp_path / "three"
    assert tmp_path.joinpath("three").read_bytes() == b"content of version 3"
    assert ours.download(NAME, "prod") == b"content of version 2"
    assert {ours.download(NAME, "canary", key=key) for key in range(40)} == {
        b"content of version 2",
        b"content of version 3",
    }


def test_a_deleted_version_of_the_dump_is_found_only_on_request(world: World) -> None:
    load(world)
    with pytest.raises(ArtifactNotFoundError):
        world.ours.get(NAME, 1)
    found = world.ours.get(NAME, 1, deleted=True)
    assert (found.is_deleted, found.deleted_at) == (True, None)  # versioned stores no time of deletion
    assert list_versions(world.ours.versions(NAME, where={"deleted": True})) == [
        ("1", digest(b"content of version 1"))
    ]


def test_reading_the_dump_changes_nothing(world: World) -> None:
    load(world)
    list(world.ours.versions(NAME))
    world.ours.get(NAME)
    world.ours.download(NAME, "canary")
    assert world.items(NAME) == list_dumped_items(NAME)
    assert world.items(f"__{NAME}-alias") == list_dumped_items(f"__{NAME}-alias")
    assert world.items(f"__{NAME}-meta") == []
    assert world.bucket.objects() == read_dumped_objects()


def test_the_dump_can_be_continued(world: World) -> None:
    load(world)
    ours = world.ours
    assert ours.publish(NAME).number == 4
    assert world.object("000004").body == b"work in progress, not published"
    ours.put(NAME, b"five", content_type="text/plain", tags={"team": "others"})
    fifth = ours.publish(NAME)
    assert (fifth.number, fifth.content_type, fifth.tags) == (5, "text/plain", {"team": "others"})
    assert [item["sk"]["S"] for item in world.items(NAME)] == [f"00000{n}" for n in range(1, 6)] + ["LATEST"]
    assert {frozenset(item) for item in world.items(NAME)} == {
        frozenset(("pk", "sk", "update_at", "is_deleted", "sha256"))
    }


def test_the_history_of_an_alias_of_the_dump_begins_with_the_state_found(world: World) -> None:
    load(world)
    world.ours.put_alias(NAME, "canary", 3, by="mia", reason="it went well")
    moved, found = world.ours.alias_history(NAME, "canary")
    assert (found.number, found.action, found.weights) == (1, "found", {"2": 80, "3": 20})
    assert found.at == datetime(2026, 11, 15, 2, 33, 11, 821272, tzinfo=UTC)
    assert (moved.number, moved.action, moved.weights, moved.by) == (2, "set", {"3": 100}, "mia")
    row = {item["sk"]["S"]: item for item in world.items(f"__{NAME}-alias")}["canary"]
    assert row.keys() == {"pk", "sk", "update_at", "version"}
    back = world.ours.rollback_alias(NAME, "canary")
    assert (back.version, back.secondary_version, back.secondary_version_weight) == ("000002", "000003", 20)


def test_versions_of_the_dump_are_deleted_and_restored(world: World) -> None:
    load(world)
    ours = world.ours
    with pytest.raises(ArtifactInUseError) as caught:
        ours.delete(NAME, 3)
    assert caught.value.aliases == ("canary",)
    assert ours.restore(NAME, 1).version == "1"
    assert rows(world)[0]["is_deleted"] == {"BOOL": False}
    assert ours.download(NAME, 1) == b"content of version 1"
    assert ours.delete(NAME, 1)
    assert not ours.delete(NAME, 1)
    assert rows(world) == without_times(list_dumped_items(NAME), "000000")
    assert ours.get(NAME, 1, deleted=True).deleted_at is not None


def test_the_dump_is_pruned_except_for_what_aliases_serve(world: World) -> None:
    load(world)
    ours = world.ours
    ours.restore(NAME, 1)
    planned = ours.prune(NAME, keep_last=0, older_than=timedelta(), dry_run=True)
    assert planned.versions == ("1",)
    assert [each.version for each in planned.in_use] == ["3", "2"]
    assert ours.prune(NAME, keep_last=0, older_than=timedelta()).versions == ("1",)
    assert rows(world) == without_times(list_dumped_items(NAME), "000000")


def test_after_a_purge_of_the_dump_its_numbers_stay_used(world: World) -> None:
    load(world)
    ours = world.ours
    report = ours.purge(NAME, drop_aliases=True)
    assert (report.versions, report.objects) == (("LATEST", "3", "2", "1"), 4)
    assert world.bucket.objects() == {}
    assert world.items(NAME) == world.items(f"__{NAME}-alias") == []
    ours.put(NAME, b"again")
    assert ours.publish(NAME).number == 4
