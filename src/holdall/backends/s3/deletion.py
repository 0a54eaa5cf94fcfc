"""Deletions of one object, or of many at once."""

from __future__ import annotations

from holdall.backends.aws.courier import Pace
from holdall.backends.s3.condition import Conditions
from holdall.backends.s3.creation import Creation, explain_unknown
from holdall.backends.s3.delivery import Delivery, Unsettled
from holdall.backends.s3.document import Document, fits_xml
from holdall.backends.s3.retrieval import Reader
from holdall.core.objects import DeleteObject, DeleteObjects, DeleteReport
from holdall.core.requests import Done
from holdall.errors import (
    ConfigurationError,
    HoldallError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ServiceError,
)

TURNS = 4
PAUSE_SECONDS = 0.2
_UNABLE = {"MethodNotAllowed", "NotImplemented", "405", "501"}
_PASSING = {"InternalError", "OperationAborted", "ServiceUnavailable", "SlowDown"}


class Deleter:
    """Deletes in one bucket, below a prefix."""

    def __init__(
        self, delivery: Delivery, reader: Reader, conditions: Conditions, creation: Creation
    ) -> None:
        self._delivery = delivery
        self._calls = delivery.calls
        self._prefix = delivery.calls.prefix
        self._reader = reader
        self._conditions = conditions
        self._creation = creation

    async def delete_one(self, pace: Pace, request: DeleteObject) -> Done:
        """Delete an object."""
        if request.if_match is None:
            await self._delivery.deliver(pace, self._calls.delete(request))
        else:
            await self._delete_matching(pace, request)
        await self._creation.forget(pace, (request.key,))
        return Done()

    async def _delete_matching(self, pace: Pace, request: DeleteObject) -> None:
        """Delete an object with a given etag. Some servers refuse if there is no object, which counts as success."""
        call = self._calls.delete(request)
        await self._conditions.demand_match(pace, "deletions")
        lost = False
        refusal: Exception | None = None
        try:
            await self._delivery.deliver(pace, call, "settle")
        except (ObjectNotFoundError, PreconditionFailedError) as error:
            refusal = error
        except Unsettled as doubt:
            lost, refusal = True, doubt.error
        if refusal is None or isinstance(refusal, ObjectNotFoundError):
            return
        if isinstance(refusal, PreconditionFailedError) and await self._is_missing(pace, request.key):
            return
        if lost:  # there is another object, or it is not known: the first send may have happened before it
            raise explain_unknown(refusal, "deleted") from refusal
        raise refusal

    async def _is_missing(self, pace: Pace, key: str) -> bool:
        try:
            await self._reader.head(pace, key)
        except ObjectNotFoundError:
            return True
        except HoldallError:  # the caller gets another error
            return False
        return False

    async def delete_many(self, pace: Pace, request: DeleteObjects) -> DeleteReport:
        """Delete objects all at once, except those whose keys XML cannot express."""
        keys = tuple(dict.fromkeys(request.keys))
        fitting = tuple(key for key in keys if fits_xml(self._prefix + key))
        others = tuple(key for key in keys if not fits_xml(self._prefix + key))
        try:
            failures = await self._delete_together(pace, fitting)
        except (ConfigurationError, ServiceError) as error:
            if error.service_code not in _UNABLE:
                raise
            failures, others = {}, keys
        failures |= await self._delete_each(pace, others)
        await self._creation.forget(pace, tuple(key for key in keys if key not in failures))
        return DeleteReport(failures)

    async def _delete_together(self, pace: Pace, keys: tuple[str, ...]) -> dict[str, str]:
        """The keys that could not be deleted, and why; temporary failures are retried."""
        failures: dict[str, str] = {}
        left = keys
        for turn in range(TURNS):
            if not left:
                break
            if turn:
                await pace.sleep(pace.random() * PAUSE_SECONDS * 2**turn)
            answer = await self._delivery.deliver(pace, self._calls.delete_many(left))
            refused = self._read_refusals(answer.read())
            for key in left:
                failures.pop(key, None)
            failures |= {key: why for key, (_, why) in refused.items()}
            left = tuple(key for key, (code, _) in refused.items() if code in _PASSING)
        return failures

    async def _delete_each(self, pace: Pace, keys: tuple[str, ...]) -> dict[str, str]:
        failures: dict[str, str] = {}
        for key in keys:
            try:
                await self._delivery.deliver(pace, self._calls.delete(DeleteObject("", key)))
            except ServiceError as error:
                failures[key] = error.message
        return failures

    def _read_refusals(self, result: Document) -> dict[str, tuple[str, str]]:
        """The keys that were not deleted, with the code and the reason."""
        refused = {}
        for error in result.all("Error"):
            code = error.text("Code")
            if code != "NoSuchKey":
                key = error.text("Key").removeprefix(self._prefix)
                refused[key] = code, error.get("Message") or code
        return refused
