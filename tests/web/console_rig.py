"""What the console's tests share: models, a database with items, and a client that can sign in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from httpx import Response
from web_rig import ask_app

from holdall import Archive, Database, Index, Key, Model, SortKey, field, has_many_attached
from holdall.web import Console, create_app
from holdall.web.console.session import Sessions

__all__ = [
    "MODELS",
    "TOKEN",
    "Customer",
    "Order",
    "Reading",
    "Station",
    "Visitor",
    "make_picture",
    "make_visitor",
    "open_visitor",
    "open_shop",
]

TOKEN = "the token of these tests"


class Customer(Model, name="ConsoleCustomer"):
    """A person who buys <b>from us</b>."""

    email: str = field(unique=True, description="Where <i>invoices</i> are sent")
    name: str = ""
    secret: str = field(default="", hidden=True)
    files = has_many_attached()


class Order(
    Model,
    name="ConsoleOrder",
    archive=Archive(after_days=365, timestamp="placed_at"),
    indexes=[Index("by_product", key=["product"], sort_key=["placed_at"])],
):
    """An order for one product."""

    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: int = 1
    price: Decimal = Decimal("9.90")
    note: str | None = None
    tags: set[str] = field(default_factory=set)
    address: dict[str, str] = field(default_factory=dict)
    placed_at: datetime = field(read_only=True)


class Station(Model, table="console-stations", layout="plain"):
    """A place with sensors."""

    code: Key[bytes]
    name: str = ""


class Reading(Model, name="ConsoleReading"):
    """One measurement of a sensor."""

    sensor: Key[bytes]
    year: SortKey[int]
    month: SortKey[int]
    value: float = 0.0


MODELS: list[type[Model]] = [Customer, Order, Reading, Station]


class Visitor:
    """A client of the console, in this process; it keeps its cookie as a browser does."""

    def __init__(self, app: Any, console: Console) -> None:
        self.app = app
        self.console = console
        self.cookie: str | None = None
        self._name = Sessions(console.token, timedelta()).cookie

    def get(self, path: str, **headers: str) -> Response:
        """Request a page."""
        return self.ask("GET", path, headers)

    def post(
        self,
        path: str,
        form: Mapping[str, str] | None = None,
        *,
        csrf: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Response:
        """Send a form, with the session's CSRF token unless another is given."""
        if csrf is None and self.cookie is not None:
            csrf = self.csrf
        data = {**({} if csrf is None else {"csrf": csrf}), **(form or {})}
        return self.ask("POST", path, headers or {}, data=data)

    def sign_in(self) -> Visitor:
        """Sign in with the token."""
        assert self.post("/sign-in", {"token": self.console.token}).status_code == 303
        return self

    @property
    def csrf(self) -> str:
        """The CSRF token of the session."""
        found = re.search(r'name="csrf" value="(\w+)"', self.get("/").text)
        assert found is not None
        return found[1]

    def ask(self, method: str, path: str, headers: dict[str, str], **options: Any) -> Response:
        """Send any request."""
        if self.cookie is not None:
            headers = {"cookie": f"{self._name}={self.cookie}", **headers}
        reply = ask_app(self.app, method, f"/console{path}", headers=headers, **options)
        if self._name in reply.cookies:
            self.cookie = reply.cookies[self._name]
        return reply


@contextmanager
def open_shop(folder: Path, url: str = "memory:", *, items: int = 30) -> Iterator[Database]:
    """Open a database with orders from several years, some of them archived."""
    files = f"file:{folder / 'files'}"
    with Database(url, files=files, secret="a secret of some length", durability="normal") as db:
        fill_shop(db, items)
        yield db


def fill_shop(db: Database, items: int) -> None:
    """Store orders from several years, and archive some of them."""
    db.table.create(models=MODELS)
    now = datetime.now(UTC).replace(microsecond=0)
    with db.transaction() as tx:
        for number in range(items):
            tx.create(
                Order,
                customer="ada",
                number=number,
                product=["coffee", "tea"][number % 2],
                placed_at=now - timedelta(days=60 * number),
                address={"city": "Zürich"},
                tags={"first"} if number == 0 else set(),
            )
    db.archive.run(Order, force=True)
    db.doctor(models=MODELS)


def open_visitor(db: Database, **options: Any) -> Visitor:
    """A client that has signed in."""
    return make_visitor(db, **options).sign_in()


def make_visitor(db: Database, **options: Any) -> Visitor:
    """A client that has not signed in; ``options`` are those of `Console`."""
    console = Console(**{"models": MODELS, "token": TOKEN, **options})
    return Visitor(create_app(db, console=console), console)


def make_picture(size: tuple[int, int] = (640, 480)) -> bytes:
    """A PNG of that size."""
    from io import BytesIO

    from PIL import Image

    target = BytesIO()
    Image.new("RGB", size, "#c60").save(target, "PNG")
    return target.getvalue()
