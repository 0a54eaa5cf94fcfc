"""One page of a query, 100 items, over the wire, against boto3, PynamoDB, pydynox and aiodynamo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Figure
from benchmarks.wire_point import Rival, race_rivals

BAR = 1 / 6
STRETCH = 1 / 11

RIVALS = (
    Rival(
        "boto3 client + TypeDeserializer", "wire_peers:boto3_values", "wire_ours:open_blocking", BAR, STRETCH
    ),
    Rival("boto3 client, both raw", "wire_peers:boto3_raw", "wire_ours:open_blocking_raw", BAR, STRETCH),
    Rival("PynamoDB", "wire_peers:pynamodb", "wire_ours:open_blocking"),
    Rival("pydynox", "wire_peers:pydynox", "wire_ours:open_blocking"),
    Rival("pydynox async", "wire_peers:pydynox_awaiting", "wire_ours:open_awaiting"),
    Rival("aiodynamo", "wire_peers:aiodynamo", "wire_ours:open_awaiting"),
)


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure per peer; both sides decode to Python values unless the figure says raw."""
    yield from race_rivals("wire_query", RIVALS, ("query",))
