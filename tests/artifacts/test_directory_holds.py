"""Directories as artifacts: gathered, held, counted, swept."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest
from directory_rig import DAYS, Rig, everywhere, open_rig, send

from holdall.artifacts.directory.hold import (
    count_versions,
    drop_hold,
    fetch_file_keys,
    fetch_manifest,
    hold_files,
    redeem_hold,
)
from holdall.artifacts.directory.inventory import gather_directory
from holdall.artifacts.directory.manifest import Manifest, Member
from holdall.artifacts.directory.record import Hold
from holdall.core.objects import DeleteObjects, PutObject
from holdall.core.port import run
from holdall.errors import (
    ContentionError,
    IntegrityError,
    InvalidArtifactError,
)
from holdall.tables.commit.change import Change

ONE: dict[str, bytes | None] = {"a": b"aaa", "sub/b": b"b", "same": b"aaa", "empty": None}


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


# --- gathering --------------------------------------------------------------------------------------------


@everywhere
async def test_a_directory_is_gathered_into_its_manifest(rig: Rig) -> None:
    folder = rig.folder(ONE)
    (folder / "a").chmod(0o755)
    reported: list[tuple[int, int | None]] = []
    found = await gather_directory(rig.context, folder, progress=lambda *each: reported.append(each))
    assert Manifest.parse(found.manifest) == Manifest(
        (
            Member("a", digest(b"aaa"), 3, executable=True),
            Member("empty/"),
            Member("same", digest(b"aaa"), 3),
            Member("sub/b", digest(b"b"), 1),
        )
    )
    assert found.sha256 == digest(found.manifest)
    assert found.total == 7
    assert found.copies == {digest(b"aaa"): 2, digest(b"b"): 1}
    assert {each: place.read_bytes() for each, place in found.places.items()} == {
        digest(b"aaa"): b"aaa",
        digest(b"b"): b"b",
    }
    assert reported == [(0, 7), (7, 7)]


def test_a_symbolic_link_and_a_special_file_are_refused_by_name() -> None:
    with open_rig() as rig:
        linked = rig.folder({"in/target": b"x"})
        (linked / "in" / "link").symlink_to(linked / "in" / "target")
        with pytest.raises(InvalidArtifactError, match="'in/link' is a symbolic link"):
            run(gather_directory(rig.context, linked))
        special = rig.folder({"a": b"x"})
        os.mkfifo(special / "pipe")
        with pytest.raises(InvalidArtifactError, match="'pipe' is not a regular file"):
            run(gather_directory(rig.context, special))


def test_a_missing_directory_is_refused() -> None:
    with open_rig() as rig, pytest.raises(InvalidArtifactError, match="is not a directory"):
        run(gather_directory(rig.context, rig.root / "missing"))


def test_names_that_are_not_portable_are_refused() -> None:
    with open_rig() as rig:
        for files in ({"Read": b"1", "read": b"2"}, {"back\\slash": b""}, {"line\nbreak": b""}):
            with pytest.raises(InvalidArtifactError):
                run(gather_directory(rig.context, rig.folder(files)))
        undecodable = rig.folder({})
        Path(os.fsdecode(os.fsencode(undecodable) + b"/\xff")).write_bytes(b"")
        with pytest.raises(InvalidArtifactError, match="cannot be encoded in UTF-8"):
            run(gather_directory(rig.context, undecodable))


@pytest.mark.parametrize("change", ["appended", "gone"])
def test_a_file_that_changes_while_it_is_read_is_detected(change: str) -> None:
    with open_rig() as rig:
        folder = rig.folder({"a": b"x"})

        def meddle(done: int, total: int | None) -> None:
            if change == "gone":
                (folder / "a").unlink(missing_ok=True)
            else:
                (folder / "a").write_bytes(b"xy")

        with pytest.raises(IntegrityError, match="'a' was changed while it was read"):
            run(gather_directory(rig.context, folder, progress=meddle))


def test_a_file_that_changes_after_it_was_gathered_is_not_stored() -> None:
    with open_rig() as rig:
        directory = run(rig.gather({"a": b"x"}))
        directory.places[digest(b"x")].write_bytes(b"y")
        with pytest.raises(IntegrityError):
            run(hold_files(rig.context, run(rig.home()), directory))
        assert run(rig.objects()) == {}
        assert run(rig.sweep()) == (0, 0)  # the hold was dropped, so its files need not wait until it expires
        run(rig.audit()).check_nothing_left()


# --- holding ----------------------------------------------------------------------------------------------


@everywhere
async def test_files_are_stored_once_under_their_digest(rig: Rig) -> None:
    await rig.put("x", await rig.gather(ONE))
    home = await rig.home()
    keys = {home.file_key(digest(data)): data for data in (b"aaa", b"b")}
    assert await rig.objects() == keys
    assert await fetch_file_keys(rig.context, home, [digest(b"b"), "0" * 64]) == {
        digest(b"b"): home.file_key(digest(b"b"))
    }
    (await rig.audit()).check_no_leaks()


@everywhere
async def test_a_second_directory_with_the_same_files_uploads_nothing(rig: Rig) -> None:
    await rig.put("x", await rig.gather(ONE))
    rig.fresh()
    await rig.put("y", await rig.gather({"elsewhere": b"aaa", "deep/er": b"b"}))
    assert rig.uploads == []
    rig.fresh()
    await rig.put("z", await rig.gather({"elsewhere": b"aaa", "new": b"new"}))
    assert rig.uploads == [(await rig.home()).file_key(digest(b"new"))]
    await rig.audit()


def test_known_files_cost_few_requests() -> None:
    many: dict[str, bytes | None] = {f"{number}": b"%d" % number for number in range(196)}
    with open_rig() as rig:
        run(rig.put("x", run(rig.gather(many))))
        rig.fresh()
        home = run(rig.home())
        run(hold_files(rig.context, home, run(rig.gather({**many, "one": b"1"}))))
        assert len(rig.port.requests) == 4 + 3 * 2  # three requests for 98 files
        rig.fresh()
        run(hold_files(rig.context, home, run(rig.gather(many))))
        assert len(rig.port.requests) == 2
        run(rig.audit())


@everywhere
async def test_progress_is_reported_up_to_the_total(rig: Rig) -> None:
    home = await rig.home()
    large = bytes(9 * 1024 * 1024)
    files: dict[str, bytes | None] = {
        "large": large,
        "again": large,
        "small": b"s",
        "twin": b"s",
        "known": b"k",
    }
    await rig.put("x", await rig.gather({"known": b"k"}))
    directory = await rig.gather(files)
    reported: list[int] = []
    await hold_files(rig.context, home, directory, progress=lambda done, total: reported.append(done))
    assert reported[0] == 0
    assert reported == sorted(set(reported))
    assert reported[-1] == directory.total
    reported.clear()
    await hold_files(rig.context, home, directory, progress=lambda done, total: reported.append(done))
    assert reported == [0, directory.total]


def test_an_existing_object_is_used_if_its_content_is_right() -> None:
    with open_rig() as rig:
        home = run(rig.home())
        run(rig.db._context.port.send(PutObject("main", home.file_key(digest(b"x")), b"x")))
        run(rig.put("x", run(rig.gather({"a": b"x"}))))
        run(rig.audit())
        run(rig.db._context.port.send(PutObject("main", home.file_key(digest(b"y")), b"other")))
        with pytest.raises(IntegrityError, match="does not match the digest in its key"):
            run(rig.put("x", run(rig.gather({"a": b"y"}))))
        run(rig.audit())


def test_a_hold_is_renewed_during_the_uploads() -> None:
    with open_rig() as rig:
        directory = run(rig.gather({f"{number}": b"%d" % number for number in range(70)}))

        def slow(number: int) -> None:
            rig.port.ahead += DAYS / 100  # half of the hold's time passes during the uploads

        rig.port.before = slow
        home = run(rig.home())
        hold = run(hold_files(rig.context, home, directory))
        assert hold.until > rig.port.now().timestamp() - DAYS.total_seconds() / 4
        (record,) = run(rig.audit()).of("Manifest").values()
        assert [each for each in record if each.startswith("hold:")] == [f"hold:{hold.until}:{hold.id}"]


# --- counting ---------------------------------------------------------------------------------------------


async def count(rig: Rig, **manifests: list[str]) -> None:
    """Count more or fewer versions."""
    change = Change(rig.context)
    count_versions(change, await rig.home(), **manifests)
    await send(change)


async def redeem(rig: Rig, hold: Hold) -> None:
    """Make a version from a hold."""
    change = Change(rig.context)
    redeem_hold(change, await rig.home(), hold)
    await send(change)


@everywhere
async def test_replacing_a_directory_frees_the_files_of_the_old_one_alone(rig: Rig) -> None:
    await rig.put("x", await rig.gather({"a": b"old", "b": b"both"}))
    await rig.put("x", await rig.gather({"a": b"newer", "b": b"both"}))
    assert (await rig.audit()).marks
    assert await rig.sweep() == (1, 3)
    audit = await rig.audit()
    audit.check_no_leaks()
    assert sorted(audit.objects.values()) == [b"both", b"newer"]
    assert await rig.sweep() == (0, 0)


@everywhere
async def test_putting_the_same_directory_again_counts_it_once(rig: Rig) -> None:
    directory = await rig.gather(ONE)
    await rig.put("x", directory)
    await rig.put("x", directory)
    assert await rig.sweep_later() == (0, 0)
    (await rig.audit()).check_no_leaks()
    await rig.drop("x")
    assert await rig.sweep() == (2, 4)
    (await rig.audit()).check_nothing_left()


@everywhere
async def test_a_published_version_keeps_the_files(rig: Rig) -> None:
    directory = await rig.gather(ONE)
    await rig.put("x", directory)
    await count(rig, more=[directory.sha256])
    await count(rig, fewer=[directory.sha256])
    assert await rig.sweep_later() == (0, 0)
    (await rig.audit()).check_no_leaks()
    with pytest.raises(ContentionError, match="refused: manifest"):  # there is only one version
        await count(rig, fewer=2 * [directory.sha256])
    await count(rig, more=2 * [directory.sha256], fewer=[directory.sha256])
    await count(rig, more=[directory.sha256])
    await rig.drop("x")
    await count(rig, fewer=2 * [directory.sha256])
    assert await rig.sweep([directory.sha256]) == (2, 4)
    (await rig.audit()).check_nothing_left()


def test_a_manifest_without_a_version_or_hold_cannot_be_counted() -> None:
    with open_rig() as rig:
        home, directory = run(rig.home()), run(rig.gather(ONE))
        for kind in ("more", "fewer"):
            with pytest.raises(ContentionError, match="refused: manifest"):
                run(count(rig, **{kind: [directory.sha256]}))
        hold = run(hold_files(rig.context, home, directory))
        with pytest.raises(ContentionError, match="refused: manifest"):
            run(count(rig, more=[directory.sha256]))
        run(redeem(rig, hold))
        with pytest.raises(ContentionError, match="refused: manifest"):  # a hold can be redeemed once
            run(redeem(rig, hold))


@everywhere
async def test_a_dropped_hold_is_swept_at_once_and_an_abandoned_one_when_it_expires(rig: Rig) -> None:
    home, directory = await rig.home(), await rig.gather(ONE)
    hold = await hold_files(rig.context, home, directory)
    assert await rig.sweep() == (0, 0)
    await drop_hold(rig.context, home, hold)
    await drop_hold(rig.context, home, hold)
    assert await rig.sweep() == (2, 4)
    (await rig.audit()).check_nothing_left()
    hold = await hold_files(rig.context, home, directory)
    assert await rig.sweep_later() == (2, 4)
    (await rig.audit()).check_nothing_left()
    with pytest.raises(ContentionError, match="refused: manifest"):
        await redeem(rig, hold)


def test_two_holds_of_one_directory_are_independent() -> None:
    with open_rig() as rig:
        home, directory = run(rig.home()), run(rig.gather(ONE))
        first = run(hold_files(rig.context, home, directory))
        second = run(hold_files(rig.context, home, directory))
        run(drop_hold(rig.context, home, first))
        assert run(rig.sweep()) == (0, 0)
        run(redeem(rig, second))
        run(count(rig, fewer=[directory.sha256]))
        assert run(rig.sweep()) == (2, 4)
        run(rig.audit()).check_nothing_left()


def test_a_sweep_continues_after_a_manifest_that_fails() -> None:
    with open_rig() as rig:
        for number in range(3):
            run(rig.put(f"{number}", run(rig.gather({"a": b"%d" % number}))))
            run(rig.drop(f"{number}"))
        failed: list[int] = []

        def fail_once(number: int) -> None:
            if isinstance(rig.port.requests[-1], DeleteObjects) and not failed:
                failed.append(number)
                raise ContentionError("for once")

        rig.port.before = fail_once
        with pytest.raises(ContentionError, match="for once"):
            run(rig.sweep())
        assert len(run(rig.objects())) == 1
        assert run(rig.sweep()) == (0, 0)  # the first sweep's claim on it has not expired yet
        assert run(rig.sweep_later()) == (1, 1)
        run(rig.audit()).check_nothing_left()


def test_many_marks_are_swept_page_by_page() -> None:
    with open_rig() as rig:
        for number in range(105):
            run(rig.put("x", run(rig.gather({"a": b"%d" % number}))))
        assert run(rig.sweep()).objects == 104
        run(rig.audit()).check_no_leaks()


# --- reading ----------------------------------------------------------------------------------------------


@everywhere
async def test_a_manifest_is_read_back_and_verified(rig: Rig) -> None:
    home, directory = await rig.home(), await rig.gather(ONE)
    port = rig.context.port
    await port.send(PutObject("main", "it", directory.manifest))
    assert await fetch_manifest(rig.context, home, "it", directory.sha256) == Manifest.parse(
        directory.manifest
    )
    with pytest.raises(IntegrityError):
        await fetch_manifest(rig.context, home, "it", "0" * 64)
    await port.send(PutObject("main", "it", b"{}"))
    with pytest.raises(InvalidArtifactError):
        await fetch_manifest(rig.context, home, "it", digest(b"{}"))
