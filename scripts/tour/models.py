"""Steps about models and transactions: fields, validation, unique values, a lost reply, and costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

from annotated_types import Ge

from holdall import Database, Key, Model, SortKey, Transaction, field
from holdall.core import GetItem
from holdall.errors import (
    FrozenItemError,
    HoldallError,
    InvalidFieldError,
    OutcomeUnknown,
    TransactionErrors,
)
from holdall.testing import Fault, FaultyBackend
from tour.stage import Tour, step


class Roast(Enum):
    LIGHT = "light"
    DARK = "dark"


class Sale(Model):
    customer: Key[str]
    number: SortKey[int]
    product: str
    roast: Roast = Roast.LIGHT
    quantity: Annotated[int, Ge(0)] = 1
    price: Decimal = Decimal("12.50")
    note: str | None = None
    tags: set[str] = field(default_factory=set)
    placed_at: datetime = field(read_only=True)


class Member(Model):
    name: Key[str]
    email: str = field(unique=True)


class Guestbook(Model):
    place: Key[str]
    names: list[str] = field(default_factory=list)


class Page(Model):
    url: Key[str]
    views: int = 0
    likes: int = 0


def open_database(tour: Tour) -> Database:
    """Open a database whose requests are counted."""
    return Database(backend=tour.store, manage_table=True)


def expect_error(function: Callable[[], Any]) -> HoldallError:
    """Call a function that must raise an error; return the error."""
    try:
        function()
    except HoldallError as error:
        return error
    raise AssertionError("the function raised no error")


@step("A class is all you write")
def a_class(tour: Tour) -> None:
    """Annotations become fields; Key and SortKey become the key. Values are stored exactly, in readable form."""
    db = open_database(tour)
    now = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
    with db.transaction() as tx:
        for number in (9, 10, 11):
            tx.create(Sale, customer="ada", number=number, product="sidamo", tags={"new"}, placed_at=now)
    key = Sale.key(customer="ada", number=10)
    partition, sort = key.encoded
    item = tour.store.send(GetItem("holdall", {"pk": {"S": str(partition)}, "sk": {"S": str(sort)}})).item
    assert item is not None
    sale = db.get_one(key)
    rows = [
        (name, repr(getattr(sale, name)), json.dumps(item.get(name, "absent")))
        for name in ("customer", "number", "roast", "quantity", "price", "note", "tags", "placed_at")
    ]
    tour.voice.table(["field", "Python", "stored as"], rows)
    numbers = [found.number for found in db.query(Sale, customer="ada")]
    tour.voice.say(
        f"Its key is {partition} and {sort}. Numbers in sort keys sort as numbers: a query returns {numbers}."
    )
    assert numbers == [9, 10, 11]


@step("Values are checked when they are set")
def validation(tour: Tour) -> None:
    """A value that does not fit is refused when it is set. A change inside a list is checked at the commit."""
    db = open_database(tour)
    now = datetime.now(UTC)

    def spoil(tx: Transaction) -> None:
        book = tx.get(Guestbook, "spoilt", create_if_missing=True)
        book.names.append(5)  # type: ignore[arg-type]

    def set_late(tx: Transaction) -> None:
        tx.get_one(Sale, customer="ada", number=9).placed_at = now

    attempts: dict[str, Callable[[], Any]] = {
        "a text for a number": lambda: Sale(customer="x", number=1, product="x", quantity="3", placed_at=now),  # type: ignore[arg-type]
        "a negative quantity": lambda: Sale(customer="x", number=1, product="x", quantity=-3, placed_at=now),
        "a misspelt name": lambda: Sale(custmer="x"),  # type: ignore[call-arg]
        "half a key": lambda: db.get(Sale, customer="ada"),
        "a read-only field": lambda: db.run(set_late),
        "a number among the names, seen at commit": lambda: db.run(spoil),
        "a change outside a transaction": lambda: setattr(
            db.get_one(Sale, customer="ada", number=9), "note", "?"
        ),
    }
    for what, attempt in attempts.items():
        error = expect_error(attempt)
        assert isinstance(error, InvalidFieldError | FrozenItemError)
        tour.voice.refusal(what, error.code, error.message, error.hint)


@step("All of it, or nothing")
def all_or_nothing(tour: Tour) -> None:
    """Several errors in one commit are raised as one group. A unique value belongs to at most one item."""
    db = open_database(tour)
    with db.transaction() as tx:
        tx.create(Member, name="ada", email="ada@example.com")
        tx.create(Member, name="grace", email="grace@example.com")

    def create_three(tx: Transaction) -> None:
        tx.create(Member, name="alan", email="ada@example.com")
        tx.create(Member, name="grace", email="g@example.com")
        tx.create(Member, name="katherine", email="k@example.com")

    group = expect_error(lambda: db.run(create_three))
    assert isinstance(group, TransactionErrors)
    for error in group.exceptions:
        assert isinstance(error, HoldallError)
        tour.voice.refusal("one of three creations", error.code, error.message, error.hint)
    assert db.get(Member, "katherine") is None
    tour.voice.say("Katherine's item was valid, but the transaction failed, so it was not written either.")

    def swap(tx: Transaction) -> None:
        ada, grace = tx.get_one(Member, "ada"), tx.get_one(Member, "grace")
        ada.email, grace.email = grace.email, ada.email
        tour.voice.table(
            ["what the commit will do", "before", "after"],
            [
                (change.key, (change.before or {})["email"], (change.after or {})["email"])
                for change in tx.changes()
            ],
        )

    db.run(swap)
    assert db.get_one(Member, "ada").email == "grace@example.com"
    tour.voice.say("Swapping two unique values is one transaction of four items.")


@step("A commit whose reply is lost")
def lose_commit(tour: Tour) -> None:
    """Holdall cannot know whether the commit happened, so it does not run it again and calls no handler. It raises."""
    faulty = FaultyBackend(tour.store)
    db = Database(backend=faulty, manage_table=True)
    db.run(lambda tx: tx.create(Page, url="/"))
    calls: list[str] = []

    def like(tx: Transaction) -> None:
        calls.append("the function")
        tx.after_commit(calls.append, "the commit handler")
        tx.after_failure(lambda error: calls.append("the failure handler"))
        tx.get_one(Page, "/").likes += 1
        faulty.inject(Fault.LOST_AFTER)

    error = expect_error(lambda: db.run(like))
    assert isinstance(error, OutcomeUnknown)
    tour.voice.refusal("one more like", error.code, error.message, error.hint)
    likes = db.get_one(Page, "/").likes
    tour.voice.say(
        f"Called: {', '.join(calls)}, once. The page has {likes} like: this time the commit had happened."
    )
    assert calls == ["the function"]
    assert likes == 1


@step("What a transaction costs")
def costs(tour: Tour) -> None:
    """One item is an ordinary write. From two items on, DynamoDB bills each twice, checks included."""
    db, meter = open_database(tour), tour.meter
    db.get_one(Page, "/")  # the first request also looks up the table

    def count_views(*urls: str) -> Callable[[Transaction], None]:
        def count(tx: Transaction) -> None:
            for url in urls:
                tx.get_one(Page, url).views += 1

        return count

    def compare(tx: Transaction) -> None:
        tx.get_one(Page, "/").likes = tx.get_one(Page, "/news").views

    functions: dict[str, Callable[[Transaction], Any]] = {
        "create one": lambda tx: tx.create(Page, url="/news"),
        "read and change one": count_views("/"),
        "read and increment one": lambda tx: tx.get_one(Page, "/").field("views").increment_by(1),
        "read two, change one": compare,
        "read and change two": count_views("/", "/news"),
        "read two at one moment": lambda tx: tx.get_all([Page.key("/"), Page.key("/news")]),
    }
    rows = []
    for what, function in functions.items():
        sent, read, written = meter.sent.copy(), meter.units[False], meter.units[True]
        db.run(function)
        requests = meter.sent - sent
        rows.append(
            (
                what,
                ", ".join(sorted(requests.elements())),
                meter.units[False] - read,
                meter.units[True] - written,
            )
        )
    tour.voice.table(["transaction", "requests", "read units", "write units"], rows)
    assert rows[0][2:] == (0, 1)
    assert rows[4][2:] == (2, 4)
