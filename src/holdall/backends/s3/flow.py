"""Answers requests with calls to S3: checked locally first, then passed to the class for that kind of request."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from holdall.backends.aws.courier import Pace
from holdall.backends.refusal import refuse_request
from holdall.backends.s3.call import Call
from holdall.backends.s3.condition import Conditions
from holdall.backends.s3.copy import Copier
from holdall.backends.s3.creation import Claims, Creation
from holdall.backends.s3.deletion import Deleter
from holdall.backends.s3.delivery import Delivery
from holdall.backends.s3.digest import verify
from holdall.backends.s3.document import NoDocument, bucket_configuration
from holdall.backends.s3.reply import put_info
from holdall.backends.s3.retrieval import Reader
from holdall.backends.s3.upload import Uploader
from holdall.core.frozen import dataclass
from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CompleteUpload,
    CopyObject,
    CopyPart,
    DeleteObject,
    DeleteObjects,
    DescribeService,
    GetObject,
    GetTags,
    HeadObject,
    ImportObject,
    ListObjects,
    ListParts,
    ListUploads,
    MeasurePart,
    ObjectInfo,
    ObjectRequest,
    PutObject,
    ServiceTraits,
    SignedUrl,
    SignUrl,
    UploadPart,
)
from holdall.core.requests import Done, Request
from holdall.core.rules.object import check_object_request
from holdall.errors import ConfigurationError, MalformedReplyError, ObjectNotFoundError, ServiceError


class S3Flow:
    """Requests for the objects of one bucket below a prefix."""

    def __init__(
        self, delivery: Delivery, traits: ServiceTraits, able: bool | None, claims: Claims | None
    ) -> None:
        """``able``: whether the server honours conditions; None if that must be tested."""
        self._delivery = delivery
        self._calls = delivery.calls
        self._traits = traits
        self._has_bucket = False
        self._reader = Reader(delivery)
        conditions = Conditions(delivery, able)
        self._creation = Creation(delivery, self._reader, conditions, claims)
        uploader = Uploader(delivery, self._reader, self._creation)
        copier = Copier(delivery, self._reader, conditions, self._creation, uploader)
        deleter = Deleter(delivery, self._reader, conditions, self._creation)
        self._answers: Mapping[type[Any], Any] = {
            AbortUpload: uploader.abort,
            BeginUpload: uploader.begin,
            BucketExists: self._bucket_exists,
            CompleteUpload: uploader.complete,
            CopyObject: copier.copy,
            CopyPart: uploader.copy_part,
            CreateBucket: self._create_bucket,
            DeleteObject: deleter.delete_one,
            DeleteObjects: deleter.delete_many,
            DescribeService: self._describe,
            GetObject: self._reader.get,
            GetTags: self._reader.get_tags,
            HeadObject: self._head,
            ImportObject: copier.import_object,
            ListObjects: self._reader.list_objects,
            ListParts: uploader.list_parts,
            ListUploads: self._reader.list_uploads,
            MeasurePart: self._reader.measure_part,
            PutObject: self._put,
            SignUrl: self._sign_url,
            UploadPart: uploader.upload_part,
        }

    async def answer(self, pace: Pace, request: Request[Any]) -> Any:
        """The reply to a request."""
        answer = self._answers.get(type(request))
        if answer is None:
            raise refuse_request(request)
        if isinstance(request, ObjectRequest):
            check_object_request(request)
        try:
            reply = await answer(pace, request)
        except NoDocument as error:
            what = type(request).__name__
            raise MalformedReplyError(f"{what}: the reply is garbled ({error})") from error
        self._has_bucket |= not isinstance(request, DescribeService | SignUrl | BucketExists)
        return reply

    async def _describe(self, pace: Pace, request: DescribeService) -> ServiceTraits:
        return self._traits

    async def _head(self, pace: Pace, request: HeadObject) -> ObjectInfo:
        try:
            return await self._reader.head(pace, request.key)
        except ObjectNotFoundError:
            await self._check_bucket(pace)
            raise

    async def _check_bucket(self, pace: Pace) -> None:
        """Refuse a missing bucket; checked once, because a HEAD gets the same answer for a missing object."""
        if self._has_bucket:
            return
        with suppress(ServiceError):  # without permission to list the bucket, there is no way to know
            await self._list_bucket(pace)
        self._has_bucket = True

    async def _list_bucket(self, pace: Pace) -> None:
        """List at most one object: unlike the answer to a HEAD, a refusal names the reason."""
        query = (("list-type", "2"), ("max-keys", "1"))
        await self._delivery.deliver(pace, Call("ListObjectsV2", "GET", query=query, document=True))

    async def _put(self, pace: Pace, request: PutObject) -> ObjectInfo:
        if request.if_absent is not None:
            return await self._creation.put(pace, request, unmarked=request.unmarked)
        if request.if_match is not None:
            return await self._creation.replace(pace, request)
        call = self._calls.put(request)
        if not self._delivery.place.amazon:
            await verify(pace, request)
        answer = await self._delivery.deliver(pace, call)
        return put_info(request, answer.reply, self._delivery.etags)

    async def _sign_url(self, pace: Pace, request: SignUrl) -> SignedUrl:
        key = self._calls.key(request.key)
        if self._traits.public and request.method == "GET":
            return SignedUrl(self._delivery.url(key), {})
        query, headers = self._calls.presign(request)
        url = await self._delivery.sign_url(pace, request.method, key, query, headers, request.expires)
        # clients send it by themselves, and browsers let no script set it
        headers.pop("content-length", None)
        return SignedUrl(url, headers)

    async def _bucket_exists(self, pace: Pace, request: BucketExists) -> bool:
        try:
            await self._list_bucket(pace)
        except ConfigurationError as error:
            if error.service_code != "NoSuchBucket":
                raise
            return False
        return True

    async def _create_bucket(self, pace: Pace, request: CreateBucket) -> Done:
        body = bucket_configuration(self._delivery.place.region)
        try:
            await self._delivery.deliver(pace, Call("CreateBucket", "PUT", body=body))
        except ServiceError as error:
            if error.service_code != "BucketAlreadyOwnedByYou":
                raise
        return Done()


@dataclass(frozen=True, slots=True)
class BucketExists(Request[bool]):
    """Ask whether the service's bucket exists; `AccessDeniedError` if it belongs to another account."""


@dataclass(frozen=True, slots=True)
class CreateBucket(Request[Done]):
    """Create the service's bucket, in the region of its endpoint, unless the account already has it."""

    writes: ClassVar[bool] = True
