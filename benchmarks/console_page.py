"""Pages of the console on a table with 1,000,000 items: the server's work for each."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from re import search
from statistics import median
from typing import Any
from urllib.parse import quote, unquote

from benchmarks.harness import Figure
from holdall import Database, Index, Key, Model, SortKey, field
from holdall.core import BatchWrite, Item, PutItem, Scan
from holdall.web import Console, create_app

BAR = 50.0
COUNT = 1_000_000
SLICES = 20
WARMUPS = 3
TOKEN = "the token of this benchmark"
_PER_CUSTOMER = 1_000
_BATCH = 25


class Purchase(Model, indexes=[Index("by_product", key=["product"], sort_key=["placed_at"])]):
    """What somebody bought."""

    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: int = 1
    price: float = 9.9
    paid: bool = True
    note: str | None = None
    tags: set[str] = field(default_factory=set)
    address: dict[str, str] = field(default_factory=dict)
    placed_at: datetime


PAGES = {
    "overview": "/",
    "models": "/models",
    "model": "/models/{model}",
    "items by key, 100": "/models/{model}?key-customer=customer-500&size=100",
    "items by a range": "/models/{model}?key-customer=customer-500&op-number=between&from-number=200&to-number=400",
    "items by index, 100": "/models/{model}?index=by_product&key-product=product-77&size=100&order=reverse",
    "the next 100": "{next}",
    "first items": "/models/{model}?browse=1",
    "item": "/models/{model}/item?key-customer=customer-999&key-number=999",
    "form of an item": "/models/{model}/item/edit?key-customer=customer-999&key-number=999",
}


def figures(workshop: Path) -> Iterator[Figure]:
    """A figure for each page."""
    path = workshop / "console.db"
    with Database(f"embedded:{path}", durability="normal", secret="a secret of some length") as db:
        db.table.create(models=[Purchase])
        print(f"preparing {COUNT:,} items", file=sys.stderr)
        _fill(db)
        logging.getLogger("holdall").setLevel(logging.ERROR)  # each scan is reported
        yield from asyncio.run(_measure(db))


def _fill(db: Database) -> None:
    """Write the items of one customer by the model, and all others as copies of them; a tenth is in the index."""
    with db.bulk(Purchase) as bulk:
        for number in range(_PER_CUSTOMER):
            bulk.put(_make(number))
    name, key = db.table.name, db.table.layout().partition.name
    items = [item for page in db.pages(Scan(name)) for item in page.items if "customer" in item]
    assert len(items) == _PER_CUSTOMER
    bare = [{at: value for at, value in item.items() if not at.startswith("gsi")} for item in items]
    for other in range(1, COUNT // _PER_CUSTOMER):
        changed: Item = {"customer": {"S": f"customer-{other}"}, key: {"S": f"Purchase#customer-{other}"}}
        copied = items if other % 10 == 0 else bare
        puts = [PutItem(name, {**item, **changed}) for item in copied]
        for at in range(0, len(puts), _BATCH):
            db.send(BatchWrite(tuple(puts[at : at + _BATCH])))


def _make(number: int) -> Purchase:
    return Purchase(
        customer="customer-0",
        number=number,
        product=f"product-{number % 97}",
        tags={"beans", "gift"},
        address={"street": f"{number % 211} Mill Lane", "city": "Zürich"},
        placed_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number),
    )


async def _measure(db: Database) -> list[Figure]:
    app = create_app(db, console=Console(models=[Purchase], token=TOKEN, read_only=False))
    headers, _ = await _ask(app, "POST", "/sign-in", f"token={quote(TOKEN)}")
    cookie = search(r"holdall_console=[^;]+", headers["set-cookie"])
    assert cookie is not None
    names = {"model": f"{Purchase.__module__}:Purchase", "next": ""}
    _, page = await _ask(app, "GET", PAGES["items by key, 100"].format(**names), cookie=cookie[0])
    more = search(r'href="/console([^"]+)" rel="next"', page)
    assert more is not None
    names["next"] = more[1].replace("&amp;", "&")
    return [await _measure_page(app, page, PAGES[page].format(**names), cookie[0]) for page in PAGES]


async def _measure_page(app: Any, name: str, address: str, cookie: str) -> Figure:
    taken, worked = [], []
    for _ in range(WARMUPS + SLICES):
        start, before = time.perf_counter(), time.process_time()
        headers, body = await _ask(app, "GET", address, cookie=cookie)
        taken.append((time.perf_counter() - start) * 1000)
        worked.append((time.process_time() - before) * 1000)
        assert headers["status"] == "200", f"{name}: {headers['status']}"
    waited = f"{median(taken[WARMUPS:]):.1f} ms by the clock, the first {taken[0]:.1f} ms"
    note = f"{waited}; {len(body):,} characters"
    return Figure("console_page", (name,), median(worked[WARMUPS:]), BAR, "≤", " ms", note=note)


async def _ask(
    app: Any, method: str, address: str, form: str = "", cookie: str = ""
) -> tuple[dict[str, str], str]:
    """Ask the application as a server does; returns the headers, the status among them, and the body."""
    path, _, query = address.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": f"/console{unquote(path)}",
        "root_path": "",
        "query_string": query.encode(),
        "server": ("x", 80),
        "headers": [
            (b"host", b"x"),
            (b"cookie", cookie.encode()),
            (b"content-type", b"application/x-www-form-urlencoded"),
        ],
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": form.encode(), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return {**headers, "status": str(sent[0]["status"])}, body.decode()
