"""Run one of the programs in this process: ten buyers at once, stock for six.

``python -m benchmarks.placement LIBRARY`` prints how many orders were placed and what is left of the stock.
"""

from __future__ import annotations

import importlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor

from benchmarks.placement import BUYERS, STOCK


def main(library: str) -> None:
    program = importlib.import_module(f"benchmarks.placement.with_{library}")
    db = getattr(program, "db", None)
    if db is not None:
        db.table.create()
        with db.transaction() as tx:
            tx.create(program.Product, name="coffee", stock=STOCK)
    else:
        for model in (program.Product, program.Order):
            model.create_table(wait=True)
        program.Product(name="coffee", stock=STOCK).save()

    def buy(number: int) -> bool:
        try:
            program.place("ada", number, "coffee", 1)
        except program.OutOfStock:
            return False
        return True

    with ThreadPoolExecutor(BUYERS) as buyers:
        placed = sum(buyers.map(buy, range(BUYERS)))
    left = db.get_one(program.Product, "coffee") if db is not None else program.Product.get("coffee")
    print(json.dumps({"placed": placed, "left": int(left.stock)}))


if __name__ == "__main__":
    main(sys.argv[1])
