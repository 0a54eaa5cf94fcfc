"""The shipped contract over DynamoDB's protocol: every server, our own transport and a botocore client's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
from contract_deviations import DEVIATIONS
from rig.colour import take_turns
from rig.servers import ENVIRONMENT, GIVEN, NAMES, start_server
from rig.torture import TORTURE

from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.backends.dynamodb.boto import BotoBackend
from holdall.core.port import Backend
from holdall.core.settings import SingleWrites
from holdall.errors import ConditionFailedError, InvalidExpressionError
from holdall.testing import Capability, Check, checks, run_check
from holdall.testing.table_contract import Calls

Opening = Callable[[str, Mapping[str, str]], Backend]


def over_the_wire(single_writes: SingleWrites) -> Opening:
    def open_at(url: str, environment: Mapping[str, str]) -> Backend:
        endpoint = resolve_endpoint("dynamodb", endpoint=url, environment=environment)
        return DynamoBackend(endpoint, find_credentials(environment=environment), single_writes=single_writes)

    return open_at


def through_a_client(url: str, environment: Mapping[str, str]) -> Backend:
    return BotoBackend(_client(url))


@cache
def _client(url: str) -> Any:
    """One for all checks: making one takes longer than most of them."""
    from botocore.session import Session

    return Session().create_client(
        "dynamodb",
        endpoint_url=url,
        region_name=ENVIRONMENT["AWS_REGION"],
        aws_access_key_id=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
    )


@dataclass(frozen=True)
class Way:
    """A server, and how to reach it."""

    server: str
    manner: str
    opening: Opening
    turn: int
    lacks: frozenset[Capability] = frozenset()
    alternates: bool = False
    """Whether it shares the sentences, by turns, with another way that alternates; under torture it takes all."""

    def __str__(self) -> str:
        return f"{self.server}, {self.manner}"

    def colours(self, check: Check) -> tuple[Calls, ...]:
        """Under torture both; every day one of them, for each sentence the other than on the next server."""
        if TORTURE:
            return BOTH
        if self.alternates and take_turns(str(check), "manner") != self.turn:
            return ()
        return (BOTH[(take_turns(str(check)) + self.turn) % 2],)


DOUBLED: frozenset[Capability] = frozenset({"capacity"})
"""A write sent as a transaction costs twice what the contract says of a plain one."""

BOTH: tuple[Calls, ...] = ("blocking", "awaiting")

WAYS = [Way(server, "plain", over_the_wire("auto"), turn) for turn, server in enumerate(NAMES)]
WAYS.append(
    Way("DynamoDB Local", "single writes by token", over_the_wire("token"), 0, DOUBLED, alternates=True)
)
if find_spec("botocore"):
    WAYS.append(Way("ministack", "through botocore", through_a_client, 1, DOUBLED, alternates=True))


@contextmanager
def open_backend(way: Way) -> Iterator[Backend]:
    environment = os.environ if way.server == GIVEN else ENVIRONMENT
    backend = way.opening(start_server(way.server), environment)
    try:
        yield backend
    finally:
        backend.close()


@pytest.mark.parametrize(
    ("way", "check", "colour"),
    [(way, check, colour) for way in WAYS for check in checks() for colour in way.colours(check)],
    ids=str,
)
def test_contract(way: Way, check: Check, colour: Calls) -> None:
    lacking = check.requires & way.lacks
    if lacking:
        pytest.skip(f"{way} lacks {', '.join(sorted(lacking))}")
    deviation = DEVIATIONS.get(way.server, {}).get(str(check))
    if deviation is not None:
        pytest.skip(f"{way.server} {deviation}")
    with open_backend(way) as backend:
        run_check(check, backend, colour)


@pytest.mark.parametrize(
    ("server", "sentence"), [(server, sentence) for server in DEVIATIONS for sentence in DEVIATIONS[server]]
)
def test_a_listed_deviation_names_a_check_and_still_deviates(server: str, sentence: str) -> None:
    (check,) = [check for check in checks() if str(check) == sentence]
    way = Way(server, "plain", over_the_wire("auto"), 0)
    with (
        open_backend(way) as backend,
        pytest.raises((AssertionError, ConditionFailedError, InvalidExpressionError)),
    ):
        run_check(check, backend, "blocking")
