"""Moves between tables: what is copied, what stays untouched, and what is reported, also while programs write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from move_models import Crate, Kind, OldCrate, OldOrder, OldProduct, Order, Parcel, PlainCrate, Product
from rig.behaviour import Db, Way, awaiting, blocking, everywhere, in_memory, open_database, raw_key
from rig.colour import finish

from holdall import Database, Key, Model, Transaction, col, field
from holdall.core import PutItem, Request, Scan, encode_item
from holdall.errors import ConfigurationError, InvalidOptionsError
from holdall.transactions import MoveReport

NEW_YEAR = datetime(2020, 1, 1, tzinfo=UTC)


async def create_products(db: Db, count: int, **values: Any) -> None:
    async with db.transaction() as tx:
        for number in range(count):
            defaults = {
                "kind": "tea",
                "mail": f"m{number}",
                "made_at": NEW_YEAR,
                "changed_at": NEW_YEAR,
                **values,
            }
            tx.create(OldProduct, sku=number, price=number, **defaults)
    db.forget()


async def list_stored(db: Db, table: str) -> list[Any]:
    """Return all stored items of a table, sorted."""
    items = (await db.send(Scan(table, consistent=True))).items
    return sorted(items, key=repr)


def get_counts(report: MoveReport) -> dict[str, int]:
    """Return the counts of the report that are not zero."""
    names = ("found", "copied", "updated", "same", "differing", "skipped", "failed")
    return {name: value for name, value in report._asdict().items() if name in names and value}


# --- copied items -----------------------------------------------------------------------------------------


@everywhere
async def test_copies_have_indexes_and_guards_like_new_items_but_keep_times_and_versions(db: Db) -> None:
    await create_products(db, 3)
    async with db.transaction() as tx:
        (await tx.get_one(OldProduct, 2)).price = 20  # this makes its version 2
    before = await list_stored(db, db.table_of(OldProduct))
    report = await db.move(OldProduct, Product)
    assert get_counts(report) == {"found": 3, "copied": 3}
    assert await list_stored(db, db.table_of(OldProduct)) == before
    item = await db.raw(Product.key(2))
    assert item is not None
    assert (len(item.pop("_moved")["S"]), "_w" in item) == (16, True)  # type: ignore[attr-defined]
    assert {**item, "_w": None} == {
        **raw_key(Product.key(2)),
        "_type": {"S": "Product"},
        "_w": None,
        **encode_item({"sku": 2, "kind": "tea", "price": 20, "mail": "m2", "version": 2}),
        "made_at": {"S": "2020-01-01T00:00:00.000000Z"},
        "changed_at": {"S": "2020-01-01T00:00:00.000000Z"},
        "gsi1_pk": {"S": "Product#by_kind#tea"},
        "gsi1_sk": item["gsi1_sk"],
    }
    found = await db.query(Product, index="by_kind", kind=Kind.TEA).all()
    assert [product.sku for product in found] == [0, 1, 2]
    owner = await db.get_by(Product, mail="m1")
    assert owner is not None
    assert owner.sku == 1
    async with db.transaction() as tx:
        (await tx.get_one(Product, 2)).price = 21
    assert (await db.get_one(Product, 2)).version == 3


@everywhere
async def test_copies_keep_their_expiry_and_expired_items_are_not_copied(db: Db) -> None:
    soon, gone = db.clock.now() + timedelta(hours=1), db.clock.now() - timedelta(hours=1)
    async with db.transaction() as tx:
        for number, until in enumerate([None, soon, gone]):
            tx.create(OldOrder, customer="ada", number=number, until=until, tags={"x"})
    report = await db.move(OldOrder, Order)
    assert get_counts(report) == {"found": 2, "copied": 2}
    item = await db.raw(Order.key(customer="ada", number=1))
    assert item is not None
    assert item["_ttl"] == {"N": str(int(soon.timestamp()))}
    assert (await db.get_one(Order, customer="ada", number=0)).id == "a default id"
    assert await db.query(Order, index="by_status", status="open").count() == 2
    assert (report.dropped, report.added) == ((), ("id",))


@everywhere
async def test_items_of_a_holdall_table_can_be_moved_to_any_layout(db: Db) -> None:
    async with db.transaction() as tx:
        for number in range(4):
            tx.create(OldCrate, id=number, side="abcd"[: number + 1], weight=number, secret=f"s{number}")
    assert get_counts(await db.move(OldCrate, Crate, segments=2)) == {"found": 4, "copied": 4}
    assert get_counts(await db.move(Crate, PlainCrate)) == {"found": 4, "copied": 4}
    for number in range(4):
        crate = await db.get_one(PlainCrate, id=number, side="abcd"[: number + 1])
        assert (crate.weight, crate.secret, crate.is_heavy) == (number, f"s{number}", number > 2)
    with pytest.raises(InvalidOptionsError, match="plain-crates shows whether a copy was changed"):
        await db.move(Crate, PlainCrate, update=True)


@in_memory
async def test_items_can_be_moved_into_a_collection(db: Db) -> None:
    async with db.transaction() as tx:
        tx.create(OldCrate, id=1, side="a", weight=5)
    assert get_counts(await db.move(OldCrate, Parcel)) == {"found": 1, "copied": 1}
    assert [parcel.weight for parcel in await db.query(Parcel, id=1).all()] == [5]
    assert get_counts(await db.move(OldCrate, Parcel)) == {"found": 1, "same": 1}


@in_memory
async def test_missing_values_get_defaults_and_the_time_of_the_move(db: Db) -> None:
    await create_products(db, 1, kind=None, mail=None, made_at=None, changed_at=None)
    now = db.clock.now()
    await db.move(OldProduct, Product)
    found = await db.get_one(Product, 0)
    assert (found.kind, found.mail, found.made_at, found.changed_at) == (Kind.TIN, None, now, now)
    db.clock.forward(60)
    assert get_counts(await db.move(OldProduct, Product)) == {"found": 1, "same": 1}


@in_memory
async def test_a_function_can_convert_the_values(db: Db) -> None:
    await create_products(db, 4)

    def convert(old: OldProduct) -> dict[str, Any] | None:
        if old.sku == 3:
            raise KeyError("three")
        return None if old.sku == 1 else {"id": old.sku, "side": "x", "weight": [5, 5, "five"][old.sku]}

    report = await db.move(OldProduct, Crate, convert)
    assert get_counts(report) == {"found": 4, "copied": 1, "skipped": 1, "failed": 2}
    first, second = sorted(report.problems)
    assert first.startswith("2: Crate.weight: ")
    assert second == "3: convert failed: KeyError: 'three'"
    assert (report.dropped, report.added) == ((), ())


@awaiting
async def test_the_function_can_be_async(db: Db) -> None:
    await create_products(db, 1)

    async def convert(old: OldProduct) -> dict[str, Any]:
        return {"id": old.sku, "side": "x"}

    assert get_counts(await db.move(OldProduct, Crate, convert)) == {"found": 1, "copied": 1}


@in_memory
async def test_where_selects_items_of_the_source(db: Db) -> None:
    await create_products(db, 5)
    report = await db.move(OldProduct, Product, where=col(OldProduct.price) >= 3)
    assert get_counts(report) == {"found": 2, "copied": 2}


# --- existing copies --------------------------------------------------------------------------------------


@everywhere
async def test_a_second_run_copies_missing_items_and_reports_different_ones(db: Db) -> None:
    await create_products(db, 3)
    await db.move(OldProduct, Product)
    async with db.transaction() as tx:
        (await tx.get_one(OldProduct, 1)).kind = None
        tx.create(OldProduct, sku=7)
    before = await db.raw(Product.key(1))
    report = await db.move(OldProduct, Product)
    assert get_counts(report) == {"found": 4, "copied": 1, "same": 2, "differing": 1}
    assert report.differences == ("Product(sku=1): kind, version",)
    assert await db.raw(Product.key(1)) == before


@everywhere
async def test_an_update_replaces_only_copies_that_no_program_has_changed(db: Db) -> None:
    await create_products(db, 4)
    await db.move(OldProduct, Product)
    async with db.transaction() as tx:
        for number in (1, 2):
            item = await tx.get_one(OldProduct, number)
            item.mail, item.price = f"new{number}", 50
        (await tx.get_one(Product, 2)).price = 60
        (await tx.get_one(Product, 3)).price = 60
    report = await db.move(OldProduct, Product, update=True)
    assert get_counts(report) == {"found": 4, "updated": 1, "same": 1, "differing": 2}
    assert sorted(report.differences) == [
        "Product(sku=2): changed_at, mail, price",
        "Product(sku=3): changed_at, price, version",
    ]
    moved = await db.get_one(Product, 1)
    assert (moved.price, moved.mail, moved.version, moved.changed_at) == (50, "new1", 2, NEW_YEAR)
    assert await db.get_by(Product, mail="m1") is None
    assert {p.sku for p in await db.query(Product, index="by_kind", kind=Kind.TEA).all()} == {0, 1, 2, 3}
    assert get_counts(await db.move(OldProduct, Product, update=True)) == {
        "found": 4,
        "same": 2,
        "differing": 2,
    }


@everywhere
async def test_a_unique_value_can_pass_from_one_item_to_another_in_the_same_run(db: Db) -> None:
    await create_products(db, 3)
    await db.move(OldProduct, Product)
    # in either order, one item has to wait for another
    for mails in (("new", "m0", "m1"), ("m0", "m1", "old")):
        for number, mail in enumerate(mails):
            await db.update(OldProduct.key(number), mail=mail)
        report = await db.move(OldProduct, Product, update=True)
        assert (get_counts(report), report.problems) == ({"found": 3, "updated": 3}, ())
        assert [(await db.get_one(Product, number)).mail for number in range(3)] == [*mails]
    for number, mail in enumerate(("m1", "m0", "old")):  # two items that wait for each other
        await db.update(OldProduct.key(number), mail=mail)
    report = await db.move(OldProduct, Product, update=True)
    assert (get_counts(report), len(report.problems)) == ({"found": 3, "same": 1, "failed": 2}, 2)


@in_memory
async def test_an_item_that_another_program_creates_meanwhile_is_not_overwritten(db: Db) -> None:
    await create_products(db, 2)
    await db.create(Product(sku=9))
    rival = {
        **raw_key(Product.key(1)),
        **encode_item({"_type": "Product", "sku": 1, "price": 77, "version": 1}),
    }
    rival_puts = [PutItem(db.table_of(Product), rival)]

    def before(request: Request[Any]) -> None:
        while rival_puts and request.writes:
            db.recorder.inner.send_blocking(rival_puts.pop())

    db.recorder.before = before
    report = await db.move(OldProduct, Product)
    assert get_counts(report) == {"found": 2, "copied": 1, "differing": 1}
    assert (await db.get_one(Product, 1)).price == 77


@in_memory
async def test_different_items_that_are_converted_to_the_same_key_are_reported(db: Db) -> None:
    await create_products(db, 3)
    convert: Any = lambda old: {"id": 1, "side": "x", "weight": int(old.price // 2)}  # noqa: E731
    report = await db.move(OldProduct, Crate, convert)
    assert get_counts(report) == {"found": 3, "copied": 1, "same": 1, "differing": 1}


@in_memory
async def test_items_that_cannot_be_copied_are_reported_and_the_rest_is_copied(db: Db) -> None:
    await create_products(db, 4)
    async with db.transaction() as tx:
        (await tx.get_one(OldProduct, 1)).mail = "m0"
        (await tx.get_one(OldProduct, 2)).kind = "glass"
    await db.send(PutItem("products", encode_item({"SKU": 3, "price": "dear"})))
    report = await db.move(OldProduct, Product)
    assert get_counts(report) == {"found": 4, "copied": 1, "failed": 3}
    assert [problem.partition(":")[0] for problem in report.problems] == ["2", "3", "Product#1, #"]
    assert "another item already has 'm0'" in report.problems[2]


# --- dry runs and mistakes --------------------------------------------------------------------------------


@everywhere
async def test_a_dry_run_writes_nothing_and_reports_what_the_run_will_do(db: Db) -> None:
    await create_products(db, 3)
    await db.send(PutItem(db.table_of(OldProduct), encode_item({"SKU": 9, "kind": "glass", "supplier": "x"})))
    db.forget()
    dry = await db.move(OldProduct, Product, dry_run=True)
    assert [request for request in db.list_sent() if request.writes] == []
    assert get_counts(dry) == {"found": 4, "copied": 3, "failed": 1}
    assert (dry.dropped, dry.added) == (("supplier",), ())
    assert dry.problems[0].startswith("9: Product.kind: ")
    # one for the index, and two each for the item and its guard in a transaction
    assert dry.write_units == 3 * (1 + 2 * 2)
    assert 3 * 150 < dry.item_bytes < 3 * 350
    assert await db.move(OldProduct, Product) == dry


class Narrow(Model, table="products", layout="plain"):
    sku: Key[int] = field(name="SKU")
    other: str = ""


class Wide(Model):
    sku: Key[int]
    colour: str
    size: int


@blocking
async def test_mistakes_are_refused_before_anything_is_sent(db: Db) -> None:
    given: Any
    for given, problem in [
        ({"segments": 0}, "segments must be a whole number from 1 to 1,000"),
        ({"rate": -1}, "rate must be a number of items per second"),
        ({"progress": 1}, "progress must be callable"),
        ({"convert": 1}, "convert must be a function, not 1"),
    ]:
        with pytest.raises(InvalidOptionsError, match=problem):
            await db.move(OldProduct, Product, **given)
    with pytest.raises(
        InvalidOptionsError, match="Product has no field for colour, size, which Wide requires"
    ):
        await db.move(OldProduct, Wide)
    assert db.list_sent() == []
    with pytest.raises(ConfigurationError, match="there is no table products"):
        await db.move(OldProduct, Product)
    await create_products(db, 1)
    with pytest.raises(InvalidOptionsError, match="Narrow and Product are in the same table, products"):
        await db.move(Narrow, OldProduct)


@in_memory
async def test_the_report_names_fields_without_a_counterpart(db: Db) -> None:
    await create_products(db, 1)
    report = await db.move(OldProduct, Crate, lambda old: {"id": old.sku, "side": "x"}, dry_run=True)
    assert (report.dropped, report.added) == ((), ())
    report = await db.move(Narrow, Product, dry_run=True)
    assert report.dropped == ("other", "changed_at", "kind", "made_at", "mail", "price", "version")
    assert report.added == ("kind", "price", "mail", "made_at", "changed_at", "version")


# --- runs -------------------------------------------------------------------------------------------------


@in_memory
async def test_a_rate_limits_how_many_items_are_written_per_second(db: Db) -> None:
    await create_products(db, 6)
    begin = db.clock.now()
    await db.move(OldProduct, Product, rate=2)
    assert (db.clock.now() - begin).total_seconds() == pytest.approx(2.5)


@in_memory
async def test_progress_is_reported(db: Db) -> None:
    await create_products(db, 2)
    seen: list[MoveReport] = []
    report = await db.move(OldProduct, Product, progress=seen.append)
    assert seen == [report]


def test_a_failed_run_is_resumed_only_with_the_same_options() -> None:
    with Database("memory:") as db:
        with db.transaction() as tx:
            for number in range(3):
                tx.create(OldCrate, id=number, side="a")

        def stop(report: MoveReport) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            db.move(OldCrate, Crate, progress=stop)
        assert get_counts(db.move(OldCrate, Crate, update=True)) == {"found": 3, "same": 3}
        with pytest.raises(KeyboardInterrupt):
            db.move(OldCrate, Crate, progress=stop)
        with db.transaction() as tx:
            tx.create(OldCrate, id=9, side="a")
        # the failed run had already done this page
        assert get_counts(db.move(OldCrate, Crate)) == {"found": 3, "same": 3}
        assert get_counts(db.move(OldCrate, Crate)) == {"found": 4, "copied": 1, "same": 3}
        with pytest.raises(KeyboardInterrupt):
            db.move(OldCrate, Crate, progress=stop)
        assert get_counts(db.move(OldCrate, Crate, restart=True)) == {"found": 4, "same": 4}


def test_moves_beside_a_writer_end_with_equal_tables() -> None:
    """The promise of the guide: after the last write, one more move with ``update`` makes both tables equal."""
    random = Random(5)

    def write(db: Database) -> None:
        for number in range(80):
            sku = random.randrange(12)
            db.run(change, sku, number)

    def change(tx: Transaction, sku: int, number: int) -> None:
        item = tx.get(OldProduct.key(sku), create_if_missing={"kind": "tea"})
        item.price, item.mail = number, f"m{number}"

    with Database("memory:") as db:
        db.table.create(models=[OldProduct, Product])
        writer = Thread(target=write, args=[db])
        writer.start()
        while writer.is_alive():
            report = db.move(OldProduct, Product, update=True)
            assert (report.failed, report.differing) == (0, 0)
        writer.join()
        report = db.move(OldProduct, Product, update=True)
        assert (report.failed, report.differing) == (0, 0)
        old = {item.sku: (item.price, item.mail, item.version) for item in db.scan(OldProduct)}
        assert {item.sku: (item.price, item.mail, item.version) for item in db.scan(Product)} == old
        for sku, (_, mail, _) in old.items():
            owner = db.get_by(Product, mail=mail)
            assert owner is not None
            assert owner.sku == sku
        guards = [item for item in db.send(Scan("holdall")).items if item["_type"]["S"] == "holdall.Unique"]
        assert len(guards) == len(old)
        assert get_counts(db.move(OldProduct, Product, update=True)) == {"found": len(old), "same": len(old)}


# --- an oracle --------------------------------------------------------------------------------------------

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["old", "new", "delete", "move", "update"]), st.integers(0, 4), st.integers(0, 3)
    ),
    max_size=25,
)


@given(ACTIONS)
def test_any_sequence_of_writes_and_moves_leaves_what_a_model_predicts(actions: Any) -> None:
    """The model: with ``update``, a copy follows its source until a program writes the copy."""

    async def compare_with_model(db: Db) -> None:
        source: dict[int, int] = {}
        target: dict[int, tuple[int, bool]] = {}  # its price, and whether a program has written it
        async with db.transaction() as tx:
            tx.create(OldProduct, sku=99, kind="tea")
        for action, sku, price in actions:
            if action == "old":
                source[sku] = price
                async with db.transaction() as tx:
                    (await tx.get(OldProduct.key(sku), create_if_missing={"kind": "tea"})).price = price
            elif action == "new":
                async with db.transaction() as tx:
                    (await tx.get(Product.key(sku), create_if_missing={})).price = price
                if target.get(sku, (None,))[0] != price:
                    target[sku] = price, True
            elif action == "delete":
                source.pop(sku, None)
                await db.delete(OldProduct.key(sku))
            else:
                await db.move(OldProduct, Product, update=action == "update")
                for each, value in source.items():
                    found = target.get(each)
                    if found is None or (action == "update" and not found[1]):
                        target[each] = value, False
        stored = {item.sku: item.price for item in await db.scan(Product).all() if item.sku != 99}
        assert stored == {sku: price for sku, (price, _) in target.items()}

    with open_database(Way("memory", "blocking")) as db:
        finish("blocking", compare_with_model(db))
