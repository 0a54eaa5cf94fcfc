"""Tables in use get the indexes and expiry that a new version of the models needs, on every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from tables_rig import STORES, open_databases

from holdall import Index, Key, Model, SortKey
from holdall.core import DescribeTable, DescribeTtl, IndexSchema, KeyAttribute, Query, SetTtl
from holdall.core.expressions import KeyCondition
from holdall.core.schema import NeedsTable
from holdall.errors import ConfigurationError


class OldOrder(Model, name="Order"):
    number: Key[int]
    product: str


class Order(Model, name="Order", indexes=[Index("by_product", key=["product"], sort_key=["number"])]):
    number: Key[int]
    product: str


class OldPayout(Model, table="Payouts"):
    player: Key[str]
    turn: SortKey[int]
    admin: str
    amount: int
    gone: int | None = None


class Payout(
    Model,
    table="Payouts",
    ttl="gone",
    indexes=[Index("byAdmin", ["admin"], ["amount"]), Index("byAmount", ["amount"], include=["admin"])],
):
    player: Key[str]
    turn: SortKey[int]
    admin: str
    amount: int
    gone: int | None = None


class Renamed(Model, table="Payouts", indexes=[Index("byAdmin", ["admin"], ["player"])]):
    player: Key[str]
    turn: SortKey[int]
    admin: str


@pytest.mark.parametrize("store", STORES)
def test_an_index_is_added_to_the_databases_table_that_has_items(store: str) -> None:
    with open_databases(store, 2) as (old, db):
        old.table.create(models=[OldOrder])
        with old.transaction() as tx:
            tx.create(OldOrder, number=1, product="tea")
        with db.transaction() as tx:
            tx.create(Order, number=2, product="tea")  # the new version writes before the table has the index
        plan = db.table.plan(models=[Order])
        assert [each.index.name for each in plan.tables[0].missing] == ["gsi1"]
        with pytest.raises(ConfigurationError, match="has no index gsi1"):
            db.query(Order, index="by_product", product="tea").all()
        db.table.create(models=[Order])
        assert db.table.plan(models=[Order]).ok
        with db.transaction() as tx:
            tx.create(Order, number=3, product="tea")
        found = [order.number for order in db.query(Order, index="by_product", product="tea")]
        assert found == [2, 3], "only items with the attributes are in the index"
        assert db.get_one(Order, 1).product == "tea", "an item without the attributes stays in the table"


@pytest.mark.parametrize("store", STORES)
def test_indexes_and_expiry_are_added_to_a_models_own_table_that_has_items(store: str) -> None:
    with open_databases(store) as (db,):
        db.table.create(models=[OldPayout])
        with db.transaction() as tx:
            for turn in (1, 2, 3):
                tx.create(OldPayout, player="ada", turn=turn, admin="bob", amount=10 - turn)
        (table,) = db.table.plan(models=[Payout]).tables
        assert (len(table.missing), table.lacks_ttl, table.faulty) == (2, True, False)
        db.table.create(models=[Payout])
        assert db.table.plan(models=[Payout]).ok
        found = db.query(Payout, index="byAdmin", admin="bob")
        assert [payout.turn for payout in found] == [3, 2, 1], "the index's attributes are the model's fields"
        assert db.send(DescribeTtl(table.name)).attribute == "gone"
        ask = Query(table.name, KeyCondition("amount", {"N": "9"}), index="byAmount")
        (row,) = db.send(ask).items
        assert row.keys() == {"_id", "_sk", "admin", "amount"}


@pytest.mark.parametrize("store", STORES)
def test_an_index_that_does_not_fit_is_refused_and_not_changed(store: str) -> None:
    with open_databases(store) as (db,):
        db.table.create(models=[Payout])
        before = [db.send(DescribeTable(each.name)).schema for each in db.table.plan(models=[Payout]).tables]
        with pytest.raises(ConfigurationError, match="does not fit Renamed: its keys are"):
            db.table.create(models=[Renamed, Order])
        after = [db.send(DescribeTable(schema.name)).schema for schema in before]
        assert after == before
        assert db.table.plan(models=[Order]).tables[0].missing, "create made nothing else either"


@pytest.mark.parametrize("store", STORES)
def test_an_expiry_by_another_attribute_is_refused_and_kept(store: str) -> None:
    with open_databases(store) as (db,):
        db.table.create(models=[OldPayout])
        (table,) = db.table.plan(models=[Payout]).tables
        db.send(SetTtl(table.name, "turn"))
        with pytest.raises(ConfigurationError, match="expires items by turn, but Payout needs gone"):
            db.table.create(models=[Payout])
        assert db.send(DescribeTtl(table.name)).attribute == "turn"


@pytest.mark.parametrize("store", STORES)
def test_many_concurrent_creators_all_get_the_tables_with_every_index(store: str) -> None:
    with open_databases(store, 4) as databases:
        databases[0].table.create(models=[OldOrder])
        start = Barrier(len(databases), timeout=60)

        def creator(number: int) -> bool:
            db = databases[number]
            models: list[NeedsTable] = [Order, Payout] if number % 2 else [Payout, Order]
            start.wait()
            db.table.create(models=models)
            return db.table.plan(models=models).ok

        with ThreadPoolExecutor(len(databases)) as pool:
            assert list(pool.map(creator, range(len(databases)))) == [True] * len(databases)
        assert databases[0].table.describe().schema.indexes == (
            IndexSchema("gsi1", KeyAttribute("gsi1_pk"), KeyAttribute("gsi1_sk")),
        )
