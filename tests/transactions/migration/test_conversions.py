"""Conversions: an item that an older version of the model wrote goes through those that it has not been through yet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from migration_rig import (
    Db,
    arrange,
    blocking,
    create_tables,
    everywhere,
    expect_contention,
    expect_failure,
    fetch_item,
    in_memory,
    meanwhile,
    put_raw,
    raw_key,
    scan_model,
    update_raw,
    version,
)
from toy_hydrator import Squeezer, is_squeezed, squeeze

from holdall import Index, Key, Model, ModelKey, SortKey, col, field
from holdall.core import Item, encode_item
from holdall.errors import (
    InvalidFieldError,
    InvalidModelUpdateError,
    InvalidRequestError,
    ModelDefinitionError,
)
from holdall.models.migrations import Migrations

Values = dict[str, Any]

# --- three versions of an order ---------------------------------------------------------------------------


def to_cents(item: Values) -> Values:
    item["cents"] = round(item.pop("euros") * 100)
    return item


def with_currency(item: Values) -> Values:
    return {**item, "currency": "EUR", "history": [*item.get("history", []), "converted"]}


@version
class Order0(Model, name="Order"):
    customer: Key[str]
    number: SortKey[int]
    euros: float
    note: str | None = None


@version
class Order1(Model, name="Order", migrations=[to_cents]):
    customer: Key[str]
    number: SortKey[int]
    cents: int
    note: str | None = None
    history: list[str] = field(default_factory=list)


@version
class Order(Model, name="Order", migrations=[to_cents, with_currency]):
    customer: Key[str]
    number: SortKey[int]
    cents: int
    currency: str
    note: str | None = None
    history: list[str] = field(default_factory=list)
    views: int = 0


KEY = Order.key(customer="ada", number=1)
KEY0 = Order0.key(customer="ada", number=1)
CONVERTED = {
    **raw_key(KEY),
    "_type": {"S": "Order"},
    "_v": {"N": "2"},
    **encode_item(
        {"customer": "ada", "number": 1, "cents": 150, "currency": "EUR", "history": ["converted"]}
    ),
}


async def arrange_old(db: Db, **values: Any) -> None:
    await arrange(db, Order0(customer="ada", number=1, **{"euros": 1.5, **values}))


# --- reading ----------------------------------------------------------------------------------------------


@everywhere
async def test_every_kind_of_read_converts(db: Db) -> None:
    await arrange_old(db)
    rows: list[Any] = [
        await db.get(KEY),
        *await db.get_all([KEY]),
        *await db.get_all([KEY], consistent=False),
        *await db.query(Order, customer="ada").all(),
        *await db.query(Order, customer="ada", only=["cents", "currency", "history"]).all(),
        *await scan_model(db, Order),
        *await scan_model(db, Order, only=["cents", "currency", "history"]),
    ]
    async with db.transaction() as tx:
        rows += [row async for row in tx.query(Order, customer="ada")]
        rows.append(await tx.get(KEY))
    assert len(rows) == 9
    assert [(row.cents, row.currency, row.history) for row in rows] == [(150, "EUR", ["converted"])] * 9


@everywhere
async def test_an_item_goes_through_only_the_conversions_that_it_has_not_been_through(db: Db) -> None:
    await arrange(db, Order0(customer="ada", number=0, euros=1.5))
    await arrange(db, Order1(customer="ada", number=1, cents=151, history=["made"]))
    await arrange(db, Order(customer="ada", number=2, cents=152, currency="USD"))
    found = [(row.cents, row.currency, row.history) for row in await db.query(Order, customer="ada").all()]
    assert found == [
        (150, "EUR", ["converted"]),
        (151, "EUR", ["made", "converted"]),
        (152, "USD", []),
    ]


@in_memory
async def test_reading_writes_nothing(db: Db) -> None:
    await arrange_old(db)
    before = await db.raw(KEY)
    async with db.transaction() as tx:
        assert (await tx.get_one(KEY)).cents == 150
    assert db.kinds() == ["GetItem"]
    assert await db.raw(KEY) == before


@in_memory
async def test_a_new_item_has_the_current_version(db: Db) -> None:
    await arrange(db, Order(customer="ada", number=1, cents=5, currency="EUR"))
    assert (await fetch_item(db, KEY))["_v"] == {"N": "2"}
    assert (await db.get_one(KEY)).history == []


seen: list[Values] = []


def record_values(item: Values) -> Values:
    seen.append(item)
    return {}


@version
class Blank(
    Model, name="Blank", migrations=[record_values], ttl="until", indexes=[Index("by_note", ["note"])]
):
    id: Key[str]
    note: str | None = None
    until: int | None = None


@in_memory
async def test_a_conversion_gets_values_by_their_stored_names_without_holdalls_attributes(db: Db) -> None:
    seen.clear()
    holdalls = {"_w": {"S": "w"}, "_ttl": {"N": "9999999999"}, "gsi1_pk": {"S": "p"}, "gsi1_sk": {"S": "s"}}
    values = {"id": "a", "text": "x", "n": 5, "tags": {"b"}, "data": b"d", "deep": {"list": [1, 1.5, None]}}
    await put_raw(db, Blank, {**raw_key(Blank.key("a")), **holdalls, **encode_item(values)})
    with pytest.raises(InvalidFieldError, match=r"Blank\.id: .*Blank#a"):
        await db.query(Blank, id="a").all()
    assert seen == [values]


# --- writing ----------------------------------------------------------------------------------------------


@everywhere
async def test_a_write_stores_the_converted_item_which_is_not_converted_again(db: Db) -> None:
    await arrange_old(db)
    await meanwhile(db, KEY, note="x")
    assert await fetch_item(db, KEY) == {**CONVERTED, "note": {"S": "x"}}
    await meanwhile(db, KEY, note=None)
    assert await fetch_item(db, KEY) == CONVERTED
    assert (await db.get_one(KEY)).history == ["converted"]


@everywhere
async def test_an_increment_adds_to_the_converted_value(db: Db) -> None:
    await arrange_old(db)
    async with db.transaction() as tx:
        (await tx.get_one(KEY)).field("cents").increment_by(5)
    async with db.transaction() as tx:
        (await tx.get_one(KEY)).field("cents").increment_by(5)
    assert await fetch_item(db, KEY) == {**CONVERTED, "cents": {"N": "160"}}


@in_memory
async def test_a_field_that_shows_its_default_can_be_incremented(db: Db) -> None:
    await arrange_old(db)
    async with db.transaction() as tx:
        (await tx.get_one(KEY)).field("views").increment_by(1)
    assert await fetch_item(db, KEY) == {**CONVERTED, "views": {"N": "1"}}


@everywhere
async def test_an_old_item_can_be_deleted(db: Db) -> None:
    await arrange_old(db)
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(KEY))
    assert await db.raw(KEY) is None


def append_new(item: Values) -> Values:
    item["words"].append("new")
    item["deep"]["n"] += 1
    item["set"].discard("a")
    return item


@version
class Words0(Model, name="Words"):
    id: Key[str]
    words: list[str]
    deep: dict[str, int]
    set: set[str]


@version
class Words(Model, name="Words", migrations=[append_new]):
    id: Key[str]
    words: list[str]
    deep: dict[str, int]
    set: set[str]


@in_memory
async def test_a_conversion_can_change_values_in_place(db: Db) -> None:
    await arrange(db, Words0(id="a", words=["old"], deep={"n": 1}, set={"a", "b"}))
    words = await db.get_one(Words, "a")
    assert (words.words, words.deep, words.set) == (["old", "new"], {"n": 2}, {"b"})
    await db.migrate(Words)
    words = await db.get_one(Words, "a")
    assert (words.words, words.deep, words.set) == (["old", "new"], {"n": 2}, {"b"})


# --- locks and contention ---------------------------------------------------------------------------------


@everywhere
async def test_a_change_by_another_program_is_contention(db: Db) -> None:
    await arrange_old(db)
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(KEY)).cents += 1
            await meanwhile(db, KEY0, euros=9.0)
    assert (await db.get_one(KEY)).cents == 900


@everywhere
@pytest.mark.parametrize("added", [{"note": {"S": "new"}}, {"views": {"N": "3"}}, {"history": {"L": []}}])
async def test_an_attribute_that_another_program_adds_meanwhile_is_contention(
    db: Db, added: dict[str, Any]
) -> None:
    await arrange_old(db)
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(KEY)).cents += 1
            await db.send(update_raw(db, KEY, **added))
    assert added.items() <= (await fetch_item(db, KEY)).items()


@everywhere
async def test_a_conversion_by_another_process_is_contention(db: Db) -> None:
    await arrange_old(db)
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(KEY)).note = "mine"
            await db.migrate(Order)
    assert await fetch_item(db, KEY) == CONVERTED


@in_memory
async def test_an_old_item_that_was_only_read_is_locked_as_it_was_stored(db: Db) -> None:
    await arrange(db, Order0(customer="ada", number=1, euros=1.5))
    await arrange(db, Order(customer="bob", number=1, cents=1, currency="EUR"))
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(Order, customer="bob", number=1)).cents = (await tx.get_one(KEY)).cents
            await meanwhile(db, KEY0, euros=9.0)
    assert (await db.get_one(Order, customer="bob", number=1)).cents == 1


@in_memory
async def test_rows_whose_fields_were_not_read_are_not_locked(db: Db) -> None:
    await arrange(db, *(Order0(customer="ada", number=n, euros=n) for n in range(3)))
    async with db.transaction() as tx:
        rows = [row async for row in tx.query(Order, customer="ada")]
        rows[0].note = "looked at"
        await meanwhile(db, KEY0, euros=9.0)
    assert [row.cents for row in await db.query(Order, customer="ada").all()] == [0, 900, 200]


# --- blind writes -----------------------------------------------------------------------------------------


@everywhere
async def test_a_blind_update_of_an_unconverted_item_is_refused(db: Db) -> None:
    """Even if its expectations hold, because its new values would be converted again."""
    await arrange_old(db)
    where = {"customer": "ada", "number": 1}
    with expect_failure(InvalidModelUpdateError, "_v is absent"):
        async with db.transaction() as tx:
            tx.update(Order, {**where, "note": None}, {"note": "x"})
    with expect_failure(InvalidModelUpdateError, "_v is absent"):
        async with db.transaction() as tx:
            tx.update(KEY, col(Order.note).set("x"))
    await db.migrate(Order)
    async with db.transaction() as tx:
        tx.update(Order, {**where, "note": None}, {"note": "x"})
    assert (await db.get_one(KEY)).note == "x"


@in_memory
async def test_a_blind_update_of_an_item_of_a_newer_version_is_refused(db: Db) -> None:
    await arrange(db, Order(customer="ada", number=1, cents=5, currency="EUR"))
    with expect_failure(InvalidModelUpdateError, "_v is"):
        async with db.transaction() as tx:
            tx.update(Order1, {"customer": "ada", "number": 1, "cents": 5}, {"cents": 6})


def multiply_by_100(item: Values) -> Values:
    return {**item, "price": item["price"] * 100}


@version
class Price0(Model, name="Price"):
    id: Key[str]
    price: int


@version
class Price(Model, name="Price", migrations=[multiply_by_100]):
    id: Key[str]
    price: int


@everywhere
async def test_create_or_put_does_not_mistake_an_unconverted_value_for_the_expected_one(db: Db) -> None:
    await arrange(db, Price0(id="a", price=5))
    with expect_contention():
        async with db.transaction() as tx:
            tx.create_or_put(Price, {"price": 5}, {"id": "a", "price": 6})
    assert (await db.get_one(Price, "a")).price == 500
    await db.migrate(Price)
    async with db.transaction() as tx:
        tx.create_or_put(Price, {"price": 500}, {"id": "a", "price": 6})
    assert (await db.get_one(Price, "a")).price == 6


@in_memory
async def test_create_or_put_without_expectations_replaces_an_old_item(db: Db) -> None:
    await arrange(db, Price0(id="a", price=5))
    async with db.transaction() as tx:
        tx.create_or_put(Price, {}, {"id": "a", "price": 6})
    assert (await db.get_one(Price, "a")).price == 6


# --- newer versions ---------------------------------------------------------------------------------------


def reuse(item: Values) -> Values:
    return {**item, "euros": "a word for something else"}


@version
class Order3(Model, name="Order", migrations=[to_cents, with_currency, reuse]):
    customer: Key[str]
    number: SortKey[int]
    cents: int
    currency: str
    euros: str = "nothing"
    colour: str = "red"
    note: str | None = None


@version
class Renaming(Model, name="Order", migrations=[to_cents, with_currency]):
    """Version 2, in which ``note`` was once called ``euros``."""

    customer: Key[str]
    number: SortKey[int]
    cents: int
    currency: str
    note: str | None = field(default=None, aliases=["euros"])


@everywhere
async def test_an_item_of_a_newer_version_is_not_converted_and_keeps_its_version(db: Db) -> None:
    await arrange(db, Order3(customer="ada", number=1, cents=5, currency="USD"))
    for model in (Order1, Order, Renaming):
        key: ModelKey[Any] = model.key(customer="ada", number=1)
        assert (await db.get_one(key)).cents == 5
        assert (await db.get_one(key)).note is None
    await meanwhile(db, Renaming.key(customer="ada", number=1), cents=6)
    found = await fetch_item(db, KEY)
    assert (found["_v"], found["cents"], found["euros"]) == ({"N": "3"}, {"N": "6"}, {"S": "nothing"})
    assert found["colour"] == {"S": "red"}
    report = await db.migrate(Renaming)
    assert (report.found, report.changed) == (1, 0)


squeezer = Squeezer()


@version
class Letter1(Model, name="Letter", migrations=[multiply_by_100], archive=squeezer):
    writer: Key[str]
    price: int


@version
class Letter2(Model, name="Letter", migrations=[multiply_by_100, multiply_by_100], archive=squeezer):
    writer: Key[str]
    price: int


@blocking
async def test_an_item_that_a_hydrator_fetches_keeps_its_newer_version(db: Db) -> None:
    await arrange(db, Letter2(writer="ada", price=5))
    key = Letter1.key("ada")
    squeeze(db.sync, key)
    await meanwhile(db, key, price=6)
    assert (await fetch_item(db, key))["_v"] == {"N": "2"}
    assert (await db.get_one(Letter2, "ada")).price == 6


@version
class Letter0(Model, name="Letter", archive=squeezer):
    writer: Key[str]
    price: int


@blocking
async def test_an_item_that_a_hydrator_fetches_is_converted_and_then_stored_whole(db: Db) -> None:
    await arrange(db, Letter0(writer="ada", price=5))
    key = Letter2.key("ada")
    squeeze(db.sync, key)
    assert (await db.get_one(key)).price == 50_000
    await meanwhile(db, key, price=7)
    assert not is_squeezed(db.sync, key)
    assert (await db.get_one(key)).price == 7


# --- derived attributes -----------------------------------------------------------------------------------


def rename_and_date(item: Values) -> Values:
    item["topic"] = item.pop("subject").lower()
    item["until"] = item.pop("days") * 86400
    return item


@version
class Talk0(Model, name="Talk", ttl="days", indexes=[Index("by_topic", ["subject"])]):
    id: Key[str]
    subject: str
    days: int


@version
class Talk(
    Model, name="Talk", migrations=[rename_and_date], ttl="until", indexes=[Index("by_topic", ["topic"])]
):
    id: Key[str]
    topic: str
    until: int
    note: str | None = None


@everywhere
async def test_index_attributes_and_expiry_are_derived_from_converted_values(db: Db) -> None:
    await create_tables(db, Talk)
    days = (datetime.now(UTC) + timedelta(days=10)).timestamp() // 86400
    await put_raw(
        db,
        Talk,
        {
            **raw_key(Talk.key("a")),
            **encode_item({"id": "a", "subject": "COFFEE", "days": int(days)}),
            **encode_item({"gsi1_pk": "Talk#by_topic#COFFEE", "gsi1_sk": "#"}),
        },
    )
    await meanwhile(db, Talk.key("a"), note="x")
    found = await fetch_item(db, Talk.key("a"))
    assert (found["gsi1_pk"], found["_ttl"]) == (
        {"S": "Talk#by_topic#coffee"},
        {"N": str(int(days) * 86400)},
    )
    assert [row.id for row in await db.query(Talk, index="by_topic", topic="coffee").all()] == ["a"]
    assert await db.query(Talk, index="by_topic", topic="COFFEE").all() == []


# --- errors -----------------------------------------------------------------------------------------------


def define_model(conversion: Any) -> type[Model]:
    @version
    class Price(Model, name="Price", migrations=[conversion]):
        id: Key[str]
        price: int
        mail: str | None = field(default=None, unique=True)

    return Price


def raise_lookup_error(item: Values) -> Values:
    raise LookupError("no such thing")


def return_nothing(item: Values) -> None:
    item["price"] = 1


async def await_nothing(item: Values) -> Values:
    return item


@in_memory
@pytest.mark.parametrize(
    ("conversion", "problem"),
    [
        (
            raise_lookup_error,
            "the conversion raise_lookup_error failed for the item Price#a.*LookupError: no such",
        ),
        (return_nothing, "the conversion return_nothing returned NoneType for the item Price#a"),
        (await_nothing, "the conversion await_nothing returned coroutine for the item Price#a"),
        (lambda item: {**item, "price": float("nan")}, r"Price\.price: .*Price#a"),
        (lambda item: {**item, "price": object()}, r"Price\.price: .*Price#a"),
        (lambda item: {**item, "id": "b"}, r"Price\.id: a conversion changed it .*Price#a"),
        (lambda item: {"price": 1}, r"Price\.id: a conversion changed it .*Price#a"),
        (lambda item: {**item, "mail": "ada"}, r"Price\.mail: a conversion changed it .*Price#a"),
    ],
)
async def test_a_failing_conversion_is_reported_with_the_item_and_changes_nothing(
    db: Db, conversion: Any, problem: str
) -> None:
    model = define_model(conversion)
    await arrange(db, Price0(id="a", price=5))
    before = await fetch_item(db, Price0.key("a"))
    with pytest.raises(InvalidRequestError, match=problem):
        await db.get(model, "a")
    with pytest.raises(InvalidRequestError, match=problem):
        await scan_model(db, model)
    report = await db.migrate(model)
    assert (report.found, report.changed, report.failed) == (1, 0, 1)
    assert await fetch_item(db, Price0.key("a")) == before


@in_memory
@pytest.mark.parametrize("mark", [{"S": "one"}, {"N": "1.5"}])
async def test_an_invalid_version_attribute_is_reported(db: Db, mark: dict[str, str]) -> None:
    await arrange(db, Price0(id="a", price=5), Price0(id="b", price=5))
    await db.send(update_raw(db, Price.key("a"), _v=mark))
    with pytest.raises(InvalidRequestError, match="_v of the item Price#a"):
        await db.get(Price, "a")
    report = await db.migrate(Price)
    assert (report.found, report.changed, report.failed) == (2, 1, 1)


@in_memory
async def test_a_converted_value_must_be_valid_to_be_stored(db: Db) -> None:
    """Once stored, it would not be converted again. An assignment repairs it."""
    model: Any = define_model(lambda item: {**item, "price": "five"})
    await arrange(db, Price0(id="a", price=5))
    with pytest.raises(InvalidFieldError, match=r"Price\.price: .*five"):
        (await db.get_one(model, "a")).price  # noqa: B018
    with expect_failure(InvalidFieldError, r"Price\.price"):
        async with db.transaction() as tx:
            (await tx.get_one(model, "a")).mail = "ada"
    report = await db.migrate(model)
    assert (report.changed, report.failed) == (0, 1)
    assert "Price.price" in report.problems[0]
    await meanwhile(db, model.key("a"), price=6)
    assert (await db.get_one(model, "a")).price == 6


@in_memory
async def test_a_value_that_a_conversion_does_not_return_is_reported(db: Db) -> None:
    model = define_model(lambda item: {name: value for name, value in item.items() if name != "price"})
    await arrange(db, Price0(id="a", price=5))
    report = await db.migrate(model)
    assert (report.changed, report.failed) == (0, 1)
    assert "Price.price" in report.problems[0]
    assert (await fetch_item(db, Price0.key("a")))["price"] == {"N": "5"}


def test_conversions_must_be_a_list_of_functions_of_a_model_in_the_shared_table() -> None:
    with pytest.raises(ModelDefinitionError, match="which is not callable"):

        class Wrong(Model, migrations=["to_cents"]):  # type: ignore[list-item]
            pass

    with pytest.raises(ModelDefinitionError, match="cannot have migrations"):

        class Own(Model, table="Own", migrations=[to_cents]):
            pass

    with pytest.raises(ModelDefinitionError, match="migrations= must be a list of functions"):

        class Single(Model, migrations=to_cents):  # type: ignore[arg-type]
            pass


# --- renames and inheritance ------------------------------------------------------------------------------


def double(item: Values) -> Values:
    return {**item, "quantity": item["quantity"] * 2}


@version
class Parcel0(Model, name="Parcel"):
    id: Key[str]
    qty: int


@version
class Parcel(Model, name="Parcel", migrations=[double]):
    id: Key[str]
    quantity: int = field(aliases=["qty"])


@in_memory
async def test_conversions_see_renamed_values_under_their_new_names(db: Db) -> None:
    await arrange(db, Parcel0(id="a", qty=3))
    assert (await db.get_one(Parcel, "a")).quantity == 6
    async with db.transaction() as tx:
        (await tx.get_one(Parcel, "a")).field("quantity").increment_by(1)
    assert (await db.get_one(Parcel, "a")).quantity == 7


def add_1(item: Values) -> Values:
    return {**item, "size": item["size"] + 1}


def add_10(item: Values) -> Values:
    return {**item, "size": item["size"] + 10}


class Base(Model, migrations=[add_1]):
    id: Key[str]
    kind: SortKey[str] = field(default="base")
    size: int


class Heir(Base):
    kind = "heir"


class Rebel(Base, migrations=[add_10, add_10]):
    kind = "rebel"


@in_memory
async def test_a_derived_model_inherits_the_conversions_of_its_base_unless_it_has_its_own(db: Db) -> None:
    for model in (Base, Heir, Rebel):
        key = model.key("a")
        values = {"id": "a", "kind": key.components["kind"], "size": 0}
        await put_raw(db, model, {**raw_key(key), **encode_item(values)})
    assert [(type(row), row.size) for row in await db.query(Base, id="a").all()] == [
        (Base, 1),
        (Heir, 1),
        (Rebel, 20),
    ]
    report = await db.migrate(Base)
    assert (report.found, report.changed) == (3, 3)
    found = [(await fetch_item(db, model.key("a")))["_v"] for model in (Base, Heir, Rebel)]
    assert found == [{"N": "1"}, {"N": "1"}, {"N": "2"}]
    assert [row.size for row in await db.query(Base, id="a").all()] == [1, 1, 20]


# --- exactness --------------------------------------------------------------------------------------------

numbers = st.one_of(st.integers(), st.decimals(allow_nan=False, allow_infinity=False, places=10)).map(str)
texts = st.text(max_size=5)
scalars: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda text: {"S": text}, texts),
    st.builds(lambda text: {"N": text}, numbers.filter(lambda text: len(text) < 38)),
    st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
    st.just({"NULL": True}),
    st.just({"B": "AAEC"}),
    st.builds(lambda members: {"SS": sorted(members)}, st.sets(texts, min_size=1, max_size=3)),
)
attributes = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.builds(lambda members: {"L": members}, st.lists(inner, max_size=3)),
        st.builds(lambda members: {"M": members}, st.dictionaries(texts.filter(bool), inner, max_size=3)),
    ),
    max_leaves=5,
)
items = st.dictionaries(st.from_regex(r"[a-z]{1,4}", fullmatch=True), attributes, max_size=5)


@examples(items, st.integers(0, 3))
def test_values_that_conversions_do_not_touch_stay_exactly_as_stored(item: Item, done: int) -> None:
    def same(values: Values) -> Values:
        return values

    def copy_values(values: Values) -> Mapping[str, Any]:
        return dict(values)

    migrations = Migrations("Thing", {}, [same, copy_values, same], [])
    raw = {**item, "pk": {"S": "Thing#1"}, "_w": {"S": "w"}, "_v": {"N": str(done)}}
    current = migrations.current(raw, ["pk", "sk"])
    assert current == {**raw, "_v": {"N": "3"}}
    assert (current is raw) == (done == 3)
    assert migrations.current(current, ["pk", "sk"]) is current


@examples(items, st.integers(0, 4))
def test_the_remaining_conversions_of_an_item_are_each_called_once_in_order(item: Item, done: int) -> None:
    called: list[int] = []

    def number_conversion(place: int) -> Any:
        def conversion(values: Values) -> Values:
            called.append(place)
            return values

        return conversion

    Migrations("Thing", {}, [number_conversion(place) for place in range(4)], []).current(
        {**item, **({"_v": {"N": str(done)}} if done else {})}, []
    )
    assert called == list(range(done, 4))
