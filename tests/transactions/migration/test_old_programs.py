"""What programs with an older version of a model do to items of a newer one, as the guide says it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from migration_rig import Db, arrange, everywhere, fetch_item, in_memory, meanwhile, version

from holdall import Database, Key, Model, field
from holdall.errors import InvalidFieldError

Values = dict[str, Any]


def to_cents(item: Values) -> Values:
    item["cents"] = round(item.pop("euros") * 100)
    return item


@version
class OldOrder(Model, name="Order"):
    id: Key[str]
    euros: float
    qty: int = 1
    note: str | None = None


@version
class Order(Model, name="Order", migrations=[to_cents]):
    id: Key[str]
    cents: int
    quantity: int = field(default=1, aliases=["qty"])
    note: str | None = None


KEY, OLD_KEY = Order.key("a"), OldOrder.key("a")


@everywhere
async def test_it_reads_what_is_not_there_any_more_as_missing_and_the_rest_as_ever(db: Db) -> None:
    await arrange(db, Order(id="a", cents=150, quantity=3, note="x"))
    old = await db.get_one(OLD_KEY)
    assert (old.qty, old.note) == (1, "x")
    with pytest.raises(InvalidFieldError, match=r"Order\.euros: it has no value"):
        old.euros  # noqa: B018


@everywhere
async def test_it_may_change_what_both_know(db: Db) -> None:
    await arrange(db, Order(id="a", cents=150, quantity=3))
    before = await fetch_item(db, KEY)
    await meanwhile(db, OLD_KEY, note="x")
    assert await fetch_item(db, KEY) == {**before, "note": {"S": "x"}}
    order = await db.get_one(KEY)
    assert (order.cents, order.quantity, order.note) == (150, 3, "x")


@in_memory
async def test_what_it_writes_under_an_old_name_is_not_seen_and_gone_with_the_next_write(db: Db) -> None:
    await arrange(db, Order(id="a", cents=150, quantity=3))
    await meanwhile(db, OLD_KEY, qty=9, euros=9.0)
    order = await db.get_one(KEY)
    assert (order.cents, order.quantity) == (150, 3)
    await meanwhile(db, KEY, note="x")
    found = await fetch_item(db, KEY)
    assert "qty" not in found
    assert (found["quantity"], found["cents"]) == ({"N": "3"}, {"N": "150"})


@everywhere
async def test_what_it_replaces_as_a_whole_is_an_old_item_again(db: Db) -> None:
    await arrange(db, Order(id="a", cents=150, quantity=3))
    async with db.transaction() as tx:
        tx.create_or_put(OldOrder, {}, {"id": "a", "euros": 2.5, "qty": 4})
    assert "_v" not in await fetch_item(db, KEY)
    order = await db.get_one(KEY)
    assert (order.cents, order.quantity) == (250, 4)
    assert (await db.migrate(Order)).changed == 1


# --- renaming in two deployments ------------------------------------------------------------------------------


@version
class EarlierVisit(Model, name="Visit"):
    page: Key[str]
    count: int = field(default=0, aliases=["views"])


@version
class Visit(Model, name="Visit"):
    page: Key[str]
    views: int = field(default=0, aliases=["count"])


@everywhere
async def test_two_versions_that_know_both_names_can_work_on_one_item(db: Db) -> None:
    await arrange(db, EarlierVisit(page="home"))
    for _ in range(2):
        async with db.transaction() as tx:
            (await tx.get_one(Visit, "home")).field("views").increment_by(1)
        await meanwhile(
            db, EarlierVisit.key("home"), count=(await db.get_one(EarlierVisit, "home")).count + 1
        )
    assert (await db.get_one(Visit, "home")).views == 4
    assert (await db.get_one(EarlierVisit, "home")).count == 4
    found = await fetch_item(db, Visit.key("home"))
    assert ("views" in found) != ("count" in found)


def test_also_at_once(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path}/store.db?durability=normal"
    rounds = 25

    def make_visitor(model: Any, name: str, assigned: bool) -> None:
        def body(tx: Any) -> None:
            visit = tx.get(model, "home", create_if_missing=True)
            if assigned:
                setattr(visit, name, getattr(visit, name) + 1)
            else:
                visit.field(name).increment_by(1)

        with Database(url) as db:
            for _ in range(rounds):
                db.run(body, retries=1000, initial_backoff=0.001, max_backoff=0.02)

    with Database(url) as db:
        db.table.create()
    ways: list[tuple[Any, str]] = [(EarlierVisit, "count"), (Visit, "views")]
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(make_visitor, *way, assigned) for way in ways for assigned in (True, False)]
        for each in done:
            each.result()
    with Database(url) as db:
        assert db.get_one(Visit, "home").views == 4 * rounds
