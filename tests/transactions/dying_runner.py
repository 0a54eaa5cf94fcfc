"""A process whose children each migrate or move a store and die at a certain write; the parent finishes the run.

``dying_runner.py migrate|move URL COLOUR SEGMENTS WHEN COUNT...``: for each count, a child is killed before or after
that many writes, on its own store (``{}`` in the URL stands for the count). For each, the program prints, as JSON, how
the child ended, how many items it had written, the report of the next run, and the items that are stored in the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from deadly_store import KillingStore
from move_models import OldProduct, Product
from race_models import FirstThing, Thing, initial_size

from holdall import Database, Model
from holdall.core import Item, Scan

ITEMS = 7
MODELS: dict[str, list[type[Model]]] = {"migrate": [Thing], "move": [OldProduct, Product]}
"""The arguments of each kind of run."""
CHANGING = {"_w", "_moved", "made_at", "changed_at"}
"""Attributes that differ from run to run: ids and times."""


def fill(kind: str, url: str) -> None:
    with Database(url, manage_table=True) as db:
        db.table.create(models=MODELS[kind])
        with db.transaction() as tx:
            for number in range(ITEMS):
                if kind == "migrate":
                    tx.create(FirstThing, id=number, size=initial_size(number), qty=number)
                else:
                    mail = f"m{number}" if number % 2 else None
                    tx.create(OldProduct, sku=number, kind="tea", price=number, mail=mail)


def run(kind: str, url: str, colour: str, segments: int, left: int, when: str) -> dict[str, Any]:
    with Database(url, manage_table=False) as outer:
        db = Database(url, backend=KillingStore(outer._backend, left, when), manage_table=False)
        report = getattr(db if colour == "blocking" else db.aio, kind)(*MODELS[kind], segments=segments)
        return dict((report if colour == "blocking" else asyncio.run(report))._asdict())


def list_items(url: str) -> list[Item]:
    with Database(url, manage_table=False) as db:
        found = [item for page in db.pages(Scan(db.table.name, consistent=True)) for item in page.items]
        return [{name: value for name, value in item.items() if name not in CHANGING} for item in found]


def is_written(kind: str, item: Item) -> bool:
    """Whether the run that was killed has written this item."""
    return "_v" in item if kind == "migrate" else item.get("_type") == {"S": "Product"}


def report_death(kind: str, url: str, colour: str, segments: int, when: str, count: int) -> dict[str, Any]:
    fill(kind, url)
    child = os.fork()
    if child == 0:
        run(kind, url, colour, segments, count, when)
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {
        "ended": ended,
        "written": sum(is_written(kind, item) for item in list_items(url)),
        "report": run(kind, url, colour, segments, 1_000_000, when),
        "items": list_items(url),
    }


def main(kind: str, url: str, colour: str, segments: str, when: str, counts: Sequence[str]) -> None:
    for count in counts:
        death = report_death(kind, url.replace("{}", count), colour, int(segments), when, int(count))
        print(json.dumps(death), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:6], sys.argv[6:])  # type: ignore[call-arg]
