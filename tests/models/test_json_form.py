"""Models in JSON: pydantic, and so FastAPI, accepts a model class like any other type."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import pytest
from annotated_types import Ge
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from holdall import Database, Key, Model, SortKey, field
from holdall.models.marks import FROZEN, Marks
from holdall.models.model import build_instance

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    number: int = 1


class Order(Model):
    """What a customer wants."""

    customer: Key[str]
    number: SortKey[int] = field(default=1)
    product: str = field(description="what it is")
    quantity: Annotated[int, Ge(0)] = 1
    note: str | None = None
    tags: list[str] = field(default_factory=list)
    colour: Colour = Colour.RED
    address: Address | None = field(description="where it goes")
    price: Decimal = Decimal("1.25")
    seal: bytes = b"\xff>?"
    placed_at: datetime = field(read_only=True)
    made_on: date = field(default_factory=lambda: date(2026, 1, 31), read_only=True)


class User(Model):
    name: str = field(name="fullName")


class Admin(User):
    level: int = 1


class Shape(Model, abstract=True):
    size: int


ORDERS: TypeAdapter[Order] = TypeAdapter(Order)
LEAST = {"customer": "ada", "product": "tea", "placed_at": "2026-01-31T12:00:00Z"}
STORED = {
    "customer": {"S": "ada"},
    "number": {"N": "1"},
    "product": {"S": "tea"},
    "placed_at": {"S": "2026-01-31T12:00:00.000000Z"},
}
DUMPED = {
    "customer": "ada",
    "number": 1,
    "product": "tea",
    "quantity": 1,
    "note": None,
    "tags": [],
    "colour": "red",
    "address": None,
    "price": "1.25",
    "seal": "_z4_",
    "placed_at": "2026-01-31T12:00:00Z",
    "made_on": "2026-01-31",
}


def find_problems(adapter: TypeAdapter[Any], given: Any) -> dict[tuple[int | str, ...], str]:
    """The types of the problems in some JSON, by place."""
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python(given)
    return {error["loc"]: error["type"] for error in caught.value.errors()}


# --- validation -----------------------------------------------------------------------------------------


def test_json_becomes_a_detached_instance() -> None:
    text = (
        '{"customer": "ada", "number": "2", "product": "tea", "address": {"street": "Main"}, "price": 2.5,'
        ' "colour": "blue", "seal": "_z4_", "placed_at": "2026-01-31T13:00:00+01:00"}'
    )
    order = ORDERS.validate_json(text)
    assert type(order) is Order
    assert order.is_new
    assert (order.number, order.price, order.colour) == (2, Decimal("2.5"), Colour.BLUE)
    assert (order.address, order.seal, order.placed_at) == (Address(street="Main"), b"\xff>?", NOON)
    assert (order.quantity, order.tags, order.made_on) == (1, [], date(2026, 1, 31))
    order.quantity = 3
    with Database("memory:") as db:
        db.run(lambda tx: tx.create(order))
        assert db.get_one(Order, customer="ada", number=2).quantity == 3


def test_parsed_json_is_accepted_in_the_same_way() -> None:
    order = ORDERS.validate_python({**LEAST, "seal": "_z4_", "colour": "blue", "number": "2"})
    assert (order.placed_at, order.seal, order.colour, order.number) == (NOON, b"\xff>?", Colour.BLUE, 2)


def test_defaults_are_not_shared() -> None:
    one, two = ORDERS.validate_python(LEAST), ORDERS.validate_python(LEAST)
    one.tags.append("x")
    assert two.tags == []


def test_every_problem_is_reported_with_its_place() -> None:
    wrong = {
        "customer": 1,
        "number": "x",
        "quantity": -1,
        "address": {"street": 1},
        "placed_at": "now",
        "qty": 1,
    }
    assert find_problems(ORDERS, wrong) == {
        ("customer",): "string_type",
        ("number",): "int_parsing",
        ("product",): "missing",
        ("quantity",): "greater_than_equal",
        ("address", "street"): "string_type",
        ("placed_at",): "datetime_from_date_parsing",
        ("qty",): "extra_forbidden",
    }


@pytest.mark.parametrize("given", [[], 3, "text", None])
def test_a_value_that_is_not_an_object_is_refused(given: Any) -> None:
    assert find_problems(ORDERS, given) == {(): "dict_type"}


def test_a_value_that_only_a_database_refuses_is_reported_with_its_place() -> None:
    wrong = {**LEAST, "number": 10**40 + 1, "price": "1e300", "customer": "a\ud800"}
    assert find_problems(ORDERS, wrong) == dict.fromkeys(
        [("number",), ("price",), ("customer",)], "invalid_field"
    )


def test_a_key_that_cannot_be_stored_is_refused() -> None:
    class Event(Model):
        at: Key[datetime]

    assert find_problems(TypeAdapter(Event), {"at": "2026-01-31T12:00:00"}) == {("at",): "invalid_field"}


def test_an_id_must_be_a_uuid_and_is_generated_if_it_is_missing() -> None:
    users = TypeAdapter(User)
    assert str(UUID(users.validate_python({"name": "Ada"}).id))
    assert find_problems(users, {"name": "Ada", "id": "42"}) == {("id",): "invalid_field"}


def test_an_instance_stays_the_same_instance() -> None:
    order, admin = ORDERS.validate_python(LEAST), Admin(name="Ada")
    assert ORDERS.validate_python(order) is order
    assert TypeAdapter(User).validate_python(admin) is admin
    assert TypeAdapter(list[User]).validate_python([admin])[0] is admin
    assert TypeAdapter(User | None).validate_python(admin) is admin
    assert TypeAdapter(Order | User).validate_python(admin) is admin


def test_an_instance_of_another_model_is_refused() -> None:
    assert find_problems(ORDERS, User(name="Ada")) == {(): "dict_type"}
    assert find_problems(TypeAdapter(Admin), User(name="Ada")) == {(): "dict_type"}


def test_places_continue_inside_lists_and_models() -> None:
    class Basket(BaseModel):
        owner: User | None = None
        orders: list[Order] = []

    basket = Basket.model_validate({"owner": {"name": "Ada"}, "orders": [LEAST]})
    assert (type(basket.owner), [type(order) for order in basket.orders]) == (User, [Order])
    wrong = {"owner": {"name": 1}, "orders": [LEAST, {**LEAST, "number": 10**40 + 1}]}
    assert find_problems(TypeAdapter(Basket), wrong) == {
        ("owner", "name"): "string_type",
        ("orders", 1, "number"): "invalid_field",
    }


def test_an_abstract_model_is_refused() -> None:
    assert find_problems(TypeAdapter(Shape), {"size": 1}) == {(): "abstract_model"}


def test_the_caller_can_ask_for_strict_validation() -> None:
    with pytest.raises(ValidationError, match="number"):
        ORDERS.validate_python({**LEAST, "number": "2", "placed_at": NOON}, strict=True)
    strict = ORDERS.validate_json(
        '{"customer": "a", "product": "b", "placed_at": "2026-01-31T12:00:00Z"}', strict=True
    )
    assert strict.placed_at == NOON


# --- serialization --------------------------------------------------------------------------------------


def test_an_instance_becomes_json() -> None:
    assert ORDERS.dump_python(ORDERS.validate_python(LEAST), mode="json") == DUMPED


def test_an_item_comes_back_unchanged_from_its_json() -> None:
    order = ORDERS.validate_python({**LEAST, "tags": ["x"], "address": {"street": "Main"}})
    again = ORDERS.validate_json(ORDERS.dump_json(order))
    assert again.to_dict() == order.to_dict()


def test_python_values_stay_python_values() -> None:
    dumped = ORDERS.dump_python(ORDERS.validate_python(LEAST))
    assert (dumped["placed_at"], dumped["colour"], dumped["seal"]) == (NOON, Colour.RED, b"\xff>?")


class Keeper:
    def touch(self, item: Model) -> None:
        raise AssertionError("serializing must not touch the item")

    def allow_change(self, item: Model) -> None:
        raise AssertionError("serializing must not touch the item")


@pytest.mark.parametrize("marks", [None, FROZEN, Marks(Keeper())], ids=["detached", "frozen", "kept"])
def test_serializing_a_loaded_item_reads_none_of_its_fields(marks: Any) -> None:
    order = build_instance(Order, STORED, marks, None)
    assert ORDERS.dump_python(order, mode="json") == DUMPED
    assert vars(order) == {}


def test_a_changed_item_is_serialized_with_its_new_values() -> None:
    order: Order = build_instance(Order, STORED, None, None)
    order.quantity = 9
    assert ORDERS.dump_python(order, mode="json") == {**DUMPED, "quantity": 9}


def test_items_can_be_serialized_inside_their_transaction_and_after_it() -> None:
    with Database("memory:") as db:
        with db.transaction() as tx:
            made = tx.create(Order, customer="ada", product="tea", address=None, placed_at=NOON)
            assert ORDERS.dump_python(made, mode="json") == DUMPED
        assert ORDERS.dump_python(made, mode="json") == DUMPED
        with db.transaction() as tx:
            kept = tx.get_one(Order, "ada")
            assert ORDERS.dump_python(kept, mode="json") == DUMPED
            assert {*vars(kept)} & {field.name for field in Order._schema.plain} == set()
        assert ORDERS.dump_python(db.get_one(Order, "ada"), mode="json") == DUMPED


def test_a_derived_item_is_serialized_as_the_type_of_the_adapter() -> None:
    admin = Admin(name="Ada")
    assert TypeAdapter(User).dump_python(admin) == {"id": admin.id, "name": "Ada"}
    assert TypeAdapter(Admin).dump_python(admin) == {"id": admin.id, "name": "Ada", "level": 1}


def test_each_member_of_a_union_is_serialized_as_its_own_type() -> None:
    user, order = User(name="Ada"), ORDERS.validate_python(LEAST)
    adapter: TypeAdapter[Any] = TypeAdapter(list[Order | User | None])
    assert adapter.dump_python([user, None, order], mode="json") == [
        {"id": user.id, "name": "Ada"},
        None,
        DUMPED,
    ]


def test_some_fields_can_be_left_out() -> None:
    order = ORDERS.validate_python(LEAST)
    assert ORDERS.dump_python(order, include={"customer", "number"}) == {"customer": "ada", "number": 1}
    assert "seal" not in ORDERS.dump_python(order, exclude={"seal"})
    placed = ORDERS.validate_python({**LEAST, "address": {"street": "Main"}})
    assert ORDERS.dump_python(placed, include={"address": {"street"}}) == {"address": {"street": "Main"}}
    assert ORDERS.dump_python(placed, exclude={"address": {"street"}})["address"] == {"number": 1}
    assert "note" not in ORDERS.dump_python(order, exclude_none=True)
    assert {*ORDERS.dump_python(order, exclude_defaults=True)} & {"quantity", "colour", "price"} == set()


def test_a_missing_value_is_left_out_and_one_that_does_not_fit_is_an_error() -> None:
    bare = build_instance(Order, {"customer": {"S": "ada"}, "number": {"N": "1"}}, FROZEN, None)
    assert "product" not in ORDERS.dump_python(bare, exclude={"placed_at"})
    with pytest.raises(PydanticSerializationError, match=r"Order\.product: the stored value"):
        ORDERS.dump_json(build_instance(Order, {**STORED, "product": {"N": "1"}}, FROZEN, None))


def test_fields_that_were_not_fetched_are_left_out() -> None:
    with Database("memory:") as db:
        db.run(lambda tx: tx.create(Order, customer="ada", product="tea", address=None, placed_at=NOON))
        (order,) = db.query(Order, customer="ada", only=["product", "note"])
        expected = {"customer": "ada", "number": 1, "product": "tea", "note": None}
        assert ORDERS.dump_python(order) == order.to_dict() == expected


class Everything(Model):
    k: Key[str]
    text: str | None = None
    whole: int | None = None
    number: float | None = None
    exact: Decimal | None = None
    raw: bytes | None = None
    raws: list[bytes] = field(default_factory=list)
    moment: datetime | None = None
    day: date | None = None
    length: timedelta | None = None
    ref: UUID | None = None
    words: set[str] = field(default_factory=set)
    sizes: dict[int, str] = field(default_factory=dict)
    pair: tuple[int, str] | None = None
    place: Address | None = None


@given(
    st.builds(
        Everything,
        k=st.text(),
        text=st.none() | st.text(),
        whole=st.none() | st.integers(-(10**37), 10**37),
        number=st.none()
        | st.floats(-1e100, 1e100).filter(lambda number: number == 0 or abs(number) > 1e-100),
        exact=st.none()
        | st.decimals(allow_nan=False, allow_infinity=False, places=3, max_value=10**9, min_value=0),
        raw=st.none() | st.binary(),
        raws=st.lists(st.binary(), max_size=3),
        moment=st.none() | st.datetimes(timezones=st.just(UTC)),
        day=st.none() | st.dates(),
        length=st.none() | st.timedeltas(min_value=timedelta(days=-999), max_value=timedelta(days=999)),
        ref=st.none() | st.uuids(),
        words=st.sets(st.text(), max_size=3),
        sizes=st.dictionaries(st.integers(-999, 999), st.text(), max_size=3),
        pair=st.none() | st.tuples(st.integers(-999, 999), st.text()),
        place=st.none() | st.builds(Address, street=st.text(), number=st.integers(-999, 999)),
    )
)
def test_any_item_comes_back_unchanged_from_its_json(item: Everything) -> None:
    adapter = TypeAdapter(Everything)
    assert adapter.validate_json(adapter.dump_json(item)).to_dict() == item.to_dict()
    assert adapter.validate_python(adapter.dump_python(item, mode="json")).to_dict() == item.to_dict()


# --- schemas --------------------------------------------------------------------------------------------


def test_the_schema_for_validation() -> None:
    schema = Order.json_schema()
    assert schema == ORDERS.json_schema()
    assert (schema["title"], schema["description"], schema["type"]) == (
        "Order",
        "What a customer wants.",
        "object",
    )
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["customer", "product", "placed_at"]
    fields = schema["properties"]
    assert fields["customer"] == {"title": "Customer", "type": "string"}
    assert fields["number"] == {"title": "Number", "type": "integer", "default": 1}
    assert fields["product"]["description"] == "what it is"
    assert fields["quantity"] == {"title": "Quantity", "type": "integer", "minimum": 0, "default": 1}
    assert fields["note"]["default"] is None
    assert "default" not in fields["tags"]
    assert (fields["colour"]["$ref"], fields["colour"]["default"]) == ("#/$defs/Colour", "red")
    assert fields["address"]["description"] == "where it goes"
    assert (fields["price"]["default"], fields["seal"]["default"]) == ("1.25", "_z4_")
    assert schema["$defs"].keys() == {"Colour", "Address"}


def test_the_schema_for_serialization() -> None:
    schema = ORDERS.json_schema(mode="serialization")
    assert (schema["title"], schema["description"]) == ("Order", "What a customer wants.")
    assert schema["required"] == list(Order._schema.fields)
    fields = schema["properties"]
    assert fields["product"]["description"] == "what it is"
    assert (fields["price"]["type"], fields["seal"]["type"]) == ("string", "string")
    assert [name for name, each in fields.items() if each.get("readOnly")] == ["placed_at", "made_on"]


def test_a_required_field_is_not_marked_as_read_only_for_validation() -> None:
    # clients that follow OpenAPI do not send readOnly fields
    fields = Order.json_schema()["properties"]
    assert [name for name, each in fields.items() if each.get("readOnly")] == ["made_on"]


def test_a_generated_id_is_optional() -> None:
    schema = User.json_schema()
    assert schema["required"] == ["name"]
    assert schema["properties"]["id"] == {"title": "Id", "type": "string", "format": "uuid"}


def test_a_model_without_a_docstring_has_no_description() -> None:
    assert "description" not in User.json_schema()
    assert "description" not in Admin.json_schema()


def test_models_are_referred_to_by_name() -> None:
    schema = TypeAdapter(dict[str, list[User] | Order | None]).json_schema()
    assert {"User", "Order"} <= schema["$defs"].keys()


def test_models_with_the_same_name_have_separate_definitions() -> None:
    def another() -> type[Model]:
        class User(Model):
            age: int

        return User

    pair: Any = tuple[User, another()]  # type: ignore[misc]
    definitions = TypeAdapter(pair).json_schema()["$defs"]
    assert sorted(name.rpartition("__")[2] for name in definitions) == ["User", "User"]


def test_default_bytes_are_in_the_schema_in_their_json_form() -> None:
    class Thing(Model):
        x: bytes = b"\xff"
        y: list[bytes] = [b"\xff"]  # noqa: RUF012 - a default, copied for each item

    for mode in ("validation", "serialization"):
        fields = TypeAdapter(Thing).json_schema(mode=mode)["properties"]
        assert (fields["x"]["default"], fields["y"]["default"]) == ("_w==", ["_w=="])


def test_the_callers_config_is_accepted() -> None:
    strict = TypeAdapter(list[Order], config=ConfigDict(title="Orders"))
    assert strict.validate_python([LEAST])[0].customer == "ada"


def test_pydantic_is_not_imported_for_models_that_do_not_need_it() -> None:
    script = (
        "import sys\n"
        "from holdall import Key, Model\n"
        "class Thing(Model):\n    k: Key[str]\n    x: int = 1\n"
        "Thing(k='a').to_dict()\n"
        "assert 'pydantic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# --- FastAPI --------------------------------------------------------------------------------------------


class Client:
    """A client that sends requests to an application in this process."""

    def __init__(self, application: Any) -> None:
        self.application = application

    def send(self, method: str, path: str, json: Any = None) -> tuple[int, Any]:
        return asyncio.run(self._send(method, path, json))

    async def _send(self, method: str, path: str, json: Any) -> tuple[int, Any]:
        import httpx

        transport = httpx.ASGITransport(app=self.application)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            reply = await client.request(method, path, json=json)
            return reply.status_code, reply.json()


def shop(db: Database) -> Any:
    from fastapi import Body, FastAPI

    application = FastAPI()

    def create(order: Annotated[Order, Body()]) -> Order:
        return create_many([order])[0]

    def create_many(orders: list[Order]) -> list[Order]:
        with db.transaction() as tx:
            return [tx.create(order) for order in orders]

    def find(customer: str, number: int) -> Order | None:
        return db.get(Order, customer=customer, number=number)

    def find_untyped(id: str) -> Any:
        return db.get(User, id)

    for function in (create, create_many, find):
        function.__annotations__ = {
            name: eval(text, {**globals(), "Body": Body}) for name, text in function.__annotations__.items()
        }
    application.post("/orders")(create)
    application.post("/orders/many")(create_many)
    application.get("/orders/{customer}/{number}")(find)
    application.get("/untyped/{id}", response_model=None)(find_untyped)
    return application


def test_fastapi_accepts_a_model_as_body_and_response() -> None:
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    with Database("memory:") as db:
        client = Client(shop(db))
        assert client.send("POST", "/orders", LEAST) == (200, DUMPED)
        assert client.send("GET", "/orders/ada/1") == (200, DUMPED)
        assert client.send("GET", "/orders/ada/2") == (200, None)
        many = [{**LEAST, "number": 2}, {**LEAST, "number": 3}]
        assert client.send("POST", "/orders/many", many) == (
            200,
            [{**DUMPED, "number": 2}, {**DUMPED, "number": 3}],
        )


def test_fastapi_returns_a_whole_item_even_without_a_declared_type() -> None:
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    with Database("memory:") as db:
        user = db.run(lambda tx: tx.create(User, name="Ada"))
        assert Client(shop(db)).send("GET", f"/untyped/{user.id}") == (200, {"id": user.id, "name": "Ada"})


def test_fastapi_reports_what_is_wrong_with_a_body() -> None:
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    with Database("memory:") as db:
        client = Client(shop(db))
        status, reply = client.send(
            "POST", "/orders", {**LEAST, "quantity": -1, "number": 10**40 + 1, "x": 1}
        )
        assert status == 422
        assert [problem["loc"] for problem in reply["detail"]] == [["body", "quantity"], ["body", "x"]]
        status, reply = client.send("POST", "/orders/many", [LEAST, {**LEAST, "number": 10**40 + 1}])
        assert status == 422
        assert [problem["loc"] for problem in reply["detail"]] == [["body", 1, "number"]]
        assert client.send("GET", "/orders/ada/1") == (200, None)


def test_fastapi_describes_models() -> None:
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    with Database("memory:") as db:
        schemas = Client(shop(db)).send("GET", "/openapi.json")[1]["components"]["schemas"]
        assert schemas["Order-Input"]["required"] == ["customer", "product", "placed_at"]
        assert schemas["Order-Output"]["required"] == list(Order._schema.fields)
