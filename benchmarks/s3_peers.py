"""boto3 as a client of the canned S3 server, used as its documentation shows.

This runs in the peers' environment. boto3 is imported only when a client is opened: Holdall's environment lacks it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from benchmarks.s3_client import BUCKET, S3Client

__all__ = ["boto3"]


def boto3(endpoint: str) -> S3Client:
    """Open boto3's client, with its default transfers: parts of 8 MiB, ten at a time."""
    config = import_module("botocore.config").Config(s3={"addressing_style": "path"})
    client = import_module("boto3").client("s3", endpoint_url=endpoint, config=config)

    def up(path: Path) -> None:
        client.upload_file(str(path), BUCKET, "large")

    def down(path: Path) -> None:
        client.download_file(BUCKET, "large", str(path))

    return S3Client(
        {
            "put": lambda body: client.put_object(Bucket=BUCKET, Key="small", Body=body),
            "get": lambda: client.get_object(Bucket=BUCKET, Key="small")["Body"].read(),
            "up": up,
            "down": down,
        }
    )
