"""Steps about models and transactions: a class, a race, a conflict explained, what holds and what it costs."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
    TransactionFailedError,
)
from holdall.testing import Fault, FaultyBackend
from tour.bank import CUSTOMERS
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


def opened(tour: Tour) -> Database:
    """A database whose every request is counted."""
    return Database(backend=tour.store, manage_table=True)


def error_of(function: Callable[[], Any]) -> HoldallError:
    """The error that it must end with."""
    try:
        function()
    except HoldallError as error:
        return error
    raise AssertionError("it went through")


@step("A class is all you write")
def a_class(tour: Tour) -> None:
    """Annotations become fields, Key and SortKey become the key. What is stored is exact, and plain to see."""
    db = opened(tour)
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
        f"Its key is {partition} and {sort}: numbers in sort keys sort as numbers, so a query gives {numbers}."
    )
    assert numbers == [9, 10, 11]


@step("Values are checked when they are set")
def validation(tour: Tour) -> None:
    """What does not fit is refused at once, by name. A change inside of a list is caught at the commit."""
    db = opened(tour)
    now = datetime.now(UTC)

    def spoil(tx: Transaction) -> None:
        book = tx.get(Guestbook, "spoilt", create_if_missing=True)
        book.names.append(5)  # type: ignore[arg-type]

    def set_late(tx: Transaction) -> None:
        tx.get_one(Sale, customer="ada", number=9).placed_at = now

    attempts: dict[str, Callable[[], Any]] = {
        "a text for a number": lambda: Sale(customer="x", number=1, product="x", quantity="3", placed_at=now),  # type: ignore[arg-type]
        "less than nothing": lambda: Sale(customer="x", number=1, product="x", quantity=-3, placed_at=now),
        "a misspelt name": lambda: Sale(custmer="x"),  # type: ignore[call-arg]
        "half a key": lambda: db.get(Sale, customer="ada"),
        "a read-only field": lambda: db.run(set_late),
        "a number among the names, seen at commit": lambda: db.run(spoil),
        "a change that nobody would write": lambda: setattr(
            db.get_one(Sale, customer="ada", number=9), "note", "?"
        ),
    }
    for what, attempt in attempts.items():
        error = error_of(attempt)
        assert isinstance(error, InvalidFieldError | FrozenItemError)
        tour.voice.refusal(what, error.code, error.message, error.hint)


@step("A guestbook race")
def guestbook_race(tour: Tour) -> None:
    """Eight threads read the same page before anyone signs it. Then all sign, with a transaction and without."""
    db = opened(tour)
    attempts: Counter[str] = Counter()
    counting = threading.Lock()
    gate = threading.Barrier(len(CUSTOMERS))

    def sign(tx: Transaction, name: str) -> None:
        with counting:
            attempts[name] += 1
        names = tx.get(Guestbook, "hotel", create_if_missing=True).names
        if attempts[name] == 1:
            gate.wait()  # now all of them hold an empty page
        names.append(name)

    def sign_carelessly(name: str) -> None:
        book = db.get_one(Guestbook, "hostel")
        gate.wait()
        with db.transaction() as tx:
            tx.create_or_put(Guestbook, {"place": "hostel"}, {"names": [*book.names, name]})

    with db.transaction() as tx:
        tx.create(Guestbook, place="hostel")
    with ThreadPoolExecutor(len(CUSTOMERS)) as pool:
        list(pool.map(lambda name: db.run(sign, name), CUSTOMERS))
        list(pool.map(sign_carelessly, CUSTOMERS))
    signed, careless = (db.get_one(Guestbook, place).names for place in ("hotel", "hostel"))
    tour.voice.bars(
        [
            (name, tries, "once" if tries == 1 else f"{tries} times")
            for name, tries in sorted(attempts.items())
        ]
    )
    tour.voice.table(
        ["", "signed", "names in the book"],
        [
            ("read, change, commit", len(CUSTOMERS), len(signed)),
            ("read, put blindly", len(CUSTOMERS), len(careless)),
        ],
    )
    tour.voice.say(
        f"{attempts.total()} attempts for {len(signed)} signatures: {attempts.total() - len(signed)} were refused "
        "because the page had changed, and ran again on the page as it was then. Nobody wrote a lock."
    )
    assert sorted(signed) == CUSTOMERS
    assert len(careless) < len(CUSTOMERS)


@step("A conflict, explained")
def a_conflict(tour: Tour) -> None:
    """A transaction that cannot commit says which item and which field, and what is there instead."""
    db = opened(tour)
    with db.transaction() as tx:
        tx.create(Page, url="/")

    def view(**changes: int) -> None:
        with db.transaction() as tx:
            page = tx.get_one(Page, "/")
            for name, amount in changes.items():
                setattr(page, name, getattr(page, name) + amount)

    def disturbed(change: Callable[[Page], None]) -> None:
        with db.transaction() as tx:  # a block has one attempt
            page = tx.get_one(Page, "/")
            view(views=1)
            change(page)

    def more_views(page: Page) -> None:
        page.views += 1

    def more_likes(page: Page) -> None:
        page.likes += 1

    error = error_of(lambda: disturbed(more_views))
    assert isinstance(error, TransactionFailedError)
    tour.voice.refusal("both change views", error.code, error.message, error.hint)
    tour.voice.say(f"The cause: {error.__cause__}.")
    disturbed(more_likes)
    tour.voice.say(
        "One changes views, the other likes: no conflict, because only what was touched is locked."
    )
    disturbed(lambda page: page.field("views").increment_by(1))
    page = db.get_one(Page, "/")
    tour.voice.say(f"Both count with increment_by: no conflict, and the page has {page.views} views.")
    assert (page.views, page.likes) == (4, 1)


@step("All of it, or nothing")
def all_or_nothing(tour: Tour) -> None:
    """Several things wrong at once come as one group. A unique value belongs to one item, or to none."""
    db = opened(tour)
    with db.transaction() as tx:
        tx.create(Member, name="ada", email="ada@example.com")
        tx.create(Member, name="grace", email="grace@example.com")

    def impossible(tx: Transaction) -> None:
        tx.create(Member, name="alan", email="ada@example.com")
        tx.create(Member, name="grace", email="g@example.com")
        tx.create(Member, name="katherine", email="k@example.com")

    group = error_of(lambda: db.run(impossible))
    assert isinstance(group, TransactionErrors)
    for error in group.exceptions:
        assert isinstance(error, HoldallError)
        tour.voice.refusal("one of three creations", error.code, error.message, error.hint)
    assert db.get(Member, "katherine") is None
    tour.voice.say("Katherine, with whom nothing was wrong, was not written either.")

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
def lost_commit(tour: Tour) -> None:
    """Nobody knows whether it happened, so nothing is guessed: not run again, no handler called. You look."""
    faulty = FaultyBackend(tour.store)
    db = Database(backend=faulty, manage_table=True)
    calls: list[str] = []

    def like(tx: Transaction) -> None:
        calls.append("the function")
        tx.after_commit(calls.append, "the commit handler")
        tx.after_failure(lambda error: calls.append("the failure handler"))
        tx.get_one(Page, "/").likes += 1
        faulty.inject(Fault.LOST_AFTER)

    error = error_of(lambda: db.run(like))
    assert isinstance(error, OutcomeUnknown)
    tour.voice.refusal("one more like", error.code, error.message, error.hint)
    likes = db.get_one(Page, "/").likes
    tour.voice.say(
        f"Called: {', '.join(calls)}, once. The page has {likes} likes: this time it had happened."
    )
    assert calls == ["the function"]
    assert likes == 2


@step("What a transaction costs")
def costs(tour: Tour) -> None:
    """One item is an ordinary write. From two on DynamoDB bills each double, also those that are only checked."""
    db, meter = opened(tour), tour.meter
    db.get_one(Page, "/")  # the table is looked up once, and that is not what this is about

    def views(*urls: str) -> Callable[[Transaction], None]:
        def count(tx: Transaction) -> None:
            for url in urls:
                tx.get_one(Page, url).views += 1

        return count

    def compare(tx: Transaction) -> None:
        tx.get_one(Page, "/").likes = tx.get_one(Page, "/news").views

    doings: dict[str, Callable[[Transaction], Any]] = {
        "create one": lambda tx: tx.create(Page, url="/news"),
        "read and change one": views("/"),
        "read and increment one": lambda tx: tx.get_one(Page, "/").field("views").increment_by(1),
        "read two, change one": compare,
        "read and change two": views("/", "/news"),
        "read two at one moment": lambda tx: tx.get_all([Page.key("/"), Page.key("/news")]),
    }
    rows = []
    for what, doing in doings.items():
        sent, read, written = meter.sent.copy(), meter.units[False], meter.units[True]
        db.run(doing)
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
