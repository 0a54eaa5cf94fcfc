"""Uploading 200 MB to S3 in parts and downloading it, against boto3's transfers: throughput and CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.harness import Figure
from benchmarks.s3_client import LARGE, S3Operation
from benchmarks.s3_race import s3_workers, time_slices

WAYS: tuple[S3Operation, ...] = ("up", "down")
OURS, THEIRS = "s3_ours:open_blocking", "s3_peers:boto3"
PAIRS = 8


def figures(workshop: Path) -> Iterator[Figure]:
    """Throughput and CPU, in each direction."""
    with s3_workers([OURS, THEIRS], workshop, one_processor=False) as running:
        for way in WAYS:
            slices = time_slices(running[OURS], running[THEIRS], way, 1, PAIRS)
            throughput = median(theirs.wall / ours.wall for ours, theirs in slices)
            speeds = [
                LARGE / median(side) / 1e6
                for side in zip(*((o.wall, t.wall) for o, t in slices), strict=True)
            ]
            note = f"{speeds[0]:,.0f} MB/s against {speeds[1]:,.0f} MB/s"
            yield Figure(
                "s3_transfer", (way, "throughput", "against boto3"), throughput, 0.95, "≥", note=note
            )
            cpu = median(ours.cpu / theirs.cpu for ours, theirs in slices)
            costs = [median(side) for side in zip(*((o.cpu, t.cpu) for o, t in slices), strict=True)]
            note = f"{costs[0]:.2f} s against {costs[1]:.2f} s"
            yield Figure("s3_transfer", (way, "CPU", "against boto3"), cpu, 0.7, note=note)
