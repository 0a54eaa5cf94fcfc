"""``holdall artifacts`` and ``holdall alias``: what they do, their output on each stream, and their exit status."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cli_rig import INSTALLED, bare_environment, call, enter, start
from rig.servers import ENVIRONMENT, start_server

from holdall import Database
from holdall.artifacts import Artifact, encode_alias_pk
from holdall.artifacts.home import find_home
from holdall.core.port import run
from holdall.core.requests import PutItem

URL = "embedded:app.db"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch, f"{URL}?durability=normal")
    with Database() as db:
        db.table.create()
    return tmp_path


def publish_all(*contents: bytes, name: str = "my-app") -> list[Artifact]:
    with Database() as db:
        found = []
        for content in contents:
            db.artifacts.put(name, content)
            found.append(db.artifacts.publish(name))
        return found


def run_silently(*words: str, typed: str | None = None) -> str:
    """Run a command that has to succeed and prints no data; return its messages."""
    ended = call(*words, typed=typed)
    assert (ended.exit_code, ended.stdout) == (0, ""), ended.output
    return ended.stderr


def show(*words: str) -> str:
    """Run a command that has to succeed without messages; return its data."""
    ended = call(*words)
    assert (ended.exit_code, ended.stderr) == (0, ""), ended.output
    return ended.stdout


def read_json(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(show(*words, "--json"))
    return found


def refuse(*words: str) -> str:
    """Run a command that has to fail; return its messages."""
    ended = call(*words)
    assert (ended.exit_code in range(1, 7), ended.stdout) == (True, ""), ended.output
    assert ended.stderr.startswith("error: ")
    return ended.stderr


def refuse_usage(*words: str) -> str:
    """Run a command line that is not valid; return its messages."""
    ended = call(*words)
    assert (ended.exit_code, ended.stdout) == (2, ""), ended.output
    return ended.stderr


# --- init -------------------------------------------------------------------------------------------------


def test_init_creates_the_table_once_and_reports_it() -> None:
    assert run_silently("artifacts", "init") == "table holdall already exists\n"
    assert run_silently("artifacts", "init", "--table", "kept") == "table kept created\n"
    assert run_silently("artifacts", "init", "--table", "kept") == "table kept already exists\n"
    with Database(artifacts={"table": "kept"}) as db:  # type: ignore[arg-type]
        assert list(db.artifacts.names()) == []


def test_init_creates_the_buckets_of_a_service_and_its_mirrors(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in ENVIRONMENT.items():
        monkeypatch.setenv(name, text)
    main, backup = f"cli-{uuid4().hex[:12]}", f"cli-{uuid4().hex[:12]}"
    place = f"?region=eu-central-1&endpoint={start_server('ministack')}"
    (folder / "holdall.toml").write_text(
        'default_service = "safe"\n[files]\nsafe = "mirror:main, backup"\n'
        f'main = "s3://{main}/below{place}"\nbackup = "s3://{backup}{place}"\n'
    )
    assert json.loads(call("artifacts", "init", "--json").stdout) == {
        "buckets": {main: True, backup: True},
        "table": "holdall",
        "table_created": False,
    }
    assert run_silently("artifacts", "init").splitlines()[:2] == [
        f"bucket {main} already exists",
        f"bucket {backup} already exists",
    ]
    assert run_silently("artifacts", "put", "my-app", "-", typed="in S3").startswith(
        "LATEST of my-app is 5 bytes"
    )


# --- put, publish -----------------------------------------------------------------------------------------


def test_put_and_publish_report_the_new_state(folder: Path) -> None:
    (folder / "app.zip").write_bytes(b"one")
    sha256 = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    assert (
        run_silently("artifacts", "put", "my-app", "app.zip")
        == f"LATEST of my-app is 3 bytes, sha256 {sha256}\n"
    )
    message = f"version 1 of my-app published: 3 bytes, sha256 {sha256}\n"
    assert run_silently("artifacts", "publish", "my-app") == message
    assert run_silently("artifacts", "publish", "my-app") == message, "nothing has changed since"
    assert read_json("artifacts", "publish", "my-app", "--force")["version"] == "2"


def test_publish_takes_its_content_from_a_path_or_from_stdin(folder: Path) -> None:
    (folder / "app.zip").write_bytes(b"one")
    message = run_silently("artifacts", "publish", "my-app", "--from", "app.zip", "--metadata", "build=7")
    assert message.startswith("version 1 of my-app published: 3 bytes")
    run_silently("artifacts", "publish", "my-app", "--from", "-", typed="two!")
    with Database() as db:
        assert (db.artifacts.download("my-app"), db.artifacts.download("my-app", 1)) == (b"two!", b"one")
        assert db.artifacts.get("my-app", 1).metadata == {"build": "7"}
    assert "there is no file missing" in refuse("artifacts", "publish", "my-app", "--from", "missing")


def test_control_characters_are_escaped() -> None:
    evil = "red\x1b[31m\r\u202e\nforged"
    publish_all(b"one", b"two")
    with Database() as db:
        db.artifacts.put("my-app", b"three", metadata={"note": "a\u202eb"})
        db.artifacts.put_alias("my-app", "prod", 1, by=evil, reason=evil)
        home = run(find_home(db._context))
        for name in (evil, "my-app"):
            row = {"update_at": {"S": "2026-01-01"}, "version": {"S": "000001"}}
            db.send(PutItem(home.table, {**home.key(encode_alias_pk(name), evil), **row}))
        db.send(PutItem(home.table, {**home.key("holdall#Artifacts", evil)}))
        db.send(PutItem(home.table, {**home.key(evil, "000001"), "sha256": {"S": "0" * 64}}))
    for words in (
        ("artifacts", "list"),
        ("artifacts", "show", "my-app"),
        ("artifacts", "list", evil),
        ("artifacts", "show", evil, evil),
        ("artifacts", "delete", evil, "1"),
        ("artifacts", "publish", "my-app", "--expect-version", evil),
        ("artifacts", "put", "my-app", evil),
        ("artifacts", evil),
        ("artifacts", "list", "--limit", evil),
        ("alias", "list", "my-app"),
        ("alias", "history", "my-app", "prod"),
        ("alias", "delete", evil, evil),
        ("alias", "set", "my-app", evil, "1"),
        ("jobs", "list", "--queue", evil),
        ("jobs", "show", evil),
        ("jobs", "retry", evil),
        ("migrate", evil),
    ):
        ended = call(*words)
        assert ended.output.replace("\n", "").replace("\t", "").isprintable(), words
        assert not any(line.strip().startswith("forged") for line in ended.output.splitlines()), words


def test_put_stores_the_content_type_metadata_and_tags() -> None:
    words = ["--content-type", "text/plain", "--metadata", "commit=a=b", "--tag", "team=ml"]
    run_silently("artifacts", "put", "my-app", "-", *words, typed="from stdin")
    with Database() as db:
        found = db.artifacts.get("my-app")
        assert db.artifacts.download("my-app") == b"from stdin"
    assert (found.content_type, found.metadata, found.tags) == (
        "text/plain",
        {"commit": "a=b"},
        {"team": "ml"},
    )


def test_a_directory_is_uploaded_and_downloaded(folder: Path) -> None:
    (folder / "model" / "weights").mkdir(parents=True)
    (folder / "model" / "weights" / "1.bin").write_bytes(b"123")
    (folder / "model" / "card.txt").write_text("a model")
    assert "10 bytes" in run_silently("artifacts", "put", "model", "model")
    assert read_json("artifacts", "show", "model")["directory"] is True
    run_silently("artifacts", "download", "model", "--to", "copy")
    assert (folder / "copy" / "weights" / "1.bin").read_bytes() == b"123"
    assert (folder / "copy" / "card.txt").read_text() == "a model"
    assert "is a directory" in refuse("artifacts", "download", "model", "--to", "-")


def test_a_failed_precondition_is_an_error() -> None:
    publish_all(b"one")
    assert "not as expected" in refuse("artifacts", "publish", "my-app", "--expect-version", "7")
    assert "not as expected" in refuse("artifacts", "publish", "my-app", "--expect-sha256", "0" * 64)
    assert "revision" in refuse("artifacts", "publish", "my-app", "--expect-revision", "old")


def test_a_missing_artifact_cannot_be_published_shown_or_downloaded() -> None:
    missing = (
        "error: the artifact 'nothing' has no LATEST\nhint: put it first, or restore it if it was deleted\n"
    )
    assert refuse("artifacts", "publish", "nothing") == missing
    assert refuse("artifacts", "show", "nothing") == missing
    assert refuse("artifacts", "download", "nothing", "--to", "file") == missing
    assert "has no alias 'prod'" in refuse("artifacts", "show", "nothing", "prod")


def test_a_file_that_cannot_be_read_or_written_is_an_error() -> None:
    assert refuse("artifacts", "put", "my-app", "missing") == "error: there is no file missing\n"
    publish_all(b"one")
    assert "there is no directory" in refuse("artifacts", "download", "my-app", "--to", "no/where")


# --- list, show, download ---------------------------------------------------------------------------------


def test_names_are_listed_one_per_line() -> None:
    assert run_silently("artifacts", "list") == "there are no artifacts\n"
    for name in ("b", "a", "app"):
        publish_all(b"one", name=name)
    assert show("artifacts", "list") == "a\napp\nb\n"
    assert show("artifacts", "list", "--starting-with", "a") == "a\napp\n"
    assert read_json("artifacts", "list", "--limit", "2") == {"names": ["a", "app"], "more": True}
    assert (
        call("artifacts", "list", "--limit", "2").stderr
        == "there are more than 2; raise --limit to see them\n"
    )


def test_versions_are_listed_with_their_aliases() -> None:
    publish_all(b"one", b"two")
    with Database() as db:
        db.artifacts.put_alias("my-app", "prod", 1, 2, 20)
        db.artifacts.delete("my-app", "LATEST")
    heads, *rows = show("artifacts", "list", "my-app").splitlines()
    assert heads.split() == ["version", "size", "created", "sha256", "aliases"]
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [("2", "prod"), ("1", "prod")]
    listed = read_json("artifacts", "list", "my-app", "--deleted")["versions"]
    assert [(each["version"], each["deleted"]) for each in listed] == [
        ("LATEST", True),
        ("2", False),
        ("1", False),
    ]
    assert "Z" in show("artifacts", "list", "my-app", "--deleted").splitlines()[1].split()[-1]
    assert read_json("artifacts", "list", "my-app", "--limit", "1")["more"] is True


def test_versions_can_be_filtered() -> None:
    with Database() as db:
        for number, team in enumerate(("ml", "web")):
            db.artifacts.put("my-app", b"same", tags={"team": team}, metadata={"build": str(number)})
            db.artifacts.publish("my-app")

    def list_versions(*words: str) -> list[str]:
        return [each["version"] for each in read_json("artifacts", "list", "my-app", *words)["versions"]]

    assert list_versions("--tag", "team=ml") == ["1"]
    assert list_versions("--metadata", "build=1") == ["LATEST", "2"]
    assert list_versions("--since", "2000-01-01") == ["LATEST", "2", "1"]
    assert list_versions("--since", "2999-01-01") == []
    assert run_silently("artifacts", "list", "my-app", "--tag", "team=x") == "no version of my-app matches\n"


def test_a_version_is_shown_in_two_columns_or_as_json() -> None:
    publish_all(b"one")
    with Database() as db:
        db.artifacts.put_alias("my-app", "prod", 1)
    lines = dict(line.split(maxsplit=1) for line in show("artifacts", "show", "my-app", "prod").splitlines())
    assert (lines["version"], lines["size"], lines["aliases"]) == ("1", "3 bytes", "prod")
    assert lines["key"] == "versioned-artifacts/my-app/000001"
    with Database() as db:
        assert read_json("artifacts", "show", "my-app", "1") == db.artifacts.get("my-app", 1).describe()


def test_a_deleted_version_is_shown_with_an_option() -> None:
    publish_all(b"one")
    run_silently("artifacts", "delete", "my-app", "1")
    assert "there is no version 1" in refuse("artifacts", "show", "my-app", "1")
    assert "\ndeleted " in show("artifacts", "show", "my-app", "1", "--deleted")


def test_a_download_goes_to_a_file_or_to_stdout(folder: Path) -> None:
    publish_all(b"one", b"two")
    assert (
        run_silently("artifacts", "download", "my-app", "1", "--to", "out")
        == "version 1 of my-app written to out: 3 bytes\n"
    )
    assert (folder / "out").read_bytes() == b"one"
    assert show("artifacts", "download", "my-app", "--to", "-") == "two"
    ended = call("artifacts", "download", "my-app", "1", "--to", "out", "--json")
    assert json.loads(ended.stdout)["path"] == "out"


def test_an_alias_always_serves_a_key_the_same_version(folder: Path) -> None:
    publish_all(b"one", b"two")
    run_silently("alias", "set", "my-app", "prod", "1", "--secondary", "2", "--weight", "50")
    with Database() as db:
        picks = {key: db.artifacts.alias("my-app", "prod").resolve(key) for key in ("a", "b", "c", "d")}
    assert set(picks.values()) == {"1", "2"}
    for key, version in picks.items():
        assert show("alias", "resolve", "my-app", "prod", "--key", key) == f"{version}\n"
        assert read_json("artifacts", "show", "my-app", "prod", "--key", key)["version"] == version
        content = {"1": "one", "2": "two"}[version]
        assert show("artifacts", "download", "my-app", "prod", "--to", "-", "--key", key) == content


# --- delete, restore, prune, purge, reindex ---------------------------------------------------------------


def test_a_version_is_deleted_and_restored() -> None:
    publish_all(b"one")
    assert run_silently("artifacts", "delete", "my-app", "1") == "version 1 of my-app deleted\n"
    nothing = "there is no version 1 of my-app: nothing to delete\n"
    assert run_silently("artifacts", "delete", "my-app", "1") == nothing
    assert run_silently("artifacts", "restore", "my-app", "1").startswith(
        "version 1 of my-app restored: 3 bytes"
    )
    assert "is not a version" in refuse("artifacts", "delete", "my-app", "newest")


def test_a_version_that_an_alias_serves_is_deleted_only_together_with_the_alias() -> None:
    publish_all(b"one")
    run_silently("alias", "set", "my-app", "prod", "1", "--protected")
    assert refuse("artifacts", "delete", "my-app", "1") == (
        "error: version 1 of 'my-app' cannot be deleted while aliases serve it: prod\n"
        "hint: point them elsewhere first, or delete them too with --drop-aliases\n"
    )
    assert refuse("artifacts", "delete", "my-app", "1", "--drop-aliases") == (
        "error: the alias 'prod' of 'my-app' is protected\nhint: to change it anyway, pass --allow-protected\n"
    )
    run_silently("artifacts", "delete", "my-app", "1", "--drop-aliases", "--allow-protected")
    assert run_silently("alias", "list", "my-app") == "my-app has no aliases\n"


def test_prune_deletes_what_its_dry_run_announced() -> None:
    publish_all(b"one", b"two", b"three")
    run_silently("alias", "set", "my-app", "prod", "1")
    words = ("artifacts", "prune", "my-app", "--keep-last", "1", "--older-than", "0s")
    dry = call(*words, "--dry-run")
    assert (dry.stdout, dry.stderr) == (
        "2\n",
        "1 version would be deleted\nversion 1 kept: it is served by prod\n",
    )
    report = read_json(*words)
    assert ([each["version"] for each in report["pruned"]], report["dry_run"]) == (["2"], False)
    assert [each["version"] for each in report["in_use"]] == ["1"]
    assert [each["version"] for each in read_json("artifacts", "list", "my-app")["versions"]] == [
        "LATEST",
        "3",
        "1",
    ]
    assert run_silently("artifacts", "prune", "my-app") == "0 versions deleted\n"


def test_purge_deletes_the_objects_and_reports_their_size() -> None:
    publish_all(b"one", b"two")
    dry = run_silently("artifacts", "purge", "my-app", "--dry-run")
    assert dry == "would be purged: 3 versions, 3 objects with 9 bytes\n"
    assert (
        run_silently("artifacts", "purge", "my-app", "1", "--yes")
        == "purged: 1 version, 1 object with 3 bytes\n"
    )
    assert (
        run_silently("artifacts", "purge", "my-app", "1")
        == "there is no version 1 of my-app: nothing to purge\n"
    )
    assert read_json("artifacts", "purge", "my-app", "--yes") == {
        "name": "my-app",
        "versions": ["LATEST", "2"],
        "aliases": [],
        "objects": 2,
        "bytes": 6,
        "dry_run": False,
    }
    with Database() as db:
        assert list(db.files.list()) == []


def test_without_a_terminal_nothing_is_purged() -> None:
    publish_all(b"one")
    assert refuse("artifacts", "purge", "my-app") == (
        "error: artifact my-app was not purged: there is no terminal to ask for confirmation\n"
        "hint: add --yes if you are sure\n"
    )
    assert len(read_json("artifacts", "list", "my-app")["versions"]) == 2


def run_at_terminal(folder: Path, *words: str, typed: str = "") -> tuple[int, str]:
    """Run a command in a terminal with this input; return the exit status and what the terminal shows."""
    assert INSTALLED is not None
    ours, theirs = pty.openpty()
    environment = {**bare_environment(folder), "HOLDALL_URL": URL}
    with subprocess.Popen(
        [INSTALLED, *words], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as program:
        os.write(ours, typed.encode())
        os.close(theirs)
        seen = b""
        while piece := _read(ours):
            seen += piece
        program.wait(60)
        os.close(ours)
        return program.returncode, seen.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux reports this once no process has the other end open
        return b""


def test_at_a_terminal_a_purge_is_confirmed_by_typing_the_name_or_the_version(folder: Path) -> None:
    publish_all(b"one")
    code, seen = run_at_terminal(folder, "artifacts", "purge", "my-app", "1", typed="my-app\n")
    assert code == 5
    assert seen.endswith("error: version 1 of my-app was not purged: you did not type the version\n")
    assert "This purges 1 version, 1 object with 3 bytes of my-app. It cannot be undone." in seen
    code, seen = run_at_terminal(folder, "artifacts", "purge", "my-app", typed="my-app\n")
    assert code == 0
    assert seen.endswith("purged: 2 versions, 2 objects with 6 bytes\n")


def test_at_a_terminal_a_bar_shows_progress(folder: Path) -> None:
    (folder / "large").write_bytes(bytes(3_000_000))
    code, seen = run_at_terminal(folder, "artifacts", "put", "my-app", "large")
    assert code == 0
    assert "100%" in seen
    assert "3.0 MB" in seen


def test_reindex_reports_the_artifacts_that_it_checked() -> None:
    publish_all(b"one")
    assert run_silently("artifacts", "reindex") == "1 artifact: 0 added to the list, 0 removed\n"
    report = {"artifacts": 1, "added": 0, "removed": 0, "objects": 0, "bytes": 0}
    assert read_json("artifacts", "reindex") == report


# --- aliases ----------------------------------------------------------------------------------------------


def test_an_alias_serves_one_version_two_or_many() -> None:
    publish_all(b"one", b"two", b"three")
    assert run_silently("alias", "set", "my-app", "prod", "1") == "alias prod of my-app serves 1\n"
    split = run_silently("alias", "set", "my-app", "prod", "1", "--secondary", "2", "--weight", "20")
    assert split == "alias prod of my-app serves 1 (80 %), 2 (20 %)\n"
    many = read_json("alias", "set", "my-app", "prod", "--weights", "1=50, 2=30, 3=20")
    assert many["weights"] == {"1": 50, "2": 30, "3": 20}
    assert read_json("alias", "show", "my-app", "prod") == many
    lines = show("alias", "show", "my-app", "prod").splitlines()
    assert lines[2] == "serves     1 (50 %), 2 (30 %), 3 (20 %)"
    heads, row = show("alias", "list", "my-app").splitlines()
    assert heads.split() == ["alias", "serves", "since", "protected"]
    assert row.startswith("prod   1 (50 %), 2 (30 %), 3 (20 %)")
    assert [each["alias"] for each in read_json("alias", "list", "my-app")["aliases"]] == ["prod"]


@pytest.mark.parametrize(
    "words",
    [
        ("alias", "set", "my-app", "prod"),
        ("alias", "set", "my-app", "prod", "1", "--weights", "1=1"),
        ("alias", "set", "my-app", "prod", "--weights", "1"),
        ("alias", "set", "my-app", "prod", "--weights", "1=1,1=2"),
        ("alias", "set", "my-app", "prod", "1", "--secondary", "2"),
        ("alias", "set", "my-app", "prod", "1", "--weight", "2"),
        ("alias", "resolve", "my-app", "prod", "--count", "5", "--key", "a"),
        ("alias", "rollout", "start", "my-app", "prod", "1"),
        ("alias", "rollout", "start", "my-app", "prod", "1", "--stage", "5:"),
        ("alias", "rollout", "start", "my-app", "prod", "1", "--stage", "half"),
        ("artifacts", "put", "my-app", "-", "--tag", "novalue"),
        ("artifacts", "put", "my-app", "-", "--tag", "a=1", "--tag", "a=2"),
        ("artifacts", "list", "--tag", "a=1"),
        ("artifacts", "list", "my-app", "--starting-with", "a"),
        ("artifacts", "list", "my-app", "--since", "yesterday"),
        ("artifacts", "download", "my-app", "1", "2", "--to", "out"),
        ("artifacts", "download", "my-app", "prod"),
        ("artifacts", "publish", "my-app", "--metadata", "a=b"),
    ],
)
def test_an_invalid_command_line_is_rejected(words: tuple[str, ...]) -> None:
    assert "Error: " in refuse_usage(*words)


def test_an_invalid_or_missing_alias_is_an_error() -> None:
    publish_all(b"one")
    assert "there is no version 7" in refuse("alias", "set", "my-app", "prod", "7")
    assert "looks like a version" in refuse("alias", "set", "my-app", "1", "1")
    assert "no alias 'prod'" in refuse("alias", "show", "my-app", "prod")
    assert "no alias 'prod'" in refuse("alias", "rollback", "my-app", "prod")
    assert (
        run_silently("alias", "delete", "my-app", "prod") == "my-app has no alias prod: nothing to delete\n"
    )
    assert run_silently("alias", "history", "my-app", "prod") == "prod of my-app has no history\n"


def test_hints_name_options_not_arguments() -> None:
    publish_all(b"one")
    run_silently("alias", "set", "my-app", "prod", "1", "--protected")
    assert "pass --allow-protected\n" in refuse("alias", "delete", "my-app", "prod")
    assert "with --drop-aliases\n" in refuse("artifacts", "delete", "my-app", "1")


def test_history_shows_each_change_and_rollback_restores_an_earlier_state() -> None:
    publish_all(b"one", b"two")
    run_silently("alias", "set", "my-app", "prod", "1")
    run_silently(
        *("alias", "set", "my-app", "prod", "1", "--secondary", "2", "--weight", "5"),
        *("--by", "ada", "--reason", "try it"),
    )
    assert run_silently("alias", "rollback", "my-app", "prod") == "alias prod of my-app serves 1\n"
    changes = read_json("alias", "history", "my-app", "prod")["changes"]
    assert [(each["number"], each["action"], each["weights"], each["of"]) for each in changes] == [
        (3, "rollback", {"1": 100}, 1),
        (2, "set", {"1": 95, "2": 5}, None),
        (1, "set", {"1": 100}, None),
    ]
    rows = show("alias", "history", "my-app", "prod").splitlines()
    assert rows[2].endswith("  set            1 (95 %), 2 (5 %)  ada  try it")
    then = read_json("alias", "show", "my-app", "prod", "--at", changes[1]["at"])
    assert then["weights"] == {"1": 95, "2": 5}
    run_silently("alias", "delete", "my-app", "prod")
    back = run_silently("alias", "rollback", "my-app", "prod", "--to", "2")
    assert back == "alias prod of my-app serves 1 (95 %), 2 (5 %)\n"
    assert read_json("alias", "history", "my-app", "prod", "--limit", "1")["more"] is True
    assert (
        run_silently("alias", "rollback", "my-app", "prod", "--to-version", "1")
        == "alias prod of my-app serves 1\n"
    )
    refuse_usage("alias", "rollback", "my-app", "prod", "--to-version", "1", "--to", "1")


def test_a_protected_alias_is_changed_only_with_an_option() -> None:
    publish_all(b"one", b"two")
    run_silently("alias", "set", "my-app", "prod", "1", "--protected")
    for words in (("set", "my-app", "prod", "2"), ("delete", "my-app", "prod")):
        assert "pass --allow-protected" in refuse("alias", *words)
    run_silently("alias", "set", "my-app", "prod", "2", "--allow-protected")
    assert read_json("alias", "show", "my-app", "prod")["protected"] is True
    run_silently("alias", "set", "my-app", "prod", "2", "--allow-protected", "--unprotected")
    assert "set, unprotected" in show("alias", "history", "my-app", "prod")
    run_silently("alias", "delete", "my-app", "prod")


def test_an_alias_is_changed_only_if_its_revision_is_as_expected() -> None:
    publish_all(b"one", b"two")
    revision = read_json("alias", "set", "my-app", "prod", "1")["revision"]
    run_silently("alias", "set", "my-app", "prod", "2", "--expect-revision", revision)
    assert "has revision" in refuse("alias", "set", "my-app", "prod", "1", "--expect-revision", revision)


def test_many_picks_are_counted_in_a_chart() -> None:
    publish_all(b"one", b"two")
    run_silently("alias", "set", "my-app", "prod", "1", "--secondary", "2", "--weight", "20")
    report = read_json("alias", "resolve", "my-app", "prod", "--count", "2000")
    assert sum(report["picks"].values()) == report["count"] == 2000
    assert report["shares"] == {"1": 0.8, "2": 0.2}
    assert 200 < report["picks"]["2"] < 600
    first, second = show("alias", "resolve", "my-app", "prod", "--count", "2000").splitlines()
    assert first.startswith("1  " + "█" * 30)
    assert 3 < second.count("█") < 15


def test_the_picks_of_several_keys_are_a_table() -> None:
    publish_all(b"one")
    run_silently("alias", "set", "my-app", "prod", "1")
    assert show("alias", "resolve", "my-app", "prod") == "1\n"
    keys = ("--key", "ada", "--key", "grace")
    assert show("alias", "resolve", "my-app", "prod", *keys) == "key    version\nada    1\ngrace  1\n"
    picks = read_json("alias", "resolve", "my-app", "prod", *keys)["picks"]
    assert picks == [{"key": "ada", "version": "1"}, {"key": "grace", "version": "1"}]


# --- rollouts ---------------------------------------------------------------------------------------------


def test_a_rollout_is_started_paused_resumed_advanced_and_done() -> None:
    publish_all(b"one", b"two")
    run_silently("alias", "set", "my-app", "prod", "1")
    message = run_silently(
        "alias", "rollout", "start", "my-app", "prod", "2", "--stage", "5:1h", "--stage", "50"
    )
    assert message.startswith(
        "rollout of version 2 to prod of my-app is running: the version gets 5 % until 2"
    )
    lines = show("alias", "rollout", "show", "my-app", "prod").splitlines()
    assert "stages    5 % for 1h, 50 % until advanced, 100 %" in lines
    assert run_silently("alias", "rollout", "pause", "my-app", "prod").endswith(
        "is paused: the version gets 5 %\n"
    )
    assert "the version gets 5 % until 2" in run_silently("alias", "rollout", "resume", "my-app", "prod")
    advanced = run_silently("alias", "rollout", "advance", "my-app", "prod")
    assert advanced.endswith("is waiting: the version gets 50 % until you advance the rollout\n")
    assert read_json("alias", "rollout", "advance", "my-app", "prod")["state"] == "done"
    assert read_json("alias", "rollout", "show", "my-app", "prod")["percent"] == 100
    assert read_json("alias", "show", "my-app", "prod")["weights"] == {"2": 100}


def test_an_aborted_rollout_restores_the_alias() -> None:
    publish_all(b"one", b"two")
    run_silently("alias", "set", "my-app", "prod", "1")
    assert "has never had a rollout" in refuse("alias", "rollout", "show", "my-app", "prod")
    run_silently("alias", "rollout", "start", "my-app", "prod", "2", "--stage", "50")
    assert run_silently("alias", "rollout", "abort", "my-app", "prod").endswith(
        "is aborted: the version gets 0 %\n"
    )
    assert read_json("alias", "show", "my-app", "prod")["weights"] == {"1": 100}
    assert "is aborted" in refuse("alias", "rollout", "advance", "my-app", "prod")


# --- settings and handlers --------------------------------------------------------------------------------


def test_settings_of_artifacts_come_from_options_the_environment_or_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "holdall.toml").write_text('[artifacts]\nprefix = "from-file"\nsuffix = ".zip"\n')

    def put_and_read_key(*words: str) -> str:
        name = f"a{uuid4().hex[:8]}"
        run_silently("artifacts", *words, "put", name, "-", typed="x")
        lines = show("artifacts", *words, "show", name).splitlines()
        return next(line.split()[1] for line in lines if line.startswith("key")).replace(name, "NAME")

    assert put_and_read_key() == "from-file/NAME/LATEST.zip"
    assert put_and_read_key("--prefix", "given") == "given/NAME/LATEST.zip"
    assert put_and_read_key("--prefix", "given", "--suffix", "") == "given/NAME/LATEST"
    monkeypatch.setenv("HOLDALL_ARTIFACTS", "prefix=from-environment")
    assert put_and_read_key() == "from-environment/NAME/LATEST"
    assert "the table elsewhere for artifacts does not exist" in refuse(
        "artifacts", "list", "--table", "elsewhere"
    )
    assert "there is no file service 'other'" in refuse("artifacts", "publish", "x", "--service", "other")


def test_a_change_enqueues_the_handlers_of_the_named_app(folder: Path) -> None:
    (folder / "shop.py").write_text(
        "from holdall.artifacts import on\n\n@on('published', 'alias_moved', name='notify')\ndef notify(event): ...\n"
    )
    publish_all(b"one")
    environment = {"HOLDALL_URL": URL}
    silent = start("alias", "set", "my-app", "prod", "1", folder=folder, **environment)
    handled = start("alias", "set", "my-app", "prod", "LATEST", "--app", "shop", folder=folder, **environment)
    assert (silent.returncode, handled.returncode) == (0, 0), silent.stderr + handled.stderr
    with Database() as db:
        (job,) = db.jobs.list()
    assert job.name == "notify"
    assert '"alias_moved"' in job.arguments
