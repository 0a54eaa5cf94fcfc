"""Queries of a template's indexes that contain only parts of items: Holdall fetches the items by their keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import expect_contention

from holdall import Index, Key, Model, SortKey, Template, col, field
from holdall.core import (
    CreateTable,
    DeleteItem,
    IndexSchema,
    KeyAttribute,
    Projection,
    TableSchema,
    encode_item,
)
from holdall.errors import ConfigurationError

SECRET = "a-long-random-secret-for-the-tests"
LAYOUT = Template(pk="C#{customer}", sk="O#{number:04d}", gsi1=("S#{status}", "{number:04d}"), type="entity")


class Docket(Model, table="dockets", layout=LAYOUT, ttl="until"):
    customer: Key[str]
    number: SortKey[int]
    status: str = "open"
    weight: int = 0
    until: datetime | None = field(default=None, stored="epoch")


class Docketed(
    Model,
    table="dockets",
    layout="plain",
    indexes=[Index("gsi1", key=["gsi1pk"], sort_key=["gsi1sk"], include=["size"])],
):
    pk: Key[str]
    sk: SortKey[str]
    gsi1pk: str
    gsi1sk: str
    size: int = 0


class Weighed(
    Model,
    table="dockets",
    layout="plain",
    indexes=[Index("gsi1", key=["gsi1pk"], sort_key=["gsi1sk"], include=["weight"])],
):
    pk: Key[str]
    sk: SortKey[str]
    gsi1pk: str
    gsi1sk: str
    weight: int = 0


async def fill(db: Db, projection: Projection = Projection("KEYS_ONLY")) -> None:  # noqa: B008 - immutable
    index = IndexSchema("gsi1", KeyAttribute("gsi1pk"), KeyAttribute("gsi1sk"), projection)
    schema = TableSchema(db.table_of(Docket), KeyAttribute("pk"), KeyAttribute("sk"), (index,))
    await db.send(CreateTable(schema))
    async with db.transaction() as tx:
        for number in range(12):
            customer, status = ("ada", "bob")[number % 2], "open" if number < 10 else "done"
            tx.create(Docket, customer=customer, number=number, status=status, weight=number % 3)
    db.forget()


def list_numbers(items: Any) -> list[int]:
    return [item.number for item in items]


@everywhere
async def test_the_items_of_a_thin_index_are_fetched_filtered_counted_and_paged(db: Db) -> None:
    await fill(db)
    opened: dict[str, Any] = {"index": "gsi1", "status": "open"}
    assert list_numbers(await db.query(Docket, **opened).all()) == [*range(10)]
    heavy = db.query(Docket, **opened, where=col(Docket.weight) == 2, reverse=True)
    assert list_numbers(await heavy.all()) == [8, 5, 2]
    assert await db.query(Docket, **opened, where=col(Docket.weight) == 2).count() == 3
    assert await db.query(Docket, **opened).count() == 10
    found = await db.query(Docket, **opened, sort=Docket.number >= 7, only=["weight"]).all()
    assert [(item.customer, item.number, item.weight) for item in found] == [
        ("bob", 7, 1),
        ("ada", 8, 2),
        ("bob", 9, 0),
    ]
    pages, after = [], None
    while True:
        page = await db.query(Docket, **opened, limit=9).page(4, after=after, secret=SECRET)
        pages.append(list_numbers(page.items))
        after = page.next
        if after is None:
            break
    assert pages == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
    assert "BatchGet" in db.kinds()


@everywhere
async def test_rows_of_a_thin_index_can_be_locked_and_changed_also_in_bulk(db: Db) -> None:
    await fill(db, Projection("INCLUDE", ("customer",)))
    async with db.transaction() as tx:
        async for item in tx.query(Docket, index="gsi1", status="open", sort=Docket.number < 2):
            item.weight = 9
    with expect_contention():
        async with db.transaction() as tx:
            (first,) = await tx.query(Docket, index="gsi1", status="open", limit=1, lock="rows").all()
            await db.update(first.key, status="done")
            tx.create(Docket, customer="eve", number=77)
    report = await db.update_all(
        Docket, {"weight": 5}, index="gsi1", status="open", where=col(Docket.weight) == 9
    )
    assert (report.found, report.changed) == (1, 1)
    assert (await db.get_one(Docket, customer="bob", number=1)).weight == 5
    await db.delete_all(Docket, index="gsi1", status="open", where=col(Docket.weight) == 0)
    assert list_numbers(await db.query(Docket, index="gsi1", status="open").all()) == [1, 2, 4, 5, 7, 8]


@in_memory
async def test_expired_and_deleted_items_are_not_returned(db: Db) -> None:
    await fill(db)
    await db.update(Docket.key(customer="ada", number=0), until=db.clock.now() - timedelta(hours=1))
    await db.send(DeleteItem(db.table_of(Docket), encode_item({"pk": "C#bob", "sk": "O#0001"})))
    assert list_numbers(await db.query(Docket, index="gsi1", status="open", limit=2).all()) == [2, 3]


@in_memory
async def test_each_model_that_uses_an_index_is_checked(db: Db) -> None:
    await fill(db, Projection("INCLUDE", ("size",)))
    for _ in range(2):
        assert list_numbers(await db.query(Docket, index="gsi1", status="done").all()) == [10, 11]
        assert [item.size for item in await db.query(Docketed, index="gsi1", gsi1pk="S#done").all()] == [0, 0]
        with pytest.raises(ConfigurationError, match="it holds only size of each item, not"):
            await db.query(Weighed, index="gsi1", gsi1pk="S#done").all()


@in_memory
async def test_the_plan_of_the_tables_accepts_a_thin_index(db: Db) -> None:
    await fill(db)
    planned = next(
        each for each in (await db.table.plan(models=[Docket])).tables if each.name == db.table_of(Docket)
    )
    assert (planned.wrong, planned.missing) == ((), ())
