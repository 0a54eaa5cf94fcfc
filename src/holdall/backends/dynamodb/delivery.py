"""Delivering a call: signing, sending, waiting, sending again, and saying honestly how it ended.

Colourless. Whether a call may be sent again after a lost reply follows from its `Manner`:

- ``repeat``: reads, and writes that a repetition does not change (batches). Sent again freely.
- ``token``: a transaction with a client token. Sent again byte-identical, for at most eight minutes after the first
  send (the service remembers tokens for ten).
- ``stamp``: a conditional write that falsifies its own condition and leaves a stamp, its `Trace`. Before it is sent
  again, a strongly consistent read looks for the stamp; it is sent again if the stamp is missing (an update: only if no
  other write has changed the item since it was read). The stamp in a stored item always means success, even if the
  first send is refused: the network delivered it twice.
- ``once``: any other write. Never sent again once it may have been carried out.

A failed condition, or any other plain *no*, surfaces at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias, cast
from zlib import crc32

from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.endpoint import Endpoint
from holdall.backends.aws.limit import Limit, Limits
from holdall.backends.aws.message import Reply
from holdall.backends.aws.signer import Credentials, Signer, sha256_hex
from holdall.backends.aws.transport import Broken, Garbled, Unsent
from holdall.backends.dynamodb.failure import Failure, failed
from holdall.backends.dynamodb.incoming import STAMPED, UNVOUCHED
from holdall.backends.dynamodb.outgoing import Call
from holdall.backends.dynamodb.trace import Trace
from holdall.backends.dynamodb.wire import Wire
from holdall.core.telemetry import warn
from holdall.errors import (
    AccessDeniedError,
    ConditionFailedError,
    EndpointError,
    HoldallError,
    InvalidRequestError,
    MalformedReplyError,
    OutcomeUnknown,
    ServiceUnavailableError,
    TokenReusedError,
    TransactionCanceledError,
)

__all__ = ["Delivery", "Manner", "settle"]

Manner: TypeAlias = Literal["repeat", "token", "stamp", "once"]

_encoded = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode
_decoded = json.JSONDecoder().decode

BASE_SECONDS = 0.05
LONGEST_PAUSE = 5.0
BUDGET_SECONDS = 60.0
ATTEMPTS = 12
TOKEN_SECONDS = 8 * 60.0


class _Course:
    """What has happened to one call so far."""

    def __init__(self, started: float, limits: Limits, limit: Limit) -> None:
        self.started = started
        self.limits = limits
        self.limit = limit
        self.attempts = 0
        self.unknown = False
        self.renewed = False
        self.clock_set = False
        self.reply: Reply | None = None
        self.signed_with: Credentials | None = None

    def may_go_on(self, manner: Manner, then: float) -> bool:
        """Whether the call may be sent once more at that time."""
        if self.unknown and manner == "once":
            return False
        spent = then - self.started
        if self.unknown and manner == "token" and spent >= TOKEN_SECONDS:
            return False
        return self.attempts < self.limits.max_attempts and spent < self.limits.total_timeout


class Delivery:
    """Calls to one endpoint, in the name of one credential source."""

    def __init__(self, endpoint: Endpoint, source: CredentialSource, limits: Limits | None = None) -> None:
        self._endpoint = endpoint
        self._limits = limits or Limits(total_timeout=BUDGET_SECONDS, max_attempts=ATTEMPTS)
        self._source = source
        self._signer = Signer("dynamodb", endpoint.region)
        self._skew = timedelta(0)

    async def deliver(
        self,
        wire: Wire,
        call: Call,
        manner: Manner = "repeat",
        trace: Trace | None = None,
    ) -> Mapping[str, Any]:
        """The service's answer to the call, or one of our errors if there is none.

        ``trace`` is how a stamped write is recognised, and what is sent in its place.
        """
        course = _Course(wire.now(), self._limits, wire.limit(self._limits.total_timeout))
        return await self._deliver(wire, call, manner, trace, course)

    async def _deliver(
        self, wire: Wire, call: Call, manner: Manner, trace: Trace | None, course: _Course
    ) -> Mapping[str, Any]:
        body = _encoded(call.payload).encode()
        while True:
            try:
                answer = await self._attempt(wire, call, body, course)
            except Exception as error:
                if course.unknown and manner != "repeat":  # no credentials to send it again with, for one
                    raise _unknown(error) from error
                raise
            if not isinstance(answer, Failure):
                return answer
            if answer.remedy == "final":
                return settle(answer, course.unknown, manner, trace)
            if self._repaired(answer, course):
                continue
            if answer.remedy in ("expired", "skew"):
                return settle(answer, course.unknown, manner, trace)
            pause = wire.random() * min(LONGEST_PAUSE, BASE_SECONDS * 2 ** (course.attempts - 1))
            if course.limit.left <= pause or not course.may_go_on(manner, wire.now() + pause):
                return settle(answer, course.unknown, manner, trace)
            if answer.remedy == "throttle":
                warn(
                    "dynamodb",
                    "%s was throttled, send %d; again in %.3f s",
                    call.operation,
                    course.attempts,
                    pause,
                )
            if (
                trace is not None and course.unknown
            ):  # at once: another client may soon delete or change the item
                found = await self._look(wire, trace, course)
                if trace.is_in(found):
                    return {STAMPED: found}
                body = _encoded(trace.repeat().payload).encode()
            await wire.sleep(pause)

    async def _look(self, wire: Wire, trace: Trace, course: _Course) -> Mapping[str, Any] | None:
        """The current item of a write whose outcome is unknown; the read is retried within the write's budget."""
        try:
            payload = await self._deliver(wire, trace.look(), "repeat", None, course)
        except AccessDeniedError:
            return None  # the caller may write but not read: the repetition's own condition must suffice
        except Exception as error:
            raise _unknown(error) from error
        item = payload.get("Item")
        return item if isinstance(item, Mapping) else None

    async def _attempt(
        self, wire: Wire, call: Call, body: bytes, course: _Course
    ) -> Mapping[str, Any] | Failure:
        """One send; notes on the course whether its fate is unknown."""
        course.attempts += 1
        try:
            course.reply = await self._sent(wire, call.operation, body, course)
        except Unsent as error:
            return Failure(self._unreachable(error), "final" if error.lasting else "unsent")
        except Broken as error:
            answer: Mapping[str, Any] | Failure = _lost(call, error)
        else:
            signer = course.signed_with
            secrets = (signer.token, signer.secret_key) if signer is not None else ()
            answer = _answer(course.reply, call, secrets)
        course.unknown |= isinstance(answer, Failure) and answer.remedy == "server"
        course.limit.has_left = course.unknown
        return answer

    def _repaired(self, failure: Failure, course: _Course) -> bool:
        """Whether there was something to put right, once per call, before sending again at once."""
        if failure.remedy == "expired" and not course.renewed and course.signed_with is not None:
            course.renewed = True
            self._source.renew(course.signed_with)
            return True
        if failure.remedy == "skew" and not course.clock_set and course.reply is not None:
            course.clock_set = True
            self._set_clock(course.reply)
            return True
        return False

    async def _sent(self, wire: Wire, operation: str, body: bytes, course: _Course) -> Reply:
        credentials = course.signed_with = await wire.credentials(self._source, course.limit)
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "host": self._endpoint.authority,
            "x-amz-target": f"DynamoDB_20120810.{operation}",
        }
        now = datetime.now(UTC) + self._skew
        signed = self._signer.signed("POST", "/", (), headers, sha256_hex(body), credentials, now)
        signed["accept-encoding"] = "identity"
        signed["user-agent"] = "holdall"
        return await wire.exchange(signed, body, course.limit)

    def _set_clock(self, reply: Reply) -> None:
        from email.utils import parsedate_to_datetime

        try:
            theirs = parsedate_to_datetime(reply.headers.get("date", ""))
        except (TypeError, ValueError):
            return
        if theirs.tzinfo is None:
            theirs = theirs.replace(tzinfo=UTC)
        self._skew = theirs - datetime.now(UTC)

    def _unreachable(self, error: Unsent) -> EndpointError:
        where = f"{self._endpoint.scheme}://{self._endpoint.authority}"
        return EndpointError(f"{where} cannot be reached: {error}", hint=error.hint)


def settle(failure: Failure, unknown: bool, manner: Manner, trace: Trace | None) -> Mapping[str, Any]:
    """End a call that will not be sent again; ``unknown``: an earlier send may have been carried out.

    Returns if a failed condition only shows that the write has succeeded, by an earlier send or because this one was
    delivered twice. Otherwise raises the failure itself, or `OutcomeUnknown` if the write may have happened.
    """
    error = failure.error
    item = error.item if isinstance(error, ConditionFailedError) else None
    if trace is not None and trace.is_in(item):
        return {STAMPED: item}
    if not unknown or manner == "repeat" or (manner == "token" and _denies_the_token(failure)):
        raise error
    raise _unknown(error, item) from error


def _denies_the_token(failure: Failure) -> bool:
    """Whether the answer shows that no earlier send with the same token succeeded: it would have succeeded again.

    Other refusals, of the credentials for one, come before the token is looked at.
    """
    conclusive = TransactionCanceledError | InvalidRequestError | TokenReusedError
    return failure.remedy == "final" and isinstance(failure.error, conclusive)


def _unknown(error: Exception, item: Mapping[str, Any] | None = None) -> OutcomeUnknown:
    then = error.message if isinstance(error, HoldallError) else type(error).__name__
    return OutcomeUnknown(
        f"it is not known whether the write happened: its reply was lost, and then: {then}",
        item=item,
        hint="look at the item before doing it again",
    )


def _answer(reply: Reply, call: Call, secrets: Iterable[str | None]) -> Mapping[str, Any] | Failure:
    checksum = reply.headers.get("x-amz-crc32")
    if checksum is not None and checksum != str(crc32(reply.body)):
        return _garbled(call, "its checksum is wrong")
    if reply.status != 200:
        return failed(reply, call.operation, call.payload, secrets)
    try:
        payload = _decoded(reply.body.decode())
    except (ValueError, RecursionError):
        return _garbled(call, "it is not JSON")
    if not isinstance(payload, dict):
        return _garbled(call, "it is not an object")
    if checksum is None:
        payload[UNVOUCHED] = True
    return cast("Mapping[str, Any]", payload)


def _lost(call: Call, error: Broken) -> Failure:
    if isinstance(error, Garbled):
        return _garbled(call, str(error))
    return Failure(ServiceUnavailableError(f"{call.operation}: the reply was lost ({error})"), "server")


def _garbled(call: Call, why: str) -> Failure:
    return Failure(MalformedReplyError(f"{call.operation}: the reply is garbled, {why}"), "server")
