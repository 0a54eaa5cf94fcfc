"""Steps about finding items with queries, indexes and pages, and about changing the model of stored items."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from holdall import Database, Index, Key, Model, SortKey, col, field
from tour.stage import Tour, step

START = datetime(2026, 1, 1, tzinfo=UTC)
PRODUCTS = ("sidamo", "harrar", "limu")


class Shipment(Model, indexes=[Index("by_product", key=["product"], sort_key=["left_at"])]):
    customer: Key[str]
    year: SortKey[int]
    number: SortKey[int]
    product: str
    kilos: float
    left_at: datetime


def open_database(tour: Tour) -> Database:
    return Database(backend=tour.store, manage_table=True, secret="a secret for the tour only")


@step("Finding items by key, by range, by another key")
def queries(tour: Tour) -> None:
    """A query reads one range of one partition, in order. An index has another order; conditions filter."""
    db = open_database(tour)
    with db.transaction() as tx:
        for number in range(60):
            tx.create(
                Shipment,
                customer="ada",
                year=2025 + number % 2,
                number=number,
                product=PRODUCTS[number % 3],
                kilos=number / 4,
                left_at=START + timedelta(days=number),
            )
    queries_by_name: dict[str, Any] = {
        "all of ada's": db.query(Shipment, customer="ada"),
        "ada's in 2026, from number 41": db.query(
            Shipment, customer="ada", sort=(Shipment.year == 2026) & (Shipment.number >= 41)
        ),
        "ada's over 14 kilos": db.query(Shipment, customer="ada", where=col(Shipment.kilos) > 14),
        "the three latest of harrar": db.query(
            Shipment, index="by_product", product="harrar", reverse=True, limit=3
        ),
    }
    rows = [
        (what, rows.count(), ", ".join(str(s.number) for s in rows.all()[:6]))
        for what, rows in queries_by_name.items()
    ]
    tour.voice.table(["question", "count", "numbers"], rows)
    assert [count for _, count, _ in rows] == [60, 10, 3, 3]


@step("Page by page")
def pages(tour: Tour) -> None:
    """Each page has a signed token for the next page. A changed token is refused."""
    db = open_database(tour)
    limu = db.query(Shipment, customer="ada", where=col(Shipment.product) == "limu")
    page = limu.page(8)
    sizes = [len(page.items)]
    while page.next is not None:
        page = limu.page(8, after=page.next)
        sizes.append(len(page.items))
    tour.voice.say(f"Twenty of sixty rows, in pages of {sizes}.")
    assert sum(sizes) == 20


@step("A model changes, and its items are migrated")
def evolution(tour: Tour) -> None:
    """One field is renamed, one converted, and an index added. Old items are read at once; a bulk run rewrites them."""
    db = open_database(tour)

    class Bag(Model):
        code: Key[str]
        pounds: float
        qty: int = 1

    with db.transaction() as tx:
        for number in range(20):
            tx.create(Bag, code=f"bag-{number}", pounds=number * 2.0, qty=number)

    def to_kilos(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "kilos": round(item.pop("pounds") * 0.4536, 3)}

    class NewBag(
        Model, name="Bag", migrations=[to_kilos], indexes=[Index("by_quantity", key=["quantity"], slot=2)]
    ):
        code: Key[str]
        kilos: float
        quantity: int = field(default=1, aliases=["qty"])

    NewBag.__qualname__ = Bag.__qualname__  # as if the program had been replaced
    read = db.get_one(NewBag, "bag-10")
    before = db.query(NewBag, index="by_quantity", quantity=7).count()
    report = db.migrate(NewBag, segments=2)
    after = db.query(NewBag, index="by_quantity", quantity=7).count()
    tour.voice.say(
        f"20 pounds are read as {read.kilos} kilos before anything is written. "
        f"The bulk run read {report.scanned:,} items and changed {report.changed}; "
        f"the new index, which found {before} of them, now finds {after}."
    )
    assert (before, report.changed, after) == (0, 20, 1)
