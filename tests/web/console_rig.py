"""What the tests of the console share: models, a database with items, and ways to sign in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from httpx import Response
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, expect
from rig.browser import browser_package
from web_rig import asked

from holdall import Archive, Database, Index, Key, Model, SortKey, field, has_many_attached
from holdall.web import Console, create_app

__all__ = [
    "MODELS",
    "TOKEN",
    "Customer",
    "Order",
    "Reading",
    "Station",
    "Visitor",
    "check_pages",
    "make_picture",
    "make_visitor",
    "open_visitor",
    "opened_shop",
    "sign_in_browser",
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
    """An order of one product."""

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
    """Where sensors are."""

    code: Key[bytes]
    name: str = ""


class Reading(Model, name="ConsoleReading"):
    """What a sensor measured."""

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

    def get(self, path: str, **headers: str) -> Response:
        """Ask for a page."""
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
            headers = {"cookie": f"holdall_console={self.cookie}", **headers}
        reply = asked(self.app, method, f"/console{path}", headers=headers, **options)
        if "holdall_console" in reply.cookies:
            self.cookie = reply.cookies["holdall_console"]
        return reply


@contextmanager
def opened_shop(folder: Path, url: str = "memory:", *, items: int = 30) -> Iterator[Database]:
    """A database with orders of several years, some of them archived."""
    files = f"file:{folder / 'files'}"
    with Database(url, files=files, secret="a secret of some length", durability="normal") as db:
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
        yield db


def open_visitor(db: Database, **options: Any) -> Visitor:
    """A client that has signed in."""
    return make_visitor(db, **options).sign_in()


def make_visitor(db: Database, **options: Any) -> Visitor:
    """A client that has not signed in; ``options`` are those of `Console`."""
    console = Console(**{"models": MODELS, "token": TOKEN, **options})
    return Visitor(create_app(db, console=console), console)


# --- in a browser -----------------------------------------------------------------------------------------


def sign_in_browser(browser: Browser, address: str, errors: list[str] | None = None, **options: Any) -> Page:
    """A page in a browser without cookies, after the form; ``errors`` gets those of its scripts and of the policy."""
    page = browser.new_context(base_url=address, **options).new_page()
    if errors is not None:
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: _note(errors, message))
    page.goto("sign-in")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    return page


def _note(errors: list[str], message: ConsoleMessage) -> None:
    if message.type == "error" and not message.text.startswith("Failed to load resource"):
        errors.append(message.text)


def check_pages(
    browser: Browser, address: str, scheme: Literal["light", "dark"], paths: Sequence[str]
) -> None:
    """Check that axe finds nothing on these pages and that they fit the width: light and wide, dark on a phone."""
    axe = (browser_package("axe-core") / "axe.min.js").read_text(encoding="utf-8")
    size: ViewportSize = {"width": 1180 if scheme == "light" else 360, "height": 800}
    page = sign_in_browser(browser, address, color_scheme=scheme, bypass_csp=True, viewport=size)
    for path in paths:
        page.goto(path)
        page.evaluate(axe)
        found = page.evaluate("axe.run({resultTypes: ['violations']}).then(({violations}) => violations)")
        faults = [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]
        assert not faults, f"{path}: {faults}"
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), path
    page.context.close()


def make_picture() -> bytes:
    """A PNG of 640 by 480."""
    from io import BytesIO

    from PIL import Image

    target = BytesIO()
    Image.new("RGB", (640, 480), "#c60").save(target, "PNG")
    return target.getvalue()
