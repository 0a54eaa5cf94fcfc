"""A query of 100 items from a server, every field read, against PynamoDB's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Figure
from benchmarks.ministack import start_ministack
from benchmarks.model_items import COUNT
from benchmarks.model_race import race

BAR = 1 / 6


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure; both sides use the same server, each with its own table."""
    result = race("model_ours:open_querier", "model_peers:open_pynamodb_querier", start_ministack())
    details = (f"{COUNT} items", "against PynamoDB")
    yield Figure("model_query", details, result.ratio, BAR, note=result.each(1))
