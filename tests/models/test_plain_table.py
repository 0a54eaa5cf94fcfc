"""Tables that other programs laid out: the key fields are the table's key attributes, and nothing hidden is written."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from rig.behaviour import Db, awaiting, everywhere, in_memory
from rig.behaviour_models import arrange, expect_contention, meanwhile, put_raw

from holdall import Index, Key, Model, SortKey, col, field
from holdall.core import (
    CreateTable,
    GetItem,
    IndexSchema,
    KeyAttribute,
    Projection,
    TableSchema,
    TransactWrite,
    UpdateItem,
    encode_item,
)
from holdall.errors import (
    ConfigurationError,
    InvalidFieldError,
    ModelAlreadyExistsError,
    ModelDefinitionError,
    QueryNotSupported,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


class Product(Model, table="products", layout="plain", indexes=[Index("by_kind", ["kind"], ["price"])]):
    sku: Key[int] = field(name="SKU")
    kind: str | None = None
    price: float = 0


class Reading(Model, table="readings", layout="plain", ttl="until"):
    sensor: Key[bytes]
    at: SortKey[datetime] = field(name="_at")
    value: float = 0
    until: int | None = None


class Note(Model, table="notes", layout="plain"):
    book: Key[str]
    page: SortKey[bytes]
    text: str = ""


# --- what is stored ---------------------------------------------------------------------------------------


@everywhere
async def test_an_item_has_its_fields_and_nothing_hidden(db: Db) -> None:
    await arrange(db, Product(sku=7, kind="tea", price=1.5), Reading(sensor=b"\0a", at=NOON))
    assert await db.raw(Product.key(7)) == encode_item({"SKU": 7, "kind": "tea", "price": 1.5})
    found = await db.raw(Reading.key(sensor=b"\0a", at=NOON))
    assert found == encode_item({"sensor": b"\0a", "_at": "2026-01-02T12:00:00.000000Z", "value": 0})


@everywhere
async def test_items_of_other_programs_are_read_changed_and_deleted_and_keep_unknown_attributes(
    db: Db,
) -> None:
    await db.get(Product, 1)
    await put_raw(db, Product, encode_item({"SKU": 1, "price": 2, "owner": "another program"}))
    async with db.transaction() as tx:
        product = await tx.get_one(Product, 1)
        assert (product.kind, product.price) == (None, 2.0)
        product.price += 1
    assert await db.raw(Product.key(1)) == encode_item({"SKU": 1, "price": 3, "owner": "another program"})
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(Product, 1))
    assert await db.raw(Product.key(1)) is None


@everywhere
async def test_a_key_that_another_program_spelt_differently_is_kept(db: Db) -> None:
    await arrange(db, Reading(sensor=b"a", at=NOON, value=1))
    spelt = encode_item({"sensor": b"a", "_at": "2026-01-02T12:00:00Z", "value": 1})
    await put_raw(db, Reading, spelt)
    async with db.transaction() as tx:
        first, second = await tx.query(Reading, sensor=b"a").all()
        assert (first.at, second.at, first == second) == (NOON, NOON, False)
        first.value += 1
        second.value += 2
    assert [reading.value async for reading in db.query(Reading, sensor=b"a")] == [2, 3]
    second = pickle.loads(pickle.dumps((await db.query(Reading, sensor=b"a").all())[1].key))
    assert (await db.get_one(second)).value == 3
    await db.update(second, value=4)
    await db.put(await db.get_one(second))
    key = {name: spelt[name] for name in ("sensor", "_at")}
    assert (await db.send(GetItem(db.table_of(Reading), key))).item == {**spelt, "value": {"N": "4"}}
    await db.delete(second)
    assert [reading.value async for reading in db.query(Reading, sensor=b"a")] == [2]


# --- transactions -----------------------------------------------------------------------------------------


class Tagged(Model, table="tagged", layout="plain"):
    id: Key[str]
    tags: set[str] = field(default_factory=set)
    sizes: frozenset[int] | None = None


@everywhere
async def test_an_empty_set_is_stored_as_absence(db: Db) -> None:
    await arrange(db, Tagged(id="a"), Tagged(id="b", tags={"x"}, sizes=frozenset([1])))
    async with db.bulk(Tagged) as bulk:
        await bulk.put(Tagged(id="c"))
    for id in "ac":
        assert await db.raw(Tagged.key(id)) == encode_item({"id": id})
        assert (await db.get_one(Tagged, id)).tags == set()
    async with db.transaction() as tx:
        (await tx.get_one(Tagged, "a")).tags.add("y")
        (await tx.get_one(Tagged, "b")).tags.clear()
        tx.update(Tagged.key("c"), col(Tagged.tags).add("z"))
    found = [(await db.raw(Tagged.key(id)) or {}).get("tags") for id in "abc"]
    assert found == [{"SS": ["y"]}, None, {"SS": ["z"]}]
    async with db.transaction() as tx:
        tx.update(Tagged.key("a"), col(Tagged.tags).set(set()))
        tx.update(Tagged.key("c"), col(Tagged.tags).discard("z"))
    assert [(await db.raw(Tagged.key(id)) or {}).get("tags") for id in "ac"] == [None, None]
    with pytest.raises(InvalidFieldError, match=r"no empty set[\s\S]*assign None"):
        await arrange(db, Tagged(id="d", sizes=frozenset()))


@everywhere
async def test_values_that_were_read_are_locked(db: Db) -> None:
    await arrange(db, Product(sku=1, price=1))
    with expect_contention() as caught:
        async with db.transaction() as tx:
            product = await tx.get_one(Product, 1)
            product.price += 1
            await meanwhile(db, Product.key(1), price=9)
    assert str(caught.value.__cause__) == "Product(sku=1).price is 9, expected 1"


@everywhere
async def test_an_existing_item_is_not_created_again(db: Db) -> None:
    await arrange(db, Product(sku=1))
    with pytest.raises(ModelAlreadyExistsError):
        async with db.transaction() as tx:
            tx.create(Product, sku=1, price=5)
    assert (await db.get_one(Product, 1)).price == 0


@everywhere
async def test_every_write_uses_a_token_because_a_stamp_would_be_a_hidden_attribute(db: Db) -> None:
    await arrange(db, Product(sku=1))
    async with db.transaction() as tx:
        (await tx.get_one(Product, 1)).price = 4
    (write,) = (each for each in db.recorder.requests if isinstance(each, TransactWrite | UpdateItem))
    assert isinstance(write, TransactWrite)
    assert write.token


@everywhere
async def test_expired_items_are_gone(db: Db) -> None:
    soon = int(db.clock.now().timestamp()) + 10
    await arrange(db, Reading(sensor=b"a", at=NOON, until=soon), Reading(sensor=b"b", at=NOON))
    db.clock.forward(11)
    assert await db.get(Reading, sensor=b"a", at=NOON) is None
    assert await db.get(Reading, sensor=b"b", at=NOON) is not None


# --- queries ----------------------------------------------------------------------------------------------


@everywhere
async def test_sort_keys_of_every_type_have_ranges(db: Db) -> None:
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)]
    await arrange(db, *(Reading(sensor=b"a", at=day, value=day.day) for day in days))
    await arrange(db, *(Note(book="b", page=bytes([page])) for page in (1, 2, 200)))

    async def values(sort: Any) -> list[float]:
        return [reading.value async for reading in db.query(Reading, sensor=b"a", sort=sort)]

    assert await values(Reading.at > days[1]) == [3, 4]
    assert await values((Reading.at > days[0]) & (Reading.at < days[3])) == [2, 3]
    assert await values(Reading.at.between(days[1], days[2])) == [2, 3]
    assert await values(Reading.at.begins_with("2026-01-04")) == [4]
    pages = [note.page async for note in db.query(Note, book="b", sort=Note.page >= b"\x02")]
    assert pages == [b"\x02", b"\xc8"]
    assert [n.page async for n in db.query(Note, book="b", sort=Note.page.begins_with(b"\xc8"))] == [b"\xc8"]


@everywhere
async def test_a_query_uses_the_tables_own_index(db: Db) -> None:
    await arrange(db, *(Product(sku=n, kind="tea", price=n) for n in range(4)), Product(sku=9))

    async def find(sort: Any = None) -> list[int]:
        return [p.sku async for p in db.query(Product, index="by_kind", kind="tea", sort=sort)]

    assert await find() == [0, 1, 2, 3]
    assert await find(col(Product.price).between(1, 2)) == [1, 2]
    async with db.transaction() as tx:
        (await tx.get_one(Product, 2)).kind = None
    assert await find() == [0, 1, 3]


@everywhere
async def test_the_fields_of_an_index_change_alone_and_without_being_read(db: Db) -> None:
    await arrange(db, Product(sku=1, kind="tea", price=1))
    async with db.transaction() as tx:
        tx.update(Product.key(1), col(Product.price).increment_by(1))
    async with db.transaction() as tx:
        product = await tx.get_one(Product, 1)
        product.field("price").increment_by(1)
        await meanwhile(db, Product.key(1), kind="mate")
    found = db.query(Product, index="by_kind", kind="mate", sort=col(Product.price) == 3)
    assert [product.sku async for product in found] == [1]


@in_memory
async def test_a_filter_cannot_use_the_tables_key(db: Db) -> None:
    with pytest.raises(InvalidFieldError, match="it is the table's key"):
        db.query(Reading, sensor=b"a", where=Reading.at > NOON)
    with pytest.raises(QueryNotSupported, match="pass it as where="):
        db.query(Reading, sensor=b"a", sort=col(Reading.value) > 1)


# --- tables that do not fit -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "problem", "advice"),
    [
        ((KeyAttribute("id", "N"),), r"its key is id \(N\), not SKU \(N\)", 'sku: field(name="id")'),
        ((KeyAttribute("SKU"),), "its key attribute SKU is of type S, not N", "such as str"),
        (
            (KeyAttribute("SKU", "N"), KeyAttribute("sk")),
            r"its key is SKU \(N\) and sk \(S\), not SKU \(N\)",
            "hint: declare a SortKey for sk",
        ),
        (
            (KeyAttribute("id"), KeyAttribute("sk")),
            r"its key is id \(S\) and sk \(S\), not SKU \(N\)",
            'sku: field(name="id"); declare a SortKey for sk',
        ),
    ],
    ids=["name", "type", "sort key", "name and sort key"],
)
@awaiting
async def test_a_table_that_does_not_fit_is_explained_with_the_difference(
    db: Db, keys: tuple[KeyAttribute, ...], problem: str, advice: str
) -> None:
    await db.send(CreateTable(TableSchema(db.table_of(Product), keys[0], keys[1] if keys[1:] else None)))
    with pytest.raises(ConfigurationError, match=problem) as caught:
        await db.get(Product, 1)
    assert advice in str(caught.value)


class Entry(
    Model,
    table="entries",
    layout="plain",
    indexes=[Index("by_kind", ["kind"], ["at"]), Index("by_size", sort_key=["size"], local=True)],
):
    id: Key[str]
    number: SortKey[int]
    kind: str = ""
    at: datetime = NOON
    size: int = 0


KIND, AT, ID, NUMBER = (
    KeyAttribute("kind"),
    KeyAttribute("at"),
    KeyAttribute("id"),
    KeyAttribute("number", "N"),
)


@pytest.mark.parametrize(
    ("index", "problem", "advice"),
    [
        (IndexSchema("by_kind", KIND), "its keys are kind (S), not kind (S) and at (S)", 'key=["kind"])'),
        (
            IndexSchema("by_kind", KIND, KeyAttribute("at", "N")),
            "its keys are kind (S) and at (N), not kind (S) and at (S)",
            'at: store the time as a number, with field(stored="epoch") or field(stored="epoch_ms"); '
            'Index("by_kind", key=["kind"], sort_key=["at"])',
        ),
        (
            IndexSchema("by_kind", KeyAttribute("type"), AT),
            "its keys are type (S) and at (S), not",
            'declare a field for type (S); Index("by_kind", key=["type"], sort_key=["at"])',
        ),
        (
            IndexSchema("by_kind", ID, AT, local=True),
            "it is local, not global",
            'Index("by_kind", sort_key=["at"], local=True)',
        ),
        (
            IndexSchema("by_kind", KIND, AT, Projection("INCLUDE", ("size", "more"))),
            "it holds only size, more of each item, not all",
            'Index("by_kind", key=["kind"], sort_key=["at"], include=["size"])',
        ),
        (
            IndexSchema("by_size", ID, KIND),
            "it is global, not local",
            'Index("by_size", key=["id"], sort_key=["kind"])',
        ),
    ],
    ids=["keys", "type", "unknown", "local", "projection", "global"],
)
@awaiting
async def test_an_index_that_differs_is_explained_with_its_declaration(
    db: Db, index: IndexSchema, problem: str, advice: str
) -> None:
    await db.send(CreateTable(TableSchema(db.table_of(Entry), ID, NUMBER, (index,))))
    values: dict[str, Any] = {"kind": "x"} if index.name == "by_kind" else {"id": "x"}
    with pytest.raises(ConfigurationError) as caught:
        await db.query(Entry, index=index.name, **values).all()
    assert f"does not fit: {problem}" in caught.value.message
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("declare it as the table has it: ")
    assert caught.value.hint.endswith(advice)


@awaiting
async def test_a_plan_finds_a_key_of_another_type(db: Db) -> None:
    await db.send(CreateTable(TableSchema(db.table_of(Product), KeyAttribute("SKU"))))
    planned = (await db.table.plan(models=[Product])).tables[0]
    assert planned.problem is not None
    assert "its keys are SKU (S), not SKU (N)" in planned.problem


@awaiting
async def test_the_hint_for_a_model_without_a_layout_has_the_keyword(db: Db) -> None:
    class Shop(Model, table="shops"):
        name: Key[str]

    await db.send(CreateTable(TableSchema(db.table_of(Shop), KeyAttribute("name"))))
    with pytest.raises(ConfigurationError, match=r"its key is name \(S\), not _id \(S\)") as caught:
        await db.get(Shop, "a")
    assert 'layout="plain"' in str(caught.value)


def test_a_model_that_no_plain_table_could_hold_is_refused_when_it_is_defined() -> None:
    with pytest.raises(ModelDefinitionError, match="names none"):

        class Homeless(Model, layout="plain"):
            id: Key[str]

    with pytest.raises(ModelDefinitionError, match="one partition key"):

        class Twice(Model, table="tables", layout="plain"):
            a: Key[str]
            b: Key[str]

    with pytest.raises(ModelDefinitionError, match="a string, a number or binary"):

        class Flag(Model, table="tables", layout="plain"):
            a: Key[bool]

    with pytest.raises(ModelDefinitionError, match="distinguishes items of"):

        class Teapot(Product):
            pass

    with pytest.raises(ModelDefinitionError, match="layout is 'flat'"):

        class Flat(Model, table="tables", layout="flat"):  # type: ignore[arg-type]
            a: Key[str]
