# mypy: ignore-errors
"""What type checkers know about models. Comments state what they must find: E, an error; R, a revealed type."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar, reveal_type

from annotated_types import Ge

from holdall import Key, Model, ModelKey, SortKey, col, computed, field


class User(Model):
    name: str


class Order(Model):
    customer: Key[str]
    number: SortKey[int] = field(default=1)
    product: str
    quantity: Annotated[int, Ge(0)] = 1
    note: str | None = None
    tags: list[str] = field(default_factory=list)
    placed_at: datetime = field(read_only=True)
    limit: ClassVar[int] = 3

    def total(self, price: Decimal) -> Decimal:
        return self.quantity * price


class Gift(Order):
    greeting: str = ""


class Ticket(Model):
    id: Key[int]
    title: str = ""


class Stamped(Model):
    id: Key[int]
    created_at: datetime = field(now="create")
    updated_at: datetime | None = field(now="update", name="changed")
    title: str


stamped = Stamped(id=1, title="x")
reveal_type(stamped.created_at)  # R: datetime
Stamped(id=1)  # E: title
Stamped(id=1, title="x", created_at=datetime.now())  # E: created_at


class Sum(Model):
    id: Key[int]
    left: int
    right: int = 0

    @computed("left", "right", name="t")
    def total(self) -> int:
        return self.left + self.right


total = Sum(id=1, left=2)
reveal_type(total.total)  # R: int
reveal_type(col(Sum.total))  # R: Column[int]
Sum(id=1, left=2, total=3)  # E: total
total.total = 3  # E
computed(7)  # E


class Cased(Model):
    id: Key[str] = field(casing="lower")
    city: str = field(casing="title")  # E


class WrongTime(Model):
    at: datetime = field(now="always")  # E


class Page(Model):
    book: Key[str]
    number: SortKey[int] = 1  # E: SortKey[int]


class Base(Model, abstract=True):
    made: datetime


class Leaf(Base):
    name: str


def make(now: datetime) -> None:
    order = Order(customer="ada", product="tea", placed_at=now)
    reveal_type(order)  # R: Order
    Order(customer="ada", number=2, product="tea", quantity=1, note=None, tags=[], placed_at=now)
    Order(customer="ada", product="tea")  # E: placed_at
    Order(customer="ada", prodcut="tea", product="tea", placed_at=now)  # E: prodcut
    Order(customer=1, product="tea", placed_at=now)  # E: str
    Order(customer="ada", product="tea", quantity="1", placed_at=now)  # E: int
    Order("ada", product="tea", placed_at=now)  # E: positional
    User(name="Ada")
    User(id="12345678-1234-4234-8234-123456789abc", name="Ada")  # E: id
    User()  # E: name
    Ticket(id=1)
    Ticket()  # E: id
    Ticket(id="1")  # E: int
    Gift(customer="ada", product="tea", placed_at=now, greeting="hello")
    Gift(customer="ada", product="tea", greeting="hello")  # E: placed_at
    Leaf(made=now, name="x")
    Leaf(name="x")  # E: made


def read(order: Order, user: User, ticket: Ticket, gift: Gift) -> None:
    reveal_type(order.customer)  # R: str
    reveal_type(order.number)  # R: int
    reveal_type(order.quantity)  # R: int
    reveal_type(order.note)  # R: str | None
    reveal_type(order.tags)  # R: list[str]
    reveal_type(order.placed_at)  # R: datetime
    reveal_type(order.total(Decimal(1)))  # R: Decimal
    reveal_type(order.is_new)  # R: bool
    reveal_type(order.to_dict())  # R: dict[str, Any]
    reveal_type(ticket.id)  # R: int
    reveal_type(user.id)  # R: Any
    reveal_type(gift.customer)  # R: str
    print(order.quanttiy)  # E: quanttiy


def assign(order: Order) -> None:
    order.quantity = 2
    order.note = None
    order.tags = ["x"]
    order.quantity = "2"  # E: int
    order.quantity = None  # E: int
    order.tags = [1]  # E: str
    order.quanttiy = 2  # E: quanttiy


def class_access() -> None:
    reveal_type(Order.customer)  # R: Key[str]
    reveal_type(Order.number)  # R: SortKey[int]
    reveal_type(Order.limit)  # R: int
    reveal_type(Ticket.id)  # R: Key[int]


def keys(order: Order, gift: Gift) -> None:
    reveal_type(Order.key)  # R: KeyMaker[Order]
    reveal_type(Order.key("ada"))  # R: ModelKey[Order]
    reveal_type(Order.key(customer="ada", number=1))  # R: ModelKey[Order]
    reveal_type(order.key)  # R: ModelKey[Order]
    reveal_type(gift.key)  # R: ModelKey[Gift]
    reveal_type(order.key.model)  # R: type[Order]
    reveal_type(order.key.components)  # R: Mapping[str, Any]
    Order.key("ada", 1)  # E
    order.key = gift.key  # E[pyright]: key


def takes_any(key: ModelKey[Model]) -> None: ...


def takes_orders(key: ModelKey[Order]) -> None: ...


def keys_have_the_type_of_their_model(order: Order, gift: Gift, user: User) -> None:
    takes_any(order.key)
    takes_orders(order.key)
    takes_orders(gift.key)
    takes_orders(user.key)  # E: User


def handles(order: Order) -> None:
    order.field("quantity").increment_by(1)
    order.field("quantity").increment_by(Decimal("0.5"))
    order.field("quantity").increment_by("1")  # E: int
    reveal_type(order.field("quantity").changed)  # R: bool


class Session(Model, table="sessions", layout="plain"):
    user: Key[str]
    at: SortKey[datetime] = field(stored="epoch_ms")
    seen: datetime = field(stored="morse")  # E: "field"
    version: int = field(default=0, version=True)


def keep_types_of_stored_forms(session: Session, now: datetime) -> None:
    reveal_type(session.at)  # R: datetime
    reveal_type(session.version)  # R: int
    Session(user="ada", at=now, seen=now)
    Session(user="ada", at=1767355200, seen=now)  # E: datetime


def schemas() -> dict[str, Any]:
    return Order.json_schema()
