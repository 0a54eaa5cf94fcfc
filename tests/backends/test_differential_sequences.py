"""Random requests to random tables: the embedded engine and a server agree on every outcome and on the final items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from deviations import SERVERS, Server
from differential_outcome import Send, sort_sets
from differential_pair import examples, is_acceptable, open_checked_wire, open_pair
from differential_strategies import TABLE, items, numbers, requests, tables
from hypothesis import given
from hypothesis import strategies as st
from rig.servers import NAMES

from holdall.core.requests import DescribeTable, PutItem, Request, TableDescription
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.core.settings import SingleWrites
from holdall.core.values import Attribute, Item


@dataclass(frozen=True)
class Target:
    """A server, its deviations, and how single writes are sent to it."""

    name: str
    single_writes: SingleWrites

    @property
    def server(self) -> Server:
        return SERVERS.get(self.name, Server())

    def __str__(self) -> str:
        return f"{self.name}, {self.single_writes}"


TARGETS = [*(Target(name, "auto") for name in NAMES), Target("DynamoDB Local", "token")]


@pytest.fixture(params=TARGETS, ids=str, scope="module")
def target(request: pytest.FixtureRequest) -> Target:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def wire(target: Target) -> Iterator[Send]:
    with open_checked_wire(target.name, target.single_writes) as send:
        yield send


@dataclass(frozen=True)
class Scenario:
    """A table, its initial items, and the requests."""

    schema: TableSchema
    items: Sequence[Item]
    requests: list[Request[Any]]


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    schema = draw(tables())
    held = draw(st.lists(items(schema), max_size=6))
    return Scenario(schema, held, draw(st.lists(requests(schema), min_size=1, max_size=6)))


@examples(25)
@given(scenarios())
def test_the_embedded_engine_and_a_server_agree(target: Target, wire: Send, scenario: Scenario) -> None:
    schema, server = scenario.schema, target.server
    held = [server.adapt(schema, item) for item in scenario.items]
    with open_pair(schema, wire, server.normalize, held) as pair:
        for request in scenario.requests:
            if not is_acceptable(request, schema):
                continue  # our own checks refuse it on both sides
            seen = pair.compare(server.adapt(schema, request))
            if seen is not None:
                assert server.excuse(seen) is not None, str(seen)
                return  # the two tables may differ now


@examples(20)
@given(st.lists(numbers, min_size=1, max_size=8))
def test_numbers_are_returned_with_the_same_text(target: Target, wire: Send, sent: list[Attribute]) -> None:
    item = {"pk": {"S": "a"}, **{f"n{place}": number for place, number in enumerate(sent)}}
    with open_pair(TableSchema(TABLE, KeyAttribute("pk")), wire, sort_sets) as pair:
        seen = pair.compare(PutItem(TABLE, item))
        assert seen is None, str(seen)


@examples(10)
@given(tables())
def test_both_describe_a_table_alike(target: Target, wire: Send, schema: TableSchema) -> None:
    with open_pair(schema, wire, sort_sets) as pair:
        ours, theirs = (
            describe(send(DescribeTable(pair.schema.name))) for send in (pair.embedded, pair.wire)
        )
    assert ours == theirs


def describe(table: TableDescription) -> object:
    """Ignore the order of the indexes, which is not defined."""
    indexes = frozenset(table.schema.indexes)
    return (
        replace(table.schema, indexes=()),
        indexes,
        table.status,
        dict(table.index_status),
        table.item_count,
    )
