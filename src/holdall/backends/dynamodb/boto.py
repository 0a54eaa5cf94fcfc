"""The DynamoDB backend over a boto3 client of the user's: slower, for where everything must go through the SDK.

The client retries by itself and without telling which sends may have been carried out. So every single write that gives
nothing back goes as a transaction of one, whose token makes the client's repetitions harmless; for the others, any
repetition by the client counts as a send of unknown fate.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from holdall.backends.aws.message import Reply
from holdall.backends.dynamodb.answering import Answering
from holdall.backends.dynamodb.delivery import Manner, settled
from holdall.backends.dynamodb.failure import Failure, failed
from holdall.backends.dynamodb.outgoing import Call
from holdall.backends.dynamodb.wire import AwaitingPace, BlockingPace, Pace
from holdall.core.port import run
from holdall.core.requests import Request
from holdall.errors import EndpointError, ServiceUnavailableError, StoreClosedError

__all__ = ["BotoBackend"]

R = TypeVar("R")


class BotoBackend:
    """Tables reached through a boto3 or botocore DynamoDB client."""

    def __init__(self, client: Any) -> None:
        self._blocking = BlockingPace()
        self._awaiting = AwaitingPace()
        self._answering: Answering[Pace] = Answering(_BotoCourier(client), "token")
        self._closed = False

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request; the calling thread waits."""
        self._check_open()
        return cast("R", run(self._answering.answer(self._blocking, request)))

    async def send_awaiting(self, request: Request[R]) -> R:
        """Answer the request in a thread; the event loop goes on."""
        self._check_open()
        return cast("R", await self._answering.answer(self._awaiting, request))

    def close(self) -> None:
        """Refuse further requests; the client is the user's and stays open."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the database is closed", hint="open it again")


class _BotoCourier:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def deliver(
        self, pace: Pace, call: Call, manner: Manner = "repeat", stamp: str | None = None
    ) -> Mapping[str, Any]:
        return await pace.call(self._call, call, manner, stamp)

    def _call(self, call: Call, manner: Manner, stamp: str | None) -> Mapping[str, Any]:
        from botocore.exceptions import (
            ClientError,
            ConnectTimeoutError,
            EndpointConnectionError,
            HTTPClientError,
        )

        method = getattr(self._client, _snake(call.operation))
        try:
            return cast("Mapping[str, Any]", _converted(method(**_converted(call.payload, _raw)), _text))
        except ClientError as error:
            response = _converted(error.response, _text)
            failure = failed(_reply(response), call.operation, call.payload)
            repeated = bool(response.get("ResponseMetadata", {}).get("RetryAttempts"))
            unknown = repeated or failure.remedy == "server"
            return settled(failure, unknown, manner, stamp)
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            raise EndpointError(f"{call.operation}: {error}") from error
        except HTTPClientError as error:
            lost = ServiceUnavailableError(f"{call.operation}: the reply was lost ({error})")
            return settled(Failure(lost, "server"), True, manner, stamp)


def _snake(operation: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation).lstrip("_")


def _reply(response: Mapping[str, Any]) -> Reply:
    """A client's error as the reply it was made from."""
    metadata = response.get("ResponseMetadata", {})
    body = {
        **{name: part for name, part in response.items() if name not in ("Error", "ResponseMetadata")},
        "__type": response["Error"].get("Code", ""),
        "message": response["Error"].get("Message", ""),
    }
    headers = {"x-amzn-requestid": metadata.get("RequestId", "")}
    return Reply(metadata.get("HTTPStatusCode", 400), headers, json.dumps(body, default=str).encode(), True)


def _raw(text: str) -> bytes:
    return b64decode(text)


def _text(raw: bytes) -> str:
    return b64encode(raw).decode("ascii")


def _converted(part: Any, binary: Any) -> Any:
    """The same JSON with binary attributes in the other form: the SDK has bytes where we have base64 text."""
    if isinstance(part, Mapping):
        if len(part) == 1:
            ((kind, content),) = part.items()
            if kind == "B" and isinstance(content, str | bytes):
                return {"B": binary(content)}
            if kind == "BS" and isinstance(content, list | tuple):
                return {"BS": [binary(member) for member in content]}
        return {name: _converted(member, binary) for name, member in part.items()}
    if isinstance(part, list | tuple):
        return [_converted(member, binary) for member in part]
    return part
