"""Archive orders of the canned servers: Holdall's side of the race with boto3."""

from __future__ import annotations

from datetime import datetime

from benchmarks.model_items import COUNT, TABLE
from benchmarks.s3_client import BUCKET
from benchmarks.wire_client import REGION, Client
from holdall import Archive, Database, Key, Model, SortKey, field
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.s3 import S3Service

__all__ = ["Order", "client"]


class Order(
    Model, archive=Archive(timestamp="placed_at", after_days=1, key="orders/{partitionKey}/{sortKey}")
):
    """An order with ten fields and an archive."""

    customer: Key[str]
    number: SortKey[str]
    product: str
    quantity: int
    price: float
    paid: bool
    placed_at: datetime
    note: str | None = None
    tags: list[str] = field(default_factory=list)
    address: dict[str, str] = field(default_factory=dict)


def client(endpoints: str) -> Client:
    """Open a client; ``endpoints`` are the URLs of both servers, the table's first."""
    table, bucket = endpoints.split()
    service = S3Service(
        BUCKET, resolve_endpoint("s3", endpoint=bucket), find_credentials(), conditional_puts=True
    )
    db = Database(f"dynamodb://{TABLE}?endpoint={table}&region={REGION}", files=service)

    def archive(number: int) -> None:
        report = db.archive.run(Order, segments=1, force=True, restart=True)
        assert report.archived == COUNT

    return Client({"archive": archive}, close=db.close)
