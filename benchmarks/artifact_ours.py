"""Our side of the race with the package versioned: with AWS's S3, and with any other.

AWS copies objects on the condition that there is none yet; of others that is not known, and we copy small ones by
reading and putting them. The server here is the same: for AWS it only goes by that name.
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
    """The server as what it is."""
    return _side("another", endpoint, resolve_endpoint("s3", endpoint=endpoint))


def on_aws(endpoint: str) -> ArtifactSide:
    """The server under the name of AWS's; in this process every name leads here, and none anywhere else."""
    known = socket.getaddrinfo

    def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
        return known("127.0.0.1", *arguments, **options)

    socket.getaddrinfo = getaddrinfo
    return _side("aws", endpoint, Endpoint("http", AWS, urlsplit(endpoint).port or 80, REGION))


def _side(name: str, endpoint: str, s3: Endpoint) -> ArtifactSide:
    """A table and a bucket of its own."""
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
