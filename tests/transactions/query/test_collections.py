"""Collections: one query returns items of several models that share a partition, of the table or of an index."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from queries_rig import SECRET, Db, everywhere, examples, fresh, in_memory, raw_key, table_of, watch_of
from queries_rig import arrange as stored

from holdall import Database, Index, Key, Model, ModelKey, SortKey, Template, col
from holdall.core import PutItem, Query, encode_item
from holdall.errors import (
    ConfigurationError,
    ContentionError,
    InvalidFieldError,
    InvalidOptionsError,
    ModelDefinitionError,
    TransactionFailedError,
)
from holdall.models.keys.stored import decode_key


class Patron(Model, collection="customer", indexes=[Index("by_day", ["day"], collection="day")]):
    customer: Key[str]
    name: str = ""
    day: str | None = None


class Purchase(
    Model, collection="customer", indexes=[Index("by_day", ["day"], ["number"], collection="day")]
):
    customer: Key[str]
    number: SortKey[int]
    total: int = 0
    day: str | None = None


class Present(Purchase):
    card: str = ""


class Visit(Model, collection="customer", ttl="until"):
    customer: Key[str]
    place: SortKey[str]
    at: SortKey[int]
    until: datetime | None = None


class Newcomer(Model, indexes=[Index("by_day", ["day"])]):
    customer: Key[str]
    day: str | None = None


async def fill(db: Db) -> str:
    """Store a few items of a customer, in no particular order, and return the customer's name."""
    name = fresh("customer")
    await stored(
        db,
        Visit(customer=name, place="shop", at=1),
        Purchase(customer=name, number=20, total=2, day=name),
        Present(customer=name, number=-1, card="!", day=name),
        Patron(customer=name, name="Ada", day=name),
        Purchase(customer=name, number=3, total=1),
        Patron(customer=f"{name}x"),
    )
    return name


def list_kinds(items: list[Any]) -> list[str]:
    return [f"{type(item).__name__} {getattr(item, 'number', '')}".strip() for item in items]


@everywhere
async def test_one_request_returns_a_customer_and_their_orders_in_order(db: Db) -> None:
    name = await fill(db)
    items: list[Any] = await db.query((Patron, Purchase), customer=name).all()
    assert list_kinds(items) == ["Patron", "Present -1", "Purchase 3", "Purchase 20"]
    assert (items[0].name, items[1].card, items[3].total) == ("Ada", "!", 2)
    assert watch_of(db).kinds().count("Query") == 1
    back = await db.query((Patron, Purchase), customer=name, reverse=True, limit=3).all()
    assert list_kinds(back) == ["Purchase 20", "Purchase 3", "Present -1"]
    assert list_kinds(await db.query([Visit, Purchase, Patron], customer=name).all())[-1] == "Visit"


@everywhere
async def test_a_query_reads_only_the_range_of_its_models(db: Db) -> None:
    name = await fill(db)
    await db.query((Patron, Purchase), customer=name).all()
    ((request, page),) = watch_of(db).pages()
    assert isinstance(request, Query)
    assert page.scanned == 4  # the visit follows the orders
    assert request.filter is None  # no other model lies in between
    assert list_kinds(await db.query((Patron, Visit), customer=name).all()) == ["Patron", "Visit"]
    assert watch_of(db).pages()[-1][1].count == 2  # the store filters out the orders in between


@everywhere
async def test_pages_counts_and_single_rows_of_several_models(db: Db) -> None:
    name = await fill(db)
    query = db.query((Patron, Visit), customer=name)
    first = await query.page(1)
    assert list_kinds(first.items) == ["Patron"]
    assert first.next is not None
    assert list_kinds((await query.page(5, after=first.next)).items) == ["Visit"]
    assert await query.count() == 2
    assert await query.exists()
    found = await query.first()
    assert isinstance(found, Patron)
    assert await db.query((Visit, Patron), customer=name, limit=1).count() == 1
    dated = db.query((Patron, Purchase), customer=name, where=col(Patron.day) == name, limit=2)
    assert list_kinds(await dated.all()) == ["Patron", "Present -1"]
    with pytest.raises(InvalidOptionsError, match="more than one Patron or Visit"):
        await query.one()


@everywhere
async def test_one_model_of_a_collection_can_be_queried_alone(db: Db) -> None:
    name = await fill(db)
    assert list_kinds(await db.query(Patron, customer=name).all()) == ["Patron"]
    assert list_kinds(await db.query(Purchase, customer=name, sort=Purchase.number > 0).all()) == [
        "Purchase 3",
        "Purchase 20",
    ]
    assert list_kinds(await db.query(Purchase, customer=name, sort=Purchase.number <= 3).all()) == [
        "Present -1",
        "Purchase 3",
    ]
    assert list_kinds(await db.query(Present, customer=name).all()) == ["Present -1"]
    assert await db.query(Visit, customer=name, sort=Visit.place.begins_with("sh")).count() == 1
    assert await db.query(Visit, customer=name, sort=(Visit.place == "shop") & (Visit.at > 1)).count() == 0


@everywhere
async def test_a_query_can_use_conditions_and_fields_of_one_of_its_models(db: Db) -> None:
    name = await fill(db)
    rows = await db.query((Patron, Purchase), customer=name, where=col(Purchase.total) > 0).all()
    assert list_kinds(rows) == ["Purchase 3", "Purchase 20"]
    partial = await db.query((Patron, Purchase), customer=name, only=[Patron.name, "total"]).all()
    assert partial[0].to_dict() == {"customer": name, "name": "Ada"}
    assert partial[2].to_dict() == {"customer": name, "number": 3, "total": 1}
    with pytest.raises(InvalidOptionsError, match="not a field of Patron or Purchase"):
        db.query((Patron, Purchase), customer=name, only=["place"])
    with pytest.raises(InvalidFieldError, match="another model"):
        db.query((Patron, Purchase), customer=name, where=Visit.place == "x")


@everywhere
async def test_rows_are_locked_when_their_fields_are_read(db: Db) -> None:
    name = await fill(db)
    attempts = 0

    async def close(tx: Any) -> None:
        nonlocal attempts
        attempts += 1
        rows = await tx.query((Patron, Purchase), customer=name).all()
        total = sum(row.total for row in rows if isinstance(row, Purchase))
        if attempts == 1:
            async with db.transaction() as other:
                (await other.get_one(Purchase, customer=name, number=3)).total = 101
        tx.create(Visit, customer=name, place="till", at=total)

    await db.run(close)
    assert attempts == 2
    assert (await db.query(Visit, customer=name, sort=Visit.place == "till").one()).at == 103


@everywhere
async def test_lock_rows_also_locks_rows_whose_fields_were_not_read(db: Db) -> None:
    name = await fill(db)

    async def order(lock: Any, gone: ModelKey[Any]) -> None:
        async with db.transaction() as tx:
            await tx.query((Patron, Visit), customer=name, lock=lock).all()
            async with db.transaction() as other:
                other.delete(gone)
            tx.create(Purchase, customer=name, number=99)

    with pytest.raises((TransactionFailedError, ContentionError)):
        await order("rows", Patron.key(name))
    # without lock="rows", rows whose fields were not read are not locked
    await order(True, Visit.key(customer=name, place="shop", at=1))


@everywhere
async def test_a_query_of_several_models_returns_the_instances_that_the_transaction_has(db: Db) -> None:
    name = await fill(db)
    async with db.transaction() as tx:
        order = await tx.get_one(Purchase, customer=name, number=3)
        order.total = 7
        tx.delete(await tx.get_one(Patron, name))
        rows: list[Any] = await tx.query((Patron, Purchase), customer=name).all()
        assert list_kinds(rows) == ["Present -1", "Purchase 3", "Purchase 20"]
        assert rows[1] is order
        rows[2].total += 1
    assert [row.total for row in await db.query(Purchase, customer=name).all()] == [0, 7, 3]


@everywhere
async def test_an_index_has_collections_too(db: Db) -> None:
    name = await fill(db)
    items = await db.query((Purchase, Patron), index="by_day", day=name).all()
    assert list_kinds(items) == ["Patron", "Present -1", "Purchase 20"]
    assert list_kinds(await db.query(Purchase, index="by_day", day=name, sort=Purchase.number > 0).all()) == [
        "Purchase 20"
    ]
    assert list_kinds(await db.query(Patron, index="by_day", day=name).all()) == ["Patron"]


@in_memory
async def test_expired_items_of_one_model_are_not_returned(db: Db) -> None:
    name = fresh("customer")
    past = datetime.now(UTC) - timedelta(hours=1)
    await stored(db, Patron(customer=name), Visit(customer=name, place="a", at=1, until=past))
    for models in ((Patron, Visit), (Visit, Patron)):
        assert list_kinds(await db.query(models, customer=name).all()) == ["Patron"]
        assert await db.query(models, customer=name).count() == 1


def _double(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "words": values["words"] * 2}


class Placard(Model, collection="shelf", migrations=[_double]):
    shelf: Key[str]
    number: SortKey[int]
    words: int = 1


class Jacket(Model, collection="shelf"):
    shelf: Key[str]
    colour: str = "red"


@in_memory
async def test_old_items_of_one_model_are_converted(db: Db) -> None:
    shelf = fresh("shelf")
    await stored(db, Jacket(shelf=shelf))
    for number in range(3):  # stored before the conversion existed
        key = raw_key(Placard.key(shelf=shelf, number=number))
        fields = encode_item({"_type": "Placard", "shelf": shelf, "number": number, "words": 1})
        await db.send(PutItem(table_of(db, Placard), {**key, **fields}))
    rows = await db.query((Placard, Jacket), shelf=shelf, limit=3).all()
    assert [getattr(row, "words", None) for row in rows] == [None, 2, 2]
    async with db.transaction() as tx:
        async for row in tx.query((Jacket, Placard), shelf=shelf):
            if isinstance(row, Placard):
                row.words += row.number
    assert [page.words for page in await db.query(Placard, shelf=shelf).all()] == [2, 3, 4]


class Account(Model, table="app", layout=Template(pk="ACCOUNT#{id}", sk="PROFILE", type="kind")):
    id: Key[str]


class Entry(
    Model,
    table="app",
    layout=Template(
        pk="ACCOUNT#{account}", sk="ENTRY#{number:04d}", gsi1=("DAY#{day}", "E#{number:04d}"), type="kind"
    ),
):
    account: Key[str]
    number: SortKey[int]
    day: str | None = None


class Holiday(
    Model,
    table="app",
    layout=Template(pk="HOLIDAY#{date}", sk="HOLIDAY", gsi1=("DAY#{date}", "HOLIDAY"), type="kind"),
):
    date: Key[str]


class Shop(
    Model,
    table="outlets",
    layout=Template(pk="SHOP#{id}", sk="SHOP", type="kind"),
    indexes=[Index("by_town", ["town"])],
):
    id: Key[str]
    town: str


class Stall(
    Model,
    table="outlets",
    layout=Template(pk="STALL#{id}", sk="STALL", type="kind"),
    indexes=[Index("by_town", ["town"])],
):
    id: Key[str]
    town: str


class Untyped(Model, table="app", layout=Template(pk="ACCOUNT#{id}", sk="NOTE")):
    id: Key[str]


@everywhere
async def test_models_of_a_single_table_design_can_name_their_keys_differently(db: Db) -> None:
    name = fresh("account")
    await stored(
        db,
        Entry(account=name, number=12, day=name),
        Account(id=name),
        Entry(account=name, number=2),
        Holiday(date=name),
    )
    items = await db.query((Account, Entry), id=name).all()
    assert list_kinds(items) == ["Entry 2", "Entry 12", "Account"]
    assert list_kinds(await db.query((Entry, Account), account=name).all()) == list_kinds(items)
    assert await db.query((Entry, Account), account=name).count() == 3
    assert list_kinds(await db.query((Holiday, Entry), index="gsi1", date=name).all()) == [
        "Entry 12",
        "Holiday",
    ]


@everywhere
async def test_models_of_a_single_table_design_share_an_index_of_a_field(db: Db) -> None:
    town = fresh("town")
    await stored(db, Shop(id=town, town=town), Stall(id=town, town=town), Stall(id=f"{town}x", town="other"))
    items = await db.query((Shop, Stall), index="by_town", town=town).all()
    assert sorted(list_kinds(items)) == ["Shop", "Stall"]


REFUSALS: list[tuple[Any, dict[str, Any], str]] = [
    ((Patron, Newcomer), {"customer": "x"}, "Patron and Newcomer do not share a partition"),
    ((Patron, Jacket), {"customer": "x"}, "Patron and Jacket do not share a partition"),
    ((Patron, Patron), {"customer": "x"}, "each of them once"),
    ((), {"customer": "x"}, "each of them once"),
    ((Patron, Purchase), {"customer": "x", "sort": Purchase.number > 1}, "sort= cannot be used"),
    ((Patron, Visit), {"index": "by_day", "day": "x"}, "Visit has no index"),
    ((Account, Untyped), {"id": "x"}, "nothing in its items names their model"),
    ((Account, Holiday), {"id": "x"}, "Account and Holiday do not share a partition"),
    ((Account, Holiday), {"id": "x"}, r"hint: .* templates make the same partition key"),
    ((Patron, Newcomer), {"index": "by_day", "day": "x"}, r"hint: .* slot and collection=: Index"),
    ((Patron, "Purchase"), {"customer": "x"}, "neither a model nor a key"),
]


@pytest.mark.parametrize(("models", "options", "problem"), REFUSALS, ids=[each[2] for each in REFUSALS])
def test_a_query_of_models_that_do_not_share_a_partition_is_refused(
    models: Any, options: dict[str, Any], problem: str
) -> None:
    with Database("memory:", secret=SECRET) as db, pytest.raises(InvalidOptionsError, match=problem):
        db.query(models, **options)


def test_invalid_declarations_are_refused() -> None:
    for name in ("", "Patron", "holdall", "holdalls", "a#b", "1", "é"):
        with pytest.raises(ModelDefinitionError, match="cannot be the name of a collection"):

            class Wrong(Model, collection=name):
                pass

    with pytest.raises(ModelDefinitionError, match="database's table"):

        class Own(Model, table="own", collection="customer"):
            pass

    with pytest.raises(ModelDefinitionError, match="stored where Purchase is"):

        class Moved(Purchase, collection="other"):
            pass

    with pytest.raises(ModelDefinitionError, match="database's table"):

        class Indexed(Model, table="own", indexes=[Index("by_x", ["x"], collection="c")]):
            x: str


def test_a_collection_cannot_have_the_name_of_the_attachment_namespace() -> None:
    with (
        Database("memory:", namespace="customer") as db,
        pytest.raises(ConfigurationError, match="same name as the namespace"),
    ):
        db.get(Patron, "ada")


# --- against an oracle ------------------------------------------------------------------------------------

TEXTS = st.text("a#\0\1$é", max_size=3)
THINGS = st.lists(
    st.one_of(
        st.builds(Purchase, customer=st.just("c"), number=st.integers(-20, 20)),
        st.builds(Visit, customer=st.just("c"), place=TEXTS, at=st.integers(-2, 2)),
        st.just(Patron(customer="c")),
    ),
    max_size=12,
    unique_by=lambda item: item.key,
)


@examples(15)
@for_all(
    THINGS, st.sampled_from([(Patron, Purchase), (Purchase, Visit), (Visit, Patron, Purchase)]), st.booleans()
)
def test_queries_of_several_models_agree_with_sorting_in_python(
    things: list[Any], models: tuple[type[Any], ...], reverse: bool
) -> None:
    def rank(item: Any) -> tuple[Any, ...]:
        parts = [item.key.components[field.name] for field in item._schema.sort_keys]
        return type(item).__name__, [part.encode() if isinstance(part, str) else part for part in parts]

    with Database("memory:", secret=SECRET) as db:
        for thing in things:
            db.put(thing)
        expected = sorted((thing for thing in things if isinstance(thing, models)), key=rank, reverse=reverse)
        found = db.query(models, customer="c", reverse=reverse)
        assert [item.key for item in found] == [item.key for item in expected]
        assert found.count() == len(expected)
        for model in models:
            own = [item.key for item in expected if isinstance(item, model)]
            assert [item.key for item in db.query(model, customer="c", reverse=reverse)] == own
    for thing in things:
        partition, sort = thing.key.encoded
        assert decode_key(thing._schema, partition, sort) == thing.key
        assert [
            decode_key(other._schema, partition, sort) for other in models if other is not type(thing)
        ] == [None for other in models if other is not type(thing)]
