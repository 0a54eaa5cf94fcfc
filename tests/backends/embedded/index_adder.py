"""A process that adds an index to table Numbers and then prints ``added``: ``index_adder.py PATH NAME``."""

from __future__ import annotations

import sys

from holdall import Database
from holdall.core import AddIndex, IndexSchema, KeyAttribute, Projection


def main(file: str, name: str) -> None:
    index = IndexSchema(name, KeyAttribute("bucket"), KeyAttribute("number", "N"), Projection("KEYS_ONLY"))
    with Database(f"embedded:{file}", durability="normal") as db:
        db.send(AddIndex("Numbers", index))
    print("added")


if __name__ == "__main__":
    main(*sys.argv[1:])
