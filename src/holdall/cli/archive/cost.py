"""What an archive run costs and saves, as commands print it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from holdall.cli.phrase import format_count, format_money, format_size

if TYPE_CHECKING:
    from holdall.archive import ArchiveReport

_BAR = 30
_CLASSES = ("3 months", "6 months", "12 months", "24 months", "36 months", "later or never")


def format_saving(monthly: float) -> str:
    """The monthly saving, or loss."""
    return f"{'saves' if monthly >= 0 else 'loses'} {format_money(abs(monthly))} a month"


def cost_lines(report: ArchiveReport) -> list[str]:
    """Lines on what a run costs once, what it saves and when it has paid for itself, with a histogram."""
    if not report.archived:
        return []
    estimate, prices = report.estimate, report.prices
    payback = (
        "it never pays for itself"
        if estimate.payback_months == inf
        else f"it pays for itself after {estimate.payback_months:,.1f} months"
    )
    lines = [
        f"{format_size(report.item_bytes)} in the table, {format_size(report.object_bytes)} as objects",
        f"costs {format_money(estimate.once)} once, {format_saving(estimate.monthly)}: {payback}",
        f"(prices of {prices.date} in {prices.region}; below, how many items pay for themselves within each time)",
    ]
    most = max(report.paybacks)
    for name, count in zip(_CLASSES, report.paybacks, strict=True):
        bar = "█" * -(-_BAR * count // most)
        lines.append(f"{name:<14}  {bar:<{_BAR}}  {count:,}")
    if report.losing:
        lines.append(
            f"{format_count(report.losing, 'item')} would not pay off within three years: "
            "Archive(min_item_bytes=...) leaves small items in the table"
        )
    return lines


def report_facts(report: ArchiveReport) -> dict[str, Any]:
    """A run's report for JSON; its payback is null if it never pays for itself."""
    months = report.estimate.payback_months
    return {
        "scanned": report.scanned,
        "archived": report.archived,
        "skipped": dict(report.skipped),
        "failed": report.failed,
        "problems": list(report.problems),
        "item_bytes": report.item_bytes,
        "object_bytes": report.object_bytes,
        "cost_once": report.estimate.once,
        "saved_monthly": report.estimate.monthly,
        "payback_months": None if months == inf else months,
        "paybacks": dict(zip(_CLASSES, report.paybacks, strict=True)),
        "losing": report.losing,
        "prices": {"date": report.prices.date, "region": report.prices.region},
    }
