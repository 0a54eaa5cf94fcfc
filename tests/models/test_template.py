"""Templates: keys of single-table designs, rendered, parsed back, and queried in ranges."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as some
from rig.behaviour import Db, awaiting, everywhere, in_memory
from rig.behaviour_models import arrange, put_raw

from holdall import Index, Key, Model, SortKey, Template, col, field
from holdall.core import CreateTable, IndexSchema, KeyAttribute, Scan, TableSchema, encode_item
from holdall.errors import (
    ConfigurationError,
    InvalidFieldError,
    InvalidModelUpdateError,
    ModelDefinitionError,
    ModelMismatchError,
    QueryNotSupported,
)
from holdall.models import stream_change

DAYS = [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 6)]


class Customer(Model, table="app", layout=Template(pk="CUSTOMER#{name}", sk="PROFILE", type="entity")):
    name: Key[str]
    city: str = ""


class Order(
    Model,
    table="app",
    layout=Template(
        pk="CUSTOMER#{customer}",
        sk="ORDER#{number:010d}",
        gsi1=("STATUS#{status}", "{placed_at}"),
        type="entity",
    ),
):
    customer: Key[str]
    number: SortKey[int]
    status: str | None = None
    placed_at: datetime = field(default_factory=lambda: DAYS[0])


class Event(
    Model,
    table="events",
    layout=Template({"PK": "T#{tenant}", "SK": "T#{tenant}#{day}#{kind}"}, casing="lower"),
):
    tenant: Key[str]
    day: SortKey[datetime]
    kind: SortKey[str]
    text: str = ""


# --- what is stored ---------------------------------------------------------------------------------------


@everywhere
async def test_keys_and_index_attributes_are_texts_and_fields_are_attributes(db: Db) -> None:
    await arrange(db, Order(customer="ada", number=7, status="open"), Customer(name="ada", city="London"))
    assert await db.raw(Order.key(customer="ada", number=7)) == encode_item(
        {
            "pk": "CUSTOMER#ada",
            "sk": "ORDER#0000000007",
            "entity": "Order",
            "customer": "ada",
            "number": 7,
            "status": "open",
            "placed_at": "2026-01-01T00:00:00.000000Z",
            "gsi1pk": "STATUS#open",
            "gsi1sk": "2026-01-01T00:00:00.000000Z",
        }
    )
    assert (await db.get_one(Customer, "ada")).city == "London"


@everywhere
async def test_models_of_one_partition_are_distinguished(db: Db) -> None:
    await arrange(db, Customer(name="ada"), *(Order(customer="ada", number=n) for n in (1, 2)))
    assert [order.number async for order in db.query(Order, customer="ada")] == [1, 2]
    assert [customer.name async for customer in db.query(Customer, name="ada")] == ["ada"]
    assert [customer.name async for customer in db.scan(Customer)] == ["ada"]
    key = {"pk": "CUSTOMER#ada", "sk": "ORDER#0000000003"}
    await put_raw(db, Order, encode_item({**key, "entity": "Refund", "customer": "ada", "number": 3}))
    assert [order.number async for order in db.query(Order, customer="ada")] == [1, 2]
    with pytest.raises(ModelMismatchError):
        await db.get(Order, customer="ada", number=3)
    await put_raw(db, Customer, encode_item({"pk": "CUSTOMER#eve", "sk": "PROFILE", "entity": "Guest"}))
    for create in (False, True):
        with pytest.raises(InvalidModelUpdateError, match="is of the model Guest, which an update of Cust"):
            await db.update(Customer.key("eve"), col(Customer.city).set("Rome"), create_if_missing=create)


@everywhere
async def test_a_change_of_a_field_moves_its_item_in_the_index(db: Db) -> None:
    await arrange(db, *(Order(customer="ada", number=n, status="open", placed_at=DAYS[n]) for n in (1, 2, 3)))

    async def numbers(status: str, sort: Any = None) -> list[int]:
        found = db.query(Order, index="gsi1", status=status, sort=sort)
        return [order.number async for order in found]

    assert await numbers("open", col(Order.placed_at) > DAYS[1]) == [2, 3]
    async with db.transaction() as tx:
        (await tx.get_one(Order, customer="ada", number=2)).status = "sent"
        (await tx.get_one(Order, customer="ada", number=3)).status = None
    assert (await numbers("open"), await numbers("sent")) == ([1], [2])
    stored = await db.raw(Order.key(customer="ada", number=3))
    assert stored is not None
    assert not {"gsi1pk", "gsi1sk"} & stored.keys()


class Invoice(
    Model,
    table="app",
    layout=Template(
        pk="$Shop#customer_{customer}",
        sk="$invoice_1#at_{at}",
        type={"__edb_e__": "invoice", "__edb_v__": "1"},
        casing="lower",
    ),
):
    customer: Key[str]
    at: SortKey[datetime] = field(stored="iso_ms")


@everywhere
async def test_several_attributes_can_identify_the_items_of_a_model(db: Db) -> None:
    invoice = Invoice(customer="Ada", at=DAYS[0])
    await arrange(db, invoice)
    stored = {
        "pk": "$shop#customer_ada",
        "sk": "$invoice_1#at_2026-01-01t00:00:00.000z",
        "__edb_e__": "invoice",
        "__edb_v__": "1",
        "customer": "Ada",
        "at": "2026-01-01T00:00:00.000Z",
    }
    assert await db.raw(invoice.key) == encode_item(stored)
    second = {"sk": "$invoice_2#at_2026", "__edb_v__": "2", "at": "2026-01-02T00:00:00.000Z"}
    await put_raw(db, Invoice, encode_item({**stored, **second}))
    assert [found.at async for found in db.scan(Invoice)] == [DAYS[0]]
    assert [found.at async for found in db.query(Invoice, customer="ADA", only=["at"])] == [DAYS[0]]
    assert await db.query(Invoice, customer="ada").count() == 1
    await put_raw(db, Invoice, encode_item({**stored, "__edb_v__": "2"}))
    with pytest.raises(ModelMismatchError):
        await db.get(Invoice, customer="ada", at=DAYS[0])
    assert [found async for found in db.query(Invoice, customer="ada")] == []


def test_a_key_in_another_casing_is_parsed_back() -> None:
    partition, sort = Invoice.key(customer="Ada", at=DAYS[1]).encoded
    found = Invoice._schema.form.components({"S": str(partition)}, {"S": str(sort)})
    assert found == {"customer": "ada", "at": DAYS[1]}
    assert Invoice.key(**found) == Invoice.key(customer="Ada", at=DAYS[1])


class Animal(Model, table="animals", layout=Template({"id": "{id}"}, type="cls")):
    id: Key[str]


class Dog(Animal, name="a-dog"):
    tricks: set[str] = field(default_factory=set)


@everywhere
async def test_a_key_attribute_can_be_a_field_itself_beside_a_type(db: Db) -> None:
    await arrange(db, Dog(id="rex", tricks={"sit"}), Animal(id="tom"))
    assert await db.raw(Dog.key("rex")) == {
        "id": {"S": "rex"},
        "cls": {"S": "a-dog"},
        "tricks": {"SS": ["sit"]},
    }
    assert sorted([type(found).__name__ async for found in db.scan(Animal)]) == ["Animal", "Dog"]
    assert [found.id async for found in db.scan(Dog)] == ["rex"]
    async with db.transaction() as tx:
        dog = await tx.get_one(Animal, "rex")
        assert isinstance(dog, Dog)
        dog.tricks.add("roll")
    assert (await db.get_one(Dog, "rex")).tricks == {"sit", "roll"}
    with pytest.raises(ModelMismatchError):
        await db.get(Dog, "tom")


class Signal(
    Model,
    table="signals",
    layout=Template(
        {"PK": "SENSOR#{sensor}", "SK": "{at}"},
        type="kind",
        by_unit={"UNIT": "U#{unit}", "value": "{value}"},
        local={"by_value": {"value": "{value}"}},
    ),
):
    sensor: Key[str]
    at: SortKey[datetime] = field(name="SK", stored="epoch_ms")
    unit: str | None = "V"
    value: float | None = None


class Alarm(Signal):
    text: str = ""


class Chunk(Model, table="chunks", layout=Template({"hash": "{hash}", "sk": "CHUNK#{number:03d}"})):
    hash: Key[bytes]
    number: SortKey[int]


@everywhere
async def test_a_key_attribute_can_be_a_number_or_binary_that_is_a_field(db: Db) -> None:
    await arrange(db, *(Signal(sensor="a", at=day, value=-number) for number, day in enumerate(DAYS)))
    await arrange(db, Alarm(sensor="a", at=DAYS[4].replace(hour=1), text="hot"), Chunk(hash=b"\0", number=7))
    stored = {"PK": "SENSOR#a", "SK": 1767225600000, "kind": "Signal", "sensor": "a", "unit": "V"}
    stored |= {"UNIT": "U#V", "value": 0}
    assert await db.raw(Signal.key(sensor="a", at=DAYS[0])) == encode_item(stored)

    async def values(**query: Any) -> list[float | None]:
        return [signal.value async for signal in db.query(Signal, **query)]

    assert await values(sensor="a", sort=Signal.at.between(DAYS[1], DAYS[2])) == [-1, -2]
    assert await values(sensor="a", sort=Signal.at > DAYS[3]) == [-4, None]
    assert await values(index="by_unit", unit="V", sort=col(Signal.value) <= -3) == [-4, -3]
    assert await values(index="by_value", sensor="a", sort=col(Signal.value) >= -1) == [-1, 0]
    async with db.transaction() as tx:
        (await tx.get_one(Signal, sensor="a", at=DAYS[0])).value = 9
        (await tx.get_one(Signal, sensor="a", at=DAYS[1])).unit = None
        tx.update(Signal.key(sensor="a", at=DAYS[2]), col(Signal.value).set(8), where=col(Signal.unit) == "V")
    assert await values(index="by_unit", unit="V") == [-4, -3, 8, 9]
    assert [alarm.text async for alarm in db.scan(Alarm)] == ["hot"]
    await db.delete(*[signal.key async for signal in db.query(Signal, sensor="a", sort=Signal.at < DAYS[4])])
    assert await db.scan(Signal).count() == 2
    assert [(chunk.hash, chunk.number) async for chunk in db.query(Chunk, hash=b"\0")] == [(b"\0", 7)]
    assert await db.scan(Chunk).count() == 1


def test_models_in_a_template_need_names_that_another_program_can_have() -> None:
    with pytest.raises(ModelDefinitionError, match="without spaces"):

        class Cat(Animal, name="a cat"):
            pass

    with pytest.raises(ModelDefinitionError, match="leave out name="):

        class Bird(Model, table="zoo", name="B", layout=Template(pk="B#{id}", type={"cls": "bird"})):
            id: Key[str]

    with pytest.raises(ModelDefinitionError, match="stores something else"):

        class Fish(Model, table="zoo", layout=Template({"id": "F#{id}"})):
            id: Key[str]


def test_a_number_with_a_fraction_is_refused_in_a_key() -> None:
    class Price(Model, table="zoo", layout=Template(pk="P#{value}")):
        value: Key[Decimal]

    assert Price.key(Decimal("2.0")).encoded[0] == "P#2"
    with pytest.raises(InvalidFieldError, match="not a whole number"):
        Price.key(Decimal("2.5"))
    with pytest.raises(ModelDefinitionError, match="cannot spell value"):

        class Weight(Model, table="zoo", layout=Template(pk="W#{value}")):
            value: Key[float]


# --- ranges -----------------------------------------------------------------------------------------------


@everywhere
async def test_a_padded_number_has_ranges(db: Db) -> None:
    await arrange(db, *(Order(customer="ada", number=n) for n in (5, 10, 200)), Customer(name="ada"))

    async def numbers(sort: Any) -> list[int]:
        return [order.number async for order in db.query(Order, customer="ada", sort=sort)]

    assert await numbers(Order.number > 5) == [10, 200]
    assert await numbers(Order.number >= 10) == [10, 200]
    assert await numbers(Order.number < 10) == [5]
    assert await numbers(Order.number <= 10) == [5, 10]
    assert await numbers(Order.number.between(6, 10)) == [10]
    assert await numbers((Order.number > 5) & (Order.number < 200)) == [10]
    assert await numbers(Order.number == 10) == [10]


@everywhere
async def test_first_parts_are_fixed_and_the_next_one_compared(db: Db) -> None:
    await arrange(
        db,
        *(Event(tenant="Ada", day=day, kind=kind) for day in DAYS[:3] for kind in ("In", "out", "overdue")),
    )

    async def find(sort: Any = None) -> list[tuple[int, str]]:
        return [(e.day.day, e.kind) async for e in db.query(Event, tenant="Ada", sort=sort)]

    assert len(await find()) == 9
    assert await find(Event.day > DAYS[1]) == [(3, "In"), (3, "out"), (3, "overdue")]
    assert await find(Event.day <= DAYS[0]) == [(1, "In"), (1, "out"), (1, "overdue")]
    assert await find((Event.day == DAYS[1]) & Event.kind.begins_with("o")) == [(2, "out"), (2, "overdue")]
    assert await find((Event.day == DAYS[1]) & (Event.kind > "out")) == [(2, "overdue")]


@in_memory
async def test_conditions_that_are_not_a_range_are_refused(db: Db) -> None:
    with pytest.raises(QueryNotSupported, match="comes after"):
        db.query(Event, tenant="ada", sort=Event.kind == "in")
    with pytest.raises(QueryNotSupported, match="not a condition on the sort key"):
        db.query(Order, customer="ada", sort=col(Order.status) == "open")
    with pytest.raises(QueryNotSupported, match="a single range"):
        db.query(Order, customer="ada", sort=(Order.number < 1) | (Order.number > 2))


# --- every key is parsed back or refused ------------------------------------------------------------------


class Pair(Model, table="pairs", layout=Template(pk="P#{first}#{second}", sk="{at}/{number}")):
    first: Key[str]
    second: Key[str]
    at: SortKey[str]
    number: SortKey[int]


@for_all(
    some.lists(
        some.tuples(*[some.text("ab#/-1", min_size=1, max_size=4)] * 3, some.integers(-3, 30)), max_size=6
    )
)
def test_no_two_keys_are_the_same_and_each_is_parsed_back(rows: list[tuple[str, str, str, int]]) -> None:
    seen: dict[Any, Any] = {}
    for row in rows:
        components = dict(zip(("first", "second", "at", "number"), row, strict=True))
        try:
            key = Pair.key(**components)
        except InvalidFieldError:  # other values would have the same key
            continue
        partition, sort = key.encoded
        assert Pair._schema.form.components({"S": str(partition)}, {"S": str(sort)}) == components
        assert seen.setdefault(key.encoded, components) == components


class Ticket(Model, table="desk", layout=Template(pk="DAY#{day}", sk="T#{day}#{number}")):
    day: Key[str]
    number: SortKey[int]
    text: str = ""


class Desk(Model, table="desk", layout=Template(pk="DAY#{day}", sk="DESK")):
    day: Key[str]
    open: bool = True


@everywhere
async def test_models_without_a_type_are_distinguished_by_their_keys(db: Db) -> None:
    await arrange(db, Desk(day="mon"), *(Ticket(day="mon", number=number) for number in (1, 2)))
    for sort in ("T#mon#x", "T#mon#\u0663", "T#tue#3", "T#mon#1#NOTE"):
        await put_raw(db, Ticket, encode_item({"pk": "DAY#mon", "sk": sort, "day": "mon", "number": 9}))
    await put_raw(db, Ticket, encode_item({"pk": "DAY#mon", "sk": "T#mon#007"}))
    assert [desk.day async for desk in db.scan(Desk)] == ["mon"]
    assert [ticket.number async for ticket in db.query(Ticket, day="mon")] == [7, 1, 2]
    assert [ticket.number async for ticket in db.query(Ticket, day="mon", limit=2)] == [7, 1]
    assert await db.query(Ticket, day="mon").count() == await db.scan(Ticket).count() == 3
    await db.update_all(Ticket, {"text": "x"}, scan=True)
    await db.delete_all(Ticket, scan=True, where=col(Ticket.text) == "x")
    left = [item["sk"]["S"] for item in (await db.send(Scan(db.table_of(Desk)))).items]
    assert left == ["DESK", "T#mon#1#NOTE", "T#mon#x", "T#mon#\u0663", "T#tue#3"]


def test_texts_of_fixed_length_need_no_separator() -> None:
    class Booking(Model, table="bookings", layout=Template(pk="{at}{id}{day}{number:03d}{name}")):
        at: Key[datetime]
        id: Key[UUID]
        day: Key[date]
        number: Key[int]
        name: Key[str]

    values = {"id": UUID(int=5), "day": date(2026, 1, 2), "number": 7, "name": "ada"}
    for at in (DAYS[0], DAYS[0].replace(tzinfo=None)):
        key = Booking.key(at=at, **values)
        assert Booking._schema.form.components({"S": str(key.encoded[0])}, None) == {"at": at, **values}


def test_a_part_of_a_key_cannot_be_empty() -> None:
    with pytest.raises(InvalidFieldError, match=r"Pair\.at: a part of a key cannot be empty"):
        Pair.key(first="a", second="b", at="", number=1)


def test_a_number_that_does_not_fit_its_digits_is_refused() -> None:
    assert Order.key(customer="a", number=10**10 - 1).encoded[1] == "ORDER#9999999999"
    for number in (-1, 10**10):
        with pytest.raises(InvalidFieldError, match="does not fit into 10 digits"):
            Order.key(customer="a", number=number)


@awaiting
async def test_a_record_of_a_stream_is_a_change_of_the_model(db: Db) -> None:
    keys = encode_item({"pk": "CUSTOMER#ada", "sk": "ORDER#0000000007"})
    image = {
        **keys,
        **encode_item(
            {"entity": "Order", "customer": "ada", "number": 7, "placed_at": "2026-01-01T00:00:00Z"}
        ),
    }
    record = {
        "eventName": "INSERT",
        "eventSourceARN": f"arn:aws:dynamodb:eu-west-1:1:table/{db.table_of(Order)}/stream/x",
        "dynamodb": {"Keys": keys, "NewImage": image},
    }
    prefix = db.table_of(Order).removesuffix("app")
    change = stream_change(record, Order, table_prefix=prefix)
    assert change is not None
    assert change.new is not None
    assert (change.key, change.new.number) == (Order.key(customer="ada", number=7), 7)
    assert stream_change(record, Desk, Customer, Order, table_prefix=prefix) == change
    assert stream_change({**record, "dynamodb": {"Keys": keys}}, Order, table_prefix=prefix) is not None
    image["customer"] = {"S": "Ada"}
    assert stream_change(record, Order, table_prefix=prefix).new.customer == "Ada"  # type: ignore[union-attr]
    image["entity"] = {"S": "Refund"}
    assert stream_change(record, Customer, Order, table_prefix=prefix) is None


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (lambda: Template(), "needs the templates"),
        (lambda: Template("A#{name}"), "needs the templates"),  # type: ignore[arg-type]
        (lambda: Template(pk=""), "none of them empty"),
        (lambda: Template(pk="A#{unknown}"), "names unknown"),
        (lambda: Template(pk="A#{name}{name}"), "nothing separates"),
        (lambda: Template(pk="A#{name", sk="x"), "braces"),
        (lambda: Template(pk="A", sk="x"), "name is part of the key"),
        (lambda: Template(pk="A#{name}#{city}"), "city is in the key's template"),
        (lambda: Template(pk="A#{name:05d}"), "cannot spell name"),
        (lambda: Template({"city": "A#{name}"}), "stores something else"),
        (lambda: Template(pk="A#{name}", g1=("{city}",)), "'g1' cannot be the name of an index"),
        (lambda: Template(pk="A#{name}", größe=("{city}",)), "'größe' cannot be the name of an index"),
        (lambda: Template(pk="A#{name}", sk="A", local={"l 1": "{city}"}), "'l 1' cannot be the name of"),
        (lambda: Template({"x" * 256: "A#{name}"}), "must have 1 to 255 bytes"),
        (lambda: Template(pk="A#{name}", gsi1={"p": "{city}", "": "A"}), "must have 1 to 255 bytes"),
        (
            lambda: Template(pk="A#{name}", sk="X", g11={"sk": "{city}"}),
            "'sk' has two templates, 'X' and '{c",
        ),
        (lambda: Template(pk="A#{name}", g11=("{city}",), indexes={"g11": ("{city}",)}), "indexes is"),
        (
            lambda: Template(pk="A#{name}", g11={"a": "{city}"}, g12={"a": "C#{city}"}),
            "'a' has two templates",
        ),
        (lambda: Template(pk="A#{name}", casing="title"), "casing"),  # type: ignore[arg-type]
        (lambda: Template(pk="A#{name}", casing={"sk": "lower"}), "of the attributes: pk"),
        (lambda: Template(pk="A#{name}", gsi1="{city}"), "gsi1"),  # type: ignore[arg-type]
        (lambda: Template(pk="A#{name}", type={}), "type"),
        (lambda: Template(pk="A#{name}", type={"entity": "an order"}), "without spaces"),
        (lambda: Template(pk="A#{name}", type={"entity": "a", "city": "b"}), "stores something else"),
    ],
    ids=[
        "nothing",
        "text",
        "empty",
        "unknown",
        "adjacent",
        "braces",
        "missing",
        "plain field",
        "padded text",
        "name",
        "short index",
        "foreign letters",
        "local index",
        "long attribute",
        "empty attribute",
        "an index's text in the key",
        "two indexes",
        "two texts",
        "casing",
        "casing of another attribute",
        "index",
        "no type",
        "spaces",
        "constant",
    ],
)
def test_a_template_that_cannot_work_is_refused_when_the_class_is_defined(
    template: Any, problem: str
) -> None:
    with pytest.raises(ModelDefinitionError, match=problem):

        class Wrong(Model, table="tables", layout=template()):
            name: Key[str]
            city: str = ""


@pytest.mark.parametrize(
    ("keys", "index", "problem", "advice"),
    [
        (
            ("PK", "SK"),
            None,
            "its key is PK (S) and SK (S)",
            '"PK": "CUSTOMER#{customer}", "SK": "ORDER#{num',
        ),
        (
            ("pk",),
            None,
            "its key is pk (S), not pk (S) and sk (S)",
            'Template({"pk": "CUSTOMER#{customer}"})',
        ),
        (
            ("pk", "sk"),
            IndexSchema("gsi1", KeyAttribute("GSI1PK"), KeyAttribute("GSI1SK")),
            "its keys are GSI1PK (S) and GSI1SK (S), not gsi1pk (S) and gsi1sk (S)",
            'gsi1={"GSI1PK": "STATUS#{status}", "GSI1SK": "{placed_at}"}',
        ),
        (
            ("pk", "sk"),
            IndexSchema("gsi1", KeyAttribute("pk"), KeyAttribute("gsi1sk"), local=True),
            "it is local, not global",
            'local={"gsi1": {"gsi1sk": "{placed_at}"}}',
        ),
    ],
    ids=["names", "no sort key", "index", "local index"],
)
@awaiting
async def test_a_table_that_does_not_fit_is_explained_before_anything_is_written(
    db: Db, keys: tuple[str, ...], index: IndexSchema | None, problem: str, advice: str
) -> None:
    partition, sort = KeyAttribute(keys[0]), KeyAttribute(keys[1]) if keys[1:] else None
    indexes = () if index is None else (index,)
    await db.send(CreateTable(TableSchema(db.table_of(Order), partition, sort, indexes)))
    with pytest.raises(ConfigurationError) as caught:
        await db.create(Order, customer="ada", number=1)
    assert problem in caught.value.message
    assert advice in str(caught.value.hint)


def test_a_subclass_has_the_layout_of_its_root_and_its_own_name() -> None:
    class Gift(Order):
        card: str = ""

    assert Gift._schema.layout == Order._schema.layout
    assert Order._schema.of(encode_item({"entity": "Gift"})) is Gift._schema
    with pytest.raises(ModelDefinitionError, match="leave out layout="):

        class Other(Order, layout="plain"):
            pass


@everywhere
async def test_fields_that_another_program_stores_only_in_the_key_are_parsed_from_it(db: Db) -> None:
    await db.get(Order, customer="eve", number=7)
    alone = {"pk": "CUSTOMER#eve", "sk": "ORDER#0000000007", "entity": "Order", "status": "open"}
    await put_raw(db, Order, encode_item(alone))
    order = await db.get_one(Order, customer="eve", number=7)
    assert (order.customer, order.number, order.to_dict()["number"]) == ("eve", 7, 7)
    assert [order.key async for order in db.query(Order, customer="eve")] == [order.key]
    async with db.transaction() as tx:
        async for row in tx.query(Order, customer="eve"):
            assert row.number == 7
            row.status = "paid"
    stored = await db.raw(order.key) or {}
    assert (stored["status"], stored.keys() & {"customer", "number"}) == ({"S": "paid"}, set())
    await put_raw(db, Order, encode_item(alone | {"entity": "Invoice"}))
    with pytest.raises(ModelMismatchError, match="is a Invoice, not a Order"):
        await db.get(Order, customer="eve", number=7)


@everywhere
async def test_an_item_whose_fields_do_not_match_its_key_is_changed_and_deleted_under_that_key(
    db: Db,
) -> None:
    await arrange(db, Order(customer="eve", number=7))
    for name, number in (("EVE", 7), ("e#ve", 8)):
        key = {"pk": "CUSTOMER#eve", "sk": f"ORDER#000000{number}"}
        await put_raw(db, Order, encode_item({**key, "entity": "Order", "customer": name, "number": 7}))
    async with db.transaction() as tx:
        async for order in tx.query(Order, customer="eve"):
            order.status = str(order.key.encoded[1])
    found = {order.key: order.status async for order in db.query(Order, customer="eve")}
    assert sorted(map(str, found.values())) == ["ORDER#0000000007", "ORDER#0000007", "ORDER#0000008"]
    assert [key.components["customer"] for key in found] == ["eve", "EVE", "e#ve"]
    await db.delete(*(key for key in found if key.encoded[1] != "ORDER#0000000007"))
    assert [order.customer async for order in db.query(Order, customer="eve")] == ["eve"]


@in_memory
async def test_an_index_can_use_fields_of_the_key(db: Db) -> None:
    class Ticket(
        Model, table="tickets", layout=Template(pk="T#{id}", gsi1=("N#{size:03d}#{id}", "{id}#{size}"))
    ):
        id: Key[str]
        size: int

    await arrange(db, Ticket(id="a", size=1), Ticket(id="b", size=2))
    assert [ticket.id async for ticket in db.query(Ticket, index="gsi1", size=2, id="b")] == ["b"]


def test_an_index_beside_a_template_can_have_fields_as_its_key() -> None:
    class City(
        Model,
        table="cities",
        layout=Template(pk="C#{name}"),
        indexes=[Index("by_size", ["country"], ["size"])],
    ):
        name: Key[str]
        country: str
        size: int

    index = City._schema.indexes["by_size"].schema
    assert [key.name for key in index.keys] == ["country", "size"]


@pytest.mark.parametrize("type", [None, "entity"])
def test_an_index_beside_a_template_holds_all_attributes(type: str | None) -> None:
    with pytest.raises(ModelDefinitionError, match=r"'by_size': include= cannot be used with a Template"):

        class City(
            Model,
            table="cities",
            layout=Template(pk="C#{name}", type=type),
            indexes=[Index("by_size", ["country"], include=["size"])],
        ):
            name: Key[str]
            country: str
            size: int
