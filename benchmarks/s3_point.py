"""A put and a get of 10 KB with S3's protocol, against boto3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Figure, from_slices
from benchmarks.s3_client import S3Operation
from benchmarks.s3_race import s3_workers, time_slices

POINTS: tuple[S3Operation, ...] = ("put", "get")
OURS = {"blocking": "s3_ours:open_blocking", "awaiting": "s3_ours:open_awaiting"}
THEIRS = "s3_peers:boto3"
COUNT = 30
PAIRS = 14


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure per colour and operation."""
    with s3_workers([*OURS.values(), THEIRS], workshop, one_processor=True) as running:
        for operation in POINTS:
            for colour, client in OURS.items():
                slices = time_slices(running[client], running[THEIRS], operation, COUNT, PAIRS)
                result = from_slices([(ours.cpu, theirs.cpu) for ours, theirs in slices])
                details = (operation, colour, "against boto3")
                yield Figure("s3_point", details, result.ratio, 1 / 3, stretch=1 / 10, note=result.each(1))
