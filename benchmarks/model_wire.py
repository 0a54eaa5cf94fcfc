"""A get, a query and a transaction of two items through models over the wire, against boto3 and its deserializer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Figure
from benchmarks.wire_client import Operation
from benchmarks.wire_race import race, workers

OURS, THEIRS = "model_ours:client", "wire_peers:boto3_orders"
BARS: dict[Operation, float] = {"get": 1 / 7.5, "query": 1 / 6.5, "change": 1 / 5}
NAMES: dict[Operation, str] = {"get": "get", "query": "query of 100", "change": "change two in a transaction"}


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure per operation; both sides decode every field that they read to a Python value."""
    with workers((OURS, THEIRS)) as running:
        for operation, bar in BARS.items():
            result = race(running[OURS], running[THEIRS], operation)
            details = (NAMES[operation], "against boto3 client + TypeDeserializer")
            yield Figure("model_wire", details, result.ratio, bar, note=result.each(1))
