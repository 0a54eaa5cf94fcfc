"""Item collections: a query of a base model returns its derived models in order; a derived model finds only its own."""

from __future__ import annotations

from typing import Any

import pytest
from queries_rig import Db, arrange, everywhere, fresh, in_memory, raw_key, table_of, watch_of

from holdall import Index, Key, Model, SortKey, col, field
from holdall.core import PutItem
from holdall.errors import InvalidFieldError

# The parts of an order: a head, lines, and gifts. In a table of their own, only the sort key tells their models apart.


class Part(Model, indexes=[Index("by_day", ["day"], ["part"])]):
    order: Key[str]
    part: SortKey[str] = field(default="other")
    day: str = ""


class Head(Part):
    part = field(default="a head")
    customer: str = ""


class Line(Part):
    part = field(default="b line")
    product: str = ""
    quantity: int = 1


class Gift(Line):
    part = field(default="c gift")
    card: str | None = None


class OwnPart(Model, table="Part", indexes=[Index("by_day", ["day"], ["part"])]):
    order: Key[str]
    part: SortKey[str] = field(default="other")
    day: str = "-"


class OwnHead(OwnPart):
    part = field(default="a head")
    customer: str = ""


class OwnLine(OwnPart):
    part = field(default="b line")
    product: str = ""
    quantity: int = 1


class OwnGift(OwnLine):
    part = field(default="c gift")
    card: str | None = None


Family = tuple[type[Any], type[Any], type[Any], type[Any]]
both_layouts = pytest.mark.parametrize(
    "family",
    [(Part, Head, Line, Gift), (OwnPart, OwnHead, OwnLine, OwnGift)],
    ids=["one table", "own table"],
)


async def create_order(db: Db, family: Family) -> str:
    base, head, line, gift = family
    name = fresh("order")
    rows = [
        gift(order=name, card="!", day=name),
        base(order=name, day=name),
        head(order=name, customer="ada", day=name),
    ]
    await arrange(db, *rows, line(order=name, product="tea", quantity=3, day=name))
    return name


@everywhere
@both_layouts
async def test_a_query_of_the_base_returns_all_rows_in_order_as_their_own_models(
    db: Db, family: Family
) -> None:
    base, head, line, gift = family
    name = await create_order(db, family)
    rows = await db.query(base, order=name).all()
    assert [type(row) for row in rows] == [head, line, gift, base]
    assert (rows[0].customer, rows[1].product, rows[2].card) == ("ada", "tea", "!")
    back = await db.query(base, order=name, reverse=True).all()
    assert [type(row) for row in back] == [base, gift, line, head]
    assert await db.query(base, order=name).count() == 4


@everywhere
@both_layouts
async def test_a_derived_model_finds_its_own_rows_and_those_of_models_derived_from_it(
    db: Db, family: Family
) -> None:
    _, head, line, gift = family
    name = await create_order(db, family)
    for model, kinds in ((head, [head]), (line, [line, gift]), (gift, [gift])):
        query = db.query(model, order=name)
        assert [type(row) for row in await query.all()] == kinds
        assert [type(row) async for row in query] == kinds
        assert await query.count() == len(kinds)
        first = await query.first()
        assert type(first) is kinds[0]
        assert [type(row) for row in (await query.page(9)).items] == kinds
        assert await db.query(model, order=name, limit=1).count() == 1
    assert (await db.query(head, order=name).one()).customer == "ada"


@everywhere
@both_layouts
async def test_an_index_returns_all_models_too(db: Db, family: Family) -> None:
    base, head, line, gift = family
    name = await create_order(db, family)
    rows = await db.query(base, index="by_day", day=name).all()
    assert [type(row) for row in rows] == [head, line, gift, base]
    assert [type(row) for row in await db.query(line, index="by_day", day=name).all()] == [line, gift]
    assert await db.query(line, index="by_day", day=name).count() == 2


@everywhere
@both_layouts
async def test_a_query_of_the_base_can_use_fields_of_derived_models(db: Db, family: Family) -> None:
    base, head, line, gift = family
    name = await create_order(db, family)
    rows = await db.query(base, order=name, where=col(line.quantity) >= 1).all()
    assert [type(row) for row in rows] == [line, gift]
    parts = await db.query(base, order=name, only=[line.product, head.customer]).all()
    assert [row.to_dict() for row in parts[:2]] == [
        {"order": name, "part": "a head", "customer": "ada"},
        {"order": name, "part": "b line", "product": "tea"},
    ]
    assert type(parts[2]) is gift
    with pytest.raises(InvalidFieldError, match="not fetched"):
        parts[2].card  # noqa: B018


@everywhere
@both_layouts
async def test_a_transaction_over_a_collection_changes_each_by_its_own_model(db: Db, family: Family) -> None:
    base, head, line, gift = family
    name = await create_order(db, family)
    async with db.transaction() as tx:
        async for row in tx.query(base, order=name):
            if isinstance(row, line):
                row.quantity += 1
            if isinstance(row, head):
                row.customer = "bo"
    assert [row.quantity for row in await db.query(line, order=name).all()] == [4, 2]
    assert (await db.get_one(head, name)).customer == "bo"
    assert type(await db.get_one(gift, name)) is gift


@in_memory
async def test_a_condition_on_a_field_of_an_unrelated_model_is_refused(db: Db) -> None:
    with pytest.raises(InvalidFieldError, match="a field of another model"):
        db.query(Head, order="a", where=col(Line.quantity) > 1)
    with pytest.raises(InvalidFieldError, match="a field of another model"):
        db.query(Part, order="a", where=col(Stranger.colour) == "red")


class Stranger(Model):
    id: Key[str]
    colour: str = ""


@everywhere
async def test_rows_of_an_unknown_model_are_neither_returned_nor_counted(db: Db) -> None:
    name = await create_order(db, (Part, Head, Line, Gift))
    key = Part.key(order=name, part="z unknown")
    stranger = {**raw_key(key), "_type": {"S": "Voucher"}, "order": {"S": name}, "part": {"S": "z unknown"}}
    await db.send(PutItem(table_of(db, Part), stranger))
    query = db.query(Part, order=name)
    assert len(await query.all()) == 4
    assert await query.count() == 4
    assert await db.query(Part, order=name, where=col(Part.day) == name).count() == 4


@in_memory
@both_layouts
async def test_a_rare_model_is_found_without_a_request_for_each_row(db: Db, family: Family) -> None:
    base, head, _, _ = family
    name = fresh("order")
    await arrange(db, *(base(order=name, part=f"! {number:04}") for number in range(300)), head(order=name))
    query = db.query(head, order=name)
    assert await query.first() is not None
    assert len(watch_of(db).pages()) <= 10
    watch_of(db).forget()
    assert await query.exists()
    assert (await query.page(1)).items == [await query.one()]
    assert len(watch_of(db).pages()) <= 30
