"""A bulk write of 10,000 new items in batches of 25 over the wire, against PynamoDB's batch_write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.canned_server import serve_canned
from benchmarks.harness import Figure
from benchmarks.ministack import start_ministack
from benchmarks.model_items import BULK
from benchmarks.model_race import PAIRS, race
from benchmarks.wire_race import one_processor

BAR = 1 / 3


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure; both sides create the items from the same values and write them to the same server."""
    with one_processor(), serve_canned() as canned:
        endpoints = f"{canned} {start_ministack()}"
        result = race("model_ours:open_bulk_writer", "model_peers:open_pynamodb_batch_writer", endpoints)
    details = (f"{PAIRS * BULK:,} items", "against PynamoDB")
    yield Figure("bulk_write", details, result.ratio, BAR, note=result.each(BULK))
