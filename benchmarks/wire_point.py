"""A get, a put, an update and a transaction of two actions over the wire, against boto3 and other libraries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import Figure
from benchmarks.wire_client import Operation
from benchmarks.wire_race import race, workers

POINTS: tuple[Operation, ...] = ("get", "put", "update", "transact")


class Rival(NamedTuple):
    """A peer, Holdall's client for the same work, and the bars."""

    name: str
    theirs: str
    ours: str
    bar: float = 1.0
    stretch: float | None = None


RIVALS = (
    Rival("boto3 client", "wire_peers:boto3_raw", "wire_ours:open_blocking_raw", 1 / 5, 1 / 10),
    Rival("PynamoDB", "wire_peers:pynamodb", "wire_ours:open_blocking"),
    Rival("pydynox", "wire_peers:pydynox", "wire_ours:open_blocking"),
    Rival("pydynox async", "wire_peers:pydynox_awaiting", "wire_ours:open_awaiting"),
    Rival("aiodynamo", "wire_peers:aiodynamo", "wire_ours:open_awaiting"),
)


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure per peer and operation."""
    yield from race_rivals("wire_point", RIVALS, POINTS)


def race_rivals(
    benchmark: str, rivals: tuple[Rival, ...], operations: tuple[Operation, ...]
) -> Iterator[Figure]:
    """Race each operation against each rival."""
    clients = dict.fromkeys(client for rival in rivals for client in (rival.ours, rival.theirs))
    with workers(clients) as running:
        for operation in operations:
            for name, theirs, ours, bar, stretch in rivals:
                result = race(running[ours], running[theirs], operation)
                details = (operation, f"against {name}")
                yield Figure(benchmark, details, result.ratio, bar, stretch=stretch, note=result.each(1))
