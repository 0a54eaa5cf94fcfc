"""Which conditions the server honours.

A server that ignores a condition would silently replace or delete the existing object. AWS honours all conditions; any
other server is tested before the first request that depends on one: a test object is put, and then put again, or
deleted, with a condition that does not hold.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias

from holdall.backends.aws.courier import Pace
from holdall.backends.s3.call import Call
from holdall.backends.s3.delivery import Delivery
from holdall.core.frozen import replace
from holdall.core.objects import DeleteObject, PutObject
from holdall.core.telemetry import warn
from holdall.errors import (
    ConfigurationError,
    PreconditionFailedError,
    ServiceError,
    UnsupportedConditionError,
)

Write: TypeAlias = Literal["puts", "deletions"]

PROBE = ".holdall-probe-"
_NO_ETAG = "0" * 32
"""An etag that no object has, not even an empty one."""


class Conditions:
    """The conditions of one server. ``able`` says whether it honours them; None means that it must be tested."""

    def __init__(self, delivery: Delivery, able: bool | None) -> None:
        self._delivery = delivery
        self._calls = delivery.calls
        known = True if able is None and delivery.place.amazon else able
        self._absence = known
        self._match: dict[Write, bool | None] = {"puts": known, "deletions": known}

    @property
    def absence_is_known(self) -> bool:
        """Whether it is already certain that the server refuses to create an object that exists."""
        return bool(self._absence)

    async def can_refuse_existing(self, pace: Pace) -> bool:
        """Whether the server can refuse a put if the object exists (``If-None-Match``)."""
        if self._absence is None:
            await pace.alone(partial(self._test_absence, pace))
        return bool(self._absence)

    async def demand_match(self, pace: Pace, writes: Write) -> None:
        """`UnsupportedConditionError` unless the server can refuse to replace or delete another object
        (``If-Match``)."""
        if self._match[writes] is None:
            await pace.alone(partial(self._test_match, pace))
        if not self._match[writes]:
            raise self.explain_ignored(writes, "If-Match")

    def explain_ignored(self, writes: Write, header: str, otherwise: str = "") -> UnsupportedConditionError:
        """The error if the server ignores a condition, and there is no substitute."""
        place = self._delivery.place
        done = "replaced" if writes == "puts" else "deleted"
        return UnsupportedConditionError(
            f"{place.scheme}://{place.authority} ignores conditions on {writes}: "
            f"any existing object would be {done}",
            hint=f"use a server that honours {header}{otherwise}",
        )

    # --- finding out ---

    async def _test_absence(self, pace: Pace) -> None:
        if self._absence is not None:
            return  # another caller has just tested it
        put = _make_probe()
        await self._delivery.deliver(pace, self._calls.put(put))
        try:
            self._absence = await self._is_refused(pace, self._calls.put(put, refuse=True))
        finally:
            await self._clear(pace, put.key)

    async def _test_match(self, pace: Pace) -> None:
        if None not in self._match.values():
            return
        put = _make_probe()
        await self._delivery.deliver(pace, self._calls.put(put))
        try:
            again = replace(put, if_match=_NO_ETAG)
            deletion = DeleteObject("", put.key, _NO_ETAG)
            self._match["puts"] = await self._is_refused(pace, self._calls.put(again))
            self._match["deletions"] = await self._is_refused(pace, self._calls.delete(deletion))
        finally:
            await self._clear(pace, put.key)

    async def _is_refused(self, pace: Pace, call: Call) -> bool:
        try:
            await self._delivery.deliver(pace, call)
        except PreconditionFailedError:
            return True
        except ConfigurationError as error:
            if error.service_code not in ("NotImplemented", "501"):
                raise
        return False

    async def _clear(self, pace: Pace, key: str) -> None:
        """Delete the test object; if that is not permitted, the test was still successful."""
        try:
            await self._delivery.deliver(pace, self._calls.delete(DeleteObject("", key)))
        except ServiceError as error:
            warn("s3", "the empty object of a test of conditions could not be deleted: %s", error.code)


def _make_probe() -> PutObject:
    from uuid import uuid4  # takes a while to load

    return PutObject("", PROBE + str(uuid4()), b"")
