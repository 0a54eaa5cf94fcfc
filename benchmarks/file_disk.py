"""Putting a 200 MB file on disk with `db.files.put`, against plain reading, both digests, writing and syncing."""

from __future__ import annotations

import hashlib
import os
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.harness import Figure
from holdall import Database

BAR = 1.3
SIZE = 200_000_000
PAIRS = 7
WARMUPS = 1
PIECE = 1024 * 1024


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure of wall time; the CPU of all threads is in the note."""
    source = workshop / "film.raw"
    with source.open("wb") as file:
        for _ in range(SIZE // 1_000_000):
            file.write(os.urandom(1_000_000))
    with Database("memory:", files=f"file:{workshop / 'files'}") as db:
        check_same(db, source, workshop)
        slices = [_pair(db, source, workshop, turn % 2 == 1) for turn in range(WARMUPS + PAIRS)][WARMUPS:]
    source.unlink()
    ratio = median(ours[0] / theirs[0] for ours, theirs in slices)
    cpu = median(ours[1] / theirs[1] for ours, theirs in slices)
    walls = [median(side[0] for side in sides) for sides in zip(*slices, strict=True)]
    costs = [median(side[1] for side in sides) for sides in zip(*slices, strict=True)]
    note = f"{walls[0]:.2f} s against {walls[1]:.2f} s; CPU {costs[0]:.2f} s against {costs[1]:.2f} s, {cpu:.2f}×"
    yield Figure("file_disk", ("200 MB",), ratio, BAR, note=note)


def _pair(
    db: Database, source: Path, workshop: Path, theirs_first: bool
) -> tuple[tuple[float, float], tuple[float, float]]:
    if theirs_first:
        theirs = _theirs(source, workshop)
        return _ours(db, source), theirs
    return _ours(db, source), _theirs(source, workshop)


def _ours(db: Database, source: Path) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    db.files.put("film", source)
    taken = time.perf_counter() - wall, time.process_time() - cpu
    db.files.delete("film")
    return taken


def _theirs(source: Path, workshop: Path) -> tuple[float, float]:
    target = workshop / "plain"
    wall, cpu = time.perf_counter(), time.process_time()
    put_plainly(source, target)
    taken = time.perf_counter() - wall, time.process_time() - cpu
    target.unlink()
    return taken


def put_plainly(source: Path, target: Path) -> tuple[bytes, bytes]:
    """Do only what every put must do: read, digest twice, write, sync."""
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    with source.open("rb", buffering=0) as read, target.open("wb", buffering=0) as written:
        while piece := read.read(PIECE):
            md5.update(piece)
            sha256.update(piece)
            written.write(piece)
        os.fsync(written.fileno())
    return md5.digest(), sha256.digest()


def check_same(db: Database, source: Path, workshop: Path) -> None:
    """Check that both sides stored the same bytes and digests."""
    target = workshop / "plain"
    digests = put_plainly(source, target)
    info = db.files.put("film", source)
    assert [info.md5, info.sha256] == [b64encode(digest).decode() for digest in digests]
    with db.files.open("film") as handle, target.open("rb") as file:
        assert all(file.read(len(piece)) == piece for piece in handle)
    db.files.delete("film")
    target.unlink()
