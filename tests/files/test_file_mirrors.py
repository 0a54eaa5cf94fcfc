"""Mirrors: reads use the primary, a worker copies to the mirrors, deletions reach all; checks and repairs."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from rig.files import InterceptedService, Rig, Way, bucket_service, open_rig, pattern
from rig.torture import start_source
from rig.wrapper import Wrapper

from holdall import Database
from holdall.backends.memory import MemoryService
from holdall.core.objects import (
    CompleteUpload,
    DeleteObject,
    DeleteObjects,
    DeleteReport,
    GetObject,
    HeadObject,
    ListUploads,
    ObjectHeaders,
    PutObject,
    UploadPart,
)
from holdall.core.port import Send, run
from holdall.core.requests import Request
from holdall.errors import InvalidOptionsError, ServiceError, ServiceUnavailableError
from holdall.files.mirror import MirrorReport

WAYS = [Way("mirror", "blocking"), Way("mirror", "awaiting")]
LARGE = 9_000_000


def run_on(way: Way, test: Any) -> None:
    """Run a test in its colour."""
    with open_rig(way) as files:
        if way.colour == "blocking":
            run(test(files))
        else:
            asyncio.run(test(files))


def report(**numbers: Any) -> MirrorReport:
    """A report on the mirror ``copy``; numbers that are not given are 0."""
    usual: dict[str, Any] = {
        "compared": 0,
        "missing": 0,
        "different": 0,
        "surplus": 0,
        "copied": 0,
        "keys": (),
    }
    return MirrorReport("copy", **(usual | numbers))


def copy_of(files: Rig) -> InterceptedService:
    """The mirror ``copy``, whose requests a test can intercept."""
    found: InterceptedService = files.db._services.service("copy")
    return found


# --- copying --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_an_object_can_be_read_at_once_and_a_worker_copies_it(way: Way) -> None:
    async def test(files: Rig) -> None:
        headers = ObjectHeaders("text/plain", "inline", "no-store", {"colour": "grün"})
        given: Any = {"content_type": "text/plain", "disposition": "inline", "cache_control": "no-store"}
        bodies = {"empty": b"", "small": b"bytes", "large": pattern(LARGE)}
        for key, body in bodies.items():
            await files.files.put(key, body, metadata={"colour": "grün"}, **given)
            assert await files.files.get(key) == body
        assert await files.keys(service="copy") == []
        metrics = await files.drain()
        assert metrics.succeeded == 3
        for key, body in bodies.items():
            assert await files.at("copy").get(key) == body
            assert (await files.at("copy").head(key)).headers == headers
        assert not copy_of(files).list_sent(ListUploads)
        assert await files.uploads("copy") == ()

    run_on(way, test)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_copies_and_compositions_are_mirrored_too(way: Way) -> None:
    async def test(files: Rig) -> None:
        await files.files.put("a", b"one ")
        await files.files.copy("a", "b")
        await files.files.compose(["a", "b"], "c")
        await files.files.put("large", pattern(LARGE))
        await files.files.compose(["large", "a"], "d")
        await files.drain()
        for key in ("a", "b", "c", "d"):
            assert await files.at("copy").get(key) == await files.files.get(key)

    run_on(way, test)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_while_a_copy_is_due_another_put_adds_no_job(way: Way) -> None:
    async def test(files: Rig) -> None:
        for number in range(5):
            await files.files.put("it", f"version {number}".encode())
        await files.files.put("other", b"x")
        metrics = await files.drain()
        assert metrics.succeeded == 2
        assert await files.at("copy").get("it") == b"version 4"
        await files.files.put("it", b"version 5")
        assert (await files.drain()).succeeded == 1
        assert await files.at("copy").get("it") == b"version 5"

    run_on(way, test)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_bytes_that_the_mirror_already_has_are_not_sent_again(way: Way) -> None:
    async def test(files: Rig) -> None:
        await files.files.put("it", b"bytes")
        await files.drain()
        copy_of(files).requests.clear()
        await files.files.put("it", b"bytes")
        await files.drain()
        assert copy_of(files).bytes_in == 0
        await files.files.put("it", b"bytes", content_type="text/plain")
        await files.drain()
        assert (await files.at("copy").head("it")).headers.content_type == "text/plain"

    run_on(way, test)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_deletion_deletes_from_the_mirror_at_once(way: Way) -> None:
    async def test(files: Rig) -> None:
        for key in ("a", "b", "c/1", "c/2", "d"):
            await files.files.put(key, b"x")
        await files.drain()
        await files.files.delete("a")
        await files.files.delete_many(["b"])
        await files.files.delete_prefix("c/")
        assert await files.keys() == await files.keys(service="copy") == ["d"]
        await files.files.put("e", b"x")
        await files.files.delete("e")
        assert (await files.drain()).succeeded == 1, "the deleted object needs no copy"
        assert await files.keys(service="copy") == ["d"]

    run_on(way, test)


# --- failures -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_put_succeeds_if_the_mirror_is_down_and_the_copy_is_retried(way: Way) -> None:
    async def test(files: Rig) -> None:
        def down(request: Any) -> None:
            raise ServiceUnavailableError("the mirror is down")

        copy_of(files).before = down
        await files.files.put("it", b"bytes")
        assert await files.files.get("it") == b"bytes"
        metrics = await files.drain()
        assert (metrics.failed, metrics.succeeded) == (1, 0)
        (waiting,) = files.db.jobs.list() if way.colour == "blocking" else await files.db.jobs.list()
        assert (waiting.name, waiting.state, waiting.attempts) == ("holdall.mirror", "waiting", 1)
        copy_of(files).before = lambda request: None
        await files.files.put("it", b"newer bytes")
        (report,) = await files.files.check_mirrors(repair=True)
        assert report.copied == 1
        assert await files.at("copy").get("it") == b"newer bytes"

    run_on(way, test)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_deletion_fails_with_a_note_if_the_mirror_is_down(way: Way) -> None:
    async def test(files: Rig) -> None:
        for key in ("a", "b"):
            await files.files.put(key, b"x")
        await files.drain()

        def down(request: Any) -> None:
            if isinstance(request, DeleteObject | DeleteObjects):
                raise ServiceUnavailableError("the mirror is down")

        copy_of(files).before = down
        with pytest.raises(ServiceUnavailableError) as caught:
            await files.files.delete("a")
        assert caught.value.__notes__ == ["it was deleted from main, but not from the mirror copy"]
        with pytest.raises(ServiceUnavailableError):
            await files.files.delete_many(["b"])
        assert await files.keys() == []
        copy_of(files).before = lambda request: None
        await files.files.delete_many(["a", "b"])
        assert await files.keys(service="copy") == []

    run_on(way, test)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_failed_deletions_in_a_mirror_are_reported(way: Way) -> None:
    class LockedService(Wrapper):
        async def _answer(self, send: Send, request: Request[Any]) -> Any:
            if isinstance(request, DeleteObjects):
                return DeleteReport({"a": "it is locked"})
            return await send(self.inner, request)

    async def test(files: Rig) -> None:
        copy_of(files).inner = LockedService(MemoryService())
        await files.files.put("a", b"x")
        with pytest.raises(
            ServiceError, match="1 of 1 objects could not be deleted, the first 'a': it is locked"
        ):
            await files.files.delete_many(["a"])

    run_on(way, test)


def test_if_one_mirror_is_down_the_others_are_still_updated() -> None:
    first, second = InterceptedService(MemoryService()), InterceptedService(MemoryService())
    named: dict[str, Any] = {"main": MemoryService(), "first": first, "second": second}
    named["mirrored"] = "mirror:main,first,second"

    def down(request: Any) -> None:
        raise ServiceUnavailableError("down")

    with Database("memory:", files=named, default_service="mirrored") as db:
        db.files.put("it", b"bytes")
        first.before = down
        assert db.worker(poll_interval=0.02).drain().failed == 1
        assert db.files["second"].get("it") == b"bytes"
        with pytest.raises(ServiceUnavailableError):
            db.files.delete("it")
        assert not db.files["second"].exists("it")


@pytest.mark.parametrize("size", [5, LARGE])
def test_an_object_that_is_deleted_during_its_copy_does_not_remain_in_the_mirror(size: int) -> None:
    with open_rig(WAYS[0]) as files:
        files.db.files.put("it", pattern(size))

        def delete(request: Any) -> None:
            if isinstance(request, GetObject) and request.start == 0:
                files.db.files.delete("it")

        files.service.after = delete
        assert run(files.drain()).succeeded == 1
        assert files.db.files["copy"].exists("it") is False
        assert copy_of(files).inner.send_blocking(ListUploads("copy")) == ()


@pytest.mark.parametrize("size", [5, LARGE])
def test_if_an_object_is_replaced_during_its_copy_the_mirror_gets_the_new_one(size: int) -> None:
    with open_rig(WAYS[0]) as files:
        files.db.files.put("it", pattern(size))
        replaced: list[int] = []

        def replace(request: Any) -> None:
            if isinstance(request, GetObject) and request.service == "main" and not replaced:
                replaced.append(1)
                files.service.inner.send_blocking(PutObject("main", "it", b"the new one"))

        files.service.after = replace
        assert run(files.drain()).succeeded == 1
        assert files.db.files["copy"].get("it") == b"the new one"
        assert copy_of(files).inner.send_blocking(ListUploads("copy")) == ()


def test_corrupt_bytes_in_the_primary_are_not_copied() -> None:
    with open_rig(WAYS[0]) as files:
        for key, size in (("small", 5), ("large", LARGE)):
            data = pattern(size)
            files.db.files.put(key, data)
            path = files.object_file(data)
            times = path.stat()
            with path.open("r+b") as file:
                file.seek(3)
                file.write(bytes([data[3] ^ 1]))
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert run(files.drain()).failed == 2
        assert list(files.db.files["copy"].list()) == []
        assert not copy_of(files).list_sent(CompleteUpload)
        assert copy_of(files).inner.send_blocking(ListUploads("copy")) == ()


def test_objects_without_a_common_digest_are_copied_again() -> None:
    """S3 has no digest of an object uploaded in parts, so an old version of the same size must not be kept."""
    named: dict[str, Any] = {"main": bucket_service("mirrored/primary"), "copy": MemoryService()}
    with Database("memory:", files={**named, "both": "mirror:main,copy"}, default_service="both") as db:
        for version in (pattern(LARGE), bytes(LARGE)):
            db.files.put("it", version)
            db.worker(poll_interval=0.02).drain()
            assert db.files["copy"].get("it") == version
        db.files.delete("it")


def test_a_worker_in_another_process_copies(tmp_path: Path) -> None:
    named = {
        "main": f"file:{tmp_path / 'main'}",
        "copy": f"file:{tmp_path / 'copy'}",
        "both": "mirror:main,copy",
    }
    program = (
        "import sys, json; from holdall import Database\n"
        "with Database(sys.argv[1], files=json.loads(sys.argv[2])) as db: print(db.worker().drain().succeeded)"
    )
    url = f"embedded:{tmp_path / 'store.db'}"
    with Database(url, files=named, default_service="both") as db:
        db.files.put("it", b"bytes")
        with start_source(program, url, json.dumps(named)) as worker:
            assert worker.finish() == ["1"]
        assert db.files["copy"].get("it") == b"bytes"


# --- checks and repairs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_check_reports_differences_and_changes_nothing(way: Way) -> None:
    async def test(files: Rig) -> None:
        for key in ("a", "b", "c", "same", "ü"):
            await files.at("main").put(key, b"bytes")
        for key, body in (("b", b"other"), ("c", b"longer"), ("same", b"bytes"), ("z", b"surplus")):
            await files.at("copy").put(key, body)
        wanted = report(compared=5, missing=2, different=2, surplus=1, keys=("a", "b", "c", "z", "ü"))
        assert await files.files.check_mirrors() == [wanted]
        assert await files.files.check_mirrors() == [wanted]
        assert await files.files.check_mirrors(prefix="s") == [report(compared=1)]

    run_on(way, test)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_repair_copies_missing_and_different_objects_and_leaves_the_rest(way: Way) -> None:
    async def test(files: Rig) -> None:
        await files.at("main").put("a", b"bytes")
        await files.at("main").put("large", pattern(LARGE))
        await files.at("copy").put("a", b"other")
        await files.at("copy").put("z", b"surplus")
        found = report(compared=2, missing=1, different=1, surplus=1, copied=2, keys=("a", "large", "z"))
        assert await files.files.check_mirrors(repair=True) == [found]
        assert await files.at("copy").get("a") == b"bytes"
        assert await files.at("copy").get("large") == pattern(LARGE)
        assert await files.at("copy").get("z") == b"surplus"
        assert await files.files.check_mirrors() == [report(compared=2, surplus=1, keys=("z",))]

    run_on(way, test)


def test_equal_etags_of_two_services_in_memory_do_not_mean_equal_objects() -> None:
    named: dict[str, Any] = {"main": "memory:", "copy": "memory:", "both": "mirror:main,copy"}
    with Database("memory:", files=named, default_service="both") as db:
        db.files["main"].put("it", b"bytes")
        db.files["copy"].put("it", b"other")
        assert db.files["main"].head("it").etag == db.files["copy"].head("it").etag
        assert db.files.check_mirrors() == [report(compared=1, different=1, keys=("it",))]
        db.files.put("it", b"third")
        db.worker(poll_interval=0.02).drain()
        assert db.files["copy"].get("it") == b"third"


def test_thousands_of_objects_are_compared_page_by_page_with_progress() -> None:
    with open_rig(WAYS[0]) as files:
        main, copy = MemoryService(), MemoryService()
        files.service.inner = main
        copy_of(files).inner = copy
        for number in range(2_300):
            main.send_blocking(PutObject("main", f"{number:05}", b"x"))
            if number % 10:
                copy.send_blocking(PutObject("copy", f"{number:05}", b"x"))
        progress: list[int] = []
        (found,) = files.db.files.check_mirrors(progress=progress.append)
        assert (found.compared, found.missing, len(found.keys)) == (2_300, 230, 100)
        assert progress == [1_000, 2_000]


def test_a_service_without_mirrors_cannot_be_checked() -> None:
    with Database("memory:") as db, pytest.raises(InvalidOptionsError, match="has no mirrors"):
        db.files.check_mirrors()


def test_a_mirrored_service_answers_as_its_primary_does() -> None:
    with open_rig(WAYS[0]) as files:
        files.db.files.put("it", pattern(LARGE))
        assert files.service.list_sent(UploadPart)
        assert files.db.files.head("it") == files.db.files["main"].head("it")
        assert not copy_of(files).list_sent(HeadObject)
