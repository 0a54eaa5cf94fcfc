"""The bucket itself: whether it is there, and making it. For setting up, and for tests."""

from __future__ import annotations

from typing import ClassVar

from holdall.backends.aws.courier import Pace
from holdall.backends.s3.call import Call
from holdall.backends.s3.delivery import Delivery
from holdall.backends.s3.document import bucket_configuration
from holdall.core.frozen import dataclass
from holdall.core.requests import Done, Request
from holdall.errors import ConfigurationError, ServiceError


@dataclass(frozen=True, slots=True)
class BucketExists(Request[bool]):
    """Ask whether the service's bucket is there; `AccessDeniedError` if it belongs to another account."""


@dataclass(frozen=True, slots=True)
class CreateBucket(Request[Done]):
    """Make the service's bucket, in the region of its endpoint; one of ours that is there already is fine."""

    writes: ClassVar[bool] = True


async def list_bucket(delivery: Delivery, pace: Pace) -> None:
    """List at most one object: unlike the answer to a HEAD, a refusal names the reason."""
    query = (("list-type", "2"), ("max-keys", "1"))
    await delivery.deliver(pace, Call("ListObjectsV2", "GET", query=query, document=True))


async def bucket_exists(delivery: Delivery, pace: Pace) -> bool:
    """Whether the bucket exists, by a listing."""
    try:
        await list_bucket(delivery, pace)
    except ConfigurationError as error:
        if error.service_code != "NoSuchBucket":
            raise
        return False
    return True


async def create_bucket(delivery: Delivery, pace: Pace) -> Done:
    """Make the bucket."""
    body = bucket_configuration(delivery.place.region)
    try:
        await delivery.deliver(pace, Call("CreateBucket", "PUT", body=body))
    except ServiceError as error:
        if error.service_code != "BucketAlreadyOwnedByYou":
            raise
    return Done()
