"""Uploads that were broken off are gone on with: what has arrived is not sent again."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from rig.files import PART, Rig, Way, in_small_parts, open_rig, pattern
from rig.servers import start_server
from rig.torture import Child

from holdall.core.objects import AbortUpload, BeginUpload, UploadPart
from holdall.errors import IntegrityError, ServiceUnavailableError


def break_off(files: Rig, at: int) -> Any:
    """For `Meddler.before`: no part from this one on arrives."""

    def fail(request: Any) -> None:
        if isinstance(request, UploadPart) and request.number >= at:
            raise ServiceUnavailableError("the service is away")

    return fail


@pytest.mark.parametrize("kind", ["disk", "S3"])
def test_after_a_kill_another_process_goes_on_and_sends_only_what_is_missing(kind: str) -> None:
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
async def test_an_upload_that_failed_is_left_and_gone_on_with(files: Rig, kind: str) -> None:
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

    files.service.before = break_off(files, 5)
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
async def test_parts_of_other_bytes_are_sent_anew(files: Rig) -> None:
    data = pattern(7 * PART)
    files.service.before = break_off(files, 5)
    with pytest.raises(ServiceUnavailableError):
        await files.files.put("it", data, resume=True)
    files.service.before = lambda request: None
    files.service.requests.clear()
    other = data[:PART] + bytes(PART) + data[2 * PART : 6 * PART]
    await files.files.put("it", other, resume=True)
    assert sorted(request.number for request in files.service.list_sent(UploadPart)) == [2, 5, 6]
    assert await files.files.get("it") == other


@in_small_parts
async def test_without_resume_a_new_upload_is_begun_and_the_other_stays(files: Rig) -> None:
    data = pattern(7 * PART)
    files.service.before = break_off(files, 5)
    with pytest.raises(ServiceUnavailableError):
        await files.files.put("it", data, resume=True)
    (left,) = await files.uploads()
    files.service.before = lambda request: None
    files.service.requests.clear()
    await files.files.put("it", data)
    assert len(files.service.list_sent(UploadPart)) == 7
    assert await files.uploads() == (left,)
    await files.files.put("it/beside", data, resume=True)
    assert await files.uploads() == (left,), "that of another key is not touched"


@in_small_parts
async def test_wrong_bytes_are_not_left_to_be_gone_on_with(files: Rig) -> None:
    with pytest.raises(IntegrityError):
        await files.files.put("it", pattern(7 * PART), resume=True, sha256="A" * 43 + "=")
    assert await files.is_clean()


@in_small_parts
async def test_an_upload_that_is_gone_when_it_is_looked_at_is_begun_anew(files: Rig) -> None:
    data = pattern(7 * PART)
    files.service.before = break_off(files, 5)
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
