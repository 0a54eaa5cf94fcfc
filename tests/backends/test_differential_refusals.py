"""Our checks refuse the same requests as a strict server, which receives them unchecked.

The reasons are not compared: if there are several, which one is reported is not defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from deviations import SERVERS, Server
from differential_outcome import Send, get_outcome, sort_sets
from differential_pair import examples, open_checked_wire, open_pair, open_unchecked_wire
from differential_spoiling import odd_requests, odd_tables
from differential_strategies import TABLE, items, requests, tables
from hypothesis import given
from hypothesis import strategies as st
from rig.servers import NAMES

from holdall.core.expressions import (
    And,
    Compare,
    Condition,
    Exists,
    In,
    Not,
    Or,
    Remove,
    Set,
    Size,
    Update,
    UpdateAction,
    Value,
    path,
    value,
)
from holdall.core.measure import item_size
from holdall.core.requests import (
    BatchGet,
    BatchWrite,
    CreateTable,
    DeleteTable,
    GetItem,
    PutItem,
    Request,
    Scan,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.rules.schema import check_schema
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.core.values import Item

pytestmark = pytest.mark.torture  # slow, so it is among the first to run

STRICT = [name for name in NAMES if SERVERS.get(name, Server()).is_strict]


@pytest.fixture(params=STRICT, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def wire(name: str) -> Iterator[Send]:
    """Check requests that create or delete tables; send everything else unchecked."""
    with open_checked_wire(name) as checked, open_unchecked_wire(name) as raw:

        def send(request: Request[Any]) -> Any:
            return (checked if isinstance(request, CreateTable | DeleteTable) else raw)(request)

        yield send


Case = tuple[TableSchema, list[Item], Request[Any]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    schema = draw(tables())
    return schema, draw(st.lists(items(schema), max_size=4)), draw(requests(schema))


@st.composite
def odd_cases(draw: st.DrawFn) -> Case:
    schema = draw(tables())
    return schema, draw(st.lists(items(schema), max_size=2)), draw(odd_requests(schema))


def agree(name: str, wire: Send, case: Case) -> None:
    schema, held, request = case
    server = SERVERS.get(name, Server())
    with open_pair(schema, wire, server.normalize, held) as pair:
        seen = pair.compare(request)
    assert seen is None or server.excuse(seen) is not None, str(seen)


@examples(45)
@given(cases())
def test_our_checks_accept_exactly_what_a_server_accepts(name: str, wire: Send, case: Case) -> None:
    agree(name, wire, case)


@examples(45)
@given(odd_cases())
def test_our_checks_refuse_odd_keys_values_and_starts_as_a_server_does(
    name: str, wire: Send, case: Case
) -> None:
    agree(name, wire, case)


@examples(25)
@given(odd_tables())
def test_our_checks_refuse_tables_as_a_server_does(name: str, wire: Send, schema: TableSchema) -> None:
    if schema.name == TABLE:
        schema = replace(schema, name=f"{uuid4().hex[:24]}-holdall-differential")
    with open_unchecked_wire(name) as raw:
        theirs = get_outcome(raw, CreateTable(schema), sort_sets)
        if theirs.ok:
            raw(DeleteTable(schema.name))
    ours = get_outcome(lambda request: check_schema(schema), CreateTable(schema), sort_sets)
    assert ours.ok == theirs.ok, f"{schema}\n  we: {ours.message or 'ok'}\n  server: {theirs.message or 'ok'}"


# --- the limits -------------------------------------------------------------------------------------------

SORTED = TableSchema(TABLE, KeyAttribute("pk"), KeyAttribute("sk", "N"))


def key(number: int) -> Item:
    return {"pk": {"S": "a"}, "sk": {"N": str(number)}}


def fill_up(size: int, item: Item) -> Item:
    """Add an attribute so that the item has this size."""
    return {**item, "p": {"S": "x" * (size - item_size({**item, "p": {"S": ""}}))}}


MIXED: Item = {
    **key(0),
    "numbers": {"NS": ["-3.5", "1", "22"]},
    "large": {"N": "-12345678901234567890.5"},
    "small": {"N": "0.00012"},
    "power": {"N": "1e100"},
    "list": {"L": [{"N": "1"}, {"M": {"é": {"NULL": True}}}, {"L": []}]},
    "strings": {"SS": ["a", "é"]},
    "binaries": {"BS": ["YQ=="]},
    "flag": {"BOOL": True},
    "map": {"M": {}},
}


def make_scan(filter: Condition) -> Scan:
    return Scan(TABLE, filter=filter)


def make_update(*actions: UpdateAction) -> UpdateItem:
    return UpdateItem(TABLE, key(0), Update(actions))


def literals(count: int) -> tuple[Value, ...]:
    return tuple(value(number) for number in range(count))


A = path("a")
NAMED = [f"a{number}" for number in range(1000)]
LIMITS: dict[str, tuple[int, int, Callable[[int], Request[Any]]]] = {
    "actions of a transaction": (
        100,
        101,
        lambda n: TransactWrite(tuple(PutItem(TABLE, key(number)) for number in range(n)), "t"),
    ),
    "reads of a transaction": (
        100,
        101,
        lambda n: TransactGet(tuple(GetItem(TABLE, key(number)) for number in range(n))),
    ),
    "reads of a batch": (
        100,
        101,
        lambda n: BatchGet(tuple(GetItem(TABLE, key(number), True) for number in range(n))),
    ),
    "writes of a batch": (
        25,
        26,
        lambda n: BatchWrite(tuple(PutItem(TABLE, key(number)) for number in range(n))),
    ),
    "bytes of a transaction": (
        10,
        11,
        lambda n: TransactWrite(
            tuple(PutItem(TABLE, fill_up(400_000, key(number))) for number in range(n)), "t"
        ),
    ),
    "bytes of an item": (409_600, 409_601, lambda n: PutItem(TABLE, fill_up(n, MIXED))),
    "bytes of an updated item": (
        409_600,
        409_601,
        lambda n: make_update(Set(path("p"), Value(fill_up(n, key(0))["p"]))),
    ),
    "bytes of a name": (65_535, 65_536, lambda n: PutItem(TABLE, {**key(0), "n" * n: {"N": "1"}})),
    "bytes of a name in a condition": (65_535, 65_536, lambda n: make_scan(Exists(path("n" * n)))),
    "options of IN": (100, 101, lambda n: make_scan(In(A, literals(n)))),
    "operators: OR": (150, 151, lambda n: make_scan(Or(tuple(Exists(A) for _ in range(n))))),
    "operators: NOT": (100, 101, lambda n: make_scan(And(tuple(Not(Exists(A)) for _ in range(n))))),
    "operators: size": (
        100,
        101,
        lambda n: make_scan(And(tuple(Compare("=", Size(A), literal) for literal in literals(n)))),
    ),
    "parts of a path": (32, 33, lambda n: make_scan(Exists(path("a", *[0] * (n - 1))))),
    "bytes of a projection": (
        701,
        702,
        lambda n: GetItem(TABLE, key(0), projection=tuple(map(path, NAMED[:n]))),
    ),
    "bytes of an update": (700, 701, lambda n: make_update(*(Remove(path(name)) for name in NAMED[:n]))),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_our_limits_equal_a_servers(name: str, wire: Send, limit: str) -> None:
    most, over, request = LIMITS[limit]
    with open_pair(SORTED, wire, SERVERS.get(name, Server()).normalize) as pair:
        for sent, fits in ((request(most), True), (request(over), False)):
            ours, theirs = pair.send_to_both(sent)
            assert (ours.ok, theirs.ok) == (fits, fits), f"embedded: {ours.message}\nserver: {theirs.message}"
