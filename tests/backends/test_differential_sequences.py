"""Random requests to random tables: the embedded engine and a server must agree on every answer and on what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from deviations import SERVERS, Server
from differential_outcome import Send, exactly
from differential_pair import acceptable, check_wire, examples, open_pair
from differential_strategies import TABLE, items, numbers, requests, tables
from hypothesis import given
from hypothesis import strategies as st
from rig.servers import NAMES

from holdall.core.requests import DescribeTable, PutItem, Request, TableDescription
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.core.settings import SingleWrites
from holdall.core.values import Attribute, Item


@dataclass(frozen=True)
class Way:
    """A server, how it deviates, and how its single writes are sent."""

    name: str
    single_writes: SingleWrites

    @property
    def server(self) -> Server:
        return SERVERS.get(self.name, Server())

    def __str__(self) -> str:
        return f"{self.name}, {self.single_writes}"


WAYS = [*(Way(name, "auto") for name in NAMES), Way("DynamoDB Local", "token")]


@pytest.fixture(params=WAYS, ids=str, scope="module")
def way(request: pytest.FixtureRequest) -> Way:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def wire(way: Way) -> Iterator[Send]:
    with check_wire(way.name, way.single_writes) as send:
        yield send


@dataclass(frozen=True)
class Scenario:
    """A table, what it holds at first, and what is asked of it."""

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
def test_the_embedded_engine_and_a_server_agree(way: Way, wire: Send, scenario: Scenario) -> None:
    schema, server = scenario.schema, way.server
    held = [server.adapt(schema, item) for item in scenario.items]
    with open_pair(schema, wire, server.look, held) as pair:
        for request in scenario.requests:
            if not acceptable(request, schema):
                continue  # refused on both sides by the same text of ours
            seen = pair.ask(server.adapt(schema, request))
            if seen is not None:
                assert server.excuse(seen) is not None, str(seen)
                return  # from here on the two tables may differ


@examples(20)
@given(st.lists(numbers, min_size=1, max_size=8))
def test_numbers_come_back_in_one_text(way: Way, wire: Send, sent: list[Attribute]) -> None:
    item = {"pk": {"S": "a"}, **{f"n{place}": number for place, number in enumerate(sent)}}
    with open_pair(TableSchema(TABLE, KeyAttribute("pk")), wire, exactly) as pair:
        seen = pair.ask(PutItem(TABLE, item))
        assert seen is None, str(seen)


@examples(10)
@given(tables())
def test_a_table_is_described_alike(way: Way, wire: Send, schema: TableSchema) -> None:
    with open_pair(schema, wire, exactly) as pair:
        ours, theirs = (
            describe(send(DescribeTable(pair.schema.name))) for send in (pair.embedded, pair.wire)
        )
    assert ours == theirs


def describe(table: TableDescription) -> object:
    """A description without the order of the indexes, which is not defined."""
    indexes = frozenset(table.schema.indexes)
    return (
        replace(table.schema, indexes=()),
        indexes,
        table.status,
        dict(table.index_status),
        table.item_count,
    )
