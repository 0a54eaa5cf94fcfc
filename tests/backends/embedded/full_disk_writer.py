"""A process on a disk of 1 MB: ``full_disk_writer.py DIRECTORY``, where the directory is that disk.

It fills the store until the disk is full, checks that every acknowledged write is there, frees space and continues.
It prints the name of the first error, and ``continued`` at the end.
"""

from __future__ import annotations

import sys
from pathlib import Path

from embedded_things import THINGS, get, names, put

from holdall import Database
from holdall.core import CreateTable
from holdall.errors import HoldallError


def main(place: str) -> None:
    directory = Path(place)
    ballast = directory / "ballast"
    ballast.write_bytes(bytes(300_000))
    acknowledged: set[str] = set()
    with Database(f"embedded:{directory}/store.db") as db:
        db.send(CreateTable(THINGS))
        refused = fill_disk(db, acknowledged)
        assert names(db) == acknowledged, "an acknowledged item is lost, or a refused one is there"
        again = fill_disk(db, acknowledged)
        assert type(again) is type(refused)
        ballast.unlink()
        for number in range(20):
            db.send(put(f"later{number}", text="x" * 1000))
            acknowledged.add(f"later{number}")
        assert names(db) == acknowledged
    with Database(f"embedded:{directory}/store.db") as db:
        assert names(db) == acknowledged
        assert db.send(get("later0")).item is not None
    print(type(refused).__name__)
    print("continued")


def fill_disk(db: Database, acknowledged: set[str]) -> HoldallError:
    """Put things until a put is refused."""
    first = len(acknowledged)
    for number in range(first, first + 10_000):
        try:
            db.send(put(f"thing{number}", text="x" * 1000))
        except HoldallError as error:
            return error
        acknowledged.add(f"thing{number}")
    raise AssertionError("the disk was never full")


if __name__ == "__main__":
    main(*sys.argv[1:])
