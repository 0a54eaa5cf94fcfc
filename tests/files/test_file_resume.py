"""Interrupted uploads are resumed: parts that have arrived are not sent again."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from rig.files import PART, Rig, Way, in_small_parts, open_rig, pattern
from rig.servers import start_server
from rig.torture import Child

from holdall.core.objects import AbortUpload, BeginUpload, UploadPart
from holdall.errors import IntegrityError, ServiceUnavailableError


def fail_parts(files: Rig, at: int) -> Any:
    """A function for `InterceptedService.before`: parts from this number on fail."""

    def fail(request: Any) -> None:
        if isinstance(request, UploadPart) and request.number >= at:
            raise ServiceUnavailableError("the service is away")

    return fail


@pytest.mark.parametrize("kind", ["disk", "S3"])
def test_after_a_kill_another_process_resumes_and_sends_only_the_missing_parts(kind: str) -> None:
    data = pattern(26_000_000)
    with open_rig(Way(kind, "blocking")) as files:
        path = files.file(data)
        where = f"file:{files.root}"
        if kind == "S3":
            where = f"{start_server('ministack')} {files.prefix}"
        with Child("dying_putter.py", where, "it", path, 2) as putter:
            putter.end()
            assert putter.returncode == -signal.SIGKILL
        assert files.db.files.exists("it") is False
        (upload,) = files.uploads_now()
        there = files.parts_of(upload)
        assert len(there) >= 2

        info = files.db.files.put("it", path, resume=True)
        assert info.size == len(data)
        sent = {request.number for request in files.service.list_sent(UploadPart)}
        assert sent.isdisjoint(there)
        assert sent | there.keys() == set(range(1, len(sent) + len(there) + 1))
        assert files.service.bytes_in == len(data) - sum(there.values())
        assert not files.service.list_sent(BeginUpload)
        assert files.db.files.get("it") == data
        assert files.db.files.head("it").headers.content_type == "text/plain"
        assert files.uploads_now() == ()


@in_small_parts
@pytest.mark.parametrize("kind", ["bytes", "file", "stream"])
async def test_a_failed_upload_is_kept_and_resumed(files: Rig, kind: str) -> None:
    data = pattern(7 * PART + 1)

    def source() -> Any:
        if kind == "stream":
            return files.file(data).open("rb")
        return data if kind == "bytes" else files.file(data)

    async def put() -> None:
        given = source()
        try:
            await files.files.put("it", given, resume=True)
        finally:
            if kind == "stream":
                given.close()

    files.service.before = fail_parts(files, 5)
    with pytest.raises(ServiceUnavailableError):
        await put()
    assert await files.keys() == []
    assert len(await files.uploads()) == 1
    files.service.before = lambda request: None
    files.service.requests.clear()
    await put()
    assert sorted(request.number for request in files.service.list_sent(UploadPart)) == [5, 6, 7, 8]
    assert await files.files.get("it") == data
    assert await files.uploads() == ()


@in_small_parts
async def test_parts_with_other_bytes_are_sent_again(files: Rig) -> None:
    data = pattern(7 * PART)
    files.service.before = fail_parts(files, 5)
    with pytest.raises(ServiceUnavailableError):
        await files.files.put("it", data, resume=True)
    files.service.before = lambda request: None
    files.service.requests.clear()
    other = data[:PART] + bytes(PART) + data[2 * PART : 6 * PART]
    await files.files.put("it", other, resume=True)
    assert sorted(request.number for request in files.service.list_sent(UploadPart)) == [2, 5, 6]
    assert await files.files.get("it") == other


@in_small_parts
async def test_without_resume_a_new_upload_begins_and_the_other_stays(files: Rig) -> None:
    data = pattern(7 * PART)
    files.service.before = fail_parts(files, 5)
    with pytest.raises(ServiceUnavailableError):
        await files.files.put("it", data, resume=True)
    (left,) = await files.uploads()
    files.service.before = lambda request: None
    files.service.requests.clear()
    await files.files.put("it", data)
    assert len(files.service.list_sent(UploadPart)) == 7
    assert await files.uploads() == (left,)
    await files.files.put("it/beside", data, resume=True)
    assert await files.uploads() == (left,), "the upload of another key is not touched"


@in_small_parts
async def test_an_upload_of_unexpected_bytes_is_not_kept(files: Rig) -> None:
    with pytest.raises(IntegrityError):
        await files.files.put("it", pattern(7 * PART), resume=True, sha256="A" * 43 + "=")
    assert await files.is_clean()


@in_small_parts
async def test_an_upload_that_vanishes_before_it_is_resumed_starts_again(files: Rig) -> None:
    data = pattern(7 * PART)
    files.service.before = fail_parts(files, 5)
    with pytest.raises(ServiceUnavailableError):
        await files.files.put("it", data, resume=True)
    (left,) = await files.uploads()

    def abort(request: Any) -> None:
        if type(request).__name__ == "ListUploads":
            files.service.inner.send_blocking(AbortUpload("main", left))

    files.service.before = lambda request: None
    files.service.after = abort
    await files.files.put("it", data, resume=True)
    assert await files.files.get("it") == data
    assert await files.uploads() == ()
