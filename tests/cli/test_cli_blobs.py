"""``holdall blobs``: what it shows and changes, its output on each stream, and its exit status."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from cli_rig import call, enter, start
from PIL import Image

from holdall import Database
from holdall.attachments.home import find_home
from holdall.attachments.record import BlobRow
from holdall.core.expressions import Update
from holdall.core.port import run
from holdall.core.requests import UpdateItem

URL = "embedded:app.db"
MISSING_ID = "00000000-0000-4000-8000-000000000000"
OWNER = "User", "7"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch, URL)
    with Database() as db:
        db.table.create()
    return tmp_path


def upload(data: bytes = b"bytes", name: str = "a.txt", **options: Any) -> str:
    with Database() as db:
        return db.blobs.create_and_upload(data, filename=name, **options).id


def upload_attached(name: str = "documents") -> str:
    id = upload()
    assert call("blobs", "attach", id, *OWNER, name).exit_code == 0
    return id


def read_json(*words: str) -> Any:
    """Run a command with ``--json``; return its output."""
    ended = call("blobs", *words, "--json")
    assert (ended.exit_code, ended.stderr) == (0, "")
    return json.loads(ended.stdout)


def list_attached() -> list[tuple[str, str]]:
    return [(each["name"], each["blob"]["id"]) for each in read_json("list", *OWNER)["attachments"]]


def damage(id: str, *actions: Any) -> None:
    """Change a blob's row directly."""
    with Database() as db:
        home = run(find_home(db._context))
        db.send(UpdateItem(home.layout.table, home.blob(id).key, Update(actions)))


# --- upload and download ----------------------------------------------------------------------------------


def test_a_file_is_uploaded_shown_and_downloaded(folder: Path) -> None:
    (folder / "table.csv").write_bytes(b"a,b\n")
    ended = call("blobs", "upload", "table.csv")
    assert (ended.exit_code, ended.stderr) == (0, "")
    printed = dict(line.split(maxsplit=1) for line in ended.stdout.splitlines())
    assert (printed["filename"], printed["content_type"], printed["byte_size"]) == (
        "table.csv",
        "text/csv",
        "4",
    )
    assert printed["metadata"] == '{"identified": true}'
    shown = read_json("show", printed["id"])
    assert (shown["id"], shown["byte_size"], shown["attachments"]) == (printed["id"], 4, [])
    assert datetime.fromisoformat(shown["created_at"]).utcoffset() == timedelta(0)
    ended = call("blobs", "download", printed["id"], "--to", "copy.csv")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "copy.csv: 4 bytes\n")
    assert (folder / "copy.csv").read_bytes() == b"a,b\n"


def test_an_upload_can_set_the_name_and_type_and_reuse_an_identical_blob(folder: Path) -> None:
    (folder / "file").write_bytes(b"a,b\n")
    words = ("upload", "file", "--filename", "b", "--type", "text/csv", "--dedupe", "--service", "default")
    shown, again = read_json(*words), read_json(*words)
    assert (shown["filename"], shown["content_type"], shown["service"]) == ("b", "text/csv", "default")
    assert again["id"] == shown["id"]


def test_a_download_overwrites_a_file_only_if_it_is_named(folder: Path) -> None:
    id = upload(b"new")
    (folder / "a.txt").write_bytes(b"old")
    ended = call("blobs", "download", id)
    assert (ended.exit_code, ended.stdout) == (4, "")
    assert ended.stderr.startswith("error: a.txt ")
    assert (folder / "a.txt").read_bytes() == b"old"
    assert call("blobs", "download", id, "--to", "a.txt").exit_code == 0
    assert (folder / "a.txt").read_bytes() == b"new"


def test_a_stored_file_name_cannot_lead_to_another_directory(folder: Path) -> None:
    id = upload(name="../../evil\x1b.txt")
    ended = call("blobs", "download", id)
    assert ended.exit_code == 0
    assert "\x1b" not in ended.stderr
    assert [path.name for path in folder.glob("*evil*")] == ["..-..-evil\x1b.txt"]


def test_downloading_damaged_bytes_fails_and_leaves_no_file(folder: Path) -> None:
    id = upload(b"bytes")
    with Database() as db:
        db.files.put(db.blobs.find(id).key, b"bytez")
    ended = call("blobs", "download", id)
    assert (ended.exit_code, ended.stdout) == (1, "")
    assert ended.stderr.startswith("error: ")
    assert not (folder / "a.txt").exists()


# --- owners -----------------------------------------------------------------------------------------------


def test_a_blob_is_attached_listed_shown_and_detached() -> None:
    id = upload()
    ended = call("blobs", "attach", id, *OWNER, "documents")
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert ended.stderr == f"{id} attached to User 7 as documents\n"
    ended = call("blobs", "list", *OWNER)
    heads, row = (line.split() for line in ended.stdout.splitlines())
    assert heads == ["name", "file", "type", "size", "blob", "attachment"]
    assert row[:6] == ["documents", "a.txt", "text/plain", "5", "bytes", id]
    facts, _, table = call("blobs", "show", id).stdout.partition("\n\n")
    assert "attachments_count  1" in facts
    assert [line.split() for line in table.splitlines()] == [
        ["owner", "id", "name", "attachment"],
        [*OWNER, "documents", row[6]],
    ]
    assert read_json("list", *OWNER, "--name", "other") == {"attachments": []}
    assert call("blobs", "detach", row[6], *OWNER, "documents").stderr == f"{row[6]} detached\n"
    again = call("blobs", "detach", row[6], *OWNER, "documents")
    assert (again.exit_code, again.stderr) == (0, f"{row[6]} was not attached\n")
    assert read_json("show", id)["attachments_count"] == 0
    ended = call("blobs", "list", *OWNER)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "User 7 has no attached files\n")


def test_attach_one_replaces_the_previous_blob_and_a_worker_purges_it() -> None:
    old, new = upload_attached("avatar"), upload()
    assert call("blobs", "attach", new, *OWNER, "avatar", "--one").exit_code == 0
    assert list_attached() == [("avatar", new)]
    (attachment,) = read_json("show", new)["attachments"]
    assert call("blobs", "detach", attachment["id"], *OWNER, "avatar", "--purge").exit_code == 0
    with Database() as db:
        db.worker().drain()
    assert [call("blobs", "show", id).exit_code for id in (old, new)] == [3, 3]


# --- purge and sweep --------------------------------------------------------------------------------------


def test_a_purge_skips_attached_and_missing_blobs() -> None:
    held, loose = upload_attached(), upload()
    ended = call("blobs", "purge", held, loose)
    assert (ended.exit_code, ended.stdout) == (5, "")
    assert ended.stderr.splitlines()[:2] == [
        "1 blob purged",
        f"error: 1 blob kept because of attachments: {held}",
    ]
    assert [call("blobs", "show", id).exit_code for id in (held, loose)] == [0, 3]
    other = upload()
    ended = call("blobs", "purge", MISSING_ID, other)
    assert (ended.exit_code, ended.stderr) == (3, f"1 blob purged\nerror: there is no blob {MISSING_ID}\n")
    assert call("blobs", "show", other).exit_code == 3


def test_a_purge_can_be_left_to_a_worker() -> None:
    first, second = upload(), upload()
    ended = call("blobs", "purge", "--later", first, second)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "2 blobs will be purged by a worker\n")
    assert call("blobs", "show", first).exit_code == 0
    with Database() as db:
        db.worker().drain()
    assert [call("blobs", "show", id).exit_code for id in (first, second)] == [3, 3]


def test_a_sweep_keeps_recent_blobs() -> None:
    id = upload()
    assert read_json("sweep", "--dry-run") == read_json("sweep") == {"blobs": 0, "bytes": 0, "attached": 0}
    message = "0 blobs and the bytes of 0 uploads would be deleted; 0 attached blobs kept\n"
    assert call("blobs", "sweep", "--dry-run").stderr == message
    assert call("blobs", "sweep").stderr == message.replace("would be deleted", "deleted")
    assert call("blobs", "show", id).exit_code == 0


# --- check ------------------------------------------------------------------------------------------------


def test_a_check_reports_what_a_repair_would_do_and_the_repair_does_it() -> None:
    id = upload_attached()
    assert call("blobs", "check").stderr == "1 blob, 1 attachment, 0 findings\n"
    (attachment,) = read_json("show", id)["attachments"]
    damage(id, BlobRow.count.set(5), BlobRow.references[attachment["id"]].remove())
    ended = call("blobs", "check")
    assert (ended.exit_code, ended.stderr) == (4, "1 blob, 1 attachment, 2 findings\n")
    assert "set the count to 1" in ended.stdout
    assert "repair would" in ended.stdout
    shown = json.loads(call("blobs", "check", "--json").stdout)
    assert [each["problem"] for each in shown["findings"]] == ["count", "references"]
    assert {each["id"] for each in shown["findings"]} == {id}
    repaired = call("blobs", "check", "--repair", "--json")
    assert (repaired.exit_code, json.loads(repaired.stdout)["repaired"]) == (0, 2)
    assert read_json("check") == {"blobs": 1, "attachments": 1, "findings": [], "repaired": 0}
    assert len(read_json("show", id)["attachments"]) == 1


def test_missing_bytes_are_reported_and_cannot_be_repaired() -> None:
    id = upload_attached()
    with Database() as db:
        db.files.delete(db.blobs.find(id).key)
    ended = call("blobs", "check", "--repair")
    assert (ended.exit_code, ended.stderr) == (4, "1 blob, 1 attachment, 1 finding\n")
    assert "no repair is possible" in ended.stdout
    assert read_json("check", "--no-bytes")["findings"] == []


def test_reindex_adds_references_that_another_program_did_not_write() -> None:
    id = upload_attached()
    (attachment,) = read_json("show", id)["attachments"]
    damage(id, BlobRow.references[attachment["id"]].remove())
    assert read_json("show", id)["attachments"] == []
    assert call("blobs", "reindex").stderr == "1 blob changed\n"
    assert read_json("show", id)["attachments"] == [attachment]
    assert call("blobs", "reindex").stderr == "0 blobs changed\n"


# --- metadata, errors and pictures ------------------------------------------------------------------------


def test_metadata_of_any_kind_is_shown() -> None:
    id = upload(metadata={"seconds": 2.5, "pages": [1, None], "raw": b"\x00"})
    shown = read_json("show", id)["metadata"]
    assert (shown["seconds"], shown["pages"], shown["identified"]) == (2.5, [1, None], True)
    assert '"seconds": 2.5' in call("blobs", "show", id).stdout


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("show", MISSING_ID), 3),
        (("show", "a#b"), 3),
        (("download", MISSING_ID), 3),
        (("attach", MISSING_ID, *OWNER, "avatar"), 3),
        (("purge", MISSING_ID), 3),
        (("upload", "missing.txt"), 2),
        (("list", "User"), 2),
        (("list", "User", "a#b"), 2),
        (("purge",), 2),
    ],
)
def test_a_missing_blob_and_an_invalid_command_line_are_errors(words: tuple[str, ...], status: int) -> None:
    ended = call("blobs", *words)
    assert (ended.exit_code, ended.stdout) == (status, "")
    assert "rror: " in ended.stderr


def test_with_json_an_error_is_a_json_object_and_the_exit_status_tells_its_kind(folder: Path) -> None:
    ended = start("blobs", "show", MISSING_ID, "--json", folder=folder, HOLDALL_URL=URL)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert json.loads(ended.stderr)["error"]["code"] == "record-not-found"


def test_a_picture_is_analyzed_and_resized(folder: Path) -> None:
    data = BytesIO()
    Image.new("RGB", (40, 20)).save(data, "PNG")
    id = upload(data.getvalue(), "photo.png")
    (blob,) = read_json("analyze", id)["blobs"]
    assert (blob["metadata"]["width"], blob["metadata"]["height"]) == (40, 20)
    ended = call("blobs", "picture", id, "small.png", "--size", "10x10")
    assert ended.exit_code == 0
    assert "small.png: image/png" in ended.stdout + ended.stderr
    with Image.open("small.png") as small:
        assert small.size == (10, 5)
    assert "is not a size" in call("blobs", "picture", id, "small.png", "--size", "wide").stderr
