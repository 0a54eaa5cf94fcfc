"""``holdall copy``: what it copies, its output on each stream, and its exit status."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from cli_rig import call
from rig.servers import ENVIRONMENT, start_server

from holdall import Database, job
from holdall.cli.progress import run_progress
from holdall.core import PutItem, encode_item

SOURCE, TARGET = "embedded:app.db?durability=normal", "embedded:copy.db?durability=normal"


@job("cli-copied")
def do_nothing() -> None: ...


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("HOLDALL_"):
            monkeypatch.delenv(name)
    with Database(SOURCE) as db:
        db.table.create()
        put(db, *range(3))
        db.files.put("a.txt", b"bytes")


def put(db: Database, *numbers: int, **values: object) -> None:
    for number in numbers:
        db.send(PutItem("holdall", encode_item({"pk": "thing", "sk": str(number), **values})))


def test_for_a_target_without_a_file_service_the_error_names_the_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    ended = call(
        "copy", SOURCE, f"dynamodb://copy-without-files?endpoint={start_server('ministack')}", "--dry-run"
    )
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.splitlines() == [
        "error: the source has files in the service default, and the target has no service default, or any other",
        "hint: pass --target-files s3://BUCKET, or leave out files (--no-files)",
    ]


def test_everything_is_copied_and_the_summary_goes_to_stdout() -> None:
    ended = call("copy", SOURCE, TARGET)
    assert ended.exit_code == 0
    assert ended.stdout.splitlines() == [
        "table holdall: 3 items, 3 copied",
        "verified: 3 items equal on both sides",
        "files default: 1 file, 1 copied",
        "verified: 1 file equal on both sides",
    ]
    assert ended.stderr == ""
    with Database(TARGET) as db:
        assert db.files.get("a.txt") == b"bytes"
    assert call("copy", SOURCE, TARGET, "--no-verify", "--no-files").stdout.splitlines() == [
        "table holdall: 3 items, 3 unchanged since the last pass",
    ]
    assert len(list(Path().glob("holdall-copy-*.manifest"))) == 1


def test_a_dry_run_writes_nothing_and_prints_what_it_would_cost() -> None:
    before = sorted(Path().iterdir())
    ended = call("copy", SOURCE, TARGET, "--dry-run")
    assert ended.exit_code == 0
    assert ended.stdout.splitlines() == [
        "table holdall: 3 items, 3 would be copied",
        "files default: 1 file, 1 would be copied",
        "to DynamoDB: 30 bytes, about 3 write units, $0.0000019",
        "to S3: 5 bytes, 1 request or more, $0.0000050",
        "(on demand, prices of 2026-08-20 in us-east-1, without transfer and reads)",
    ]
    assert sorted(Path().iterdir()) == before


def test_the_report_can_be_json() -> None:
    report = json.loads(call("copy", SOURCE, TARGET, "--json", "--manifest", "m").stdout)
    assert (report["source"], report["target"], report["dry_run"]) == (SOURCE, TARGET, False)
    assert Path(report["manifest"]).name == "m"
    assert [(part["kind"], part["copied"], part["verified"]) for part in report["parts"]] == [
        ("table", 3, 3),
        ("files", 1, 1),
    ]


def test_items_changed_in_the_target_are_kept_and_the_exit_status_is_1() -> None:
    call("copy", SOURCE, TARGET)
    for url, colour in ((SOURCE, "red"), (TARGET, "green")):
        with Database(url) as db:
            put(db, 1, colour=colour)
    ended = call("copy", SOURCE, TARGET, "--no-verify")
    assert ended.exit_code == 1
    assert ended.stderr.splitlines()[:2] == [
        "table holdall: thing / 1: changed in the target, so it was not replaced",
        "error: the copy is not complete",
    ]
    assert call("copy", SOURCE, TARGET, "--overwrite", "--delete").exit_code == 0


def test_jobs_are_paused_until_they_are_resumed() -> None:
    with Database(SOURCE) as db:
        db.jobs.enqueue(do_nothing)
    ended = call("copy", SOURCE, TARGET)
    assert "1 waiting job, paused in the target until resumed" in ended.stdout.splitlines()
    assert f"run: holdall --url '{TARGET}' jobs resume" in ended.stderr
    assert call("--url", TARGET, "jobs", "list", "--state", "paused").stdout.count("cli-copied") == 1
    assert call("--url", TARGET, "jobs", "resume", "--queue", "other").stderr == "0 jobs resumed\n"
    assert call("--url", TARGET, "jobs", "resume").stderr == "1 job resumed\n"
    assert call("--url", TARGET, "jobs", "list", "--state", "waiting").stdout.count("cli-copied") == 1


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("embedded:none.db", TARGET), 3, "there is no table holdall, because there is no file"),
        ((SOURCE, "nonsense"), 2, "'nonsense' is not a database URL"),
        ((SOURCE, SOURCE), 2, "the source and the target are the same table, holdall"),
        ((SOURCE, TARGET, "--table", "other"), 3, "there is no table other in the source"),
        ((SOURCE, TARGET, "--models", "no.such.module"), 2, "there is no module no"),
        ((SOURCE, TARGET, "--manifest", "app.db"), 2, "is not the manifest of a copy"),
        ((SOURCE,), 2, "Missing argument 'DST'"),
        ((SOURCE, TARGET, "--segments", "0"), 2, "Invalid value for '--segments'"),
        ((SOURCE, TARGET, "--bandwidth", "fast"), 2, "'fast' is not a number of bytes above 0, such as"),
        ((SOURCE, TARGET, "--bandwidth", "0MB"), 2, "Invalid value for '--bandwidth'"),
    ],
)
def test_invalid_input_is_explained(words: tuple[str, ...], status: int, message: str) -> None:
    ended = call("copy", *words)
    assert (ended.exit_code, message in ended.stderr) == (status, True), ended.stderr
    assert not Path("copy.db").exists()


def test_a_url_before_the_command_is_refused() -> None:
    ended = call("--url", SOURCE, "copy", SOURCE, TARGET)
    assert (ended.exit_code, Path("copy.db").exists()) == (2, False)
    assert "--url is not an option of this command; name both databases as SRC and DST" in ended.stderr


def test_expired_items_are_left_out_and_counted() -> None:
    with Database(SOURCE) as db:
        put(db, 3, _ttl=int(time.time()) - 10)
    lines = call("copy", SOURCE, TARGET, "--no-files").stdout.splitlines()
    assert lines[0] == "table holdall: 4 items, 3 copied, 1 left out"


def test_files_can_be_copied_to_another_service() -> None:
    assert call("copy", SOURCE, TARGET, "--target-files", "file:elsewhere").exit_code == 0
    with Database(TARGET, files="file:elsewhere") as db:
        assert db.files.get("a.txt") == b"bytes"


def test_progress_has_the_rate_and_the_time_left() -> None:
    with Database(SOURCE) as db:
        put(db, *range(1200))
    lines = call("copy", SOURCE, TARGET, "--segments", "1", "--bandwidth", "1.5 GB").stderr.splitlines()
    first, *_, last = lines
    assert first == "copy: 1,000 items read, 1,000 copied"
    assert re.fullmatch(r"copy: 3,[0-9]{3} items read, 1,201 copied, [0-9,]+/s, 0:0[0-9]:[0-9]{2} left", last)


def test_without_a_terminal_a_long_run_prints_few_lines_of_progress(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Progress(NamedTuple):
        scanned: int

    with run_progress("copy", None, lambda progress: "read") as update:
        for thousands in range(1, 2001):
            update(Progress(thousands * 1000))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["copy: 1,000 items read, read", "copy: 2,000 items read, read"]
    assert 10 < len(lines) < 100


# --- dump and load ----------------------------------------------------------------------------------------


def test_items_are_dumped_and_loaded() -> None:
    ended = call("--url", SOURCE, "dump")
    assert ended.exit_code == 0
    assert ended.stdout.splitlines() == [
        '["table", null, ["pk", "sk"]]',
        *(f'{{"pk": "thing", "sk": "{number}"}}' for number in range(3)),
    ]
    Path("items.jsonl").write_text(ended.stdout)
    assert call("--url", TARGET, "table", "create").exit_code == 0
    assert call("--url", TARGET, "load", "items.jsonl").stderr == "3 items loaded\n"
    assert call("--url", TARGET, "load", "-", typed=ended.stdout).exit_code == 0
    assert call("--url", TARGET, "dump").stdout == ended.stdout


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("load", "none.jsonl"), 2, "No such file"),
        (("load", "bad.jsonl"), 2, "line 1 cannot be loaded"),
        (
            ("load", "head.jsonl"),
            2,
            'line 1 cannot be loaded: a table begins with ["table", NAME, [KEY, ...]]',
        ),
        (("load", "deep.jsonl"), 2, "line 1 cannot be loaded: maximum recursion depth exceeded"),
        (("load", "typed.jsonl"), 2, "key attribute pk of table holdall must be of type string (S), not N"),
        (("load", "latin.jsonl"), 2, "the text after line 0 is not UTF-8"),
        (("load", "other.jsonl"), 3, "line 2 cannot be loaded: there is no table other"),
        (("dump", "--table", "other"), 3, "there is no table other"),
        (("dump", "--models", "no.such.module"), 2, "there is no module no"),
    ],
)
def test_errors_of_dump_and_load_are_explained(words: tuple[str, ...], status: int, message: str) -> None:
    Path("bad.jsonl").write_text("nonsense\n")
    Path("head.jsonl").write_text('["other"]\n')
    Path("deep.jsonl").write_text("[" * 100_000)
    Path("typed.jsonl").write_text('{"pk": 5, "sk": "b"}\n')
    Path("latin.jsonl").write_bytes(b"\xff")
    Path("other.jsonl").write_text('{"pk": "a", "sk": "b"}\n["table", "other", ["id"]]\n')
    ended = call("--url", SOURCE, *words)
    assert (ended.exit_code, message in ended.stderr) == (status, True), ended.stderr
