"""The doctor finds objects that nothing in the table refers to, and deletes only those that are proved unused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rig.recorder import Recorder

from holdall import Database, Key, Model, has_one_attached
from holdall.attachments.upload.upload import new_key
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import Scan
from holdall.core.objects import ListObjects
from holdall.core.port import run
from holdall.files import listing
from holdall.maintenance.doctor import object as objects
from holdall.maintenance.doctor.key_filter import KeyFilter
from holdall.maintenance.doctor.object import BlobObjectCheck
from holdall.maintenance.doctor.work import Work
from holdall.tables.flow import discover
from holdall.testing.clock import Clock

DAY = 86400


class Poster(Model, name="DoctorPoster"):
    name: Key[str]
    picture = has_one_attached()


@pytest.fixture(params=["memory", "disk"])
def db(request: pytest.FixtureRequest, tmp_path: Path, holdall_clock: Clock) -> Iterator[Database]:
    files = "memory:" if request.param == "memory" else f"file:{tmp_path / 'files'}"
    with Database("memory:", files=files) as found:
        found.table.create()
        with found.transaction() as tx:
            for name in "abc":
                tx.create(Poster, name=name).picture.attach(name.encode(), filename="a.bin")
        yield found


def make_key(db: Database) -> str:
    return new_key(db._context.port)


def find(db: Database, **options: Any) -> list[tuple[str, str, str | None, bool]]:
    report = db.doctor(models=[Poster], only=["orphans"], **options)
    return [(each.subject, each.message, each.repair, each.repaired) for each in report.findings]


def list_objects(db: Database) -> list[str]:
    return [each.key for each in db.files.list()]


def test_an_old_object_without_a_blob_is_reported_and_never_deleted(
    db: Database, holdall_clock: Clock
) -> None:
    lost = [f"{number:028}" for number in range(2)]
    for key in (*lost, f"variants/{lost[0]}/small", f"uploads/{lost[1]}/1"):
        db.files.put(key, b"12345")
    db.files.put("reports/2026.pdf", b"the caller's own")
    db.files.put(f"own/{make_key(db)}", b"the caller's own")
    assert find(db) == [], "the objects may belong to uploads in progress"
    holdall_clock.advance(3 * DAY)
    (service,) = db._services.urls
    message = "objects that look like those of blobs, but have none in this table: 4 (20 bytes), the first "
    expected = [(f"file service {service}", f"{message}{lost[0]!r}", None, False)]
    before = list_objects(db)
    assert find(db) == expected
    assert find(db, segments=3) == expected
    assert find(db, repair=True) == expected
    assert list_objects(db) == before


def test_objects_that_records_refer_to_are_not_reported(db: Database, holdall_clock: Clock) -> None:
    kept = db.blobs.create_and_upload(b"kept", filename="a.bin")
    with db.transaction() as tx:
        tx.get_one(Poster, name="a").picture.attach(kept)
    db.files.put(f"variants/{kept.key}/small", b"made by Rails")
    holdall_clock.advance(3 * DAY)
    db.blobs.sweep()
    waiting = db.blobs.start_upload(filename="later.bin", byte_size=10, expires=9 * DAY)
    db.blobs.continue_upload(waiting, 0, b"12345")
    db.blobs.create_and_upload(b"not attached yet", filename="b.bin")
    holdall_clock.advance(2 * DAY + 3601)
    assert [each[0] for each in find(db)] == ["blobs"], "the sweep is responsible for these"
    db.blobs.sweep()
    assert find(db) == []


def test_foreign_objects_cause_only_one_more_scan_of_the_table(
    holdall_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_MOST", 3)
    monkeypatch.setattr(listing, "ListObjects", partial(ListObjects, limit=2))
    table = Recorder(EmbeddedBackend(None))
    with Database("memory:", backend=table) as db:
        db.table.create()
        for count, shown, scans in ((2, "2 (2 bytes)", 2), (20, "at least 4 (4 bytes)", 2)):
            for number in range(count):
                db.files.put(f"{number:028}", b"1")
            holdall_clock.advance(3 * DAY)
            table.forget()
            ((_, message, _, _),) = find(db)
            assert f"in this table: {shown}, the first" in message
            assert len(table.list_sent(Scan)) == scans


def test_objects_missing_from_the_filter_are_looked_up_in_the_table(
    db: Database, holdall_clock: Clock
) -> None:
    holdall_clock.advance(3 * DAY)
    urls = db._services.urls
    work = Work(db._context, [], urls, repair=False, segments=1, rate=None, progress=None)
    check = BlobObjectCheck(work, run(discover(db._context)), KeyFilter())
    run(check.finish([check]))
    assert work.report().findings == ()


def test_copies_in_a_mirror_belong_to_the_blobs_of_the_primary(holdall_clock: Clock) -> None:
    files = {"main": "memory:", "spare": "memory:", "safe": "mirror:main,spare"}
    with Database("memory:", files=files, default_service="safe") as db:
        db.table.create()
        with db.transaction() as tx:
            tx.create(Poster, name="a").picture.attach(b"a", filename="a.bin")
        db.worker().drain()
        assert [each.key for each in db.files["spare"].list()] == list_objects(db)
        db.files["spare"].put(make_key(db), b"lost")
        holdall_clock.advance(3 * DAY)
        assert [each[0] for each in find(db)] == ["file service spare"]


def test_objects_left_by_dead_puts_of_artifacts_are_deleted(
    db: Database, holdall_clock: Clock, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "page.html").write_text("hello")
    db.artifacts.put("site", tmp_path / "site")
    db.artifacts.publish("site")
    healthy = list_objects(db)
    db.files.put(f"versioned-artifacts/__files/{'0' * 64}", b"12345")
    db.files.put("versioned-artifacts/__incoming/x", b"12345")
    assert find(db) == []
    holdall_clock.advance(3 * DAY)
    expected = ("artifacts", "objects left by puts that did not end: 2 (10 bytes)", "delete them")
    assert find(db) == [(*expected, False)]
    assert find(db, repair=True) == [(*expected, True)]
    assert find(db) == []
    assert list_objects(db) == healthy
    assert db.artifacts.download("site", 1, to=tmp_path / "again") is not None


def test_an_object_without_a_version_is_reported_and_not_deleted(db: Database, holdall_clock: Clock) -> None:
    db.artifacts.put("app", b"first")
    db.artifacts.publish("app")
    lost = "versioned-artifacts/app/000007"
    db.files.put(lost, b"12345")
    db.files.put("versioned-artifacts/new/LATEST", b"reading it creates its row")
    holdall_clock.advance(3 * DAY)
    message = "objects that look like those of versions, but have none in this table: 1 (5 bytes), the first "
    assert find(db, repair=True) == [("artifacts", f"{message}{lost!r}", None, False)]
    assert lost in list_objects(db)


@given(st.lists(st.text()), st.lists(st.text()))
def test_a_filter_has_every_key_that_was_added(added: list[str], others: list[str]) -> None:
    small, large = KeyFilter(64), KeyFilter()
    for key in added:
        small.add(key)
        large.add(key)
    assert all(key in small and key in large for key in added)
    assert [key for key in others if key in large] == [key for key in others if key in added]
