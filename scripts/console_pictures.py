"""Take the pictures of the console that the docs show: python scripts/console_pictures.py [NAME...] (needs chromium).

It stores a small shop in memory, opens its console in a browser, and reduces the pictures to 256 colours.
"""

from __future__ import annotations

import io
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import uvicorn
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, sync_playwright

from holdall import Archive, Database, Index, Key, Model, SortKey, Variant, field, has_many_attached, job
from holdall.web import Console, create_app

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"


class Customer(Model):
    """A person who buys from us."""

    name: Key[str]
    email: str = field(description="Where invoices are sent")
    tags: set[str] = field(default_factory=set)
    documents = has_many_attached()


class Order(
    Model,
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
    placed_at: datetime = field(read_only=True)


class Invoice(Model, archive=Archive(after_days=90, timestamp="sent_at")):
    """An invoice with its text."""

    number: Key[int]
    text: str
    sent_at: datetime = field(read_only=True)


def fill(db: Database) -> None:
    """Store customers and their orders."""
    db.table.create(models=[Customer, Order, Invoice])
    products = ["Espresso", "Filter roast", "Oolong", "Cocoa"]
    now = datetime(2026, 11, 16, 9, tzinfo=UTC)
    for customer in ("Ada", "Grace", "Linus"):
        with db.transaction() as tx:
            for number in range(1, 31):
                tx.create(
                    Order,
                    customer=customer,
                    number=number,
                    product=products[number % 4],
                    quantity=number % 5 + 1,
                    note="Please ring twice" if number % 7 == 3 else None,
                    placed_at=now - timedelta(days=19 * (30 - number), minutes=37 * number),
                )
    with db.transaction() as tx:
        ada = tx.create(Customer, name="Ada", email="ada@example.com", tags={"early", "wholesale"})
        for name, colours in {
            "Shop window.jpg": ("#274c5e", "#f4c37d"),
            "Counter.jpg": ("#8f3b24", "#f7ead6"),
        }.items():
            ada.documents.attach(draw(*colours), filename=name)
        ada.documents.attach(b"Payable within 30 days.\n" * 40, filename="Terms.txt")
        ada.documents.attach(draw("#5d4a66", "#e7d3a8", "PDF"), filename="Contract.pdf")
    for attachment in db.blobs.list("Customer", "Ada"):
        if attachment.blob.content_type == "image/jpeg":
            db.blobs.variant(attachment.blob, Variant(resize_to_limit=(160, 160)))
    db.archive.run(Order, force=True)
    for number in range(90):
        text = "Payable within 30 days. " * (300 + number * number // 2)
        db.create(Invoice, number=number, text=text, sent_at=now - timedelta(days=4 * number))
    db.archive.run(Invoice, force=True, max_items=25, segments=1)
    enqueue(db)
    publish(db)
    db.doctor(models=[Customer, Order, Invoice])


def publish(db: Database) -> None:
    """Publish versions of artifacts, and serve them through aliases."""
    for name, count in (("price-model", 9), ("welcome-page", 4)):
        for number in range(1, count + 1):
            db.artifacts.put(name, f"version {number}".encode() * 400 * number, tags={"team": "pricing"})
            db.artifacts.publish(name)
    db.artifacts.put_alias("welcome-page", "live", 4, by="ada")
    splits: list[dict[int | str, int]] = [{7: 100}, {8: 100}, {8: 80, 9: 20}]
    for weights in splits:
        db.artifacts.put_alias("price-model", "production", weights=weights, by="ada", reason="weekly model")
    db.artifacts.put_alias("price-model", "staging", 8)
    db.artifacts.start_rollout("price-model", "staging", 9, [(10, 3600), (50, None)], by="grace")


@job("send-receipt", retries=0)
def send_receipt(customer: str, number: int) -> None:
    """Fail, as if the mail server were down."""
    if number > 1:
        raise ConnectionError(f"mail.example.com refused the receipt of order {number} for {customer}")


@job("charge-card", retries=0, queue="payments")
def charge_card(customer: str, number: int) -> None:
    """Fail, as if the card had expired."""
    raise ValueError(f"the card of {customer} has expired")


def enqueue(db: Database) -> None:
    """Leave jobs in all states."""
    with db.transaction() as tx:
        for number, name in enumerate(("Ada", "Grace", "Linus"), 1):
            tx.enqueue(send_receipt, name, number)
        tx.enqueue(charge_card, "Grace", 17)
    db.worker(queues=["default", "payments"]).drain()
    with db.transaction() as tx:
        for number in range(4):
            tx.enqueue("make-report", f"2026-{number + 7:02}", delay=600 * number, queue="slow")


def draw(back: str, front: str, form: str = "JPEG") -> bytes:
    """Draw a picture."""
    image = Image.new("RGB", (800, 600), back)
    pen = ImageDraw.Draw(image)
    for step in range(6):
        pen.ellipse(
            (90 + 60 * step, 330 - 45 * step, 330 + 60 * step, 570 - 45 * step), outline=front, width=14
        )
    target = io.BytesIO()
    image.save(target, form)
    return target.getvalue()


@contextmanager
def serve(app: Any) -> Iterator[str]:
    """Serve an application in a thread; yield its URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture to take: the page, and the size and the colours of the window."""

    path: str
    height: int
    scheme: Literal["light", "dark"] = "light"
    width: int = 1180


SHOTS = {
    "console-overview": Shot("/", 700),
    "console-items": Shot("/models/__main__:Order?key-customer=Ada&op-number=ge&from-number=5&size=25", 760),
    "console-item": Shot("/models/__main__:Customer/item?key-name=Ada", 780),
    "console-dark": Shot("/models/__main__:Order/item?key-customer=Ada&key-number=3", 700, "dark"),
    "console-phone": Shot("/artifacts/alias?name=price-model&alias=production", 760, width=375),
    "console-blobs": Shot("/blobs", 660),
    "console-artifact": Shot("/artifacts/artifact?name=price-model", 760),
    "console-alias": Shot("/artifacts/alias?name=price-model&alias=production", 1000),
    "console-rollout": Shot("/artifacts/alias?name=price-model&alias=staging", 620),
    "console-savings": Shot("/archive/__main__:Invoice?show=holdings", 700),
    "console-archive": Shot("/archive/__main__:Invoice?show=dry-run", 790),
    "console-jobs": Shot("/jobs?state=dead&count=1", 700),
}


def take(browser: Browser, link: str, name: str, shot: Shot) -> None:
    """Take one picture, after signing in with a link."""
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.scheme
    )
    page = context.new_page()
    page.goto(link)
    page.goto(f"{link.partition('/sign-in')[0]}{shot.path}")
    page.locator("[data-reload]").wait_for(state="detached", timeout=60_000)  # background figures
    page.wait_for_load_state("networkidle")
    target = PICTURES / f"{name}.png"
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(256).save(target, optimize=True)
    context.close()
    print(f"{target}: {target.stat().st_size:,} bytes")


def main() -> None:
    """Take all pictures, or those that the command line names."""
    wanted = sys.argv[1:] or list(SHOTS)
    with (
        TemporaryDirectory() as folder,
        Database("memory:", files=f"file:{folder}", secret="a secret of some length") as db,
    ):
        fill(db)
        console = Console(models=[Customer, Order, Invoice], read_only=False)
        with serve(create_app(db, console=console)) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            for name in wanted:
                take(browser, console.sign_in_link(address), name, SHOTS[name])
            browser.close()


if __name__ == "__main__":
    main()
