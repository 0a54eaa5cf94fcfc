"""Decoding 100 stored items into models and reading every field, against PynamoDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Figure
from benchmarks.model_items import COUNT
from benchmarks.model_race import race

BAR = 1 / 2


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure; Holdall's side is a whole query without its request."""
    result = race("model_ours:open_decoder", "model_peers:open_pynamodb_decoder")
    details = (f"{COUNT} items", "against PynamoDB")
    yield Figure("model_decode", details, result.ratio, BAR, note=result.each(COUNT))
