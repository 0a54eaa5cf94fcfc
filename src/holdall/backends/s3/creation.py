"""Writes that depend on the existing object: puts and uploads that must not replace anything, or only a certain object.

A server that ignores ``If-None-Match`` would silently replace the existing object (see `Conditions`). Nothing is
created on such a server unless there are `Claims`.

After a lost reply, a repetition is refused because of the object that the first send created; so is a single send that
the network delivers twice. So after every refusal, the object is examined. The id that a put has left shows whether the
object is ours; for an upload, it matters whether the upload still exists. If there is another object after a lost
reply, it cannot be known whether the first send happened before it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol

from holdall.backends.aws.courier import Pace
from holdall.backends.s3.call import NO_HEADERS, Call
from holdall.backends.s3.condition import Conditions
from holdall.backends.s3.delivery import Answer, Delivery, Unsettled
from holdall.backends.s3.digest import verify
from holdall.backends.s3.reply import put_info
from holdall.backends.s3.retrieval import Reader
from holdall.core.digests import etag_of_parts
from holdall.core.objects import CompleteUpload, ListParts, ObjectInfo, PutObject
from holdall.errors import HoldallError, ObjectNotFoundError, OutcomeUnknown, PreconditionFailedError


class Claims(Protocol):
    """The right to create a key, recorded elsewhere: for servers that would silently replace an existing object.

    A put that must not replace anything claims its key first. A claim lasts as long as the object: it ends when the
    object is deleted through this service, or when the put has certainly failed. Two limits remain, because the server
    itself refuses nothing: a plain put at the same moment may be replaced, and a creation that died after its claim
    leaves the key claimed until the claims are released. Keys are without the service's prefix.
    """

    def claim_blocking(self, key: str, id: str) -> bool:
        """Claim the key for the id, which may have it already; False if another id has it."""

    async def claim_awaiting(self, key: str, id: str) -> bool:
        """The same, without blocking the event loop."""

    def release_blocking(self, key: str) -> None:
        """The object is deleted: the next caller may claim the key."""

    async def release_awaiting(self, key: str) -> None:
        """The same, without blocking the event loop."""


class Creation:
    """Creates objects in one bucket, and replaces objects with a given etag."""

    def __init__(
        self, delivery: Delivery, reader: Reader, conditions: Conditions, claims: Claims | None
    ) -> None:
        self._delivery = delivery
        self._calls = delivery.calls
        self._etags = delivery.etags
        self._reader = reader
        self._conditions = conditions
        self._claims = claims

    async def put(
        self,
        pace: Pace,
        request: PutObject,
        extra: Mapping[str, str] = NO_HEADERS,
        *,
        verified: bool = False,
        unmarked: bool = False,
    ) -> ObjectInfo:
        """Put an object that does not exist yet; `PreconditionFailedError` if it does.

        ``verified``: the bytes come from the service itself, and need not be checked against their digest.
        ``unmarked``: no id is left with them.
        """
        assert request.if_absent is not None
        able = await self._can_refuse(pace)
        call = self._calls.put(request, refuse=able, extra=extra, unmarked=unmarked)
        if not self._delivery.place.amazon and not verified:
            await verify(pace, request)
        if not able and (found := await self._claim(pace, request.key, request.if_absent)) is not None:
            return found
        try:
            answer = await self._delivery.deliver(pace, call, "settle")
        except Unsettled as doubt:
            return await self._settle_put(pace, request.key, request.if_absent, doubt)
        except HoldallError as error:
            if isinstance(error, PreconditionFailedError) and not unmarked:
                own = self._settle_put(pace, request.key, request.if_absent, Unsettled(error))
                if (found := await _recognize(own)) is not None:
                    return found
            await self._release(pace, request.key, able)
            raise
        return put_info(request, answer.reply, self._etags)

    async def replace(self, pace: Pace, request: PutObject) -> ObjectInfo:
        """Replace the object with the etag; `PreconditionFailedError` if there is no such object."""
        put_id = os.urandom(16).hex()
        call = self._calls.put(request, put_id=put_id)
        if not self._delivery.place.amazon:
            await verify(pace, request)
        await self._conditions.demand_match(pace, "puts")
        settle = partial(self._settle_replacement, pace, request.key, put_id)
        try:
            answer = await self._deliver(pace, call, settle)
        except ObjectNotFoundError as error:
            raise PreconditionFailedError(f"there is no object {request.key!r} to replace") from error
        if isinstance(answer, ObjectInfo):
            return answer
        return put_info(request, answer.reply, self._etags, put_id)

    async def copy(self, pace: Pace, call: Call, key: str, put_id: str) -> Answer | ObjectInfo:
        """Have the server copy an object to a key without one; returns the object if it had to be examined."""
        return await self._deliver(pace, call, partial(self._settle_put, pace, key, put_id))

    async def complete(self, pace: Pace, request: CompleteUpload) -> Answer | ObjectInfo:
        """Complete an upload whose condition is that there is no object, or one with an etag; returns the object if it
        had to be examined."""
        if request.if_match is not None:
            await self._conditions.demand_match(pace, "puts")
        able = False
        if request.if_absent is not None:
            able = await self._can_refuse(pace)
            if not able:
                found = await self._claim(pace, request.upload.key, request.if_absent)
                if found is not None:
                    return found
        call = self._calls.complete(request, refuse=able)
        try:
            return await self._delivery.deliver(pace, call, "settle")
        except Unsettled as doubt:
            return await self._settle_upload(pace, request, doubt)
        except HoldallError as error:
            refusal = _refusal(request, error)
            if isinstance(refusal, PreconditionFailedError | ObjectNotFoundError):
                found = await _recognize(self._settle_upload(pace, request, Unsettled(error)))
                if found is not None:
                    return found
            if request.if_absent is not None:
                await self._release(pace, request.upload.key, able)
            if refusal is error:
                raise
            raise refusal from error

    async def forget(self, pace: Pace, keys: tuple[str, ...]) -> None:
        """These keys were deleted: release their claims, which another process may have made."""
        if self._claims is None or self._conditions.absence_is_known:
            return
        for key in keys:
            await pace.choose(self._claims.release_blocking, self._claims.release_awaiting, key)

    # --- where the server cannot refuse ---

    async def _can_refuse(self, pace: Pace) -> bool:
        """Whether the server honours conditions; an error if it does not and there are no claims."""
        able = await self._conditions.can_refuse_existing(pace)
        if able or self._claims is not None:
            return able
        raise self._conditions.explain_ignored("puts", "If-None-Match", ", or pass claims to the service")

    async def _claim(self, pace: Pace, key: str, id: str) -> ObjectInfo | None:
        """Claim a key; returns the object if an earlier claim of the same id has already created it."""
        assert self._claims is not None
        claims = self._claims
        if not await pace.choose(claims.claim_blocking, claims.claim_awaiting, key, id):
            raise PreconditionFailedError(f"another put has claimed the key {key!r}")
        try:
            found = await self._reader.head(pace, key)
        except ObjectNotFoundError:
            return None
        if found.put_id == id:
            return found
        await self._release(pace, key, able=False)
        raise PreconditionFailedError(f"the object {key!r} already exists")

    async def _release(self, pace: Pace, key: str, able: bool) -> None:
        """The creation has certainly failed: release the key."""
        if not able and self._claims is not None:
            await pace.choose(self._claims.release_blocking, self._claims.release_awaiting, key)

    # --- after a lost reply ---

    async def _deliver(
        self, pace: Pace, call: Call, settle: Callable[[Unsettled], Awaitable[ObjectInfo]]
    ) -> Answer | ObjectInfo:
        """Deliver a write; after a lost reply or a refusal, ``settle`` finds out whether the object is its own."""
        try:
            return await self._delivery.deliver(pace, call, "settle")
        except Unsettled as doubt:
            return await settle(doubt)
        except PreconditionFailedError as error:
            found = await _recognize(settle(Unsettled(error)))
            if found is None:
                raise
            return found

    async def _settle_put(self, pace: Pace, key: str, put_id: str, doubt: Unsettled) -> ObjectInfo:
        if not isinstance(doubt.error, PreconditionFailedError):
            raise explain_unknown(doubt.error) from doubt.error
        try:
            found = await self._reader.head(pace, key)
        except HoldallError as error:  # deleted again, or unreachable: the first send may have created it
            raise explain_unknown(error) from error
        if found.put_id == put_id:
            return found
        raise doubt.error

    async def _settle_replacement(self, pace: Pace, key: str, put_id: str, doubt: Unsettled) -> ObjectInfo:
        if isinstance(doubt.error, PreconditionFailedError):
            try:
                found = await self._reader.head(pace, key)
            except HoldallError as error:
                raise explain_unknown(error, "replaced") from error
            if found.put_id == put_id:
                return found
        raise explain_unknown(doubt.error, "replaced") from doubt.error

    async def _settle_upload(self, pace: Pace, request: CompleteUpload, doubt: Unsettled) -> ObjectInfo:
        error, upload = _refusal(request, doubt.error), request.upload
        if not isinstance(error, PreconditionFailedError | ObjectNotFoundError):
            raise explain_unknown(error) from error
        try:
            if isinstance(error, PreconditionFailedError) and await self._is_under_way(pace, request):
                raise error  # the upload still exists, so it has not become an object
            found = await self._reader.head(pace, upload.key)
        except PreconditionFailedError:
            raise
        except HoldallError as trouble:
            raise explain_unknown(trouble) from trouble
        ours = found.put_id is not None and found.put_id == request.if_absent
        if ours or found.etag == _etag_of_parts(request):
            return found
        raise explain_unknown(error) from error

    async def _is_under_way(self, pace: Pace, request: CompleteUpload) -> bool:
        try:
            await self._delivery.deliver(pace, self._calls.list_parts(ListParts("", request.upload)))
        except ObjectNotFoundError:
            return False
        return True


def _etag_of_parts(request: CompleteUpload) -> str | None:
    """The etag that S3 gives to an object of these parts: a digest of their digests, if their etags are digests."""
    try:
        return etag_of_parts([bytes.fromhex(part.etag) for part in request.parts])
    except ValueError:
        return None


def _refusal(request: CompleteUpload, error: Exception) -> Exception:
    """The error of a completion: if there is no object to replace, that is a failed precondition, too."""
    if request.if_match is None or getattr(error, "service_code", None) != "NoSuchKey":
        return error
    return PreconditionFailedError(f"there is no object {request.upload.key!r} to replace")


async def _recognize(settlement: Awaitable[ObjectInfo]) -> ObjectInfo | None:
    """The object, if a write was refused because of its own effect; otherwise None. No reply was lost."""
    try:
        return await settlement
    except (OutcomeUnknown, PreconditionFailedError):
        return None


def explain_unknown(error: Exception, done: str = "created") -> OutcomeUnknown:
    """The error for a write whose outcome cannot be known."""
    then = error.message if isinstance(error, HoldallError) else type(error).__name__
    return OutcomeUnknown(
        f"it is not known whether the object was {done}: a reply was lost, and then: {then}",
        hint="check the object before you repeat the request",
    )
