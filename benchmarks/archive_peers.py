"""Archive with boto3 alone: read each order, compress it, put it, and swap it for a pointer on the same conditions.

This runs in the peers' environment. boto3 is imported only when a client is opened: Holdall's environment lacks it.
"""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from importlib import import_module
from typing import Any

from benchmarks.model_items import COUNT, TABLE, key_document
from benchmarks.s3_client import BUCKET
from benchmarks.wire_client import REGION, Client

__all__ = ["boto3"]

_KEPT = {"pk", "sk", "_type", "customer", "number", "placed_at"}


def boto3(endpoints: str) -> Client:
    """Open boto3's clients; ``endpoints`` are the URLs of both servers, the table's first."""
    table, bucket = endpoints.split()
    open_client = import_module("boto3").client
    dynamodb = open_client("dynamodb", endpoint_url=table, region_name=REGION)
    config = import_module("botocore.config").Config(s3={"addressing_style": "path"})
    s3 = open_client("s3", endpoint_url=bucket, config=config)

    def archive_one(key: dict[str, Any]) -> None:
        item = dynamodb.get_item(TableName=TABLE, Key=key, ConsistentRead=True)["Item"]
        text = json.dumps({"v": 1, "table": TABLE, "key": key, "item": item}, sort_keys=True).encode()
        digest, body = sha256(text).hexdigest(), gzip.compress(text, 6)
        place = f"orders/{item['customer']['S']}/{item['number']['S']}.json.gz"
        etag = s3.put_object(
            Bucket=BUCKET,
            Key=place,
            Body=body,
            ContentType="application/json",
            Metadata={"sha256": digest},
            IfNoneMatch="*",
        )["ETag"]
        locked = [name for name in item if name not in ("pk", "sk")]
        going = [f"#{place}" for place, name in enumerate(locked) if name not in _KEPT]
        demands = " AND ".join(f"#{place} = :{place}" for place in range(len(locked)))
        pointer = {"k": {"S": place}, "e": {"S": etag}, "h": {"S": digest}, "n": {"N": str(len(body))}}
        dynamodb.update_item(
            TableName=TABLE,
            Key=key,
            UpdateExpression=f"SET #p = :p REMOVE {', '.join(going)}",
            ConditionExpression=f"attribute_not_exists(#p) AND {demands}",
            ExpressionAttributeNames={f"#{place}": name for place, name in enumerate(locked)}
            | {"#p": "_archive"},
            ExpressionAttributeValues={f":{place}": item[name] for place, name in enumerate(locked)}
            | {":p": {"M": pointer}},
        )

    def archive(number: int) -> None:
        for each in range(COUNT):
            archive_one(key_document(each))

    return Client({"archive": archive})
