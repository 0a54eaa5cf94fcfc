"""Holdall's S3 service as a client of the canned server, sync and async."""

from __future__ import annotations

from benchmarks.s3_client import BUCKET, PART, S3Client
from holdall import Database
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.s3 import S3Service
from holdall.core.objects import GetObject, PutObject

PARALLEL = 10


def _service(endpoint: str) -> S3Service:
    endpoint_of = resolve_endpoint("s3", endpoint=endpoint)
    return S3Service(BUCKET, endpoint_of, find_credentials(), part_size=PART, parallel=PARALLEL)


def open_blocking(endpoint: str) -> S3Client:
    """Open a sync client; it transfers several parts of a large object at a time."""
    service = _service(endpoint)
    db = Database("memory:", files=service)
    send = service.send_blocking

    return S3Client(
        {
            "put": lambda body: send(PutObject("", "small", body)),
            "get": lambda: send(GetObject("", "small")).body,
            # without digests of the whole file, which boto3 does not compute either
            "up": lambda path: db.files.put("large", path, checksums=()),
            "down": lambda path: db.files.download("large", path, verify=False),
        },
        db.close,
    )


async def open_awaiting(endpoint: str) -> S3Client:
    """Open an async client."""
    service = _service(endpoint)

    async def put(body: bytes) -> None:
        await service.send_awaiting(PutObject("", "small", body))

    async def get() -> bytes:
        return (await service.send_awaiting(GetObject("", "small"))).body

    return S3Client({"put": put, "get": get}, service.close)
