"""A process that has children migrate a store each, and die at a certain write; then it finishes what they left.

``dying_migrator.py URL COLOUR SEGMENTS WHEN COUNT...``: for each count, on a store of its own (``{}`` in the URL stands
for the count), a child is killed before or after that many writes. Says of each, as JSON, how the child ended, how many
items it had converted, what the next run reports, and what is stored in the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from deadly_store import Deadly
from race_models import FirstThing, Thing, initial_size

from holdall import Database
from holdall.core import Scan

ITEMS = 7


def fill(url: str) -> None:
    with Database(url, manage_table=True) as db, db.transaction() as tx:
        for number in range(ITEMS):
            tx.create(FirstThing, id=number, size=initial_size(number), qty=number)


def migrate(url: str, colour: str, segments: int, left: int, when: str) -> list[Any]:
    with Database(url, manage_table=False) as outer:
        db = Database(url, backend=Deadly(outer._backend, left, when), manage_table=False)
        if colour == "blocking":
            return list(db.migrate(Thing, segments=segments))
        return list(asyncio.run(db.aio.migrate(Thing, segments=segments)))


def items(url: str) -> list[Any]:
    with Database(url, manage_table=False) as db:
        found = [item for page in db.pages(Scan(db.table.name, consistent=True)) for item in page.items]
        return [{name: value for name, value in item.items() if name != "_w"} for item in found]


def story(url: str, colour: str, segments: int, when: str, count: int) -> dict[str, Any]:
    fill(url)
    child = os.fork()
    if child == 0:
        migrate(url, colour, segments, count, when)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    before = [item for item in items(url) if "_v" in item]
    return {
        "ended": ended,
        "converted": len(before),
        "report": migrate(url, colour, segments, 1_000_000, when),
        "items": items(url),
    }


def main(url: str, colour: str, segments: str, when: str, counts: Sequence[str]) -> None:
    for count in counts:
        told = story(url.replace("{}", count), colour, int(segments), when, int(count))
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5], sys.argv[5:])  # type: ignore[call-arg]
