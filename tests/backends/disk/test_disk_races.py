"""Many processes on one root: one creator succeeds, and readers see whole objects whatever other processes do."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from disk_steps import NAME, ROUNDS, SEED, SEEDED, files, sha256_of

from holdall.backends.disk import DiskService
from holdall.core.objects import (
    BeginUpload,
    CompleteUpload,
    CopyObject,
    DeleteObject,
    DeleteObjects,
    GetObject,
    ListObjects,
    ObjectHeaders,
    ObjectRange,
    PutObject,
    UploadPart,
)
from holdall.errors import ObjectNotFoundError, PreconditionFailedError

pytestmark = [
    pytest.mark.torture,
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),  # newer Pythons warn of threads
]

RACERS = 8
KEY = "dir/sub/key"


def race(count: int, run: Callable[[int], Any]) -> list[int]:
    """Start processes at the same moment; return their exit codes, which are 99 after an exception."""
    ready, begin = os.pipe(), os.pipe()
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            code = 99
            try:
                os.close(begin[1])
                os.write(ready[1], b".")
                os.read(begin[0], 1)  # ends when the parent closes it
                code = int(run(number) or 0)
            except BaseException:  # noqa: BLE001 - printed, and the child ends
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(child)
    waiting = count
    while waiting:
        waiting -= len(os.read(ready[0], waiting))
    for end in (*ready, *begin):
        os.close(end)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def body_of(version: int) -> bytes:
    """Return bytes of which every piece shows the version."""
    return b"%08d" % version * Random(version).randrange(1, 8000)


def put(service: DiskService, key: str, version: int, **options: Any) -> None:
    headers = ObjectHeaders(metadata={"version": str(version)})
    service.send_blocking(PutObject(NAME, key, body_of(version), headers, **options))


def check_whole(found: ObjectRange) -> int:
    """Check that bytes and attributes belong to one version, and return it."""
    version = int(found.body[:8])
    assert found.body == body_of(version), f"bytes of several versions {SEEDED}"
    assert found.info.size == len(found.body)
    assert found.info.headers.metadata == {"version": str(version)}, f"attributes of another version {SEEDED}"
    assert found.info.sha256 == sha256_of(found.body)
    return version


def clean(root: Path, *keys: str) -> set[str]:
    """The expected files of these objects."""
    wanted = set()
    for found in DiskService(root).send_blocking(ListObjects(NAME)).objects:
        assert found.key in keys
        *directories, name = found.key.split("/")
        path = "/".join(("_/objects", *(f"{each}=" for each in directories), name))
        wanted |= {path, f"{path}~{found.etag}"}
    return wanted


@pytest.mark.parametrize("kind", ["put", "copy", "upload"])
def test_one_of_many_processes_that_create_an_object_succeeds(tmp_path: Path, kind: str) -> None:
    for round in range(ROUNDS * 2):
        root = tmp_path / str(round)

        def create(number: int, root: Path = root) -> int:
            service = DiskService(root)
            source, headers = f"source {number}", ObjectHeaders(metadata={"version": str(number)})
            if kind == "copy":
                put(service, source, number)
            upload = service.send_blocking(BeginUpload(NAME, KEY, headers))
            part = service.send_blocking(UploadPart(NAME, upload, 1, body_of(number)))
            try:
                if kind == "put":
                    put(service, KEY, number, if_absent=str(number))
                elif kind == "copy":
                    service.send_blocking(CopyObject(NAME, source, KEY, if_absent=str(number)))
                else:
                    digest = sha256_of(body_of(number))
                    service.send_blocking(
                        CompleteUpload(NAME, upload, (part,), sha256=digest, if_absent=str(number))
                    )
            except PreconditionFailedError:
                return 1
            return 0

        ended = race(RACERS, create)
        assert sorted(ended) == [0] + [1] * (RACERS - 1), f"{ended} {SEEDED}"
        found = DiskService(root).send_blocking(GetObject(NAME, KEY))
        assert check_whole(found) == ended.index(0)
        assert found.info.put_id == str(ended.index(0))


def test_readers_see_whole_objects_with_their_attributes_while_writers_replace_them(
    tmp_path: Path,
) -> None:
    put(DiskService(tmp_path), KEY, 1)
    turns = 60 * ROUNDS

    def work(number: int) -> None:
        service = DiskService(tmp_path)
        choice = Random(f"{SEED} {number}")
        for _ in range(turns):
            if number < 3:
                put(service, KEY, choice.randrange(1, 10**8))
                continue
            for _ in range(4):
                found = service.send_blocking(GetObject(NAME, KEY))
                check_whole(found)
                half = len(found.body) // 2
                with suppress(PreconditionFailedError):  # the object was replaced in between
                    rest = service.send_blocking(GetObject(NAME, KEY, half, None, found.info.etag))
                    assert rest.body == found.body[half:]

    assert race(6, work) == [0] * 6
    assert files(tmp_path) == clean(tmp_path, KEY)


def test_readers_see_whole_objects_or_none_while_writers_put_and_delete_them(tmp_path: Path) -> None:
    turns = 40 * ROUNDS

    def work(number: int) -> None:
        service = DiskService(tmp_path)
        choice = Random(f"{SEED} {number}")
        for _ in range(turns):
            if number < 2:
                put(service, KEY, choice.randrange(1, 10**8))
            elif number == 2:
                service.send_blocking(DeleteObject(NAME, KEY))
            else:
                with suppress(ObjectNotFoundError):
                    check_whole(service.send_blocking(GetObject(NAME, KEY)))
                page = service.send_blocking(ListObjects(NAME, "dir/"))
                assert [found.key for found in page.objects] in ([], [KEY])

    assert race(5, work) == [0] * 5
    assert files(tmp_path) == clean(tmp_path, KEY)


def test_creating_and_deleting_directories_does_not_disturb_other_processes(tmp_path: Path) -> None:
    turns = 25 * ROUNDS

    def work(number: int) -> None:
        service = DiskService(tmp_path)
        for turn in range(turns):
            key = f"a/b/c/d/{number}"
            put(service, key, turn + 1)
            assert check_whole(service.send_blocking(GetObject(NAME, key))) == turn + 1
            if turn % 2:
                service.send_blocking(DeleteObject(NAME, key))
            else:
                report = service.send_blocking(DeleteObjects(NAME, (key, "a/b/missing", "a/b/c/d/e/f")))
                assert report.failures == {}

    assert race(4, work) == [0] * 4
    assert files(tmp_path) == set()
    assert not (tmp_path / "_/objects/a=").exists()


def test_an_upload_that_many_processes_continue_consists_of_whole_parts(tmp_path: Path) -> None:
    for round in range(ROUNDS * 2):
        root = tmp_path / str(round)
        first = DiskService(root)
        upload = first.send_blocking(BeginUpload(NAME, KEY))

        def continue_upload(number: int, root: Path = root, upload: Any = upload) -> int:
            service = DiskService(root)
            parts = []
            for place in (1, 2, 3):
                body = b"%d%d" % (number, place) * 50_000
                try:
                    parts.append(service.send_blocking(UploadPart(NAME, upload, place, body)))
                except ObjectNotFoundError:
                    return 2  # another process has completed the upload
            try:
                service.send_blocking(CompleteUpload(NAME, upload, tuple(parts)))
            except PreconditionFailedError:
                return 1  # another process has replaced one of our parts
            except ObjectNotFoundError:
                return 2
            return 0

        ended = race(4, continue_upload)
        assert set(ended) <= {0, 1, 2}, f"{ended} {SEEDED}"
        try:
            found = DiskService(root).send_blocking(GetObject(NAME, KEY))
        except ObjectNotFoundError:
            assert 0 not in ended
            continue
        pieces = [found.body[start : start + 100_000] for start in range(0, 300_000, 100_000)]
        whole = {b"%d%d" % (number, place) * 50_000 for number in range(4) for place in (1, 2, 3)}
        assert len(found.body) == 300_000
        assert set(pieces) <= whole, f"a part mixes the bytes of several processes {SEEDED}"
