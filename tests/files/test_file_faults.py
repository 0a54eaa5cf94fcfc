"""When requests fail: unfinished uploads are aborted, existing objects stay, and the first error is raised."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rig.files import PART, Rig, everywhere, in_small_parts, pattern
from rig.wrapper import Wrapper

from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CompleteUpload,
    CopyPart,
    GetObject,
    HeadObject,
    PutObject,
    UploadPart,
)
from holdall.core.port import Send
from holdall.core.requests import Request
from holdall.errors import (
    AccessDeniedError,
    OutcomeUnknown,
    PreconditionFailedError,
    ServiceError,
    ServiceUnavailableError,
)

DATA = pattern(7 * PART + 1)


def fail_requests(*kinds: type[Any], error: Exception, at: int = 1) -> Any:
    """A function for `InterceptedService.before` or ``after`` that fails requests of these kinds, from the nth on."""
    seen = 0

    def fail(request: Any) -> None:
        nonlocal seen
        if isinstance(request, kinds):
            seen += 1
            if seen >= at:
                raise error

    return fail


@in_small_parts
@pytest.mark.parametrize("at", [1, 2, 5, 8])
async def test_if_a_part_fails_the_upload_is_aborted(files: Rig, at: int) -> None:
    for source in (DATA, files.file(DATA), io.BufferedReader(io.BytesIO(DATA))):
        files.service.before = fail_requests(UploadPart, error=ServiceUnavailableError("away"), at=at)
        files.service.requests.clear()
        with pytest.raises(ServiceUnavailableError):
            await files.files.put("it", source)
        files.service.before = lambda request: None
        assert await files.is_clean()
        assert len(files.service.list_sent(AbortUpload)) == 1
        assert len(files.service.list_sent(UploadPart)) < at + (files.way.parallel or 1)


@in_small_parts
async def test_if_the_reply_to_a_part_is_lost_the_upload_is_aborted(files: Rig) -> None:
    files.service.after = fail_requests(UploadPart, error=OutcomeUnknown("lost"), at=3)
    with pytest.raises(OutcomeUnknown):
        await files.files.put("it", DATA)
    assert await files.is_clean()


@in_small_parts
async def test_if_the_first_or_last_request_fails_nothing_is_left(files: Rig) -> None:
    for kind in (BeginUpload, CompleteUpload):
        files.service.before = fail_requests(kind, error=AccessDeniedError("no"))
        with pytest.raises(AccessDeniedError):
            await files.files.put("it", DATA)
        assert await files.is_clean()


@in_small_parts
async def test_if_the_upload_may_be_complete_it_is_not_aborted(files: Rig) -> None:
    files.service.after = fail_requests(CompleteUpload, error=OutcomeUnknown("the reply was lost"))
    with pytest.raises(OutcomeUnknown):
        await files.files.put("it", DATA)
    assert not files.service.list_sent(AbortUpload)
    files.service.after = lambda request: None
    assert await files.files.get("it") == DATA


@in_small_parts
async def test_if_the_abort_fails_too_the_first_error_is_raised_with_a_note(files: Rig) -> None:
    def fail(request: Any) -> None:
        if isinstance(request, UploadPart | AbortUpload):
            raise ServiceUnavailableError(f"no {type(request).__name__}")

    files.service.before = fail
    with pytest.raises(ServiceUnavailableError, match="no UploadPart") as caught:
        await files.files.put("it", DATA)
    (note,) = caught.value.__notes__
    assert "could not be aborted, so its parts remain: service-unavailable" in note


@everywhere
async def test_a_failed_put_keeps_the_existing_object(files: Rig) -> None:
    await files.files.put("it", b"old")
    large = pattern(9_000_000)
    for kind, source in ((PutObject, b"new"), (UploadPart, large), (CompleteUpload, large)):
        files.service.before = fail_requests(kind, error=ServiceUnavailableError("away"))
        with pytest.raises(ServiceUnavailableError):
            await files.files.put("it", source)
        files.service.before = lambda request: None
        assert await files.files.get("it") == b"old"
        assert await files.uploads() == ()


@in_small_parts
async def test_a_failed_composition_is_aborted(files: Rig) -> None:
    sources = [pattern(5 * 1024 * 1024), b"few", b"more"]
    files.service.traits = None
    for number, data in enumerate(sources):
        await files.files.put(f"source/{number}", data)
    keys = [f"source/{number}" for number in range(3)]
    for kind in (HeadObject, BeginUpload, CopyPart, GetObject, UploadPart, CompleteUpload):
        files.service.before = fail_requests(kind, error=ServiceUnavailableError("away"))
        with pytest.raises(ServiceUnavailableError):
            await files.files.compose(keys, "it")
        files.service.before = lambda request: None
        assert await files.uploads() == ()
        assert await files.files.exists("it") is False


@in_small_parts
async def test_a_source_that_is_replaced_during_a_composition_is_not_mixed(files: Rig) -> None:
    files.service.traits = None
    await files.files.put("one", pattern(5 * 1024 * 1024))
    await files.files.put("two", b"old")

    def replace_it(request: Any) -> None:
        if isinstance(request, CopyPart):
            files.service.inner.send_blocking(PutObject("main", "two", b"new"))

    files.service.before = replace_it
    with pytest.raises(PreconditionFailedError):
        await files.files.compose(["one", "two"], "it")
    assert await files.uploads() == ()
    assert await files.files.exists("it") is False


@in_small_parts
async def test_failed_deletions_are_reported(files: Rig) -> None:
    from holdall.core.objects import DeleteObjects, DeleteReport

    for number in range(3):
        await files.files.put(f"a/{number}", b"x")

    class LockedService(Wrapper):
        async def _answer(self, send: Send, request: Request[Any]) -> Any:
            if isinstance(request, DeleteObjects):
                return DeleteReport({"a/1": "it is locked"})
            return await send(self.inner, request)

    files.service.inner = LockedService(files.service.inner)
    for deleting in (files.files.delete_many(["a/0", "a/1"]), files.files.delete_prefix("a/")):
        with pytest.raises(ServiceError, match="could not be deleted, the first 'a/1': it is locked"):
            await deleting
