"""Write the parts of an attachment with boto3 alone: the marker, the bytes, and all rows in one transaction.

This runs in the peers' environment. boto3 is imported only when a client is opened: Holdall's environment lacks it.
The items, the digests of the bytes and the conditions are the same as on Holdall's side.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from hashlib import md5, sha256
from importlib import import_module
from typing import Any
from uuid import uuid4

from benchmarks.model_items import TABLE
from benchmarks.s3_client import BUCKET, SMALL, content
from benchmarks.wire_client import REGION, Client

__all__ = ["boto3"]

BODY = content(SMALL)
_ABSENT = {
    "ConditionExpression": "attribute_not_exists(#pk)",
    "ExpressionAttributeNames": {"#pk": "pk"},
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}


def boto3(endpoints: str) -> Client:
    """Open boto3's clients; ``endpoints`` are the URLs of both servers, the table's first."""
    table, bucket = endpoints.split()
    open_client = import_module("boto3").client
    dynamodb = open_client("dynamodb", endpoint_url=table, region_name=REGION)
    config = import_module("botocore.config").Config(s3={"addressing_style": "path"})
    s3 = open_client("s3", endpoint_url=bucket, config=config)

    def store(filename: str, blob_id: str, key: str, now: str) -> dict[str, Any]:
        checksum = b64encode(md5(BODY).digest()).decode()
        digest = b64encode(sha256(BODY).digest()).decode()
        s3.put_object(
            Bucket=BUCKET,
            Key=key,
            Body=BODY,
            ContentType="application/octet-stream",
            ContentDisposition=f"attachment; filename=\"{filename}\"; filename*=UTF-8''{filename}",
            ContentMD5=checksum,
            ChecksumSHA256=digest,
        )
        place = f"ActiveStorage#Blob#{blob_id}"
        return {
            "pk": {"S": place},
            "sk": {"S": place},
            "as_id": {"S": blob_id},
            "as_key": {"S": key},
            "as_filename": {"S": filename},
            "as_content_type": {"S": "application/octet-stream"},
            "as_byte_size": {"N": str(len(BODY))},
            "as_checksum": {"S": checksum},
            "as_metadata": {"M": {"identified": {"BOOL": True}}},
            "as_service_name": {"S": "default"},
            "as_created_at": {"S": now},
            "as_attachments_count": {"N": "1"},
            "as_entity": {"S": "Blob"},
            "hd_sha256": {"S": digest},
        }

    def attach_files(number: int, name: str, count: int) -> None:
        owner, moment = str(uuid4()), datetime.now(UTC)
        now, hour = moment.isoformat(timespec="microseconds")[:26] + "Z", f"{moment:%Y%m%dT%H}"
        files = [(f"{each}.bin", str(uuid4()), uuid4().hex[:28]) for each in range(number, number + count)]
        markers = [
            {
                "pk": {"S": f"holdall#Unattached#{hour}#{blob_id[-1]}"},
                "sk": {"S": blob_id},
                "_type": {"S": "holdall.Unattached"},
                "blob_id": {"S": blob_id},
                "service": {"S": "default"},
                "key": {"S": key},
                "created_at": {"S": now},
            }
            for _, blob_id, key in files
        ]
        dynamodb.batch_write_item(RequestItems={TABLE: [{"PutRequest": {"Item": each}} for each in markers]})
        items = [
            {
                "pk": {"S": f"Person#{owner}"},
                "sk": {"S": "#"},
                "_type": {"S": "Person"},
                "id": {"S": owner},
                "name": {"S": f"Ada {number}"},
                "_w": {"S": str(uuid4())},
            }
        ]
        for filename, blob_id, key in files:
            blob = store(filename, blob_id, key, now)
            id = str(uuid4())
            blob[f"hd_ref_{id}"] = {"S": f"Person#{owner}#{name}"}
            row = {
                "pk": {"S": f"ActiveStorage#Owner#Person#{owner}"},
                "sk": {"S": f"ActiveStorage#Attachment#{name}#{id}"},
                "as_id": {"S": id},
                "as_record_type": {"S": "Person"},
                "as_record_id": {"S": owner},
                "as_name": {"S": name},
                "as_blob_id": {"S": blob_id},
                "as_created_at": {"S": now},
                "as_entity": {"S": "Attachment"},
            }
            items += [row, blob]
            if name == "avatar":
                slot = {
                    "pk": {"S": f"ActiveStorage#Owner#Person#{owner}"},
                    "sk": {"S": f"ActiveStorage#AttachmentSlot#{name}"},
                    "_type": {"S": "holdall.AttachmentSlot"},
                    "attachment_id": {"S": id},
                    "blob_id": {"S": blob_id},
                    "version": {"N": "1"},
                }
                items.append(slot)
        puts = [{"Put": {"TableName": TABLE, "Item": item, **_ABSENT}} for item in items]
        dynamodb.transact_write_items(TransactItems=puts, ClientRequestToken=str(uuid4()))

    return Client(
        {
            "attach": lambda number: attach_files(number, "avatar", 1),
            "attach_many": lambda number: attach_files(number, "documents", 25),
        }
    )
