"""The shipped contract over DynamoDB's protocol: on every server, with our own transport and with a botocore client."""

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


def make_wire_opening(single_writes: SingleWrites) -> Opening:
    def open_at(url: str, environment: Mapping[str, str]) -> Backend:
        endpoint = resolve_endpoint("dynamodb", endpoint=url, environment=environment)
        return DynamoBackend(endpoint, find_credentials(environment=environment), single_writes=single_writes)

    return open_at


def open_boto_backend(url: str, environment: Mapping[str, str]) -> Backend:
    return BotoBackend(_client(url))


@cache
def _client(url: str) -> Any:
    """One client for all checks: creating one takes longer than most checks."""
    from botocore.session import Session

    return Session().create_client(
        "dynamodb",
        endpoint_url=url,
        region_name=ENVIRONMENT["AWS_REGION"],
        aws_access_key_id=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
    )


@dataclass(frozen=True)
class Target:
    """A server, and how to reach it."""

    server: str
    manner: str
    opening: Opening
    turn: int
    lacks: frozenset[Capability] = frozenset()
    alternates: bool = False
    """Whether it shares the checks with another target that alternates; under torture each runs all of them."""

    def __str__(self) -> str:
        return f"{self.server}, {self.manner}"

    def colours(self, check: Check) -> tuple[Calls, ...]:
        """Return both under torture, and otherwise one, which differs between two servers and between two checks."""
        if TORTURE:
            return BOTH
        if self.alternates and take_turns(str(check), "manner") != self.turn:
            return ()
        return (BOTH[(take_turns(str(check)) + self.turn) % 2],)


DOUBLED: frozenset[Capability] = frozenset({"capacity"})
"""A write sent as a transaction costs twice as much as the plain write that the contract expects."""

BOTH: tuple[Calls, ...] = ("blocking", "awaiting")

TARGETS = [Target(server, "plain", make_wire_opening("auto"), turn) for turn, server in enumerate(NAMES)]
TARGETS.append(
    Target(
        "DynamoDB Local", "single writes by token", make_wire_opening("token"), 0, DOUBLED, alternates=True
    )
)
if find_spec("botocore"):
    TARGETS.append(Target("ministack", "through botocore", open_boto_backend, 1, DOUBLED, alternates=True))


@contextmanager
def open_backend(target: Target) -> Iterator[Backend]:
    environment = os.environ if target.server == GIVEN else ENVIRONMENT
    backend = target.opening(start_server(target.server), environment)
    try:
        yield backend
    finally:
        backend.close()


@pytest.mark.parametrize(
    ("target", "check", "colour"),
    [(target, check, colour) for target in TARGETS for check in checks() for colour in target.colours(check)],
    ids=str,
)
def test_contract(target: Target, check: Check, colour: Calls) -> None:
    lacking = check.requires & target.lacks
    if lacking:
        pytest.skip(f"{target} does not support {', '.join(sorted(lacking))}")
    deviation = DEVIATIONS.get(target.server, {}).get(str(check))
    if deviation is not None:
        pytest.skip(f"{target.server} {deviation}")
    with open_backend(target) as backend:
        run_check(check, backend, colour)


@pytest.mark.parametrize(
    ("server", "sentence"), [(server, sentence) for server in DEVIATIONS for sentence in DEVIATIONS[server]]
)
def test_a_listed_deviation_names_a_check_and_still_deviates(server: str, sentence: str) -> None:
    (check,) = [check for check in checks() if str(check) == sentence]
    target = Target(server, "plain", make_wire_opening("auto"), 0)
    with (
        open_backend(target) as backend,
        pytest.raises((AssertionError, ConditionFailedError, InvalidExpressionError)),
    ):
        run_check(check, backend, "blocking")
