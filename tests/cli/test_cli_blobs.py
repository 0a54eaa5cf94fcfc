"""``holdall blobs``: what it shows and changes, what it says on which stream, and how it ends."""

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
from holdall.attachments.home import home_of
from holdall.attachments.record import BlobRow
from holdall.core.expressions import Update
from holdall.core.port import run
from holdall.core.requests import UpdateItem

URL = "embedded:app.db"
NOBODY = "00000000-0000-4000-8000-000000000000"
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


def tell(*words: str) -> Any:
    """What a command says to programs."""
    ended = call("blobs", *words, "--json")
    assert (ended.exit_code, ended.stderr) == (0, "")
    return json.loads(ended.stdout)


def list_attached() -> list[tuple[str, str]]:
    return [(each["name"], each["blob"]["id"]) for each in tell("list", *OWNER)["attachments"]]


def damage(id: str, *actions: Any) -> None:
    """Change a blob's row by hand."""
    with Database() as db:
        home = run(home_of(db._context))
        db.send(UpdateItem(home.layout.table, home.blob(id).key, Update(actions)))


# --- upload and download ----------------------------------------------------------------------------------


def test_a_file_is_uploaded_shown_and_downloaded(folder: Path) -> None:
    (folder / "table.csv").write_bytes(b"a,b\n")
    ended = call("blobs", "upload", "table.csv")
    assert (ended.exit_code, ended.stderr) == (0, "")
    said = dict(line.split(maxsplit=1) for line in ended.stdout.splitlines())
    assert (said["filename"], said["content_type"], said["byte_size"]) == ("table.csv", "text/csv", "4")
    assert said["metadata"] == '{"identified": true}'
    told = tell("show", said["id"])
    assert (told["id"], told["byte_size"], told["attachments"]) == (said["id"], 4, [])
    assert datetime.fromisoformat(told["created_at"]).utcoffset() == timedelta(0)
    ended = call("blobs", "download", said["id"], "--to", "copy.csv")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "copy.csv: 4 bytes\n")
    assert (folder / "copy.csv").read_bytes() == b"a,b\n"


def test_an_upload_can_be_named_typed_and_taken_for_one_that_is_there(folder: Path) -> None:
    (folder / "file").write_bytes(b"a,b\n")
    words = ("upload", "file", "--filename", "b", "--type", "text/csv", "--dedupe", "--service", "default")
    told, again = tell(*words), tell(*words)
    assert (told["filename"], told["content_type"], told["service"]) == ("b", "text/csv", "default")
    assert again["id"] == told["id"]


def test_a_download_overwrites_no_file_that_was_not_named(folder: Path) -> None:
    id = upload(b"new")
    (folder / "a.txt").write_bytes(b"old")
    ended = call("blobs", "download", id)
    assert (ended.exit_code, ended.stdout) == (4, "")
    assert ended.stderr.startswith("error: a.txt ")
    assert (folder / "a.txt").read_bytes() == b"old"
    assert call("blobs", "download", id, "--to", "a.txt").exit_code == 0
    assert (folder / "a.txt").read_bytes() == b"new"


def test_a_name_from_elsewhere_leads_to_no_other_directory(folder: Path) -> None:
    id = upload(name="../../evil\x1b.txt")
    ended = call("blobs", "download", id)
    assert ended.exit_code == 0
    assert "\x1b" not in ended.stderr
    assert [path.name for path in folder.glob("*evil*")] == ["..-..-evil\x1b.txt"]


def test_damaged_bytes_end_a_download_and_leave_no_file(folder: Path) -> None:
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
    assert tell("list", *OWNER, "--name", "other") == {"attachments": []}
    assert call("blobs", "detach", row[6], *OWNER, "documents").stderr == f"{row[6]} detached\n"
    again = call("blobs", "detach", row[6], *OWNER, "documents")
    assert (again.exit_code, again.stderr) == (0, f"{row[6]} was not attached\n")
    assert tell("show", id)["attachments_count"] == 0
    ended = call("blobs", "list", *OWNER)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "User 7 has no attached files\n")


def test_one_takes_the_place_of_another_and_a_worker_purges_that() -> None:
    old, new = upload_attached("avatar"), upload()
    assert call("blobs", "attach", new, *OWNER, "avatar", "--one").exit_code == 0
    assert list_attached() == [("avatar", new)]
    (attachment,) = tell("show", new)["attachments"]
    assert call("blobs", "detach", attachment["id"], *OWNER, "avatar", "--purge").exit_code == 0
    with Database() as db:
        db.worker().drain()
    assert [call("blobs", "show", id).exit_code for id in (old, new)] == [3, 3]


# --- purge and sweep --------------------------------------------------------------------------------------


def test_what_is_attached_or_missing_is_not_purged_and_the_rest_is() -> None:
    held, loose = upload_attached(), upload()
    ended = call("blobs", "purge", held, loose)
    assert (ended.exit_code, ended.stdout) == (5, "")
    assert ended.stderr.splitlines()[:2] == [
        "1 blob purged",
        f"error: 1 blob kept because of attachments: {held}",
    ]
    assert [call("blobs", "show", id).exit_code for id in (held, loose)] == [0, 3]
    other = upload()
    ended = call("blobs", "purge", NOBODY, other)
    assert (ended.exit_code, ended.stderr) == (3, f"1 blob purged\nerror: there is no blob {NOBODY}\n")
    assert call("blobs", "show", other).exit_code == 3


def test_a_purge_can_be_left_to_a_worker() -> None:
    first, second = upload(), upload()
    ended = call("blobs", "purge", "--later", first, second)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "2 blobs will be purged by a worker\n")
    assert call("blobs", "show", first).exit_code == 0
    with Database() as db:
        db.worker().drain()
    assert [call("blobs", "show", id).exit_code for id in (first, second)] == [3, 3]


def test_a_sweep_spares_the_young() -> None:
    id = upload()
    assert tell("sweep", "--dry-run") == tell("sweep") == {"blobs": 0, "bytes": 0, "attached": 0}
    said = "0 blobs and the bytes of 0 uploads would be deleted; 0 attached blobs kept\n"
    assert call("blobs", "sweep", "--dry-run").stderr == said
    assert call("blobs", "sweep").stderr == said.replace("would be deleted", "deleted")
    assert call("blobs", "show", id).exit_code == 0


# --- check ------------------------------------------------------------------------------------------------


def test_a_check_reports_what_a_repair_would_do_and_does_it() -> None:
    id = upload_attached()
    assert call("blobs", "check").stderr == "1 blob, 1 attachment, 0 findings\n"
    (attachment,) = tell("show", id)["attachments"]
    damage(id, BlobRow.count.set(5), BlobRow.references[attachment["id"]].remove())
    ended = call("blobs", "check")
    assert (ended.exit_code, ended.stderr) == (4, "1 blob, 1 attachment, 2 findings\n")
    assert "set the count to 1" in ended.stdout
    assert "repair would" in ended.stdout
    told = json.loads(call("blobs", "check", "--json").stdout)
    assert [each["problem"] for each in told["findings"]] == ["count", "references"]
    assert {each["id"] for each in told["findings"]} == {id}
    repaired = call("blobs", "check", "--repair", "--json")
    assert (repaired.exit_code, json.loads(repaired.stdout)["repaired"]) == (0, 2)
    assert tell("check") == {"blobs": 1, "attachments": 1, "findings": [], "repaired": 0}
    assert len(tell("show", id)["attachments"]) == 1


def test_bytes_that_are_missing_are_reported_and_no_repair_brings_them_back() -> None:
    id = upload_attached()
    with Database() as db:
        db.files.delete(db.blobs.find(id).key)
    ended = call("blobs", "check", "--repair")
    assert (ended.exit_code, ended.stderr) == (4, "1 blob, 1 attachment, 1 finding\n")
    assert "no repair is possible" in ended.stdout
    assert tell("check", "--no-bytes")["findings"] == []


def test_references_of_another_program_are_added_by_a_reindex() -> None:
    id = upload_attached()
    (attachment,) = tell("show", id)["attachments"]
    damage(id, BlobRow.references[attachment["id"]].remove())
    assert tell("show", id)["attachments"] == []
    assert call("blobs", "reindex").stderr == "1 blob changed\n"
    assert tell("show", id)["attachments"] == [attachment]
    assert call("blobs", "reindex").stderr == "0 blobs changed\n"


# --- refusing ---------------------------------------------------------------------------------------------


def test_metadata_of_any_kind_is_shown() -> None:
    id = upload(metadata={"seconds": 2.5, "pages": [1, None], "raw": b"\x00"})
    told = tell("show", id)["metadata"]
    assert (told["seconds"], told["pages"], told["identified"]) == (2.5, [1, None], True)
    assert '"seconds": 2.5' in call("blobs", "show", id).stdout


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("show", NOBODY), 3),
        (("show", "a#b"), 3),
        (("download", NOBODY), 3),
        (("attach", NOBODY, *OWNER, "avatar"), 3),
        (("purge", NOBODY), 3),
        (("upload", "missing.txt"), 2),
        (("list", "User"), 2),
        (("list", "User", "a#b"), 2),
        (("purge",), 2),
    ],
)
def test_what_is_not_there_or_makes_no_sense_says_so(words: tuple[str, ...], status: int) -> None:
    ended = call("blobs", *words)
    assert (ended.exit_code, ended.stdout) == (status, "")
    assert "rror: " in ended.stderr


def test_an_error_is_an_object_for_programs_and_the_program_ends_with_its_status(folder: Path) -> None:
    ended = start("blobs", "show", NOBODY, "--json", folder=folder, HOLDALL_URL=URL)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert json.loads(ended.stderr)["error"]["code"] == "record-not-found"


def test_a_picture_is_analysed_and_written_smaller(folder: Path) -> None:
    data = BytesIO()
    Image.new("RGB", (40, 20)).save(data, "PNG")
    id = upload(data.getvalue(), "photo.png")
    (blob,) = tell("analyze", id)["blobs"]
    assert (blob["metadata"]["width"], blob["metadata"]["height"]) == (40, 20)
    said = call("blobs", "picture", id, "small.png", "--size", "10x10")
    assert said.exit_code == 0
    assert "small.png: image/png" in said.stdout + said.stderr
    with Image.open("small.png") as small:
        assert small.size == (10, 5)
    assert "is not a size" in call("blobs", "picture", id, "small.png", "--size", "wide").stderr
