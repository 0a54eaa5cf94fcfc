"""Replacing a certain object: puts that demand what is there.

Colourless. Such a put leaves an id of its own with the object. After a lost reply, a repetition is refused because of
what the first send put there, and so is a single send that is delivered twice; the id shows that. If after a lost reply
there is yet another object, it cannot be known whether the first send came before it.
"""

from __future__ import annotations

import os

from holdall.backends.aws.courier import Pace
from holdall.backends.s3.calls import Calls
from holdall.backends.s3.condition import Conditions
from holdall.backends.s3.creation import explain_unknown, recognise
from holdall.backends.s3.delivery import Delivery, Unsettled
from holdall.backends.s3.digest import Etags, verify
from holdall.backends.s3.reply import put_info
from holdall.backends.s3.retrieval import Reader
from holdall.core.objects import ObjectInfo, PutObject
from holdall.errors import HoldallError, ObjectNotFoundError, PreconditionFailedError

__all__ = ["Replacement"]


class Replacement:
    """Replaces objects in one bucket."""

    def __init__(
        self, delivery: Delivery, calls: Calls, reader: Reader, etags: Etags, conditions: Conditions
    ) -> None:
        self._delivery = delivery
        self._calls = calls
        self._reader = reader
        self._etags = etags
        self._conditions = conditions

    async def put(self, pace: Pace, request: PutObject) -> ObjectInfo:
        """Put an object in place of the one with the etag; `PreconditionFailedError` when that is not there."""
        put_id = os.urandom(16).hex()
        call = self._calls.put(request, put_id=put_id)
        if not self._delivery.place.amazon:
            await verify(pace, request)
        await self._conditions.demand_match(pace)
        try:
            answer = await self._delivery.deliver(pace, call, "settle")
        except Unsettled as doubt:
            return await self._settle(pace, request.key, put_id, doubt)
        except PreconditionFailedError as error:
            found = await recognise(self._settle(pace, request.key, put_id, Unsettled(error)))
            if found is None:
                raise
            return found
        except ObjectNotFoundError as error:
            raise PreconditionFailedError(f"there is no object {request.key!r} to be replaced") from error
        return put_info(request, answer.reply, self._etags, put_id)

    async def _settle(self, pace: Pace, key: str, put_id: str, doubt: Unsettled) -> ObjectInfo:
        if isinstance(doubt.error, PreconditionFailedError):
            try:
                found = await self._reader.head(pace, key)
            except HoldallError as error:
                raise explain_unknown(error, "replaced") from error
            if found.put_id == put_id:
                return found
        raise explain_unknown(doubt.error, "replaced") from doubt.error
