"""Our S3 service on a server that is strict about signatures and ignores conditions on puts.

For the contract, claims replace the conditions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from rclone_deviations import DEVIATIONS, SUBJECTS
from rclone_server import BUCKET, CREDENTIALS, start_rclone
from rig.colour import COLOURS
from rig.torture import TORTURE
from service_setups import HeldClaims

from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.s3.service import S3Service
from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CompleteUpload,
    CopyObject,
    DeleteObject,
    DeleteObjects,
    GetObject,
    GetTags,
    HeadObject,
    ListObjects,
    ListUploads,
    ObjectRequest,
    PutObject,
    UploadPart,
)
from holdall.errors import AccessDeniedError, ConfigurationError, HoldallError, ObjectNotFoundError
from holdall.testing import ServiceCheck, run_service_check, service_checks
from holdall.testing.file_contract import Calls

R = TypeVar("R")
Send = Callable[[S3Service, ObjectRequest[Any]], Any]

WRONG = {
    "a wrong secret": CREDENTIALS | {"AWS_SECRET_ACCESS_KEY": "the-wrong-secret"},
    "an unknown key": CREDENTIALS | {"AWS_ACCESS_KEY_ID": "unknown"},
}


@contextmanager
def open_service(environment: Mapping[str, str] = CREDENTIALS, **options: Any) -> Iterator[S3Service]:
    endpoint = resolve_endpoint("s3", endpoint=start_rclone(), environment=environment)
    service = S3Service(BUCKET, endpoint, find_credentials(environment=environment), **options)
    try:
        yield service
    finally:
        service.close()


def send_blocking(service: S3Service, request: ObjectRequest[Any]) -> Any:
    return service.send_blocking(request)


def send_awaiting(service: S3Service, request: ObjectRequest[Any]) -> Any:
    return asyncio.run(service.send_awaiting(request))


@pytest.fixture(params=[send_blocking, send_awaiting], ids=["blocking", "awaiting"])
def send(request: pytest.FixtureRequest) -> Send:
    chosen: Send = request.param
    return chosen


def keys(service: S3Service, prefix: str) -> list[str]:
    return [listed.key for listed in service.send_blocking(ListObjects("rclone", prefix)).objects]


@pytest.mark.parametrize("environment", WRONG.values(), ids=WRONG)
def test_requests_with_refused_credentials_raise_an_error_and_change_nothing(
    send: Send, environment: Mapping[str, str]
) -> None:
    there, new = "refused/there", "refused/new"
    requests: tuple[ObjectRequest[Any], ...] = (
        HeadObject("rclone", there),
        GetObject("rclone", there),
        ListObjects("rclone", "refused/"),
        ListUploads("rclone", "refused/"),
        PutObject("rclone", there, b"others"),
        PutObject("rclone", new, b"others"),
        PutObject("rclone", new, b"others", if_absent="id"),
        CopyObject("rclone", there, new),
        BeginUpload("rclone", new),
        DeleteObject("rclone", there),
        DeleteObjects("rclone", (there,)),
    )
    with open_service() as service:
        service.send_blocking(PutObject("rclone", there, b"words"))
        with open_service(environment) as stranger:
            for request in requests:
                with pytest.raises(AccessDeniedError) as caught:
                    send(stranger, request)
                assert "hint: check the access key, its secret" in str(caught.value)
                assert environment["AWS_SECRET_ACCESS_KEY"] not in str(caught.value)
        assert service.send_blocking(GetObject("rclone", there)).body == b"words"
        assert keys(service, "refused/") == [there]


def test_a_server_that_ignores_conditions_is_detected(send: Send) -> None:
    there = "conditions/there"
    with open_service() as service:
        service.send_blocking(PutObject("rclone", there, b"words"))
        upload = service.send_blocking(BeginUpload("rclone", there))
        part = service.send_blocking(UploadPart("rclone", upload, 1, b"others"))
        requests: tuple[ObjectRequest[Any], ...] = (
            PutObject("rclone", there, b"others", if_absent="id"),
            PutObject("rclone", "conditions/new", b"others", if_absent="id"),
            CopyObject("rclone", there, "conditions/new", if_absent="id"),
            CompleteUpload("rclone", upload, (part,), if_absent="id"),
        )
        for request in requests:
            with pytest.raises(ConfigurationError) as caught:
                send(service, request)
            assert f"{start_rclone()} ignores conditions on puts" in str(caught.value)
            assert "hint: " in str(caught.value)
        service.send_blocking(AbortUpload("rclone", upload))
        assert service.send_blocking(GetObject("rclone", there)).body == b"words"
        assert keys(service, "conditions/") == [there]
        assert not [key for key in keys(service, "") if "probe" in key], "the probe must be deleted"


def test_conditional_replacements_and_deletions_are_refused_for_a_server_that_ignores_etags(
    send: Send,
) -> None:
    there = "matches/there"
    with open_service() as service:
        etag = service.send_blocking(PutObject("rclone", there, b"words")).etag
        upload = service.send_blocking(BeginUpload("rclone", there))
        part = service.send_blocking(UploadPart("rclone", upload, 1, b"others"))
        requests: tuple[ObjectRequest[Any], ...] = (
            PutObject("rclone", there, b"others", if_match=etag),
            CompleteUpload("rclone", upload, (part,), if_match=etag),
            DeleteObject("rclone", there, if_match=etag),
        )
        for request in requests:
            with pytest.raises(ConfigurationError) as caught:
                send(service, request)
            what = "deletions" if isinstance(request, DeleteObject) else "puts"
            assert f"{start_rclone()} ignores conditions on {what}" in str(caught.value)
        service.send_blocking(AbortUpload("rclone", upload))
        assert service.send_blocking(GetObject("rclone", there)).body == b"words"
        assert not [key for key in keys(service, "") if "probe" in key], "the probe must be deleted"


def test_a_server_that_stores_no_tags_is_detected(send: Send) -> None:
    with open_service() as service:
        for body in (b"words", b"<xml>words</xml>"):
            service.send_blocking(PutObject("rclone", "tags/there", body))
            with pytest.raises(ConfigurationError, match="does not support tags"):
                send(service, GetTags("rclone", "tags/there"))


def test_requests_without_conditions_work(send: Send) -> None:
    with open_service() as service:
        put = send(service, PutObject("rclone", "plain/a b", b"0123456789"))
        assert send(service, GetObject("rclone", "plain/a b", 4, 3, put.etag)).body == b"456"
        assert send(service, HeadObject("rclone", "plain/a b")).size == 10
        send(service, CopyObject("rclone", "plain/a b", "plain/ü"))
        assert keys(service, "plain/") == ["plain/a b", "plain/ü"]
        send(service, DeleteObjects("rclone", ("plain/a b", "plain/missing", "plain/ü")))
        with pytest.raises(ObjectNotFoundError):
            send(service, HeadObject("rclone", "plain/a b"))


CHECKS = [
    check
    for check in service_checks()
    if str(check).partition(":")[0] in SUBJECTS and "digests_of_parts" not in check.requires
]


@pytest.mark.parametrize("colour", COLOURS if TORTURE else COLOURS[:1])
@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_contract(check: ServiceCheck, colour: Calls) -> None:
    if (deviation := DEVIATIONS.get(str(check))) is not None:
        pytest.skip(f"rclone {deviation}")
    with open_service(claims=HeldClaims()) as service:
        run_service_check(check, service, colour)


@pytest.mark.parametrize("sentence", DEVIATIONS)
def test_a_listed_deviation_names_a_check_and_still_deviates(sentence: str) -> None:
    (check,) = [check for check in CHECKS if str(check) == sentence]
    with open_service(claims=HeldClaims()) as service, pytest.raises((AssertionError, HoldallError)):
        run_service_check(check, service, "blocking")
