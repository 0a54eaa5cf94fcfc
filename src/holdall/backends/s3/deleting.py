"""Deleting: one object, or many at once.

Colourless.
"""

from __future__ import annotations

from holdall.backends.s3.creation import Creation
from holdall.backends.s3.delivery import Delivery
from holdall.backends.s3.documents import Document, fits_xml
from holdall.backends.s3.outgoing import Outgoing
from holdall.backends.s3.wire import Wire
from holdall.core.objects import DeleteObject, DeleteObjects, DeleteReport
from holdall.core.requests import Done
from holdall.errors import ConfigurationError, ServiceError

__all__ = ["Deleting"]

TURNS = 4
PAUSE_SECONDS = 0.2
_UNABLE = {"MethodNotAllowed", "NotImplemented", "405", "501"}
_PASSING = {"InternalError", "OperationAborted", "ServiceUnavailable", "SlowDown"}


class Deleting:
    """Deletes in one bucket, below a prefix."""

    def __init__(self, delivery: Delivery, outgoing: Outgoing, creation: Creation, prefix: str) -> None:
        self._delivery = delivery
        self._outgoing = outgoing
        self._creation = creation
        self._prefix = prefix

    async def one(self, wire: Wire, request: DeleteObject) -> Done:
        """Delete an object."""
        await self._delivery.deliver(wire, self._outgoing.delete(request))
        await self._creation.forget(wire, (request.key,))
        return Done()

    async def many(self, wire: Wire, request: DeleteObjects) -> DeleteReport:
        """Delete objects all at once, but for those whose keys XML has no form for."""
        keys = tuple(dict.fromkeys(request.keys))
        fitting = tuple(key for key in keys if fits_xml(self._prefix + key))
        others = tuple(key for key in keys if not fits_xml(self._prefix + key))
        try:
            failures = await self._together(wire, fitting)
        except (ConfigurationError, ServiceError) as error:
            if error.service_code not in _UNABLE:
                raise
            failures, others = {}, keys
        failures |= await self._one_by_one(wire, others)
        await self._creation.forget(wire, tuple(key for key in keys if key not in failures))
        return DeleteReport(failures)

    async def _together(self, wire: Wire, keys: tuple[str, ...]) -> dict[str, str]:
        """What could not be deleted, and why; what failed in passing was tried again."""
        failures: dict[str, str] = {}
        left = keys
        for turn in range(TURNS):
            if not left:
                break
            if turn:
                await wire.sleep(wire.random() * PAUSE_SECONDS * 2**turn)
            answer = await self._delivery.deliver(wire, self._outgoing.delete_many(left))
            refused = self._refused(answer.read())
            for key in left:
                failures.pop(key, None)
            failures |= {key: why for key, (_, why) in refused.items()}
            left = tuple(key for key, (code, _) in refused.items() if code in _PASSING)
        return failures

    async def _one_by_one(self, wire: Wire, keys: tuple[str, ...]) -> dict[str, str]:
        failures: dict[str, str] = {}
        for key in keys:
            try:
                await self._delivery.deliver(wire, self._outgoing.delete(DeleteObject("", key)))
            except ServiceError as error:
                failures[key] = error.message
        return failures

    def _refused(self, result: Document) -> dict[str, tuple[str, str]]:
        """Which keys were not deleted, with the code and why."""
        refused = {}
        for error in result.all("Error"):
            code = error.text("Code")
            if code != "NoSuchKey":
                key = error.text("Key").removeprefix(self._prefix)
                refused[key] = code, error.get("Message") or code
        return refused
