"""Reads through DynamoDB Accelerator (DAX), with the client of the package amazon-dax-client.

``Database("dynamodb://my-app", reads=dax("daxs://…"))``, or set ``reads`` to the endpoint. Only eventually consistent
reads come here: DAX would pass all others on to DynamoDB. DAX cannot describe tables, so the database's main backend
does that.

**Never run against a cluster.** A cluster exists only inside a VPC of AWS. The tests check which requests come here,
and how they and their replies are converted, against an object with the methods of version 2.1 of that client.

**Fork.** The client has threads, which do not exist in a forked child, so the child creates a new client. This is not
possible for a client that you passed: fork before you create it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from holdall.backends.aws.backend import AwsBackend
from holdall.backends.aws.courier import Manner, Pace
from holdall.backends.dynamodb.boto import (
    AS_BYTES,
    AS_TEXT,
    convert,
    explain_unanswered,
    name_method,
    rebuild_reply,
)
from holdall.backends.dynamodb.call import Call
from holdall.backends.dynamodb.failure import explain_failure
from holdall.backends.dynamodb.flow import DynamoFlow
from holdall.backends.port.once import BlockingOnce, Memo
from holdall.core.internal import internal
from holdall.core.numbers import canonical_number
from holdall.core.port import Backend, run
from holdall.core.requests import DescribeTable, Request, TableDescription
from holdall.core.settings import CLUSTER
from holdall.errors import (
    ConfigurationError,
    EndpointError,
    HoldallError,
    InvalidRequestError,
    InvalidValueError,
    MalformedReplyError,
    ServiceError,
    ServiceUnavailableError,
)

__all__ = ["DaxBackend", "dax"]

_REGION = re.compile(r"\.dax-clusters\.([a-z0-9-]+)\.amazonaws\.com")
_HINT = (
    "check the endpoint, its port and the security group; a cluster can be reached only from inside its VPC"
)

_OURS = {**AS_TEXT, "N": canonical_number}
"""The form of DynamoDB's own replies: binary as base64, numbers in their canonical text."""


def dax(
    endpoint: str | None = None,
    *,
    client: Any = None,
    region: str | None = None,
    profile: str | None = None,
    connect_timeout: float = 5.0,
    read_timeout: float = 5.0,
) -> DaxBackend:
    """A backend for a database's ``reads=``: the DAX cluster at an endpoint, ``daxs://…`` or (unencrypted) ``dax://…``.

    It connects on the first read. botocore finds the credentials; the region is the one in the endpoint's name, or
    ``region``, or botocore's default. ``client``, instead of all that, is your own `AmazonDaxClient`, which stays open
    when the database is closed. Never run against a cluster: see the guide.
    """
    if (endpoint is None) == (client is None):
        raise ConfigurationError(
            "dax() needs either an endpoint or a client", hint='name the cluster: dax("daxs://CLUSTER")'
        )
    if client is not None:
        return DaxBackend(lambda: client, ours=False)
    if not isinstance(endpoint, str) or not CLUSTER.fullmatch(endpoint):
        raise ConfigurationError(
            f"{endpoint!r} is not the endpoint of a DAX cluster", hint="use daxs://HOST or dax://HOST:PORT"
        )
    _check_installed()
    named = _REGION.search(endpoint)

    def connect() -> Any:
        from amazondax import AmazonDaxClient
        from botocore.client import Config
        from botocore.session import Session

        return AmazonDaxClient(
            Session(profile=profile),
            region_name=named[1] if named else region,
            endpoint_url=endpoint,
            config=Config(connect_timeout=connect_timeout, read_timeout=read_timeout),
        )

    return DaxBackend(connect, ours=True)


def _check_installed() -> None:
    from importlib.util import find_spec

    if find_spec("amazondax") is None:
        raise ConfigurationError(
            "a DAX cluster needs the package amazon-dax-client, which is not installed",
            hint='install it with: pip install "holdall[dax]"',
        )


class DaxBackend(AwsBackend):
    """Eventually consistent reads from a DAX cluster, for one database; created by `dax`."""

    def __init__(self, connect: Callable[[], Any], *, ours: bool) -> None:
        super().__init__(self._refuse_or_answer, "database")
        self._courier = _DaxCourier(connect, ours=ours)
        self._flow: _DaxFlow | None = None

    @internal
    def beside(self, main: Backend) -> None:
        """Let this backend describe the tables."""
        if self._flow is not None:
            raise ConfigurationError(
                "the same dax() backend was passed to two databases", hint="create one for each database"
            )
        self._flow = _DaxFlow(self._courier, main)

    async def _refuse_or_answer(self, pace: Pace, request: Request[Any]) -> Any:
        if self._flow is None or not request.may_be_old:
            raise InvalidRequestError(
                f"a DAX backend cannot answer {type(request).__name__}",
                hint='pass it to a database for its reads: Database("dynamodb://TABLE", reads=dax(...))',
            )
        return await self._flow.answer(pace, request)

    def close(self) -> None:
        """Refuse further requests, and close the client if it was created here."""
        super().close()
        self._courier.close()


class _DaxFlow(DynamoFlow):
    """Answers as DynamoDB does, but another backend describes the tables."""

    def __init__(self, courier: _DaxCourier, main: Backend) -> None:
        super().__init__(courier)
        self._main = main

    async def _describe(self, pace: Pace, table: str) -> TableDescription:
        return await pace.choose(self._main.send_blocking, self._main.send_awaiting, DescribeTable(table))


class _DaxCourier:
    """Calls the client's methods. The client repeats requests by itself, which does not harm a read."""

    def __init__(self, connect: Callable[[], Any], *, ours: bool) -> None:
        self._connect = connect
        self._ours = ours
        self._memo = Memo()
        self._connecting = BlockingOnce(self._memo)
        self._process = os.getpid()

    async def deliver(self, pace: Pace, call: Call) -> Mapping[str, Any]:
        return await pace.call(self._call, call)

    async def write(self, pace: Pace, call: Call, manner: Manner, trace: object = None) -> Mapping[str, Any]:
        raise AssertionError("only reads come here")

    def _call(self, call: Call) -> Mapping[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            method = getattr(self._client(), name_method(call.operation))
            found = method(**convert(call.payload, AS_BYTES))
            return cast("Mapping[str, Any]", convert(found, _OURS))
        except ClientError as error:
            raise _translate_error(call, error) from error
        except BotoCoreError as error:
            raise explain_unanswered(call, error).error from error
        except InvalidValueError as error:
            raise MalformedReplyError(f"{call.operation}: {error.message}") from error
        except OSError as error:
            raise EndpointError(
                f"{call.operation}: the DAX cluster cannot be reached: {error}", hint=_HINT
            ) from error

    def _client(self) -> Any:
        """The client; concurrent callers get the same client, or the same error."""
        if self._ours and self._process != os.getpid():
            self._process = os.getpid()
            self._connecting.forget()

        async def connect() -> Any:
            return self._connect()

        return run(self._connecting.get(connect))

    def close(self) -> None:
        """Close the client that was connected in this process."""
        outcome = self._memo.outcome
        self._connecting.forget()
        if outcome is not None and self._ours and self._process == os.getpid():
            outcome.result().close()


_LOST = {"ConnectionException", "EndOfStreamException"}
_GARBLED = {"DecoderException", "MalformedResultException"}


def _translate_error(call: Call, error: Any) -> HoldallError:
    """The client's error as one of ours: an error of DynamoDB, passed on, or one in reaching the cluster."""
    facts = error.response.get("Error", {})
    code = getattr(error, "code", None) or facts.get("Code")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    about = f"{call.operation}: {facts.get('Message') or code or status}"
    if code == "NoRouteException":
        return EndpointError(f"{about} (no node of the DAX cluster can be reached)", hint=_HINT)
    if code in _LOST:
        return ServiceUnavailableError(f"{call.operation}: the reply was lost ({facts.get('Message')})")
    if code in _GARBLED:
        return MalformedReplyError(about)
    if code == "InternalServerErrorException" or (status is not None and status >= 500):
        return ServiceUnavailableError(about)
    if not isinstance(code, str):  # the client does not have a name for every code of the cluster
        return ServiceError(about)
    response = {**error.response, "Error": {**facts, "Code": code}}
    return explain_failure(rebuild_reply(response), call.operation, call.payload).error
