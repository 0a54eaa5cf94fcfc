"""Attachments of models on the canned servers: Holdall's side of the race with boto3."""

from __future__ import annotations

from benchmarks.model_items import TABLE
from benchmarks.s3_client import BUCKET, SMALL, content
from benchmarks.wire_client import REGION, Client
from holdall import Database, Model, has_many_attached, has_one_attached
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.s3 import S3Service

__all__ = ["client"]

BODY = content(SMALL)


class Person(Model):
    """An owner of files."""

    name: str
    avatar = has_one_attached()
    documents = has_many_attached()


def client(endpoints: str) -> Client:
    """Open a client; ``endpoints`` are the URLs of both servers, the table's first."""
    table, bucket = endpoints.split()
    service = S3Service(BUCKET, resolve_endpoint("s3", endpoint=bucket), find_credentials())
    db = Database(f"dynamodb://{TABLE}?endpoint={table}&region={REGION}", files=service)

    def attach(number: int) -> None:
        with db.transaction() as tx:
            person = tx.create(Person, name=f"Ada {number}")
            person.avatar.attach(BODY, filename=f"{number}.bin")

    def attach_many(number: int) -> None:
        with db.transaction() as tx:
            person = tx.create(Person, name=f"Ada {number}")
            person.documents.attach(*({"io": BODY, "filename": f"{each}.bin"} for each in range(25)))

    return Client({"attach": attach, "attach_many": attach_many}, close=db.close)
