"""The contract of file services can fail: a service with one defect fails the check for that defect."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import pytest

from holdall.backends.memory import MemoryService
from holdall.core.frozen import replace
from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CompleteUpload,
    CopyObject,
    CopyPart,
    DeleteObject,
    DeleteObjects,
    GetObject,
    GetTags,
    HeadObject,
    ListObjects,
    ListParts,
    ListUploads,
    ObjectHeaders,
    ObjectRange,
    PutObject,
    UploadPart,
)
from holdall.core.requests import Done, Request
from holdall.errors import (
    IntegrityError,
    InvalidObjectKeyError,
    ObjectNotFoundError,
    PreconditionFailedError,
)
from holdall.testing import run_service_check, service_checks
from holdall.testing.file_contract.check import md5_of

R = TypeVar("R")
Answer = Callable[[Request[Any]], Any]
Defect = Callable[[Any, Answer], Any]


class DefectiveService:
    """A service in memory that answers one kind of request wrongly."""

    def __init__(self, kind: type[Request[Any]], defect: Defect) -> None:
        self._inner = MemoryService()
        self._kind = kind
        self._defect = defect

    def send_blocking(self, request: Request[R]) -> R:
        if isinstance(request, self._kind):
            return cast("R", self._defect(request, self._inner.send_blocking))
        return self._inner.send_blocking(request)

    async def send_awaiting(self, request: Request[R]) -> R:
        return self.send_blocking(request)

    def close(self) -> None:
        self._inner.close()


@dataclass(frozen=True)
class Case:
    sentence: str
    kind: type[Request[Any]]
    defect: Defect
    error: type[Exception] = AssertionError

    def __str__(self) -> str:
        return self.sentence


def ignore(**fields: Any) -> Defect:
    """Replace some fields of the request, as if the service did not read them."""
    return lambda request, answer: answer(replace(request, **fields))


def send_whole_object(request: GetObject, answer: Answer) -> Any:
    return answer(replace(request, size=None))


def refuse_range_beyond_end(request: GetObject, answer: Answer) -> Any:
    found: ObjectRange = answer(request)
    if request.start >= found.info.size > 0:
        raise ObjectNotFoundError("416")
    return found


def store_despite_error(request: PutObject, answer: Answer) -> Any:
    try:
        return answer(request)
    except IntegrityError:
        answer(replace(request, md5=None, sha256=None))
        raise


_start = threading.Barrier(8)


def check_before_creating(request: PutObject, answer: Answer) -> Any:
    if request.if_absent is None:
        return answer(request)
    try:
        answer(HeadObject(request.service, request.key))
    except ObjectNotFoundError:
        _start.wait(timeout=10)
        return answer(replace(request, if_absent=None))
    raise PreconditionFailedError("the object exists")


def check_before_replacing(request: PutObject, answer: Answer) -> Any:
    if request.if_match is None:
        return answer(request)
    if answer(HeadObject(request.service, request.key)).etag != request.if_match:
        raise PreconditionFailedError("the etag differs")
    _start.wait(timeout=10)
    return answer(replace(request, if_match=None))


def ignore_etag_if_missing(request: Any, answer: Answer) -> Any:
    """Check the condition only if the object exists."""
    key = request.key if isinstance(request, PutObject) else request.upload.key
    try:
        answer(HeadObject(request.service, key))
    except ObjectNotFoundError:
        return answer(replace(request, if_match=None))
    return answer(request)


def leave_tags_encoded(request: GetTags, answer: Answer) -> Any:
    return {name: value.replace(" ", "+") for name, value in answer(request).items()}


def find_no_tags_if_missing(request: GetTags, answer: Answer) -> Any:
    try:
        return answer(request)
    except ObjectNotFoundError:
        return {}


def drop_tags(request: CopyObject, answer: Answer) -> Any:
    found = answer(GetObject(request.service, request.source, if_match=request.if_match))
    return answer(
        PutObject(request.service, request.key, found.body, found.info.headers, if_absent=request.if_absent)
    )


def keep_old_tags(request: PutObject, answer: Answer) -> Any:
    """Let a put without tags keep the tags of the object that it replaces."""
    try:
        before = answer(GetTags(request.service, request.key))
    except ObjectNotFoundError:
        before = {}
    return answer(replace(request, tags=request.tags or before))


def forget_put_id(request: HeadObject, answer: Answer) -> Any:
    return replace(answer(request), put_id=None)


def sort_by_utf_16(request: ListObjects, answer: Answer) -> Any:
    page = answer(request)
    ordered = sorted(page.objects, key=lambda listed: listed.key.encode("utf-16-be"))
    return replace(page, objects=tuple(ordered))


def lose_last_of_page(request: ListObjects, answer: Answer) -> Any:
    page = answer(request)
    return page if page.next is None else replace(page, objects=page.objects[:-1])


def list_directory(request: ListObjects, answer: Answer) -> Any:
    page = answer(request)
    folder = request.prefix.rpartition("/")[0] + "/"
    kept = [listed for listed in page.objects if "/" not in listed.key.removeprefix(folder)]
    return replace(page, objects=tuple(kept))


def page_by_position(request: ListObjects, answer: Answer) -> Any:
    page = answer(ListObjects(request.service, request.prefix))
    start = int(request.after or 0)
    end = start + request.limit
    more = str(end) if end < len(page.objects) else None
    return replace(page, objects=page.objects[start:end], next=more)


def refuse_missing(request: DeleteObject, answer: Answer) -> Any:
    answer(HeadObject(request.service, request.key))
    return answer(request)


def stop_at_first_missing(request: DeleteObjects, answer: Answer) -> Any:
    report = answer(replace(request, keys=request.keys[:1]))
    for key in request.keys:
        try:
            answer(HeadObject(request.service, key))
        except ObjectNotFoundError:
            if key != request.keys[0]:
                break
        answer(DeleteObject(request.service, key))
    return report


def copy_only_bytes(request: CopyObject, answer: Answer) -> Any:
    body = answer(GetObject(request.service, request.source)).body
    return answer(PutObject(request.service, request.key, body))


def encode_metadata_as_ascii(request: PutObject, answer: Answer) -> Any:
    plain = {
        name: value.encode("ascii", "replace").decode() for name, value in request.headers.metadata.items()
    }
    return answer(replace(request, headers=replace(request.headers, metadata=plain)))


def ignore_case(request: Any, answer: Answer) -> Any:
    return answer(replace(request, key=request.key.lower()))


def normalize(request: Any, answer: Answer) -> Any:
    return answer(replace(request, key=unicodedata.normalize("NFC", request.key)))


def make_etag_of_size(request: Any, answer: Answer) -> Any:
    info = answer(request)
    return replace(info, etag=f"of {info.size} bytes")


def report_wrong_digest(request: HeadObject, answer: Answer) -> Any:
    return replace(answer(request), md5=md5_of(b"others"))


def repeat_pages(request: ListObjects, answer: Answer) -> Any:
    page = answer(request)
    return replace(page, next=request.after or "the beginning")


def show_too_early(request: UploadPart, answer: Answer) -> Any:
    part = answer(request)
    answer(PutObject(request.service, request.upload.key, request.body))
    return part


def reverse_parts(request: ListParts, answer: Answer) -> Any:
    page = answer(request)
    return replace(page, parts=page.parts[::-1])


def use_only_first_part(request: CompleteUpload, answer: Answer) -> Any:
    return answer(replace(request, parts=request.parts[:1]))


def do_nothing(request: AbortUpload, answer: Answer) -> Any:
    return Done()


def refuse_missing_upload(request: AbortUpload, answer: Answer) -> Any:
    answer(ListParts(request.service, request.upload))
    return answer(request)


def report_not_found(request: Any, answer: Answer) -> Any:
    try:
        return answer(request)
    except InvalidObjectKeyError as error:
        raise ObjectNotFoundError("invalid key") from error


def copy_whole_source(request: CopyPart, answer: Answer) -> Any:
    body = answer(GetObject(request.service, request.source, if_match=request.if_match)).body
    return answer(UploadPart(request.service, request.upload, request.number, body))


CASES = (
    Case("objects: a range has the requested bytes", GetObject, send_whole_object),
    Case("objects: the etag changes however quickly the bytes do", PutObject, make_etag_of_size),
    Case("objects: a range beyond the end is empty", GetObject, refuse_range_beyond_end, ObjectNotFoundError),
    Case("objects: a read of an object that changed is refused", GetObject, ignore(if_match=None)),
    Case("headers: headers come back with the object", PutObject, ignore(headers=ObjectHeaders())),
    Case("headers: metadata can be any text", PutObject, encode_metadata_as_ascii),
    Case("digests: bytes with other digests are not stored", PutObject, ignore(md5=None)),
    Case("digests: bytes with other digests are not stored", PutObject, ignore(sha256=None)),
    Case("digests: bytes with other digests replace nothing", PutObject, store_despite_error),
    Case("digests: digests that a service reports are those of the bytes", HeadObject, report_wrong_digest),
    Case("creation: a second creation is refused and changes nothing", PutObject, ignore(if_absent=None)),
    Case("creation: of many creations at once one wins", PutObject, check_before_creating),
    Case("creation: a creation leaves its id", HeadObject, forget_put_id),
    Case("creation: of many uploads that create one wins", CompleteUpload, ignore(if_absent=None)),
    Case("replacement: a put with an old etag replaces nothing", PutObject, ignore(if_match=None)),
    Case(
        "replacement: a put with an etag does not create a missing object", PutObject, ignore_etag_if_missing
    ),
    Case("replacement: of many replacements at once one wins", PutObject, check_before_replacing),
    Case(
        "replacement: an upload with an old etag replaces nothing",
        CompleteUpload,
        ignore(if_match=None),
    ),
    Case(
        "replacement: an upload with an etag does not create a missing object",
        CompleteUpload,
        ignore_etag_if_missing,
    ),
    Case("replacement: of many uploads that replace one wins", CompleteUpload, ignore(if_match=None)),
    Case(
        "replacement: of replacements and deletions at once one kind wins",
        DeleteObject,
        ignore(if_match=None),
    ),
    Case("deletion: a deletion with an old etag deletes nothing", DeleteObject, ignore(if_match=None)),
    Case(
        "deletion: deleting a missing object by its etag is not an error",
        DeleteObject,
        refuse_missing,
        ObjectNotFoundError,
    ),
    Case("tags: tags are kept with the object", PutObject, ignore(tags={})),
    Case("tags: tags are kept with the object", GetTags, leave_tags_encoded),
    Case("tags: the tags of a missing object are not found", GetTags, find_no_tags_if_missing),
    Case("tags: a replacement without tags has none", PutObject, keep_old_tags),
    Case("tags: a copy has the tags of its source", CopyObject, drop_tags),
    Case("tags: a copy that creates has the tags of its source", CopyObject, drop_tags),
    Case("tags: a copy onto itself keeps its tags", CopyObject, drop_tags),
    Case("tags: an object made of parts has the tags of its upload", BeginUpload, ignore(tags={})),
    Case("tags: invalid tags are refused", PutObject, ignore(tags={})),
    Case(
        "refusals: if absent and if match cannot be combined",
        PutObject,
        ignore(if_match=None),
        PreconditionFailedError,
    ),
    Case(
        "deletion: deleting a missing object is not an error",
        DeleteObject,
        refuse_missing,
        ObjectNotFoundError,
    ),
    Case(
        "deletion: many objects are deleted at once and missing ones are ignored",
        DeleteObjects,
        stop_at_first_missing,
    ),
    Case("listing: keys are in the order of their bytes", ListObjects, sort_by_utf_16),
    Case("listing: a listing is the same in pages of every size", ListObjects, lose_last_of_page),
    Case("listing: a listing is the same in pages of every size", ListObjects, repeat_pages),
    Case("listing: a prefix is text and not a directory", ListObjects, list_directory),
    Case("listing: nothing is missed when pages are deleted on the way", ListObjects, page_by_position),
    Case("keys: case matters", PutObject | GetObject | HeadObject | DeleteObject, ignore_case),  # type: ignore[arg-type]
    Case("keys: every alphabet works and different texts are different keys", PutObject, normalize),
    Case("copies: a copy has the bytes and the headers", CopyObject, copy_only_bytes),
    Case(
        "copies: a copy of a source that changed is refused and changes nothing",
        CopyObject,
        ignore(if_match=None),
    ),
    Case(
        "copies: a copy that creates is refused if the key is taken",
        CopyObject,
        ignore(if_absent=None),
    ),
    Case("uploads: nothing of an upload is visible before its end", UploadPart, show_too_early),
    Case("uploads: the parts of an upload are listed by number", ListParts, reverse_parts),
    Case("uploads: parts can be sent in any order", CompleteUpload, use_only_first_part),
    Case("uploads: an aborted upload is gone", AbortUpload, do_nothing),
    Case(
        "uploads: aborting a missing upload is not an error",
        AbortUpload,
        refuse_missing_upload,
        ObjectNotFoundError,
    ),
    Case(
        "uploads: uploads are listed by the prefix of their keys",
        ListUploads,
        ignore(prefix=""),
    ),
    Case("completion: a part can be taken from an object", CopyPart, copy_whole_source),
    Case(
        "completion: an upload with other digests replaces nothing",
        CompleteUpload,
        ignore(md5=None),
    ),
    Case(
        "refusals: every request refuses an invalid key",
        HeadObject,
        report_not_found,
        ObjectNotFoundError,
    ),
    Case(
        "refusals: a page has from one to a thousand objects",
        ListObjects,
        lambda request, answer: answer(replace(request, limit=min(max(request.limit, 1), 1000))),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_defective_service_fails_the_check_for_its_defect(case: Case) -> None:
    (check,) = [check for check in service_checks() if str(check) == case.sentence]
    service = DefectiveService(case.kind, case.defect)
    try:
        with pytest.raises(case.error):
            run_service_check(check, service, "blocking")
    finally:
        service.close()


def test_a_service_that_cannot_be_closed_fails_the_check_for_closing() -> None:
    class UnclosableService(DefectiveService):
        def close(self) -> None:
            pass

    (check,) = [
        check
        for check in service_checks()
        if str(check) == "concurrency: a closed service refuses everything"
    ]
    with pytest.raises(AssertionError):
        run_service_check(
            check, UnclosableService(HeadObject, lambda request, answer: answer(request)), "blocking"
        )


def test_the_service_passes_all_checks_without_a_defect() -> None:
    for check in service_checks():
        if "signed_urls" in check.requires:
            continue
        service = DefectiveService(HeadObject, lambda request, answer: answer(request))
        try:
            run_service_check(check, service, "blocking")
        finally:
            service.close()
