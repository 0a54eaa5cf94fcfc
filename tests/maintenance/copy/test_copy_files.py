"""Copies of files: bytes, headers and tags go to the service of the same name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from copy_rig import Rig, Way, everywhere, open_rig
from rig.clock import Clock, TimedPort
from rig.colour import finish
from rig.files import InterceptedService, pattern

from holdall import Database
from holdall.backends.memory import MemoryService
from holdall.core.frozen import replace
from holdall.core.objects import BeginUpload, CompleteUpload, GetTags, PutObject, ServiceTraits, UploadPart
from holdall.errors import ConfigurationError
from holdall.maintenance import CopyReport


def files(db: Database) -> dict[str, tuple[Any, ...]]:
    """All objects of the default service, with their headers and tags."""
    found = {}
    for each in db.files.list():
        headers = db.files.head(each.key).headers
        tags = db.send(GetTags(db.files.service, each.key))
        found[each.key] = db.files.get(each.key), headers.content_type, dict(headers.metadata), dict(tags)
    return found


def counts(report: CopyReport, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(report.parts[-1], name) for name in names)


def put(db: Database, *keys: str, body: bytes = b"bytes", **more: Any) -> None:
    for key in keys:
        db.files.put(key, body + key.encode(), content_type="text/plain", **more)


@everywhere
async def test_files_are_copied_with_headers_and_tags(rig: Rig) -> None:
    put(rig.source, "a/ü b.txt", "c", metadata={"colour": "red"}, tags={"kind": "x"})
    rig.source.files.put("empty", b"", content_type="image/png")
    report = await rig.copy()
    assert files(rig.target) == files(rig.source)
    assert counts(report, "kind", "scanned", "copied", "verified") == ("files", 3, 3, 3)
    assert report.is_current
    report = await rig.copy()
    assert counts(report, "copied", "unchanged", "verified") == (0, 3, 3)


@everywhere
async def test_only_what_differs_is_copied_and_the_rest_deleted(rig: Rig) -> None:
    put(rig.source, "a", "b", "c")
    await rig.copy()
    put(rig.source, "b", body=b"other")
    rig.source.files.delete("c")
    report = await rig.copy()
    assert counts(report, "copied", "unchanged", "gone") == (1, 1, 1)
    report = await rig.copy(delete=True)
    assert counts(report, "deleted", "gone") == (1, 0)
    assert files(rig.target) == files(rig.source)


@everywhere
async def test_nothing_is_deleted_if_the_source_lists_no_files(rig: Rig) -> None:
    put(rig.source, "a", "b")
    await rig.copy()
    for key in "ab":  # the same happens if its disk is not mounted
        rig.source.files.delete(key)
    for dry_run in (True, False):
        report = await rig.copy(delete=True, dry_run=dry_run)
        assert counts(report, "deleted", "gone") == (0, 2)
        assert counts(report, "problems")[0][0].startswith("the source lists no files")
        assert not report.is_current
    assert sorted(files(rig.target)) == ["a", "b"]
    put(rig.source, "c")
    assert counts(await rig.copy(delete=True), "deleted", "gone", "problems") == (2, 0, ())
    assert sorted(files(rig.target)) == ["c"]


@everywhere
async def test_files_that_another_program_changed_in_the_target_are_kept(rig: Rig) -> None:
    put(rig.source, "a", "b", "c")
    put(rig.target, "c")
    await rig.copy()
    put(rig.target, "a", "b", body=b"theirs")
    put(rig.source, "a", body=b"ours")
    rig.source.files.delete("b")
    report = await rig.copy(delete=True)
    assert counts(report, "copied", "deleted", "differing") == (0, 0, 2)
    assert report.parts[-1].differences[:2] == (
        "a: changed in the target, so it was not replaced",
        "b: changed in the target, so it was not deleted",
    )
    report = await rig.copy(overwrite=True)
    assert counts(report, "copied", "differing") == (1, 0)
    assert rig.target.files.get("a") == b"oursa"


@everywhere
async def test_lost_files_are_found_and_copied_again(rig: Rig) -> None:
    put(rig.source, "a", "b")
    await rig.copy()
    rig.target.files.delete("a")
    report = await rig.copy()
    assert counts(report, "missing", "verified", "differences") == (1, 1, ("a: missing in the target",))
    assert counts(await rig.copy(), "copied", "missing", "verified") == (1, 0, 2)


@everywhere
async def test_a_dry_run_copies_no_files(rig: Rig) -> None:
    put(rig.source, "a", "b")
    report = await rig.copy(dry_run=True)
    assert counts(report, "copied", "copied_bytes") == (2, 12)
    assert files(rig.target) == {}


@everywhere
async def test_a_dry_run_after_an_interrupted_pass_counts_what_would_be_deleted(rig: Rig) -> None:
    put(rig.source, "a", "b", "c")
    put(rig.target, "a", body=b"theirs")
    await rig.copy()
    rig.source.files.delete("c")

    def stop(report: CopyReport) -> None:
        if report.parts[-1].kind == "files" and report.parts[-1].checked:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        await rig.copy(progress=stop)  # interrupts the verification: nothing is left to copy
    report = await rig.copy(dry_run=True, delete=True)
    assert counts(report, "scanned", "unchanged", "deleted") == (2, 1, 1)
    report = await rig.copy()
    assert counts(report, "differences") == (("a: changed in the target, so it was not replaced",),)


@pytest.mark.parametrize("colour", ["blocking", "awaiting"])
def test_the_bandwidth_limits_the_bytes_read_per_second(colour: Any) -> None:
    with open_rig(Way("file-to-file", colour)) as rig:
        put(rig.source, *"abcde", body=b"x" * 999)
        clock, manifest = Clock(), rig.folder / "manifest"
        db: Any = rig.source if colour == "blocking" else rig.source.aio
        db._context = replace(db._context, port=TimedPort(db._context.port, clock))
        if colour == "blocking":
            report = db.copy_to(rig.target, bandwidth=100, manifest=manifest)
        else:
            report = finish(colour, db.copy_to(rig.target.aio, bandwidth=100, manifest=manifest))
        assert counts(report, "copied", "verified") == (5, 5)
        assert sum(clock.waits) >= 4 * 10


@everywhere
async def test_files_count_towards_the_expected_total(rig: Rig) -> None:
    put(rig.source, *"abcde")
    rig.put(*range(7))
    for _ in range(2):
        seen: list[CopyReport] = []
        report = await rig.copy(progress=seen.append, delete=True)
        counted = rig.source.table.describe().item_count  # a server updates its item count later
        assert {each.expected for each in seen} == {3 * (counted + 5)}
        assert [each.read for each in seen] == sorted(each.read for each in seen)
        assert report.read == 3 * (7 + 5)
    assert (await rig.copy(dry_run=True, progress=seen.append)).expected == counted + 5
    assert (await rig.copy()).expected is None


@pytest.mark.parametrize("colour", ["blocking", "awaiting"])
def test_a_large_file_is_copied_in_parts(colour: Any) -> None:
    small = InterceptedService(MemoryService(), ServiceTraits(single_put=200, part_size=100))
    with open_rig(Way("file-to-file", colour), target={"files": small}) as rig:
        rig.source.files.put("large", pattern(1050))
        report = finish(colour, rig.copy())
        assert counts(report, "copied", "copied_bytes", "verified") == (1, 1050, 1)
        assert [len(each.body) for each in small.list_sent(UploadPart)] == [100] * 10 + [50]
        assert rig.target.files.get("large") == pattern(1050)


@pytest.mark.parametrize("known", ["replaced", "deleted"])
def test_after_an_interruption_an_unrecognized_file_counts_as_another_program_s(known: str) -> None:
    """The source has no digest of a file uploaded in parts, and another program writes a file of the same size."""
    target = InterceptedService(MemoryService())
    with open_rig(Way("file-to-file", "blocking"), {"files": MemoryService()}, {"files": target}) as rig:
        source, service = rig.source, rig.source.files.service
        put(source, "other")
        upload = source.send(BeginUpload(service, "a"))
        part = source.send(UploadPart(service, upload, 1, b"ours"))
        source.send(CompleteUpload(service, upload, (part,)))

        def stop(request: Any) -> None:
            if isinstance(request, PutObject) and request.key == "a":
                raise TimeoutError

        target.after = stop
        with pytest.raises(TimeoutError):
            finish("blocking", rig.copy())
        target.after = lambda request: None
        rig.target.files.put("a", b"four")
        if known == "deleted":
            source.files.delete("a")
        report = finish("blocking", rig.copy(delete=True))
        assert rig.target.files.get("a") == b"four"
        assert counts(report, "differing", "deleted") == (known == "replaced", 0)


def test_a_missing_service_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    services = {"main": MemoryService(), "more": MemoryService(), "none": MemoryService()}
    with open_rig(
        Way("file-to-file", "blocking"), {"files": services}, {"files": {"main": "memory:"}}
    ) as rig:
        put(rig.source, "a")
        rig.source.files["more"].put("b", b"b")
        with pytest.raises(ConfigurationError, match="the target has no service more, only: main"):
            rig.source.copy_to(rig.target)
        assert not rig.target.table.exists()
        report = rig.source.copy_to(rig.target, files=False, manifest=tmp_path / "m")
        assert [part.kind for part in report.parts] == ["table"]


@pytest.mark.parametrize("other", ["file:{}/files", "file:{}/files?base_url=/elsewhere"])
def test_a_shared_service_is_left_out_whatever_its_url(tmp_path: Path, other: str) -> None:
    shared = f"file:{tmp_path}/files"
    with open_rig(
        Way("file-to-file", "blocking"), {"files": shared}, {"files": other.format(tmp_path)}
    ) as rig:
        put(rig.source, "a")
        report = rig.source.copy_to(rig.target, manifest=tmp_path / "m")
        assert [part.kind for part in report.parts] == ["table"]


def test_each_target_service_has_its_own_entries_in_the_manifest(tmp_path: Path) -> None:
    with open_rig(Way("file-to-file", "blocking")) as rig:
        put(rig.source, "a")
        url = f"embedded:{tmp_path}/copy.db?durability=normal"
        for place in ("one", "two", "one"):
            with Database(url, files=f"file:{tmp_path}/{place}") as target:
                report = rig.source.copy_to(target, manifest=tmp_path / "m", verify=False)
                assert target.files.get("a") == b"bytesa"
        assert counts(report, "copied", "unchanged") == (0, 1)
