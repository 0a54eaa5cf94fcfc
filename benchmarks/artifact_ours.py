"""Holdall's side of the race with the package versioned: on AWS's S3, and on another server.

AWS can copy an object on the condition that the target does not exist. Other servers may ignore that condition, so
Holdall reads and puts small objects there. Both sides here use the same server, once under AWS's name.
"""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

from benchmarks.artifact_worker import BUCKET, NAME, ArtifactSide
from benchmarks.wire_client import REGION
from holdall import Database
from holdall.artifacts import ArtifactSettings
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import Endpoint, resolve_endpoint
from holdall.backends.s3 import S3Service

__all__ = ["on_another_server", "on_aws"]

AWS = f"s3.{REGION}.amazonaws.com"


def on_another_server(endpoint: str) -> ArtifactSide:
    """Use the server under its own name."""
    return _side("another", endpoint, resolve_endpoint("s3", endpoint=endpoint))


def on_aws(endpoint: str) -> ArtifactSide:
    """Use the server under AWS's name; in this process, every host name resolves to 127.0.0.1."""
    known = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        return known("127.0.0.1", *arguments, **options)

    socket.getaddrinfo = getaddrinfo
    return _side("aws", endpoint, Endpoint("http", AWS, urlsplit(endpoint).port or 80, REGION))


def _side(name: str, endpoint: str, s3: Endpoint) -> ArtifactSide:
    """Create a table and a bucket for one side."""
    table = f"artifacts-{name}"
    service = S3Service(f"{BUCKET}-{name}", s3, find_credentials(), style="path")
    service.create_bucket()
    db = Database(
        f"dynamodb://{table}?endpoint={endpoint}&region={REGION}",
        files=service,
        artifacts=ArtifactSettings(table=table),
    )
    db.artifacts.create_table()

    def publish() -> int:
        number = db.artifacts.publish(NAME).number
        assert number is not None
        return number

    def read(number: int) -> bytes:
        content = db.artifacts.download(NAME, number)
        assert isinstance(content, bytes)
        return content

    return ArtifactSide(lambda content: db.artifacts.put(NAME, content), publish, read)
