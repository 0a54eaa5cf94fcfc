"""Every request has an answer in every backend that it is for, and a refusal by name in the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import Endpoint
from holdall.backends.disk import DiskService
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.backends.dynamodb.call import PAYLOADS
from holdall.backends.dynamodb.flow import SPECIAL
from holdall.backends.dynamodb.reply import REPLIES
from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.memory import MemoryService
from holdall.backends.s3 import S3Service
from holdall.backends.s3.flow import BucketExists, CreateBucket
from holdall.core import objects, requests
from holdall.core.objects import DescribeService, ImportObject, MeasurePart, ObjectRequest
from holdall.core.requests import DescribeTable, Request
from holdall.errors import InvalidRequestError


def requests_of(module: Any) -> set[type[Request[Any]]]:
    """The requests that a module defines."""
    offered = [member for name, member in vars(module).items() if not name.startswith("_")]
    kinds = {found for found in offered if isinstance(found, type) and issubclass(found, Request)}
    return kinds - {Request, ObjectRequest}


TABLE_REQUESTS = requests_of(requests)
OBJECT_REQUESTS = requests_of(objects)
NOWHERE = Endpoint("http", "127.0.0.1", 9, "us-east-1")
NOBODY = find_credentials(environment={})


def test_the_wire_renders_every_request_of_tables_and_reads_its_reply() -> None:
    assert set(PAYLOADS) == TABLE_REQUESTS
    assert set(PAYLOADS) - set(SPECIAL) <= set(REPLIES), "nothing reads the replies to these"


def test_the_embedded_engine_plans_every_request_of_tables(tmp_path: Path) -> None:
    backend = EmbeddedBackend(str(tmp_path / "a.db"))
    try:
        assert set(backend._plans) == TABLE_REQUESTS
    finally:
        backend.close()


def test_every_service_answers_every_request_of_objects(tmp_path: Path) -> None:
    answer: Any = S3Service("things", NOWHERE, NOBODY)._answer
    assert set(answer.__self__._answers) == OBJECT_REQUESTS | {BucketExists, CreateBucket}
    for service in (MemoryService(), DiskService(tmp_path)):
        only_s3 = {MeasurePart, ImportObject}  # it keeps objects in parts, and copies from other buckets
        assert OBJECT_REQUESTS - set(service._answers) == only_s3
        with pytest.raises(InvalidRequestError, match="cannot answer MeasurePart"):
            service.send_blocking(MeasurePart("", "a", 1))


def test_a_request_for_another_kind_of_backend_is_refused_by_name(tmp_path: Path) -> None:
    embedded = EmbeddedBackend(str(tmp_path / "a.db"))
    for store in (embedded, DynamoBackend(NOWHERE, NOBODY)):
        with pytest.raises(InvalidRequestError, match=r"answer.* DescribeService"):
            store.send_blocking(DescribeService(""))
        store.close()
    for service in (S3Service("things", NOWHERE, NOBODY), MemoryService(), DiskService(tmp_path)):
        with pytest.raises(InvalidRequestError, match=r"answer.* DescribeTable"):
            service.send_blocking(DescribeTable("things"))
        service.close()
