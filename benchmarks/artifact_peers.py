"""The package versioned, used as its documentation shows. It is installed only in the peers' environment."""

from __future__ import annotations

import os
from importlib import import_module

from benchmarks.artifact_worker import BUCKET, NAME, ArtifactSide
from benchmarks.wire_client import REGION

__all__ = ["open_versioned"]


def open_versioned(endpoint: str) -> ArtifactSide:
    """Open its backend for S3 and DynamoDB, in a table and a bucket that it creates itself."""
    os.environ["AWS_ENDPOINT_URL"] = (
        endpoint  # the package has no parameter for the endpoint; botocore reads this
    )
    sessions = import_module("boto_session_manager").BotoSesManager()
    repository = import_module("versioned.api").s3_and_dynamodb_backend.Repository(
        aws_region=REGION, s3_bucket=f"{BUCKET}-theirs", dynamodb_table_name="artifacts-theirs"
    )
    repository.bootstrap(sessions)
    return ArtifactSide(
        lambda content: repository.put_artifact(NAME, content),
        lambda: int(repository.publish_artifact_version(NAME).version),
        lambda number: repository.get_artifact_version(NAME, number).get_content(sessions),
    )
