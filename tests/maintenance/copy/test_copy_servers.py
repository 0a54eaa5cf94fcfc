"""Files between two buckets on one S3 server: the server copies them, so no bytes pass through this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from copy_rig import Rig, Way, open_rig
from rig.colour import finish, in_turn
from rig.files import BUCKET, bucket_service, pattern
from rig.recorder import Recorder
from rig.servers import ENVIRONMENT, start_server

from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.s3 import S3Service
from holdall.core.frozen import replace
from holdall.core.objects import GetObject, GetTags, ImportObject, PutObject, UploadPart
from holdall.core.port import Send
from holdall.core.requests import Request
from holdall.core.rules.object import MIN_PART
from holdall.errors import AccessDeniedError, ConfigurationError, InvalidRequestError
from holdall.maintenance import CopyReport


@contextmanager
def open_two_buckets(name: str, there: type[Recorder] = Recorder) -> Iterator[tuple[Rig, Recorder]]:
    """Databases in memory whose files are below two prefixes on ministack, with one recording of both services."""
    (colour,) = in_turn(name)[:1]
    record = Recorder(bucket_service(f"from ü/{uuid4().hex}"))
    target = there(bucket_service(f"to/{uuid4().hex}"), beside=record)
    with open_rig(Way("memory-to-memory", colour), {"files": record}, {"files": target}) as rig:
        yield rig, record


def copy(rig: Rig, record: Recorder, **options: Any) -> CopyReport:
    record.forget()
    return finish(rig.colour, rig.copy(**options))


BODIES = (GetObject, PutObject, UploadPart)


def test_no_bytes_pass_through_this_machine() -> None:
    with open_two_buckets("no bytes") as (rig, record):
        source, target = rig.source.files, rig.target.files
        metadata = {"colour": "grün"}
        source.put("a b/ü.txt", b"text", content_type="text/plain", metadata=metadata, tags={"kind": "x"})
        source.put("once", b"", if_absent=True, cache_control="no-store", disposition="attachment")
        source.put("parts", pattern(2 * MIN_PART + 1))
        report = copy(rig, record)
        assert report.is_current, report
        assert not record.list_sent(*BODIES)
        assert len(record.list_sent(ImportObject)) == report.parts[-1].copied == 3
        for each in source.list():
            ours, theirs = source.head(each.key), target.head(each.key)
            assert ours.headers == theirs.headers
            assert theirs.put_id is None
            assert source.get(each.key) == target.get(each.key)
        assert rig.target.send(GetTags(target.service, "a b/ü.txt")) == {"kind": "x"}
        report = copy(rig, record)
        assert (report.parts[-1].unchanged, report.parts[-1].verified) == (3, 3)
        assert not record.list_sent(*BODIES, ImportObject)


def test_a_changed_file_replaces_its_copy() -> None:
    with open_two_buckets("changed") as (rig, record):
        rig.source.files.put("a", b"one")
        copy(rig, record)
        rig.source.files.put("a", b"other")
        report = copy(rig, record)
        assert (report.parts[-1].copied, rig.target.files.get("a")) == (1, b"other")
        assert [request.source.key for request in record.list_sent(ImportObject)] == ["a"]


@pytest.mark.parametrize(
    ("refusal", "tries"), [(AccessDeniedError, 1), (ConfigurationError, 1), (InvalidRequestError, 3)]
)
def test_files_are_downloaded_and_uploaded_if_the_server_refuses_to_copy_them(
    refusal: Any, tries: int
) -> None:
    """Without permission, only the first copy is tried; another refusal may concern a single file."""
    with open_two_buckets(refusal.__name__) as (rig, record):
        for key in "abc":
            rig.source.files.put(key, key.encode())

        def refuse(request: Any) -> None:
            if isinstance(request, ImportObject):
                raise refusal("not from there")

        record.before = refuse
        report = copy(rig, record)
        assert report.is_current, report
        assert len(record.list_sent(PutObject)) == 3
        assert tries <= len(record.list_sent(ImportObject)) <= 3
        assert [rig.target.files.get(key) for key in "abc"] == [b"a", b"b", b"c"]


def test_a_file_that_changes_meanwhile_is_copied_by_the_next_pass() -> None:
    with open_two_buckets("meanwhile") as (rig, record):
        rig.source.files.put("a", b"one")

        def meddle(request: Any) -> None:
            if isinstance(request, ImportObject):
                record.before = lambda request: None
                rig.source.files.put("a", b"other")

        record.before = meddle
        assert copy(rig, record).parts[-1].copied == 0
        assert copy(rig, record).is_current
        assert rig.target.files.get("a") == b"other"


class OwnEtags(Recorder):
    """A server that gives each copy its own etag, as S3 does if it encrypts the copy with another key."""

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        reply = await super()._answer(send, request)
        return replace(reply, etag="own") if isinstance(request, ImportObject) else reply


@pytest.mark.parametrize("damaged", [False, True])
def test_a_copy_with_another_etag_is_verified_and_copied_again_if_damaged(damaged: bool) -> None:
    with open_two_buckets("own etags", OwnEtags) as (rig, record):
        rig.source.files.put("a", b"bytes")

        def damage(request: Any) -> None:
            if damaged and isinstance(request, ImportObject):
                rig.target.files.put("a", b"byte")
                record.forget()

        record.after = damage
        report = copy(rig, record)
        assert report.is_current, report
        assert len(record.list_sent(PutObject)) == damaged
        assert rig.target.files.get("a") == b"bytes"


def open_bucket(prefix: str, bucket: str = BUCKET) -> S3Service:
    service = bucket_service(prefix)
    endpoint = resolve_endpoint("s3", endpoint=start_server("ministack"), environment=ENVIRONMENT)
    service.close()
    return S3Service(bucket, endpoint, find_credentials(environment=ENVIRONMENT), prefix=prefix)


def test_a_missing_bucket_is_reported_before_anything_is_written() -> None:
    for source, target in (("none", BUCKET), (BUCKET, "none")):
        settings = [{"files": open_bucket("a" + bucket, bucket)} for bucket in (source, target)]
        with open_rig(Way("file-to-file", "blocking"), *settings) as rig:
            with pytest.raises(ConfigurationError, match="there is no bucket none"):
                rig.source.copy_to(rig.target)
            assert not rig.target.table.exists()


@pytest.mark.parametrize(("one", "other"), [("x", "x/y"), ("x/y", "x"), ("", "x")])
def test_overlapping_prefixes_are_refused(one: str, other: str) -> None:
    settings = [{"files": open_bucket(prefix)} for prefix in (one, other)]
    with open_rig(Way("file-to-file", "blocking"), *settings) as rig:
        with pytest.raises(ConfigurationError, match=r"the files of the source \(s3://.* overlap"):
            rig.source.copy_to(rig.target)
        assert not rig.target.table.exists()


def test_a_shared_service_is_left_out() -> None:
    settings = [{"files": open_bucket("shared")} for _ in range(2)]
    with open_rig(Way("memory-to-memory", "blocking"), *settings) as rig:
        assert [part.kind for part in rig.source.copy_to(rig.target).parts] == ["table"]
