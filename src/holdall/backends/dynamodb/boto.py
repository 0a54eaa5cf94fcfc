"""The DynamoDB backend over the user's boto3 client: slower, for programs in which everything must go through the SDK.

The client repeats requests by itself. So every single write that returns nothing is sent as a transaction of one, whose
token makes repetitions harmless. For the others it matters how each send ended, which the client's events report.
"""

from __future__ import annotations

import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast
from zlib import crc32

from holdall.backends.aws.backend import AwsBackend
from holdall.backends.aws.courier import Failure, Manner, Pace
from holdall.backends.aws.message import Reply
from holdall.backends.dynamodb.call import Call
from holdall.backends.dynamodb.delivery import Trace, settle
from holdall.backends.dynamodb.failure import explain_failure
from holdall.backends.dynamodb.flow import DynamoFlow
from holdall.backends.dynamodb.reply import STAMPED
from holdall.errors import (
    CredentialsError,
    EndpointError,
    HoldallError,
    InvalidRequestError,
    MalformedReplyError,
    OutcomeUnknown,
    ServiceUnavailableError,
)


class BotoBackend(AwsBackend):
    """Tables reached through a boto3 or botocore DynamoDB client."""

    def __init__(self, client: Any) -> None:
        self._courier = _BotoCourier(client)
        super().__init__(DynamoFlow(self._courier, "token").answer, "database")

    def close(self) -> None:
        """Refuse further requests; the client belongs to the user and stays open."""
        super().close()
        self._courier.close()


class _Sends(threading.local):
    """Whether a send of the call that this thread is making may have been carried out without a reply."""

    unknown = False
    damaged = False
    """Whether the last reply was incomplete: the client parses it as if it were complete."""


class _BotoCourier:
    def __init__(self, client: Any) -> None:
        self._client = client
        self._sends = _Sends()
        self._name = f"holdall-{id(self)}"
        self._listening = False

    def close(self) -> None:
        """Stop listening to the client's events."""
        if self._listening:
            self._client.meta.events.unregister("needs-retry.dynamodb", unique_id=self._name)
            self._listening = False

    def _note(self, response: Any, caught_exception: Any, **event: Any) -> None:
        """Note how one send ended; the client still decides whether to send again."""
        self._sends.damaged = response is not None and _is_damaged(response[0])
        if response is not None:
            parsed = convert(response[1], AS_TEXT)
            failing = response[0].status_code != 200 and "Error" in parsed
            self._sends.unknown |= (
                failing and explain_failure(rebuild_reply(parsed), "", {}).remedy == "server"
            )
        elif caught_exception is not None:
            self._sends.unknown |= not _is_unsent(caught_exception)

    async def deliver(self, pace: Pace, call: Call) -> Mapping[str, Any]:
        """The answer to a call that may be repeated."""
        return await pace.call(self._call, call, "repeat", None)

    async def write(
        self, pace: Pace, call: Call, manner: Manner, trace: Trace | None = None
    ) -> Mapping[str, Any]:
        """The answer to a write."""
        try:
            return await pace.call(self._call, call, manner, trace)
        except OutcomeUnknown:
            found = None if trace is None else await pace.call(self._look, trace)
            if found is None:
                raise
            return {STAMPED: found}

    def _look(self, trace: Trace) -> Mapping[str, Any] | None:
        """The item of a write whose outcome is unknown, if it shows that the write was carried out."""
        try:
            item = self._call(trace.look(), "repeat", None).get("Item")
        except HoldallError:
            return None
        return item if trace.is_in(item) else None

    def _call(self, call: Call, manner: Manner, trace: Trace | None) -> Mapping[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError

        method = getattr(self._client, name_method(call.operation))
        if not self._listening:  # from now on, the client reports every send; registering twice is harmless
            self._client.meta.events.register("needs-retry.dynamodb", self._note, unique_id=self._name)
            self._listening = True
        self._sends.unknown = self._sends.damaged = False
        try:
            found = method(**convert(call.payload, AS_BYTES))
            answer = cast("Mapping[str, Any]", convert(found, AS_TEXT))
            if not self._sends.damaged:
                return answer
            garbled = MalformedReplyError(f"{call.operation}: the reply was truncated or corrupted")
            failure = Failure(garbled, "server")
        except ClientError as error:
            response = convert(error.response, AS_TEXT)
            failure = explain_failure(rebuild_reply(response), call.operation, call.payload)
        except BotoCoreError as error:
            failure = explain_unanswered(call, error)
        unknown = self._sends.unknown or failure.remedy == "server"
        return settle(failure.error, failure.remedy, unknown, manner, trace)


def _is_damaged(reply: Any) -> bool:
    """Whether a reply does not have the length or the checksum that its headers state."""
    length, checksum = reply.headers.get("content-length"), reply.headers.get("x-amz-crc32")
    if length is not None and length != str(len(reply.content)):
        return True
    return checksum is not None and checksum != str(crc32(reply.content))


def _is_unsent(error: Exception) -> bool:
    """Whether the client raised this before it sent anything."""
    from botocore.exceptions import (
        ConnectTimeoutError,
        EndpointConnectionError,
        NoCredentialsError,
        ParamValidationError,
        ProxyConnectionError,
    )

    connecting = ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError
    return isinstance(error, (*connecting, NoCredentialsError, ParamValidationError))


def explain_unanswered(call: Call, error: Exception) -> Failure:
    """The failure for a call to which the client got no answer."""
    from botocore.exceptions import ConnectionError as Unconnected
    from botocore.exceptions import HTTPClientError, NoCredentialsError, ParamValidationError

    about = f"{call.operation}: {error}"
    ours: HoldallError
    if isinstance(error, Unconnected):
        ours = EndpointError(about)
    elif isinstance(error, NoCredentialsError):
        ours = CredentialsError(about)
    elif isinstance(error, ParamValidationError):
        ours = InvalidRequestError(about)
    elif isinstance(error, HTTPClientError):
        ours = ServiceUnavailableError(f"{call.operation}: the reply was lost ({error})")
    else:
        ours = MalformedReplyError(f"{call.operation}: {type(error).__name__}: {error}")
    return Failure(ours, "unsent" if _is_unsent(error) else "server")


def name_method(operation: str) -> str:
    """The name of the client's method for an operation."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation).lstrip("_")


def rebuild_reply(response: Mapping[str, Any]) -> Reply:
    """The reply from which the client made its error."""
    metadata = response.get("ResponseMetadata", {})
    body = {
        **{name: part for name, part in response.items() if name not in ("Error", "ResponseMetadata")},
        "__type": response["Error"].get("Code", ""),
        "message": response["Error"].get("Message", ""),
    }
    headers = {"x-amzn-requestid": metadata.get("RequestId", "")}
    return Reply(metadata.get("HTTPStatusCode", 400), headers, json.dumps(body, default=str).encode(), True)


def encode_binary(raw: bytes | bytearray) -> str:
    """Bytes as base64 text."""
    return b64encode(raw).decode("ascii")


Conversions: TypeAlias = Mapping[str, Callable[[Any], object]]
"""Functions that convert the content of an attribute, by its type; they also convert the members of its sets."""

AS_BYTES: Conversions = {"B": b64decode}
AS_TEXT: Conversions = {"B": encode_binary}
"""The SDK uses bytes for binary attributes where we use base64 text."""


def convert(part: Any, conversions: Conversions) -> Any:
    """The same JSON with the attributes of some types in another form."""
    if isinstance(part, Mapping):
        if len(part) == 1:
            ((kind, content),) = part.items()
            of_one, of_member = conversions.get(kind), conversions.get(kind.removesuffix("S"))
            if of_one is not None and isinstance(content, str | bytes | bytearray):
                return {kind: of_one(content)}
            if of_member is not None and isinstance(content, list | tuple):
                return {kind: [of_member(member) for member in content]}
        return {name: convert(member, conversions) for name, member in part.items()}
    if isinstance(part, list | tuple):
        return [convert(member, conversions) for member in part]
    return part
