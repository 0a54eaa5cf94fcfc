"""Indexes whose keys are several fields, each an attribute of its own: declared, queried in ranges, paged, locked.

DynamoDB Local does not know such indexes (see `contract_deviations`), so these tests run in memory, in a file and on
ministack.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as some
from rig.behaviour import Db, Way, in_memory, open_database
from rig.behaviour_models import arrange, expect_contention, meanwhile
from rig.colour import COLOURS, elsewhere, finish, run_in

from holdall import Database, Index, Key, Model, SortKey, Template, col, field
from holdall.core import Query, encode_item
from holdall.errors import (
    ConfigurationError,
    InvalidFieldError,
    InvalidTokenError,
    ModelDefinitionError,
    QueryNotSupported,
)


def ways(name: str) -> list[Way]:
    return [
        *(Way("memory", colour) for colour in COLOURS),
        *(Way(*way) for way in elsewhere(["file", "ministack"], name)),
    ]


where_it_can_run = run_in(ways, open_database)


class Match(
    Model,
    table="matches",
    layout="plain",
    indexes=[
        Index("by_round", key=["cup", "region"], sort_key=["round", "bracket", "at"]),
        Index("by_player", key=["player"], sort_key=["round", "at"], include=["cup"]),
    ],
):
    id: Key[str]
    cup: str = field(name="tournamentId")
    region: int = 1
    round: int | None = None
    bracket: str = "upper"
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    player: str | None = None


class Event(
    Model,
    table="events",
    layout=Template(pk="E#{id}", sk="E", type="entity"),
    indexes=[Index("by_place", key=["city", "street"], sort_key=["size", "name"])],
):
    id: Key[str]
    city: str
    street: str
    size: int
    name: str = "x"


ROWS = [(number, bracket) for number in (1, 2, 10) for bracket in ("lower", "upper")]


async def create_matches(db: Db, *more: Match) -> None:
    matches = [Match(id=f"{n}{bracket}", cup="w", round=n, bracket=bracket) for n, bracket in reversed(ROWS)]
    others = [
        Match(id="region", cup="w", region=2, round=1),
        Match(id="cup", cup="w2", round=1),
        Match(id="none", cup="w"),
    ]
    await arrange(db, *matches, *others, *more)


async def rows(db: Any, **options: Any) -> list[tuple[int, str]]:
    query = db.query(Match, index="by_round", cup="w", region=1, **options)
    return [(match.round, match.bracket) async for match in query]


@where_it_can_run
async def test_items_are_found_by_all_fields_of_the_key_in_the_order_of_the_sort_key(db: Db) -> None:
    await create_matches(db)
    assert await rows(db) == ROWS
    assert await rows(db, reverse=True, limit=2) == [(10, "upper"), (10, "lower")]
    number, bracket = col(Match.round), col(Match.bracket)
    assert await rows(db, sort=number == 2) == [(2, "lower"), (2, "upper")]
    assert await rows(db, sort=number > 1) == ROWS[2:]
    assert await rows(db, sort=(number > 1) & (number < 10)) == [(2, "lower"), (2, "upper")]
    assert await rows(db, sort=(number == 2) & (bracket >= "m")) == [(2, "upper")]
    assert await rows(db, sort=(number == 2) & bracket.begins_with("lo")) == [(2, "lower")]
    assert await rows(db, sort=(number == 2) & (bracket > "lower") & (bracket < "upper")) == []
    exactly = (number == 2) & (bracket == "upper") & (col(Match.at) == datetime(2026, 1, 1, tzinfo=UTC))
    assert await rows(db, sort=exactly) == [(2, "upper")]
    assert await db.query(Match, index="by_round", cup="w", region=1, sort=number == 1).count() == 2


@where_it_can_run
async def test_only_fields_are_stored_and_changing_one_moves_the_item_in_the_index(db: Db) -> None:
    await create_matches(db)
    stored = await db.raw(Match.key("2upper")) or {}
    assert stored.keys() == {"id", "tournamentId", "region", "round", "bracket", "at"}
    async with db.transaction() as tx:
        tx.update(Match.key("2upper"), col(Match.round).increment_by(5))
        (await tx.get_one(Match, "1lower")).region = 2
    assert await rows(db) == [(1, "upper"), (2, "lower"), (7, "upper"), (10, "lower"), (10, "upper")]


def test_pages_continue_and_their_tokens_belong_to_one_query() -> None:
    with Database("memory:", secret="a-long-random-text-for-tests") as db:
        with db.transaction() as tx:
            for number, bracket in ROWS:
                tx.create(Match, id=f"{number}{bracket}", cup="w", round=number, bracket=bracket)
        query = db.query(Match, index="by_round", cup="w", region=1)
        first = query.page(4)
        rest = query.page(4, after=first.next)
        assert [(match.round, match.bracket) for match in (*first.items, *rest.items)] == ROWS
        for other in (
            db.query(Match, index="by_round", cup="w", region=2),
            db.query(Match, index="by_round", cup="w", region=1, sort=col(Match.round) == 2),
        ):
            with pytest.raises(InvalidTokenError):
                other.page(4, after=first.next)
        with_two = db.query(
            Match,
            index="by_round",
            cup="w",
            region=1,
            sort=(col(Match.round) == 2) & (col(Match.bracket) > "a"),
        )
        with_ten = db.query(
            Match,
            index="by_round",
            cup="w",
            region=1,
            sort=(col(Match.round) == 10) & (col(Match.bracket) > "a"),
        )
        with pytest.raises(InvalidTokenError):
            with_ten.page(1, after=with_two.page(1).next)


@where_it_can_run
async def test_rows_are_locked_and_read_from_the_table_when_the_transaction_runs_again(db: Db) -> None:
    await create_matches(db)
    with expect_contention():
        async with db.transaction() as tx:
            for match in [m async for m in tx.query(Match, index="by_round", cup="w", region=1)]:
                match.bracket += "!"
            await meanwhile(db, Match.key("2upper"), bracket="final")
    assert (2, "final") in await rows(db)


@where_it_can_run
async def test_an_index_holds_the_included_fields_and_those_of_the_keys(db: Db) -> None:
    await arrange(db, Match(id="a", cup="w", round=3, player="ada"), Match(id="b", cup="w", player="ada"))
    match = await db.query(Match, index="by_player", player="ada").one()
    assert (match.id, match.cup, match.round) == ("a", "w", 3)
    with pytest.raises(InvalidFieldError, match="it was not fetched"):
        assert match.bracket


@where_it_can_run
async def test_a_table_with_a_template_has_such_indexes_too(db: Db) -> None:
    await arrange(
        db,
        *(Event(id=f"{size}", city="a#b", street="c", size=size) for size in (10, 9)),
        Event(id="other", city="a", street="b#c", size=1),
    )
    found = db.query(Event, index="by_place", city="a#b", street="c")
    assert [event.size async for event in found] == [9, 10]


@where_it_can_run
async def test_the_index_is_created_with_the_table_or_added_to_it_and_verified(db: Db) -> None:
    class Slim(Model, table="matches", layout="plain"):
        id: Key[str]

    class Wrong(
        Model, table="matches", layout="plain", indexes=[Index("by_round", ["cup"], ["region", "round"])]
    ):
        id: Key[str]
        cup: str = field(name="tournamentId")
        region: int
        round: int

    await db.table.create(models=[Slim])
    await arrange(db, Slim(id="old"))
    await db.table.create(models=[Match])
    assert (await db.table.plan(models=[Match])).ok
    (planned,) = (await db.table.plan(models=[Wrong])).tables
    assert [each.problem for each in planned.wrong] == [
        "its keys are tournamentId (S) + region (N) and round (N) + bracket (S) + at (S), "
        "not tournamentId (S) and region (N) + round (N)"
    ]
    with pytest.raises(ConfigurationError, match="its keys are"):
        await db.query(Wrong, index="by_round", cup="w").all()


@in_memory
async def test_a_request_has_every_fixed_attribute(db: Db) -> None:
    await rows(db, sort=(col(Match.round) == 2) & (col(Match.bracket) > "a"))
    (sent,) = (request for request in db.list_sent() if isinstance(request, Query))
    assert [name for name, _ in sent.key.equalities] == ["tournamentId", "region", "round"]
    assert dict(sent.key.equalities) == encode_item({"tournamentId": "w", "region": 1, "round": 2})


@in_memory
async def test_a_query_that_skips_a_field_is_refused(db: Db) -> None:
    with pytest.raises(
        QueryNotSupported, match=r"bracket can be compared only if Match.round, which precedes it"
    ):
        db.query(Match, index="by_round", cup="w", region=1, sort=col(Match.bracket) == "upper")
    sort = (col(Match.round) > 1) & (col(Match.bracket) == "upper")
    with pytest.raises(QueryNotSupported, match=r"bracket can be compared only if"):
        db.query(Match, index="by_round", cup="w", region=1, sort=sort)
    with pytest.raises(InvalidFieldError, match="region: a query needs every field of the partition key"):
        db.query(Match, index="by_round", cup="w")
    with pytest.raises(InvalidFieldError, match="it is part of the key of the index"):
        db.query(
            Match,
            index="by_round",
            cup="w",
            region=1,
            where=col(Match.at) != datetime(2026, 1, 1, tzinfo=UTC),
        )


def test_more_than_four_fields_are_refused() -> None:
    with pytest.raises(
        ModelDefinitionError, match="the sort key of a global index can have 4 attributes, not 5"
    ):

        class Wrong(
            Model, table="wrong", layout="plain", indexes=[Index("by_all", ["a"], ["b", "c", "d", "e", "f"])]
        ):
            id: Key[str]
            a: int
            b: int
            c: int
            d: int
            e: int
            f: int

    with pytest.raises(
        ModelDefinitionError, match="the sort key of a local index can have 1 attribute, not 2"
    ):

        class Local(
            Model, table="wrong", layout="plain", indexes=[Index("by_all", sort_key=["a", "b"], local=True)]
        ):
            id: Key[str]
            at: SortKey[int]
            a: int
            b: int


class Cell(Model, table="cells", layout="plain", indexes=[Index("by_all", ["p", "q"], ["x", "y", "z"])]):
    id: Key[int]
    p: str
    q: bytes
    x: bytes
    y: int
    z: str


SOME = [b"\0", b"\0\0", b"\0\xff", b"\x01", b"\xff", b"\xff\0"]
CELLS = [
    Cell(id=n, p="p", q=b"q", x=x, y=y, z=z)
    for n, (x, y, z) in enumerate(product(SOME, (-2, 1, 10), ("a", "a\0")))
]


@for_all(
    fixed=some.integers(0, 2),
    place=some.sampled_from(CELLS),
    operator=some.sampled_from(["==", "<", "<=", ">", ">=", "between", "begins"]),
    other=some.sampled_from(CELLS),
)
def test_a_range_finds_what_a_filter_in_python_finds(
    fixed: int, place: Any, operator: str, other: Any
) -> None:
    names = ["x", "y", "z"]
    name = names[fixed]
    low, high = getattr(place, name), getattr(other, name)
    tests = {
        "==": lambda value: value == low,
        "<": lambda value: value < low,
        "<=": lambda value: value <= low,
        ">": lambda value: value > low,
        ">=": lambda value: value >= low,
        "between": lambda value: low <= value <= high,
        "begins": lambda value: value.startswith(low),
    }
    if operator == "begins" and name == "y":
        return
    column: Any = col(getattr(Cell, name))
    clauses = {
        "==": column == low,
        "<": column < low,
        "<=": column <= low,
        ">": column > low,
        ">=": column >= low,
        "between": column.between(low, high),
        "begins": column.begins_with(low) if name != "y" else None,
    }
    clause: Any = clauses[operator]
    for before in names[:fixed]:
        clause = (col(getattr(Cell, before)) == getattr(place, before)) & clause
    alike = [cell for cell in CELLS if all(getattr(cell, n) == getattr(place, n) for n in names[:fixed])]
    wanted = sorted((c for c in alike if tests[operator](getattr(c, name))), key=lambda c: (c.x, c.y, c.z))

    async def ask(db: Db) -> None:
        async with db.bulk(Cell) as bulk:
            await bulk.put_all(CELLS)
        found = db.query(Cell, index="by_all", p="p", q=b"q", sort=clause)
        assert [cell.id async for cell in found] == [cell.id for cell in wanted]

    with open_database(Way("memory", "blocking")) as db:
        finish("blocking", ask(db))
