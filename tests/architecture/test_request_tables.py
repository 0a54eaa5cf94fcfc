"""Each backend answers every request of its kind, and rejects other requests by name."""

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


def list_requests(module: Any) -> set[type[Request[Any]]]:
    """The requests that a module defines."""
    offered = [member for name, member in vars(module).items() if not name.startswith("_")]
    kinds = {found for found in offered if isinstance(found, type) and issubclass(found, Request)}
    return kinds - {Request, ObjectRequest}


TABLE_REQUESTS = list_requests(requests)
OBJECT_REQUESTS = list_requests(objects)
NOWHERE = Endpoint("http", "127.0.0.1", 9, "us-east-1")
NO_CREDENTIALS = find_credentials(environment={})


def test_the_dynamodb_backend_encodes_every_table_request_and_decodes_its_reply() -> None:
    assert set(PAYLOADS) == TABLE_REQUESTS
    assert set(PAYLOADS) - set(SPECIAL) <= set(REPLIES), "no code decodes the replies to these"


def test_the_embedded_engine_plans_every_table_request(tmp_path: Path) -> None:
    backend = EmbeddedBackend(str(tmp_path / "a.db"))
    try:
        assert set(backend._plans) == TABLE_REQUESTS
    finally:
        backend.close()


def test_every_file_service_answers_every_object_request(tmp_path: Path) -> None:
    answer: Any = S3Service("things", NOWHERE, NO_CREDENTIALS)._answer
    assert set(answer.__self__._answers) == OBJECT_REQUESTS | {BucketExists, CreateBucket}
    for service in (MemoryService(), DiskService(tmp_path)):
        only_s3 = {MeasurePart, ImportObject}  # S3 stores objects in parts, and copies between buckets
        assert OBJECT_REQUESTS - set(service._answers) == only_s3
        with pytest.raises(InvalidRequestError, match="cannot answer MeasurePart"):
            service.send_blocking(MeasurePart("", "a", 1))


def test_a_request_for_another_kind_of_backend_is_rejected_by_name(tmp_path: Path) -> None:
    embedded = EmbeddedBackend(str(tmp_path / "a.db"))
    for store in (embedded, DynamoBackend(NOWHERE, NO_CREDENTIALS)):
        with pytest.raises(InvalidRequestError, match=r"answer.* DescribeService"):
            store.send_blocking(DescribeService(""))
        store.close()
    for service in (S3Service("things", NOWHERE, NO_CREDENTIALS), MemoryService(), DiskService(tmp_path)):
        with pytest.raises(InvalidRequestError, match=r"answer.* DescribeTable"):
            service.send_blocking(DescribeTable("things"))
        service.close()
