"""A process that has children move a store each, and die at a certain write; then it finishes what they left.

``dying_mover.py URL COLOUR SEGMENTS WHEN COUNT...``: for each count, on a store of its own (``{}`` in the URL stands
for the count), a child is killed before or after that many writes. Prints for each, as JSON, how the child ended, how
many items it had copied, what the next run reports, and what is stored in the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from deadly_store import Deadly
from move_models import OldProduct, Product

from holdall import Database
from holdall.core import Scan

ITEMS = 7


def fill(url: str) -> None:
    with Database(url, manage_table=True) as db:
        db.table.create(models=[OldProduct, Product])
        with db.transaction() as tx:
            for number in range(ITEMS):
                tx.create(
                    OldProduct,
                    sku=number,
                    kind="tea",
                    price=number,
                    mail=f"m{number}" if number % 2 else None,
                )


def move(url: str, colour: str, segments: int, left: int, when: str) -> dict[str, Any]:
    with Database(url, manage_table=False) as outer:
        db = Database(url, backend=Deadly(outer._backend, left, when), manage_table=False)
        if colour == "blocking":
            return db.move(OldProduct, Product, segments=segments)._asdict()
        return asyncio.run(db.aio.move(OldProduct, Product, segments=segments))._asdict()


def items(url: str) -> list[Any]:
    """What is stored, without ids and times of the run."""
    with Database(url, manage_table=False) as db:
        found = [item for page in db.pages(Scan(db.table.name, consistent=True)) for item in page.items]
        changing = {"_w", "_moved", "made_at", "changed_at"}
        return [{name: value for name, value in item.items() if name not in changing} for item in found]


def story(url: str, colour: str, segments: int, when: str, count: int) -> dict[str, Any]:
    fill(url)
    child = os.fork()
    if child == 0:
        move(url, colour, segments, count, when)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    before = [item for item in items(url) if item.get("_type") == {"S": "Product"}]
    return {
        "ended": ended,
        "copied": len(before),
        "report": move(url, colour, segments, 1_000_000, when),
        "items": items(url),
    }


def main(url: str, colour: str, segments: str, when: str, counts: Sequence[str]) -> None:
    for count in counts:
        told = story(url.replace("{}", count), colour, int(segments), when, int(count))
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5], sys.argv[5:])  # type: ignore[call-arg]
