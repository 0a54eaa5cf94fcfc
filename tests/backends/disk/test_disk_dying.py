"""Processes killed at each step of a change: afterwards the object is the old or the new one, with its attributes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from disk_steps import CHANGES, NAME, SEEDED, STEPS, Change, at_each_step, die, files, fork, read_version
from rig.torture import TORTURE

from holdall.backends.disk import DiskService
from holdall.core.objects import ListObjects, ListParts, ListUploads, PutObject, UploadPart

pytestmark = [
    pytest.mark.torture,
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),  # newer Pythons warn of threads
]

MOST_STEPS = 200
DEADLY = STEPS if TORTURE else tuple(step for step in STEPS if step != "fsync")
"""The steps at which processes die. Unless the power fails, dying before an fsync leaves the same files as after it."""


def kill_at(number: int) -> Callable[[int, str, Callable[..., Any], tuple[Any, ...]], None]:
    """Die before this step, or in the middle of it if it writes."""

    def meet(count: int, name: str, real: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        if count == number:
            if name == "pwrite":
                file, body, offset = arguments
                real(file, body[: len(body) // 2], offset)
            die()

    return meet


def write_an_hour_later(root: Path) -> None:
    """Let another process write and delete an object an hour later, which also sweeps leftover files."""
    later = DiskService(root, clock=lambda: time.time() + 3601)
    later.send_blocking(PutObject(NAME, "later", b""))
    later.close()
    (root / "_/objects/later").unlink()
    for path in (root / "_/objects").glob("later~*"):
        path.unlink()


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_change_that_is_killed_at_any_step_has_happened_or_not(tmp_path: Path, change: Change) -> None:
    outcomes = set()
    for number in range(1, MOST_STEPS):
        root = tmp_path / str(number)
        service = DiskService(root)
        if change.before is not None:
            service.send_blocking(PutObject(NAME, "dir/sub/key", change.before.body, change.before.headers))
        begun = change.prepare(service)

        def work(number: int = number, service: DiskService = service, begun: Any = begun) -> None:
            with at_each_step(kill_at(number), DEADLY):
                change.make(service, begun)

        ended = fork(work)
        context = f"{change} killed at step {number} {SEEDED}"
        assert ended in (0, -signal.SIGKILL), context
        found = read_version(root)
        assert found in (change.before, change.after), context
        outcomes.add(found)
        listed = [each.key for each in DiskService(root).send_blocking(ListObjects(NAME, "dir/")).objects]
        assert listed == (["dir/sub/key"] if found is not None else []), context
        service.close()
        if ended == 0:
            assert found == change.after
            break
        check_leftovers(root, change, begun, context)
    else:
        raise AssertionError(f"{change} did not end within {MOST_STEPS} steps")
    assert outcomes == {change.before, change.after}, (
        "no process was killed before the change took effect, or none after it"
    )


def check_leftovers(root: Path, change: Change, begun: Any, context: str) -> None:
    """Check that the files of a dead process are harmless, and deleted an hour later."""
    if change.after is not None and read_version(root) == change.before:
        change.make(DiskService(root), begun)
        assert read_version(root) == change.after, context
    write_an_hour_later(root)
    clean = expect_files(root, change)
    left = files(root) - clean
    # there may be one file with replaced attributes that belong to no object any more
    assert all("~" in name for name in left), context
    assert len(left) <= 1, context
    assert clean <= files(root), context


def expect_files(root: Path, change: Change) -> set[str]:
    objects = DiskService(root).send_blocking(ListObjects(NAME)).objects
    clean = set()
    for each in objects:
        path = {"dir/sub/key": "_/objects/dir=/sub=/key", "source": "_/objects/source"}[each.key]
        clean |= {path, f"{path}~{each.etag}"}
    return clean


def test_a_part_whose_process_is_killed_at_any_step_is_complete_or_missing(tmp_path: Path) -> None:
    bodies = {"new": b"n" * 50_000, "again": b"a" * 50_000, "apart": b"p" * 90_000}
    for kind, body in bodies.items():
        for number in range(1, MOST_STEPS):
            root = tmp_path / f"{kind} {number}"
            begun = CHANGES[5].prepare(DiskService(root))
            upload, parts = begun
            wanted = 3 if kind == "new" else 1

            def work(
                number: int = number,
                root: Path = root,
                body: bytes = body,
                upload: Any = upload,
                wanted: int = wanted,
            ) -> None:
                with at_each_step(kill_at(number), DEADLY):
                    DiskService(root).send_blocking(UploadPart(NAME, upload, wanted, body))

            ended = fork(work)
            context = f"{kind} killed at step {number} {SEEDED}"
            service = DiskService(root)
            found = {part.number: part for part in service.send_blocking(ListParts(NAME, upload)).parts}
            for part in parts:
                if part.number != wanted:
                    assert found.pop(part.number) == part, context
            assert set(found) <= {wanted}, context
            assert all(part.size == len(body) or part in parts for part in found.values()), context
            assert service.send_blocking(ListUploads(NAME)) == (upload,), context
            assert service.send_blocking(ListObjects(NAME)).objects == (), context
            service.send_blocking(UploadPart(NAME, upload, wanted, body))
            if ended == 0:
                assert len(found) == 1
                break
            assert ended == -signal.SIGKILL
        else:
            raise AssertionError(f"the upload of a part did not end within {MOST_STEPS} steps")
