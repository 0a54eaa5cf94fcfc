"""A process of contending threads: ``contending_process.py URL COUNT`` prints ``ready``, waits, and counts failures."""

from __future__ import annotations

import sys
import threading

from holdall import Database, Key, Model, Transaction
from holdall.errors import TransactionFailedError


class Stock(Model):
    product: Key[str]
    bags: int


def take_one(tx: Transaction) -> None:
    tx.get_one(Stock, "coffee").bags -= 1


def collect_refusals(db: Database, count: int) -> list[TransactionFailedError]:
    """Let this many threads take one each, concurrently, and return the errors of those that failed."""
    refused: list[TransactionFailedError] = []
    gate = threading.Barrier(count)

    def contend() -> None:
        gate.wait()
        try:
            db.run(take_one)
        except TransactionFailedError as error:
            refused.append(error)

    threads = [threading.Thread(target=contend) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return refused


if __name__ == "__main__":
    with Database(sys.argv[1]) as db:
        db.get_one(Stock, "coffee")
        print("ready", flush=True)
        sys.stdin.readline()
        print(len(collect_refusals(db, int(sys.argv[2]))), flush=True)
