"""The behaviour that versioned's own tests require, and that its bugs suggest, on every kind of database."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from artifact_places import NEAR, WAYS, Place, open_place
from rig.colour import take_turns
from rig.torture import TORTURE

from holdall.errors import (
    AliasNotFoundError,
    ArtifactChangedError,
    ArtifactInUseError,
    ArtifactNotFoundError,
    ConfigurationError,
    IntegrityError,
    InvalidAliasError,
    InvalidArtifactError,
    InvalidOptionsError,
    InvalidRequestError,
    ObjectNotFoundError,
    ProtectedAliasError,
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of ``place`` near in one colour and over the wire in the other; under torture, in all ways."""
    if "place" in metafunc.fixturenames:
        turn = take_turns(metafunc.function.__name__)
        ways = WAYS if TORTURE else [NEAR[turn], WAYS[2:][1 - turn]]
        metafunc.parametrize("place", ways, indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A new place."""
    yield from open_place(request.param, tmp_path, monkeypatch)


@pytest.fixture(params=NEAR)
def near(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A new place on this machine."""
    yield from open_place(request.param, tmp_path, monkeypatch)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def versions(place: Place, **options: Any) -> list[str]:
    return [each.version for each in place.artifacts.versions("my-app", **options)]


def publish_all(place: Place, *contents: bytes) -> None:
    for content in contents:
        place.artifacts.put("my-app", content)
        place.artifacts.publish("my-app")


# --- the behaviour of versioned ---------------------------------------------------------------------------


def test_an_unknown_artifact_has_no_versions_and_cannot_be_published(place: Place) -> None:
    artifacts = place.artifacts
    with pytest.raises(ArtifactNotFoundError):
        artifacts.publish("my-app")
    with pytest.raises(ArtifactNotFoundError):
        artifacts.get("my-app")
    with pytest.raises(ArtifactNotFoundError):
        artifacts.get("my-app", 1)
    with pytest.raises(AliasNotFoundError):
        artifacts.alias("my-app", "prod")
    assert versions(place) == []
    assert artifacts.aliases("my-app") == []
    assert artifacts.names() == []
    assert artifacts.delete("my-app") is False
    assert artifacts.delete("my-app", 1) is False
    assert artifacts.delete_alias("my-app", "prod") is False
    assert place.rows("my-app") == []


def test_the_life_of_an_artifact(place: Place) -> None:
    artifacts = place.artifacts
    first = artifacts.put(
        "my-app", b"one", metadata={"foo": "bar"}, content_type="text/plain", tags={"team": "a"}
    )
    assert first.version == "LATEST"
    assert first.key.endswith("LATEST.txt")
    again = artifacts.put(
        "my-app", b"one", metadata={"foo": "bar"}, content_type="text/plain", tags={"team": "a"}
    )
    assert again.update_at == first.update_at
    assert artifacts.download("my-app") == b"one"
    one = artifacts.publish("my-app")
    assert one.version == "1"
    assert one.key == "versioned-artifacts/my-app/000001.txt"
    assert (one.sha256, one.size, one.content_type) == (sha(b"one"), 3, "text/plain")
    head = place.files.head(one.key)
    assert head.headers.metadata == {"foo": "bar", "artifact_name": "my-app", "artifact_sha256": sha(b"one")}
    artifacts.put("my-app", b"two")
    assert artifacts.publish("my-app").version == "2"
    assert versions(place) == ["LATEST", "2", "1"]
    assert artifacts.names() == ["my-app"]

    alias = artifacts.put_alias("my-app", "prod")
    assert (alias.to_dict()["version"], alias.secondary_version) == ("LATEST", None)
    assert artifacts.download("my-app", "prod") == b"two"
    split = artifacts.put_alias("my-app", "prod", 1, 2, 20)
    assert split.update_at > alias.update_at
    assert {artifacts.download("my-app", "prod", key=each) for each in range(20)} == {b"one", b"two"}
    assert [each.alias for each in artifacts.aliases("my-app")] == ["prod"]
    assert artifacts.delete_alias("my-app", "prod") is True
    with pytest.raises(AliasNotFoundError):
        artifacts.alias("my-app", "prod")

    assert artifacts.delete("my-app") is True
    assert artifacts.delete("my-app", 1) is True
    assert versions(place) == ["2"]
    assert len(place.objects()) == 3
    with pytest.raises(ArtifactNotFoundError):
        artifacts.get("my-app", 1)
    with pytest.raises(ArtifactNotFoundError):
        artifacts.put_alias("my-app", "prod", 1)
    assert artifacts.put_alias("my-app", "prod", 2).resolve(key="x") == "2"
    report = artifacts.purge("my-app", drop_aliases=True)
    assert (report.objects, report.bytes, report.aliases) == (3, 9, ("prod",))
    assert place.objects() == []
    assert place.rows("my-app") == []
    assert artifacts.aliases("my-app") == []
    assert artifacts.names() == []


def test_rows_have_exactly_the_attributes_that_versioned_writes(place: Place) -> None:
    publish_all(place, b"one", b"two")
    place.artifacts.put_alias("my-app", "prod", 1, 2, 20)
    names = [place.sync.table.layout().partition.name, place.sync.table.layout().sort.name]
    for row in place.rows("my-app"):
        assert sorted(row) == sorted([*names, "update_at", "is_deleted", "sha256"])
        assert len(row["update_at"]["S"]) == 31
    (alias,) = place.rows("__my-app-alias")
    assert {name: alias[name] for name in alias if name not in (*names, "update_at")} == {
        "version": {"S": "000001"},
        "secondary_version": {"S": "000002"},
        "secondary_version_weight": {"N": "20"},
    }


def test_old_versions_are_pruned_by_number_and_age(near: Place) -> None:
    artifacts = near.artifacts
    publish_all(near, *(b"%d" % number for number in range(1, 6)))
    dry = artifacts.prune("my-app", keep_last=3, older_than=0, dry_run=True)
    assert versions(near) == ["LATEST", "5", "4", "3", "2", "1"]
    real = artifacts.prune("my-app", keep_last=3, older_than=timedelta())
    assert dry.versions == real.versions == ("2", "1")
    assert versions(near) == ["LATEST", "5", "4", "3"]
    assert artifacts.prune("my-app", keep_last=0, older_than=timedelta(days=1)).versions == ()
    assert artifacts.restore("my-app", 2).version == "2"
    assert versions(near) == ["LATEST", "5", "4", "3", "2"]


# --- put --------------------------------------------------------------------------------------------------


def test_bytes_files_and_streams_can_be_put(place: Place, tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(b"from a file")
    unseekable = io.BufferedReader(_Raw(b"from a pipe"))
    for content, expected in [
        (bytearray(b"from an array"), b"from an array"),
        (tmp_path / "file.bin", b"from a file"),
        (str(tmp_path / "file.bin"), b"from a file"),
        (io.BytesIO(b"from a stream"), b"from a stream"),
        (unseekable, b"from a pipe"),
        (b"", b""),
    ]:
        put = place.artifacts.put("my-app", content)
        assert (put.sha256, put.size) == (sha(expected), len(expected))
        assert place.artifacts.download("my-app") == expected


class _Raw(io.RawIOBase):
    """A stream that cannot seek."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        return self._inner.readinto(room)


def test_a_large_unseekable_stream_is_put_through_another_key(near: Place) -> None:
    data = bytes(range(256)) * 40_000  # too large for a single put
    put = near.artifacts.put("my-app", io.BufferedReader(_Raw(data)), metadata={"a": "b"}, tags={"t": "u"})
    assert (put.sha256, put.size) == (sha(data), len(data))
    assert near.objects() == ["versioned-artifacts/my-app/LATEST.txt"]
    assert near.artifacts.get("my-app").tags == {"t": "u"}
    assert sha(near.artifacts.download("my-app")) == sha(data)


def test_text_is_refused_before_anything_is_written(near: Place) -> None:
    for wrong in (5, None, io.StringIO("text")):
        with pytest.raises(InvalidOptionsError):
            near.artifacts.put("my-app", wrong)
    assert near.objects() == []


@pytest.mark.parametrize("name", ["artifact_sha256", "artifact_name", "artifact_manifest"])
def test_our_own_metadata_cannot_be_overwritten(near: Place, name: str) -> None:
    with pytest.raises(InvalidOptionsError, match=name):
        near.artifacts.put("my-app", b"x", metadata={name: "lie"})


def test_equal_content_with_other_metadata_is_put_and_published(place: Place) -> None:
    artifacts = place.artifacts
    artifacts.put("my-app", b"same", metadata={"build": "1"})
    assert artifacts.publish("my-app").version == "1"
    artifacts.put("my-app", b"same", metadata={"build": "2"}, tags={"team": "x"}, content_type="text/plain")
    found = artifacts.get("my-app")
    assert (found.metadata, found.tags, found.content_type) == ({"build": "2"}, {"team": "x"}, "text/plain")
    assert artifacts.publish("my-app").version == "2"
    assert artifacts.get("my-app", 1).metadata == {"build": "1"}
    assert artifacts.get("my-app", 2).tags == {"team": "x"}


def test_a_deleted_latest_comes_back_with_the_same_content(place: Place) -> None:
    artifacts = place.artifacts
    artifacts.put("my-app", b"same")
    artifacts.delete("my-app")
    with pytest.raises(ArtifactNotFoundError):
        artifacts.publish("my-app")
    assert artifacts.put("my-app", b"same").is_deleted is False
    assert artifacts.publish("my-app").version == "1"


@pytest.mark.parametrize("name", ["", "a/b", "__x-alias", "a#b", "a\nb", "..", 5, "x" * 600])
def test_an_artifact_with_an_invalid_name_cannot_be_put(near: Place, name: Any) -> None:
    with pytest.raises(InvalidArtifactError):
        near.artifacts.put(name, b"x")
    assert near.objects() == []


def test_names_beyond_ascii_work(place: Place) -> None:
    place.artifacts.put("モデル-é", b"x", metadata={"wer": "Zoë"})
    assert place.artifacts.publish("モデル-é").version == "1"
    assert place.artifacts.get("モデル-é", 1).metadata == {"wer": "Zoë"}
    assert place.artifacts.names() == ["モデル-é"]


def test_a_key_that_is_too_long_is_refused_before_anything_is_written(near: Place) -> None:
    with pytest.raises(InvalidRequestError):
        near.artifacts.put("my-app", b"x", metadata={"a": "x" * 3000})
    assert near.rows("my-app") == []


# --- publish ----------------------------------------------------------------------------------------------


def test_unchanged_content_is_not_published_again_unless_forced(place: Place) -> None:
    artifacts = place.artifacts
    publish_all(place, b"one")
    assert artifacts.publish("my-app").version == "1"
    assert artifacts.publish("my-app", force=True).version == "2"
    artifacts.put("my-app", b"two")
    assert artifacts.publish("my-app").version == "3"
    artifacts.put("my-app", b"one")
    assert artifacts.publish("my-app").version == "4"


def test_content_is_put_and_published_in_one_call(place: Place, tmp_path: Path) -> None:
    artifacts = place.artifacts
    (tmp_path / "file").write_bytes(b"file")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_bytes(b"aaa")
    options: dict[str, Any] = {"content_type": "text/plain", "metadata": {"by": "me"}, "tags": {"team": "ml"}}
    first = artifacts.publish("my-app", b"bytes", **options)
    assert (first.version, first.content_type, first.metadata, first.tags) == ("1", *options.values())
    assert artifacts.get("my-app", 1) == first
    for attribute in ("sha256", "content_type", "metadata", "tags"):
        assert getattr(artifacts.get("my-app"), attribute) == getattr(first, attribute)
    assert artifacts.publish("my-app", b"bytes", **options) == first, "the newest version is equal to it"
    assert artifacts.publish("my-app", b"bytes").version == "2", "without the metadata, it differs"
    assert artifacts.publish("my-app", b"bytes", force=True).version == "3"
    assert artifacts.publish("my-app", io.BytesIO(b"stream")).version == "4"
    assert artifacts.publish("my-app", tmp_path / "file").version == "5"
    tree = artifacts.publish("my-app", tmp_path / "tree")
    assert (tree.version, tree.manifest, tree.size) == ("6", True, 3)
    assert artifacts.publish("my-app", tmp_path / "tree") == tree
    assert [artifacts.download("my-app", each) for each in (1, 4, 5)] == [b"bytes", b"stream", b"file"]
    artifacts.put("my-app", b"other")
    artifacts.download("my-app", 6, tmp_path / "copy")
    assert (tmp_path / "copy" / "a").read_bytes() == b"aaa"
    assert artifacts.publish("my-app", tmp_path / "tree").version == "6"
    assert artifacts.get("my-app").sha256 == tree.sha256, "LATEST has that content again"
    for wrong in ({"expect_version": 5}, {"expect_sha256": "0" * 64}, {"expect_revision": "old"}):
        with pytest.raises(ArtifactChangedError):
            artifacts.publish("my-app", b"more", **wrong)
    assert artifacts.get("my-app").sha256 == tree.sha256
    known = artifacts.get("my-app")
    expected = {"expect_version": 6, "expect_revision": known.revision, "expect_sha256": known.sha256}
    assert artifacts.publish("my-app", b"more", **expected).version == "7"


def test_large_versions_do_not_overwrite_each_other(place: Place) -> None:
    contents = [b"first" * 60_000, b"two" * 50_000, b"three" * 100_000]
    publish_all(place, *contents)
    assert [place.artifacts.download("my-app", each) for each in (1, 2, 3)] == contents


def test_options_for_content_need_content(near: Place) -> None:
    publish_all(near, b"one")
    given: list[dict[str, Any]] = [{"metadata": {"a": "b"}}, {"tags": {}}, {"content_type": "text/plain"}]
    for options in given:
        with pytest.raises(InvalidOptionsError, match="need content"):
            near.artifacts.publish("my-app", **options)


def test_large_content_is_published_through_another_key(near: Place, tmp_path: Path) -> None:
    content = bytes(9 * 1024**2)
    (tmp_path / "large").write_bytes(content)
    sent: list[int] = []
    found = near.artifacts.publish("my-app", tmp_path / "large", progress=lambda done, _: sent.append(done))
    assert (found.version, found.sha256, sent[-1]) == ("1", sha(content), len(content))
    assert near.artifacts.publish("my-app", tmp_path / "large") == found
    assert near.artifacts.publish("my-app", io.BufferedReader(_Raw(content + b"!"))).version == "2"
    assert near.artifacts.download("my-app", 2) == near.artifacts.download("my-app") == content + b"!"
    assert not [each for each in near.objects() if "__incoming" in each]


def test_version_numbers_are_never_reused(place: Place) -> None:
    artifacts = place.artifacts
    publish_all(place, b"one", b"two")
    artifacts.delete("my-app", 2)
    artifacts.purge("my-app", 2)
    artifacts.delete("my-app", 999)  # it does not exist
    artifacts.put("my-app", b"three")
    assert artifacts.publish("my-app").version == "3"
    artifacts.purge("my-app")
    artifacts.put("my-app", b"four")
    assert artifacts.publish("my-app").version == "4"


def test_publishing_beyond_the_last_number_is_refused(near: Place) -> None:
    from holdall.errors import VersionsExhaustedError

    publish_all(near, b"one")
    layout = near.sync.table.layout()
    from holdall.core import Set, Update, UpdateItem, path, value

    key = layout.key("__my-app-meta", "head", "")
    near.sync.send(UpdateItem(layout.table, key, Update((Set(path("counter"), value(999_998)),))))
    near.artifacts.put("my-app", b"last")
    assert near.artifacts.publish("my-app").version == "999999"
    near.artifacts.put("my-app", b"one too many")
    with pytest.raises(VersionsExhaustedError):
        near.artifacts.publish("my-app")
    assert versions(near) == ["LATEST", "999999", "1"]


def test_unmet_expectations_refuse_the_change(place: Place) -> None:
    artifacts = place.artifacts
    with pytest.raises(ArtifactChangedError):
        artifacts.put("my-app", b"one", expect_sha256=sha(b"zero"))
    latest = artifacts.put("my-app", b"one", expect_version=0)
    with pytest.raises(ArtifactChangedError, match="SHA-256"):
        artifacts.publish("my-app", expect_sha256=sha(b"two"))
    assert artifacts.publish("my-app", expect_sha256=sha(b"one"), expect_version=0).version == "1"
    with pytest.raises(ArtifactChangedError, match="newest"):
        artifacts.publish("my-app", expect_version=0, force=True)
    changed = artifacts.put(
        "my-app", b"two", expect_revision=artifacts.get("my-app").revision, expect_sha256=sha(b"one")
    )
    assert changed.revision != latest.revision
    with pytest.raises(ArtifactChangedError, match="revision"):
        artifacts.put("my-app", b"three", expect_revision=latest.revision)
    with pytest.raises(ArtifactChangedError):
        artifacts.publish("my-app", expect_revision=latest.revision)
    assert artifacts.download("my-app") == b"two"
    assert artifacts.publish("my-app", expect_revision=changed.revision, expect_version=1).version == "2"


def test_a_published_version_never_changes(place: Place) -> None:
    publish_all(place, b"one")
    before = place.artifacts.get("my-app", 1)
    place.artifacts.put("my-app", b"two")
    assert place.artifacts.get("my-app", 1) == before
    assert place.artifacts.download("my-app", 1) == b"one"


# --- listing ----------------------------------------------------------------------------------------------


def test_versions_can_be_searched_and_paged(near: Place) -> None:
    artifacts = near.artifacts
    for number in range(1, 8):
        artifacts.put(
            "my-app", b"%d" % number, metadata={"build": str(number)}, tags={"odd": str(number % 2)}
        )
        artifacts.publish("my-app")
    artifacts.delete("my-app", 6)
    assert versions(near, limit=3) == ["LATEST", "7", "5"]
    assert versions(near, before=4) == ["3", "2", "1"]
    assert versions(near, where={"tags": {"odd": "1"}}) == ["LATEST", "7", "5", "3", "1"]
    assert versions(near, where={"metadata": {"build": "4"}}) == ["4"]
    assert versions(near, where={"sha256": sha(b"3")}) == ["3"]
    assert versions(near, where={"deleted": True}) == ["6"]
    assert len(versions(near, where={"deleted": None})) == 8
    third = artifacts.get("my-app", 3).update_at
    assert versions(near, where={"before": third}) == ["2", "1"]
    assert versions(near, where={"after": third, "deleted": None}, before=6) == ["5", "4", "3"]
    wrongs: list[dict[str, Any]] = [{"tag": {}}, {"after": datetime(2026, 1, 1)}]
    for wrong in wrongs:
        with pytest.raises(InvalidOptionsError):
            versions(near, where=wrong)
    with pytest.raises(InvalidOptionsError):
        versions(near, limit=0)


def test_each_listed_version_has_its_aliases(place: Place) -> None:
    publish_all(place, b"one", b"two", b"three")
    place.artifacts.put_alias("my-app", "prod", 1, 2, 10)
    place.artifacts.put_alias("my-app", "all", weights={1: 5, 2: 3, 3: 2})
    found = {each.version: each.aliases for each in place.artifacts.versions("my-app")}
    assert found == {"LATEST": (), "3": ("all",), "2": ("all", "prod"), "1": ("all", "prod")}


def test_names_leave_out_artifacts_whose_versions_are_all_deleted(near: Place) -> None:
    for name in ("a", "b", "c"):
        near.artifacts.put(name, b"x")
    near.artifacts.publish("b")
    for name in ("a", "b"):
        near.artifacts.delete(name)
    assert near.artifacts.names() == ["b", "c"]
    assert near.artifacts.names(deleted=True) == ["a", "b", "c"]
    assert near.artifacts.names("c") == ["c"]


def test_names_can_start_after_a_given_name(place: Place) -> None:
    for name in ("a", "b-1", "b-2", "b-3"):
        place.artifacts.put(name, b"x")
    assert place.artifacts.names(after="b-1") == ["b-2", "b-3"]
    assert place.artifacts.names(after="aa") == ["b-1", "b-2", "b-3"]
    assert place.artifacts.names("b-", after="b-2") == ["b-3"]
    assert place.artifacts.names("b-", after="b-3") == []
    with pytest.raises(InvalidOptionsError, match="does not begin with the prefix 'b-'"):
        place.artifacts.names("b-", after="a")


def test_a_reindex_finds_artifacts_that_versioned_wrote(place: Place) -> None:
    _as_versioned(place, "theirs", b"content")
    assert place.artifacts.names() == []
    assert (place.artifacts.reindex().added, place.artifacts.names()) == (1, ["theirs"])
    place.artifacts.purge("theirs")
    assert place.artifacts.reindex().artifacts == 0


# --- rows that versioned wrote ----------------------------------------------------------------------------


def _as_versioned(
    place: Place, name: str, content: bytes, sk: str = "LATEST", *, deleted: bool = False
) -> None:
    """Write an object and a row as versioned does, without conditions."""
    from holdall.core import PutItem

    key = f"versioned-artifacts/{'/'.join(part for part in name.split('/') if part)}/{sk}.txt"
    metadata = {"artifact_name": name, "artifact_sha256": sha(content)}
    modified = place.files.put(key, content, metadata=metadata).modified
    layout = place.sync.table.layout()
    item = {
        **layout.key(name, sk, ""),
        "update_at": {"S": modified.strftime("%Y-%m-%dT%H:%M:%S.%f+0000")},
        "is_deleted": {"BOOL": deleted},
        "sha256": {"S": sha(content)},
    }
    place.sync.send(PutItem(layout.table, item))


def test_versions_of_versioned_are_read_and_continued(place: Place) -> None:
    artifacts = place.artifacts
    _as_versioned(place, "my-app", b"one", "000001")
    _as_versioned(place, "my-app", b"two")
    found = artifacts.get("my-app", 1)
    assert (found.size, found.metadata, found.tags) == (3, {}, {})
    assert artifacts.get("my-app").sha256 == sha(b"two")
    assert artifacts.publish("my-app").version == "2"
    assert artifacts.publish("my-app").version == "2"
    _as_versioned(place, "my-app", b"theirs", "000003")
    _as_versioned(place, "my-app", b"newer")
    assert artifacts.publish("my-app").version == "4"
    assert [artifacts.download("my-app", number) for number in (1, 2, 3, 4)] == [
        b"one",
        b"two",
        b"theirs",
        b"newer",
    ]
    assert artifacts.put_alias("my-app", "prod", 1, 3, 5).versions == ("1", "3")
    with pytest.raises(ArtifactInUseError):
        artifacts.delete("my-app", 3)


def test_artifacts_with_nested_names_can_be_read_but_not_put(near: Place) -> None:
    _as_versioned(near, "team/model", b"nested")
    assert near.artifacts.download("team/model") == b"nested"
    _as_versioned(near, "a", b"short")
    near.artifacts.purge("a")
    assert near.artifacts.download("team/model") == b"nested"
    with pytest.raises(InvalidArtifactError):
        near.artifacts.put("team/model", b"x")


def test_malformed_rows_are_ignored(near: Place) -> None:
    from holdall.core import PutItem

    publish_all(near, b"one")
    layout = near.sync.table.layout()
    for sk in ("~x", "#x", "000abc", "latest", "00True"):
        near.sync.send(PutItem(layout.table, {**layout.key("my-app", sk, ""), "is_deleted": {"BOOL": True}}))
    near.artifacts.put("my-app", b"two")
    assert near.artifacts.publish("my-app").version == "2"
    assert versions(near) == ["LATEST", "2", "1"]
    assert versions(near, where={"deleted": None}) == ["LATEST", "2", "1"]


def test_an_alias_points_where_versioned_moved_it(place: Place) -> None:
    from holdall.core import PutItem

    publish_all(place, b"one", b"two", b"three")
    artifacts = place.artifacts
    artifacts.put_alias("my-app", "prod", weights={1: 5, 2: 3, 3: 2})
    layout = place.sync.table.layout()
    row = {
        **layout.key("__my-app-alias", "prod", ""),
        "update_at": {"S": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f+0000")},
        "version": {"S": "000003"},
    }
    place.sync.send(PutItem(layout.table, row))
    assert artifacts.alias("my-app", "prod").versions == ("3",)
    assert artifacts.delete("my-app", 1) is True
    with pytest.raises(ArtifactInUseError):
        artifacts.delete("my-app", 3)
    artifacts.put_alias("my-app", "prod", 2)
    actions = [(each.action, each.weights) for each in artifacts.alias_history("my-app", "prod")]
    assert actions == [("set", {"2": 100}), ("found", {"3": 100}), ("set", {"1": 5, "2": 3, "3": 2})]


def test_a_changed_suffix_is_refused_on_writes(tmp_path: Path) -> None:
    from holdall import ArtifactSettings, Database
    from holdall.errors import ConfigurationError

    url, files = f"embedded:{tmp_path}/app.db", f"file:{tmp_path}/files"
    with Database(url, files=files, artifacts=ArtifactSettings(suffix=".zip")) as db:
        db.artifacts.put("my-app", b"one")
        db.artifacts.publish("my-app")
    with Database(url, files=files, artifacts=ArtifactSettings(suffix=".tar")) as db:
        assert db.artifacts.download("my-app", 1) == b"one"
        changes: list[Callable[[], object]] = [
            lambda: db.artifacts.put("my-app", b"two"),
            lambda: db.artifacts.publish("my-app", force=True),
        ]
        for change in changes:
            with pytest.raises(ConfigurationError, match=r"LATEST\.zip"):
                change()


# --- delete, restore, purge -------------------------------------------------------------------------------


def test_versions_that_an_alias_serves_cannot_be_deleted_by_accident(place: Place) -> None:
    artifacts = place.artifacts
    publish_all(place, b"one", b"two", b"three")
    artifacts.put_alias("my-app", "blue", 1, 2, 10)
    artifacts.put_alias("my-app", "all", weights={1: 1, 2: 1, 3: 1})
    artifacts.put_alias("my-app", "head")
    attempts: list[Callable[[], object]] = [
        lambda: artifacts.delete("my-app", 2),
        lambda: artifacts.purge("my-app", 2),
        lambda: artifacts.purge("my-app", 2, dry_run=True),
    ]
    for attempt in attempts:
        with pytest.raises(ArtifactInUseError) as caught:
            attempt()
        assert caught.value.aliases == ("all", "blue")
    with pytest.raises(ArtifactInUseError, match="head"):
        artifacts.delete("my-app")
    with pytest.raises(ArtifactInUseError):
        artifacts.purge("my-app")
    assert artifacts.prune("my-app", keep_last=0, older_than=0).versions == ()
    assert artifacts.delete("my-app", 2, drop_aliases=True) is True
    assert [each.alias for each in artifacts.aliases("my-app")] == ["head"]
    assert artifacts.delete("my-app", 1) is True
    assert artifacts.delete("my-app", 3) is True
    assert [each.action for each in artifacts.alias_history("my-app", "blue")] == ["deleted", "set"]


def test_a_deletion_has_a_time_and_can_be_undone(place: Place) -> None:
    artifacts = place.artifacts
    publish_all(place, b"one")
    before = datetime.now(UTC) - timedelta(seconds=5)
    artifacts.delete("my-app", 1)
    gone = artifacts.get("my-app", 1, deleted=True)
    assert gone.is_deleted
    assert gone.deleted_at > before
    assert artifacts.delete("my-app", 1) is False
    back = artifacts.restore("my-app", 1)
    assert (back.is_deleted, back.deleted_at, back.sha256) == (False, None, sha(b"one"))
    assert artifacts.restore("my-app", 1) == back
    with pytest.raises(ArtifactNotFoundError):
        artifacts.restore("my-app", 7)


def test_a_purge_frees_the_bytes_of_one_version(place: Place) -> None:
    artifacts = place.artifacts
    publish_all(place, b"one", b"three")
    dry = artifacts.purge("my-app", 1, dry_run=True)
    assert (dry.versions, dry.objects, dry.bytes, dry.dry_run) == (("1",), 1, 3, True)
    real = artifacts.purge("my-app", 1)
    assert (real.versions, real.objects, real.bytes) == (("1",), 1, 3)
    assert artifacts.purge("my-app", 1).versions == ()
    assert [key.rpartition("/")[2] for key in sorted(place.objects())] == ["000002.txt", "LATEST.txt"]
    with pytest.raises(ArtifactNotFoundError):
        artifacts.restore("my-app", 1)


@pytest.mark.parametrize(
    "options", [{"keep_last": -1}, {"keep_last": True}, {"older_than": -1}, {"older_than": "90d"}]
)
def test_invalid_prune_options_are_refused(near: Place, options: dict[str, Any]) -> None:
    publish_all(near, b"one")
    with pytest.raises(InvalidOptionsError):
        near.artifacts.prune("my-app", **options)
    assert versions(near) == ["LATEST", "1"]


def test_a_deleted_latest_does_not_change_how_many_versions_are_kept(near: Place) -> None:
    publish_all(near, b"1", b"2", b"3", b"4")
    near.artifacts.delete("my-app")
    assert near.artifacts.prune("my-app", keep_last=2, older_than=0).versions == ("2", "1")


# --- aliases ----------------------------------------------------------------------------------------------


def test_an_alias_has_a_history_and_can_be_rolled_back(place: Place) -> None:
    artifacts = place.artifacts
    publish_all(place, b"1", b"2", b"3")
    artifacts.put_alias("my-app", "prod", 1, by="ada", reason="first")
    artifacts.put_alias("my-app", "prod", 1, 2, 20)
    then = artifacts.alias("my-app", "prod").update_at
    artifacts.put_alias("my-app", "prod", weights={1: 1, 2: 1, 3: 2})
    artifacts.put_alias("my-app", "prod", 3)
    back = artifacts.rollback_alias("my-app", "prod", reason="broken")
    assert dict(back.arms) == {"000003": 2, "000001": 1, "000002": 1}
    assert artifacts.rollback_alias("my-app", "prod").secondary_version_weight == 20
    assert artifacts.rollback_alias("my-app", "prod").versions == ("1",)
    with pytest.raises(AliasNotFoundError, match="no earlier state"):
        artifacts.rollback_alias("my-app", "prod")
    assert artifacts.rollback_alias("my-app", "prod", to=4).versions == ("3",)
    history = artifacts.alias_history("my-app", "prod")
    assert [each.number for each in history] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert (history[-1].by, history[-1].reason, history[3].of) == ("ada", "first", 3)
    assert artifacts.alias("my-app", "prod", at=then).secondary_version_weight == 20
    with pytest.raises(AliasNotFoundError):
        artifacts.alias("my-app", "prod", at=then - timedelta(days=1))
    for wrong in (0, 99):
        with pytest.raises(InvalidOptionsError):
            artifacts.rollback_alias("my-app", "prod", to=wrong)


def test_rolling_back_to_a_deleted_version_is_refused(near: Place) -> None:
    publish_all(near, b"1", b"2")
    near.artifacts.put_alias("my-app", "prod", 1)
    near.artifacts.put_alias("my-app", "prod", 2)
    near.artifacts.delete("my-app", 1)
    with pytest.raises(ArtifactNotFoundError, match="version 1"):
        near.artifacts.rollback_alias("my-app", "prod")
    assert near.artifacts.alias("my-app", "prod").versions == ("2",)


def test_an_alias_with_another_revision_than_expected_is_not_changed(place: Place) -> None:
    artifacts = place.artifacts
    publish_all(place, b"1", b"2")
    first = artifacts.put_alias("my-app", "prod", 1)
    second = artifacts.put_alias("my-app", "prod", 2, expect_revision=first.revision)
    assert artifacts.alias("my-app", "prod") == second
    with pytest.raises(ArtifactChangedError):
        artifacts.put_alias("my-app", "prod", 1, expect_revision=first.revision)
    with pytest.raises(ArtifactChangedError):
        artifacts.delete_alias("my-app", "prod", expect_revision=first.revision)
    assert artifacts.delete_alias("my-app", "prod", expect_revision=second.revision) is True


def test_a_protected_alias_changes_only_with_allow_protected(near: Place) -> None:
    artifacts = near.artifacts
    publish_all(near, b"1", b"2")
    artifacts.put_alias("my-app", "prod", 1, protected=True)
    attempts: list[Callable[[], object]] = [
        lambda: artifacts.put_alias("my-app", "prod", 2),
        lambda: artifacts.delete_alias("my-app", "prod"),
        lambda: artifacts.rollback_alias("my-app", "prod", to=1),
        lambda: artifacts.delete("my-app", 1, drop_aliases=True),
        lambda: artifacts.purge("my-app", drop_aliases=True),
    ]
    for attempt in attempts:
        with pytest.raises(ProtectedAliasError):
            attempt()
    assert artifacts.put_alias("my-app", "prod", 2, allow_protected=True).protected
    assert not artifacts.put_alias("my-app", "prod", 2, allow_protected=True, protected=False).protected
    assert artifacts.put_alias("my-app", "prod", 1).versions == ("1",)


@pytest.mark.parametrize("alias", ["LATEST", "1", "000001", "a/b", "", "latest"])
def test_an_alias_that_looks_like_a_version_is_refused(near: Place, alias: str) -> None:
    publish_all(near, b"1")
    with pytest.raises(InvalidAliasError):
        near.artifacts.put_alias("my-app", alias, 1)
    assert near.artifacts.aliases("my-app") == []


def test_invalid_arguments_are_refused_before_versions_are_read(near: Place) -> None:
    for wrong, kind in [
        ((1, 2, None), TypeError),
        ((1, 2, 0.5), TypeError),
        ((1, 2, 999), ValueError),
        ((1, 1, 5), ValueError),
    ]:
        with pytest.raises(kind):
            near.artifacts.put_alias("my-app", "prod", *wrong)
    publish_all(near, b"1")
    with pytest.raises(ArtifactNotFoundError, match="version 2"):
        near.artifacts.put_alias("my-app", "prod", 1, 2, 5)


def test_resolving_writes_nothing(near: Place) -> None:
    publish_all(near, b"1", b"2")
    near.artifacts.put_alias("my-app", "prod", 1, 2, 50)
    before = near.rows("__my-app-alias"), near.rows("__my-app-meta"), near.rows("my-app")
    alias = near.artifacts.alias("my-app", "prod")
    assert {alias.resolve() for _ in range(100)} == {"1", "2"}
    assert len({alias.resolve(key="ada") for _ in range(10)}) == 1
    assert (near.rows("__my-app-alias"), near.rows("__my-app-meta"), near.rows("my-app")) == before


def test_a_directory_is_put_published_and_downloaded(place: Place, tmp_path: Path) -> None:
    source = tmp_path / "model"
    (source / "weights").mkdir(parents=True)
    (source / "weights" / "a.bin").write_bytes(b"aaa")
    (source / "copy.bin").write_bytes(b"aaa")
    (source / "config.json").write_bytes(b"{}")
    put = place.artifacts.put("my-app", source)
    assert (put.manifest, put.size) == (True, 8)
    assert place.artifacts.publish("my-app").manifest
    (source / "config.json").write_bytes(b"{1}")
    place.artifacts.put("my-app", source)
    assert len([key for key in place.objects() if "/__files/" in key]) == 3
    place.artifacts.download("my-app", 1, to=tmp_path / "back")
    assert (tmp_path / "back" / "weights" / "a.bin").read_bytes() == b"aaa"
    assert (tmp_path / "back" / "config.json").read_bytes() == b"{}"
    report = place.artifacts.purge("my-app")
    assert (place.objects(), report.objects) == ([], 5)


def test_replacing_a_directory_by_bytes_releases_its_files(near: Place, tmp_path: Path) -> None:
    source = tmp_path / "model"
    source.mkdir()
    (source / "a").write_bytes(b"aaa")
    near.artifacts.put("my-app", source)
    near.artifacts.put("my-app", source, metadata={"b": "c"})
    near.artifacts.put("my-app", b"plain")
    near.artifacts.purge("my-app")
    assert near.objects() == []


# --- mistakes of versioned --------------------------------------------------------------------------------


def test_every_read_of_artifacts_is_consistent(near: Place, tmp_path: Path) -> None:
    from holdall.core import BatchGet, GetItem, Query, Scan, TransactGet

    backend = near.sync._backend
    seen: list[Any] = []
    for colour in ("send_blocking", "send_awaiting"):
        original = getattr(backend, colour)

        def spy(request: Any, original: Any = original) -> Any:
            seen.append(request)
            return original(request)

        setattr(backend, colour, spy)
    publish_all(near, b"one", b"two")
    near.artifacts.put_alias("my-app", "prod", 1, 2, 20)
    near.artifacts.get("my-app", "prod", key="x")
    near.artifacts.rollback_alias("my-app", "prod", to=1)
    near.artifacts.alias("my-app", "prod", at=datetime.now(UTC))
    versions(near)
    near.artifacts.names()
    near.artifacts.reindex()
    near.artifacts.delete("my-app", 1, drop_aliases=True)
    near.artifacts.prune("my-app", keep_last=0, older_than=0)
    near.artifacts.purge("my-app")
    reads = [each for each in seen if isinstance(each, GetItem | Query | Scan)]
    for each in seen:
        if isinstance(each, BatchGet | TransactGet):
            reads += each.reads
    assert len(reads) > 30
    assert [each for each in reads if not each.consistent] == []


def test_two_open_databases_are_independent(tmp_path: Path) -> None:
    import os

    from holdall import Database

    before = dict(os.environ)
    with Database(f"embedded:{tmp_path}/one.db") as one, Database(f"embedded:{tmp_path}/two.db") as two:
        one.artifacts.put("my-app", b"one")
        two.artifacts.put("my-app", b"two")
        assert one.artifacts.publish("my-app").sha256 == sha(b"one")
        assert two.artifacts.publish("my-app").sha256 == sha(b"two")
        assert dict(os.environ) == before


def test_a_put_into_a_missing_bucket_reports_the_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    from rig.servers import ENVIRONMENT, start_server

    from holdall import Database
    from holdall.errors import HoldallError

    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    url = start_server("ministack")
    with Database("memory:", files=f"s3://never-made-{sha(b'x')[:8]}?endpoint={url}&region=us-east-1") as db:
        with pytest.raises(HoldallError, match="bucket") as caught:
            db.artifacts.put("my-app", b"x")
        assert not isinstance(caught.value, ArtifactNotFoundError)


# --- unusual situations -----------------------------------------------------------------------------------


def test_a_version_is_kept_if_its_alias_moves_away_and_back_meanwhile(near: Place) -> None:
    """Another process moves the alias away and back: the set of aliases that serve the version is the same again."""
    from holdall.core import TransactWrite

    publish_all(near, b"one", b"two")
    near.artifacts.put_alias("my-app", "prod", 2)
    backend: Any = near.sync._backend
    original = backend.send_blocking, backend.send_awaiting
    others = near.sync.artifacts

    def meddle(request: Any) -> None:
        deletes = isinstance(request, TransactWrite) and any(
            "is_deleted" in str(getattr(each, "update", "")) for each in request.actions
        )
        if deletes and len(request.actions) == 2:
            backend.send_blocking, backend.send_awaiting = original
            others.put_alias("my-app", "prod", 1)
            others.put_alias("my-app", "prod", 2)
            others.put_alias("my-app", "prod", 1)

    def send_blocking(request: Any) -> Any:
        meddle(request)
        return original[0](request)

    async def send_awaiting(request: Any) -> Any:
        meddle(request)
        return await original[1](request)

    backend.send_blocking, backend.send_awaiting = send_blocking, send_awaiting
    with pytest.raises(ArtifactInUseError):
        near.artifacts.delete("my-app", 1)
    assert near.artifacts.get("my-app", "prod").version == "1"


def test_purging_a_directory_version_that_versioned_made_keeps_its_files(near: Place, tmp_path: Path) -> None:
    source = tmp_path / "model"
    source.mkdir()
    (source / "a").write_bytes(b"aaa")
    latest = near.artifacts.put("my-app", source)
    manifest = near.files.get(latest.key)
    info = near.files.head(latest.key)
    near.files.put(latest.key.replace("LATEST", "000001"), manifest, metadata=info.headers.metadata)
    _row_as_versioned(near, "my-app", "000001", latest.sha256)
    near.artifacts.purge("my-app", 1)
    near.artifacts.download("my-app", to=tmp_path / "back")
    assert (tmp_path / "back" / "a").read_bytes() == b"aaa"


def _row_as_versioned(place: Place, name: str, sk: str, digest: str, **more: Any) -> None:
    from holdall.core import PutItem

    layout = place.sync.table.layout()
    row = {
        **layout.key(name, sk, ""),
        "update_at": {"S": "2026-11-15T02:33:10.000000+0000"},
        "is_deleted": {"BOOL": False},
        "sha256": {"S": digest},
    }
    place.sync.send(PutItem(layout.table, {**row, **more}))


def test_a_row_with_the_last_number_does_not_exhaust_the_numbers(near: Place) -> None:
    from holdall.core import PutItem

    publish_all(near, b"one")
    layout = near.sync.table.layout()
    near.sync.send(
        PutItem(layout.table, {**layout.key("my-app", "999999", ""), "is_deleted": {"BOOL": True}})
    )
    near.artifacts.put("my-app", b"two")
    assert near.artifacts.publish("my-app").version == "2"
    near.artifacts.purge("my-app", 999_999)
    near.artifacts.put("my-app", b"three")
    assert near.artifacts.publish("my-app").version == "3"


def test_protection_outlives_its_alias_and_appears_in_its_history(near: Place) -> None:
    artifacts = near.artifacts
    publish_all(near, b"one", b"two")
    artifacts.put_alias("my-app", "prod", 1)
    artifacts.put_alias("my-app", "prod", 1, protected=True)
    artifacts.put_alias("my-app", "prod", 2, allow_protected=True)
    assert artifacts.rollback_alias("my-app", "prod", allow_protected=True).protected
    artifacts.delete_alias("my-app", "prod", allow_protected=True)
    for attempt in (artifacts.put_alias, artifacts.rollback_alias):
        with pytest.raises(ProtectedAliasError):
            attempt("my-app", "prod")
    assert artifacts.rollback_alias("my-app", "prod", allow_protected=True).protected
    artifacts.delete("my-app", 1, drop_aliases=True, allow_protected=True)
    with pytest.raises(ProtectedAliasError):
        artifacts.put_alias("my-app", "prod", 2)
    assert not artifacts.put_alias("my-app", "prod", 2, protected=False, allow_protected=True).protected
    artifacts.put_alias("my-app", "prod", 2)
    history = artifacts.alias_history("my-app", "prod")
    assert [each.protected for each in reversed(history)] == [None, True, *[None] * 5, False, None]
    assert history[1].describe()["protected"] is False
    artifacts.put_alias("my-app", "zulu", 2, protected=True)
    with pytest.raises(ProtectedAliasError):
        artifacts.purge("my-app", drop_aliases=True)
    assert len(artifacts.aliases("my-app")) == 2


def test_an_alias_can_be_rolled_back_to_a_version_that_it_served_alone(near: Place) -> None:
    artifacts = near.artifacts
    publish_all(near, b"1", b"2", b"3")
    artifacts.put_alias("my-app", "prod", 1)
    artifacts.put_alias("my-app", "prod", 2)
    artifacts.put_alias("my-app", "prod", 3, 1, 50)
    assert artifacts.rollback_alias("my-app", "prod", to_version="000001").versions == ("1",)
    assert artifacts.alias_history("my-app", "prod", limit=1)[0].of == 1
    for wrong in (3, 7):
        with pytest.raises(InvalidOptionsError, match=f"never served version {wrong} alone"):
            artifacts.rollback_alias("my-app", "prod", to_version=wrong)
    with pytest.raises(InvalidOptionsError):
        artifacts.rollback_alias("my-app", "prod", to=1, to_version=1)


def test_many_aliases_are_deleted_with_their_version(near: Place) -> None:
    publish_all(near, b"one")
    for number in range(40):
        near.artifacts.put_alias("my-app", f"alias-{number}", 1)
    for options in ({}, {"drop_aliases": True}):  # a dry run deletes nothing, whatever the number of aliases
        with suppress(ArtifactInUseError):
            assert len(near.artifacts.purge("my-app", 1, dry_run=True, **options).aliases) == 40
        assert len(near.artifacts.aliases("my-app")) == 40
    assert near.artifacts.delete("my-app", 1, drop_aliases=True) is True
    assert near.artifacts.aliases("my-app") == []
    near.artifacts.restore("my-app", 1)
    for number in range(10):
        near.artifacts.put_alias("my-app", f"alias-{number}", 1)
    assert len(near.artifacts.purge("my-app", 1, drop_aliases=True).aliases) == 10
    assert near.artifacts.aliases("my-app") == []


def test_an_alias_without_a_readable_time_is_read(near: Place) -> None:
    from holdall.core import PutItem

    publish_all(near, b"one")
    layout = near.sync.table.layout()
    for alias, more in (("a", {}), ("b", {"update_at": {"S": "yesterday"}})):
        row = {**layout.key("__my-app-alias", alias, ""), "version": {"S": "1"}, **more}
        near.sync.send(PutItem(layout.table, row))
    assert near.artifacts.get("my-app", 1).aliases == ("a", "b")
    assert near.artifacts.put_alias("my-app", "a", 1).versions == ("1",)


def test_an_interrupted_purge_does_not_block_a_put(near: Place) -> None:
    from holdall.core.objects import DeleteObject

    near.artifacts.put("my-app", b"one")
    service: Any = near.sync._services.service("default")
    original = service.send_blocking, service.send_awaiting

    def send_blocking(request: Any) -> Any:
        if isinstance(request, DeleteObject):
            raise KeyboardInterrupt
        return original[0](request)

    async def send_awaiting(request: Any) -> Any:
        if isinstance(request, DeleteObject):
            raise RuntimeError
        return await original[1](request)

    service.send_blocking, service.send_awaiting = send_blocking, send_awaiting
    with pytest.raises((KeyboardInterrupt, RuntimeError)):
        near.artifacts.purge("my-app")
    service.send_blocking, service.send_awaiting = original
    with pytest.raises(ArtifactNotFoundError):
        near.artifacts.get("my-app")
    assert near.artifacts.put("my-app", b"two").sha256 == sha(b"two")
    assert near.artifacts.download("my-app") == b"two"


@pytest.mark.parametrize("way", WAYS[2:])
def test_a_missing_bucket_is_reported_by_name(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in open_place(way, tmp_path, monkeypatch, bucket=False):
        named = "there is no bucket artifacts-[0-9a-f]+ at"
        artifacts: Any = place.artifacts
        for use, argument in (
            (artifacts.get, "my-app"),
            (artifacts.download, "my-app"),
            (place.files.exists, "a"),
        ):
            with pytest.raises(ConfigurationError, match=named):
                use(argument)
        with pytest.raises(ConfigurationError, match=named):
            artifacts.put("my-app", b"one")


def test_missing_bytes_are_reported_with_their_location(place: Place) -> None:
    publish_all(place, b"one")
    for key in place.objects():
        place.files.delete(key)
    with pytest.raises(
        ArtifactNotFoundError,
        match=r"is in the table, but its bytes are missing: there is no object .* in \S+",
    ):
        place.artifacts.get("my-app")
    with pytest.raises(ObjectNotFoundError):
        place.artifacts.download("my-app", 1)


def test_a_published_version_whose_row_and_object_were_both_replaced_is_refused(place: Place) -> None:
    from holdall.core import PutItem

    publish_all(place, b"one", b"two")
    place.artifacts.put_alias("my-app", "prod", 1)
    layout, key = place.sync.table.layout(), place.artifacts.get("my-app", 1).key
    row = next(each for each in place.rows("my-app") if each[layout.sort.name] == {"S": "000001"})
    other = {"artifact_name": "my-app", "artifact_sha256": sha(b"another")}
    place.files.put(key, b"another", metadata=other)
    place.sync.send(PutItem(layout.table, {**row, "sha256": {"S": sha(b"another")}}))
    artifacts = place.artifacts
    for read in (artifacts.get, artifacts.download, artifacts.url):
        for reference in (1, "prod"):
            with pytest.raises(IntegrityError, match="version 1 of 'my-app' was published with"):
                read("my-app", reference)
    place.artifacts.purge("my-app", 1, drop_aliases=True)  # a purge is the remedy
    with pytest.raises(ArtifactNotFoundError):
        place.artifacts.get("my-app", 1)


@pytest.mark.parametrize(
    "options",
    [
        {"metadata": 5},
        {"metadata": {"a": 5}},
        {"tags": ["a"]},
        {"expect_sha256": 5},
        {"expect_revision": ""},
        {"expect_version": "newest"},
    ],
)
def test_a_put_with_options_of_the_wrong_kind_is_refused(near: Place, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        near.artifacts.put("my-app", b"x", **options)
    assert near.objects() == []


@pytest.mark.parametrize("where", [5, "abc", {"tags": 5}, {5: 1}, {"sha256": 5}])
def test_an_invalid_filter_is_refused(near: Place, where: Any) -> None:
    with pytest.raises(InvalidOptionsError):
        versions(near, where=where)


@pytest.mark.parametrize("age", [float("nan"), float("inf"), 1e20, True])
def test_an_invalid_age_is_refused(near: Place, age: float) -> None:
    with pytest.raises(InvalidOptionsError):
        near.artifacts.prune("my-app", older_than=age)


@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_after_a_lost_reply_the_digest_shows_whose_copy_is_stored(near: Place, whose: str) -> None:
    from holdall.core.objects import CopyObject, PutObject
    from holdall.errors import PreconditionFailedError

    near.artifacts.put("my-app", b"one")
    service: Any = near.sync._services.service("default")
    original = service.send_blocking, service.send_awaiting

    def meddle(request: Any) -> None:
        if isinstance(request, CopyObject):
            service.send_blocking, service.send_awaiting = original
            taken = request if whose == "ours" else PutObject(request.service, request.key, b"theirs")
            service.send_blocking(taken)
            raise PreconditionFailedError("there is an object already")

    def send_blocking(request: Any) -> Any:
        meddle(request)
        return original[0](request)

    async def send_awaiting(request: Any) -> Any:
        meddle(request)
        return await original[1](request)

    service.send_blocking, service.send_awaiting = send_blocking, send_awaiting
    found = near.artifacts.publish("my-app")
    assert found.version == ("1" if whose == "ours" else "2")
    assert near.artifacts.download("my-app", found.version) == b"one"
