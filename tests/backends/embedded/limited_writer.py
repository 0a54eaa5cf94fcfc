"""A process whose files cannot grow beyond 200 kB: ``limited_writer.py DIRECTORY``.

It prints the error of the put that exceeds the limit, and ``intact`` if every acknowledged item is there.
"""

from __future__ import annotations

import resource
import signal
import sys

from embedded_things import THINGS, names
from full_disk_writer import fill_disk

from holdall import Database
from holdall.core import CreateTable


def main(place: str) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # get an error instead of being killed
    acknowledged: set[str] = set()
    with Database(f"embedded:{place}/store.db", durability="normal") as db:
        db.send(CreateTable(THINGS))
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        print(type(fill_disk(db, acknowledged)).__name__)
        assert acknowledged <= names(db)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with Database(f"embedded:{place}/store.db") as db:
        assert acknowledged <= names(db)
    print("intact")


if __name__ == "__main__":
    main(*sys.argv[1:])
