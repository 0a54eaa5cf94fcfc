"""Publishes an artifact from many threads, prints the numbers: ``artifact_crowd.py STORE FILES THREADS EACH``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from holdall import Database

__all__ = ["NAME", "crowd", "publish"]

NAME = "model"


def crowd(threads: int, *works: Callable[[int], list[Any]]) -> list[Any]:
    """Start all threads at once, deal the works out to them in turn, and return all results."""
    barrier = Barrier(threads)

    def work(number: int) -> list[Any]:
        barrier.wait()
        return works[number % len(works)](number)

    with ThreadPoolExecutor(threads) as pool:
        return [each for found in pool.map(work, range(threads)) for each in found]


def publish(db: Database, times: int) -> Callable[[int], list[int]]:
    def work(number: int) -> list[int]:
        numbers = [db.artifacts.publish(NAME, force=True).number for _ in range(times)]
        return [each for each in numbers if each is not None]

    return work


def main(store: str, files: str, threads: str, times: str) -> None:
    with Database(f"embedded:{store}", files=f"file:{files}", durability="normal") as db:
        print(*crowd(int(threads), publish(db, int(times))))


if __name__ == "__main__":
    main(*sys.argv[1:])
