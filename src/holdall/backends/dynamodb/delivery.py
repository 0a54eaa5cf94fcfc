"""Delivering calls to DynamoDB: how they are signed, what a reply means, and what to do when a reply was lost.

The courier sends. Whether a write may be sent again after a lost reply depends on the write:

- One with a client token is sent again byte-identical. A call takes at most four minutes in all; the service remembers
  a token for ten.
- A conditional write that falsifies its own condition and leaves a stamp, its `Trace`: before it is sent again, a
  strongly consistent read looks for the stamp. It is sent again if the stamp is missing (an update: only if no other
  write has changed the item since it was read). The stamp in a stored item always means success, even if the first send
  is refused: the network delivered it twice.
- Any other write is never sent again once it may have been carried out.

A failed condition, or any other clear refusal, is raised at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from zlib import crc32

from holdall.backends.aws.courier import Courier, Course, Failure, Manner, Pace, Parcel, Remedy, Unsettled
from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.endpoint import Endpoint
from holdall.backends.aws.limit import Limits
from holdall.backends.aws.message import Reply
from holdall.backends.aws.signer import Credentials, PostTemplate, Signer
from holdall.backends.aws.transport import Transport
from holdall.backends.dynamodb.call import Call, render_call
from holdall.backends.dynamodb.failure import explain_failure
from holdall.backends.dynamodb.reply import STAMPED, UNVOUCHED
from holdall.core.frozen import dataclass
from holdall.core.json_text import encode_json
from holdall.core.requests import GetItem, PutItem, UpdateItem
from holdall.core.stamp import has_stamped, require_last_stamp
from holdall.core.values import Item
from holdall.errors import (
    AccessDeniedError,
    ConditionFailedError,
    HoldallError,
    InvalidRequestError,
    MalformedReplyError,
    OutcomeUnknown,
    TokenReusedError,
    TransactionCanceledError,
)

_decoder: Any = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Trace:
    """A stamped write and the key of its item."""

    write: PutItem | UpdateItem
    key: Item

    def is_in(self, item: Mapping[str, Any] | None) -> bool:
        """Whether the item shows that the write was carried out."""
        return has_stamped(self.write, item)

    def look(self) -> Call:
        """The call that reads the item as it is now."""
        return render_call(GetItem(self.write.table, self.key, consistent=True))

    def repeat(self) -> Call:
        """The call to send instead of the write once the write may have been carried out."""
        return render_call(
            require_last_stamp(self.write) if isinstance(self.write, UpdateItem) else self.write
        )


class DynamoService:
    """One endpoint of DynamoDB."""

    name = "dynamodb"

    def __init__(self, endpoint: Endpoint, transport: Transport) -> None:
        self.transport = transport
        self.url = f"{endpoint.scheme}://{endpoint.authority}"
        prefix, lines = transport.relay
        self._template = PostTemplate(
            Signer("dynamodb", endpoint.region),
            {"content-type": "application/x-amz-json-1.0", "host": endpoint.authority},
            "x-amz-target",
            "DynamoDB_20120810.",
            f"POST {prefix}/ HTTP/1.1",
            f"accept-encoding: identity\r\nuser-agent: holdall\r\n{lines}",
        )

    def render(self, call: Call, credentials: Credentials, now: float) -> Parcel:
        """The call as a signed request."""
        body = encode_json(call.payload).encode()
        return "POST", self._template.sign(call.operation, body, credentials, now), body

    def judge(self, call: Call, reply: Reply, credentials: Credentials) -> Mapping[str, Any]:
        """The JSON of a reply; `Failure` if it is an error or damaged."""
        checksum = reply.headers.get("x-amz-crc32")
        if checksum is not None and checksum != str(crc32(reply.body)):
            raise _explain_garbled(call, "its checksum is wrong")
        if reply.status != 200:
            raise explain_failure(
                reply, call.operation, call.payload, (credentials.token, credentials.secret_key)
            )
        try:
            text = reply.body.decode()
            try:  # quicker than `decode`, which allows spaces around it
                payload, end = _decoder.scan_once(text, 0)
            except StopIteration:
                end = -1
            if end != len(text):
                payload = _decoder.decode(text)
        except (ValueError, RecursionError):
            raise _explain_garbled(call, "it is not JSON") from None
        if type(payload) is not dict:
            raise _explain_garbled(call, "it is not an object")
        if checksum is None:
            payload[UNVOUCHED] = True
        return payload

    def mend(self, failure: Failure) -> None:
        """Only credentials and clock can be corrected, and the courier does that."""


def _explain_garbled(call: Call, why: str) -> Failure:
    return Failure(MalformedReplyError(f"{call.operation}: the reply is garbled ({why})"), "server")


class Delivery:
    """Delivers calls to one endpoint, with the credentials of one source."""

    def __init__(
        self, endpoint: Endpoint, source: CredentialSource, transport: Transport, limits: Limits
    ) -> None:
        self._courier = Courier(DynamoService(endpoint, transport), source, limits)
        self.deliver = self._courier.deliver

    async def write(
        self, pace: Pace, call: Call, manner: Manner, trace: Trace | None = None
    ) -> Mapping[str, Any]:
        """The answer to a write; `OutcomeUnknown` if nothing shows whether it was carried out.

        The manner is ``settle`` with a client token, otherwise ``once``. A stamped write has a ``trace``.
        """
        course: Course | None = None
        while True:
            try:
                return await self._courier.deliver(pace, call, manner, course)
            except ConditionFailedError as error:
                return settle(error, "final", False, manner, trace)
            except Unsettled as doubt:
                course, pause = doubt.course, doubt.pause
                if trace is None or course is None or pause is None:
                    return settle(doubt.error, doubt.remedy, True, manner, trace)
            found = await self._look(pace, trace, course)  # at once: another client may soon change the item
            if trace.is_in(found):
                return {STAMPED: found}
            call = trace.repeat()
            await pace.sleep(pause)

    async def _look(self, pace: Pace, trace: Trace, course: Course) -> Mapping[str, Any] | None:
        """The current item of a write whose outcome is unknown; the read is retried within the write's budget."""
        try:
            payload = await self._courier.deliver(pace, trace.look(), "repeat", course)
        except AccessDeniedError:
            return None  # the caller may write but not read: the repetition's own condition must suffice
        except Exception as error:
            raise _explain_unknown(error) from error
        item = payload.get("Item")
        return item if isinstance(item, Mapping) else None


def settle(
    error: Exception, remedy: Remedy, unknown: bool, manner: Manner, trace: Trace | None
) -> Mapping[str, Any]:
    """End a call that will not be sent again; ``unknown``: an earlier send may have been carried out.

    Returns if a failed condition only shows that the write has succeeded, by an earlier send or because this one was
    delivered twice. Otherwise raises the error itself, or `OutcomeUnknown` if the write may have happened.
    """
    item = error.item if isinstance(error, ConditionFailedError) else None
    if trace is not None and trace.is_in(item):
        return {STAMPED: item}
    # no earlier send with the same token succeeded, or this one would have succeeded, too; other refusals, for example
    # of the credentials, come before the service looks at the token
    conclusive = TransactionCanceledError | InvalidRequestError | TokenReusedError
    denies_token = manner == "settle" and remedy == "final" and isinstance(error, conclusive)
    if not unknown or manner == "repeat" or denies_token:
        raise error
    raise _explain_unknown(error, item) from error


def _explain_unknown(error: Exception, item: Mapping[str, Any] | None = None) -> OutcomeUnknown:
    then = error.message if isinstance(error, HoldallError) else type(error).__name__
    return OutcomeUnknown(
        f"it is not known whether the write happened: its reply was lost, and then: {then}",
        item=item,
        hint="read the item before you repeat the write",
    )
