"""What programs with an older version of a model do to items of a newer one, as the guide describes it."""

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
async def test_an_old_program_reads_removed_attributes_as_missing_and_the_others_as_before(db: Db) -> None:
    await arrange(db, Order(id="a", cents=150, quantity=3, note="x"))
    old = await db.get_one(OLD_KEY)
    assert (old.qty, old.note) == (1, "x")
    with pytest.raises(InvalidFieldError, match=r"Order\.euros: it has no value"):
        old.euros  # noqa: B018


@everywhere
async def test_an_old_program_can_change_fields_that_both_versions_know(db: Db) -> None:
    await arrange(db, Order(id="a", cents=150, quantity=3))
    before = await fetch_item(db, KEY)
    await meanwhile(db, OLD_KEY, note="x")
    assert await fetch_item(db, KEY) == {**before, "note": {"S": "x"}}
    order = await db.get_one(KEY)
    assert (order.cents, order.quantity, order.note) == (150, 3, "x")


@in_memory
async def test_values_that_an_old_program_writes_under_old_names_are_ignored_and_removed_by_the_next_write(
    db: Db,
) -> None:
    await arrange(db, Order(id="a", cents=150, quantity=3))
    await meanwhile(db, OLD_KEY, qty=9, euros=9.0)
    order = await db.get_one(KEY)
    assert (order.cents, order.quantity) == (150, 3)
    await meanwhile(db, KEY, note="x")
    found = await fetch_item(db, KEY)
    assert "qty" not in found
    assert (found["quantity"], found["cents"]) == ({"N": "3"}, {"N": "150"})


@everywhere
async def test_an_item_that_an_old_program_replaces_is_migrated_again(db: Db) -> None:
    await arrange(db, Order(id="a", cents=150, quantity=3))
    async with db.transaction() as tx:
        tx.create_or_put(OldOrder, {}, {"id": "a", "euros": 2.5, "qty": 4})
    assert "_v" not in await fetch_item(db, KEY)
    order = await db.get_one(KEY)
    assert (order.cents, order.quantity) == (250, 4)
    assert (await db.migrate(Order)).changed == 1


# --- renaming in two deployments --------------------------------------------------------------------------


@version
class EarlierVisit(Model, name="Visit"):
    page: Key[str]
    count: int = field(default=0, aliases=["views"])


@version
class Visit(Model, name="Visit"):
    page: Key[str]
    views: int = field(default=0, aliases=["count"])


@everywhere
async def test_two_versions_that_know_both_names_can_share_an_item(db: Db) -> None:
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


def test_two_versions_that_know_both_names_can_write_concurrently(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path}/store.db?durability=normal"
    rounds = 25

    def visit_repeatedly(model: Any, name: str, assigned: bool) -> None:
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
    names: list[tuple[Any, str]] = [(EarlierVisit, "count"), (Visit, "views")]
    with ThreadPoolExecutor(4) as pool:
        done = [
            pool.submit(visit_repeatedly, *each, assigned) for each in names for assigned in (True, False)
        ]
        for visitor in done:
            visitor.result()
    with Database(url) as db:
        assert db.get_one(Visit, "home").views == 4 * rounds
