"""A step about the archive: old orders leave the table, are read as before, and come back with a write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from holdall import Archive, Database, Key, Model, SortKey, col
from holdall.archive import ArchiveReport
from tour.files import on_disk
from tour.stage import Tour, step

MONTHS = 24


class OldOrder(
    Model, archive=Archive(timestamp="placed_at", after_days=365, key="orders/{partitionKey}/{sortKey}")
):
    customer: Key[str]
    number: SortKey[int]
    placed_at: datetime
    quantity: int
    lines: str


@step("The archive: old items in files, read as before")
def old_orders(tour: Tour) -> None:
    """Orders of two years, from one to thirty kilobytes each. Those that are more than a year old move to files of
    their own; a pointer stays in the table. Then a cold order is read, found by a condition, and changed."""
    db = Database(backend=tour.store, files=on_disk(tour, "archive"), manage_table=True)
    now = datetime.now(UTC)
    for month in range(24):
        with db.transaction() as tx:
            for number in range(month * 5, month * 5 + 5):
                lines = "; ".join(f"{each} tea no. {each * number % 97}" for each in range(50 + 13 * number))
                placed_at = now - timedelta(days=30 * (24 - month))
                tx.create(
                    OldOrder,
                    customer="ada",
                    number=number,
                    placed_at=placed_at,
                    quantity=number % 7,
                    lines=lines,
                )
    before = {order.number: order.lines for order in db.query(OldOrder, customer="ada")}
    plan = db.archive.run(OldOrder, dry_run=True)
    done = db.archive.run(OldOrder)
    assert (plan.archived, plan.item_bytes) == (done.archived, done.item_bytes)
    after = {order.number: order.lines for order in db.query(OldOrder, customer="ada")}
    assert after == before
    found = db.query(OldOrder, customer="ada", where=col(OldOrder.quantity) == 6).all()
    held = db.archive.report(OldOrder)
    first = db.archive.key(OldOrder.key(customer="ada", number=0))
    tour.voice.table(
        ["where", "items", "bytes"],
        [
            ("in the table", f"{held.hot_items:,}", f"{held.hot_bytes:,}"),
            ("pointers to the archive", f"{held.cold_items:,}", f"{held.pointer_bytes:,}"),
            ("objects of the archive", f"{held.cold_items:,}", f"{held.cold_bytes:,}"),
        ],
    )
    tour.voice.say(
        f"All {len(after)} orders are read as before, hot and cold; {len(found)} have a quantity of 6, which "
        f"only their files know of the cold ones. The first is at {first}."
    )

    def change(tx):  # type: ignore[no-untyped-def]
        tx.get_one(OldOrder, customer="ada", number=0).quantity = 100

    db.run(change)
    assert db.archive.report(OldOrder).cold_items == held.cold_items - 1
    tour.voice.say("A write brought that order back into the table, and deleted its file after the commit.")
    tour.voice.picture(
        draw_savings(done),
        f"A million orders like these on DynamoDB and S3, at prices of {done.prices.date} in {done.prices.region}: "
        f"archiving costs ${1e6 * done.estimate.once / done.archived:,.2f} once, saves "
        f"${1e6 * done.estimate.monthly / done.archived:,.2f} each month, and has paid for itself after "
        f"{done.estimate.payback_months:.1f} months.",
    )


def draw_savings(report: ArchiveReport) -> str:
    """What a million such items have cost or saved, month by month, as SVG."""
    once, monthly = (1e6 * each / report.archived for each in (report.estimate.once, report.estimate.monthly))
    low, high = -once, monthly * MONTHS - once

    def x(month: float) -> float:
        return 60 + 520 * month / MONTHS

    def y(dollars: float) -> float:
        return 20 + 160 * (high - dollars) / (high - low)

    payback = report.estimate.payback_months
    ticks = "".join(
        f'<text x="{x(month):.0f}" y="205" text-anchor="middle">{month}</text>'
        for month in range(0, MONTHS + 1, 6)
    )
    levels = "".join(
        f'<text x="52" y="{y(dollars) + 4:.0f}" text-anchor="end">{"−" * (dollars < 0)}${abs(dollars):,.0f}</text>'
        for dollars in (low, 0, high)
    )
    return (
        '<svg viewBox="0 0 600 228" role="img" style="max-width:38rem;width:100%;font-size:12px;fill:currentColor">'
        f'<path d="M{x(0)} {y(0):.1f}H{x(MONTHS)}" stroke="currentColor" stroke-opacity=".35"/>'
        f'<path d="M{x(0)} {y(low):.1f}L{x(payback):.1f} {y(0):.1f}V{y(0):.1f}H{x(0)}Z" fill="var(--stop)" '
        f'fill-opacity=".25"/><path d="M{x(payback):.1f} {y(0):.1f}L{x(MONTHS)} {y(high):.1f}V{y(0):.1f}Z" '
        f'fill="var(--accent)" fill-opacity=".25"/>'
        f'<path d="M{x(0)} {y(low):.1f}L{x(MONTHS)} {y(high):.1f}" stroke="var(--accent)" stroke-width="2"/>'
        f'<circle cx="{x(payback):.1f}" cy="{y(0):.1f}" r="4" fill="var(--accent)"/>'
        f'<text x="{x(payback) + 8:.0f}" y="{y(0) + 16:.0f}">paid for after {payback:.1f} months</text>'
        f'{levels}{ticks}<text x="{x(MONTHS)}" y="222" text-anchor="end">months after archiving</text></svg>'
    )
