"""Guestbooks that many workers sign concurrently: in threads of a process, and in processes on one file.

``python guestbook_signing.py FILE COUNT WORKER...`` is one of the processes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from holdall import Database, Key, Model, field

__all__ = ["BOOKS", "PATIENT", "Guestbook", "Page", "list_guests", "sign_in_threads", "sign"]

BOOKS = ["blue", "red"]
PATIENT: dict[str, Any] = {"retries": 1000, "initial_backoff": 0.0005, "max_backoff": 0.01}
"""Enough retries for the contention of all processes on the same book."""


class Guestbook(Model):
    """The names of all guests, and their number."""

    name: Key[str]
    guests: list[str] = field(default_factory=list)
    visits: int = 0


class Page(Model):
    """The page of one guest."""

    guest: Key[str]
    book: str
    place: int


def sign(tx: Any, book: str, guest: str, page: bool) -> None:
    """Add a guest to the book, optionally with a page, in one transaction."""
    found = tx.get(Guestbook, book, create_if_missing=True)
    found.guests.append(guest)
    found.field("visits").increment_by(1)
    if page:
        tx.create(Page, guest=guest, book=book, place=len(found.guests))


def list_guests(worker: str, count: int) -> list[str]:
    return [f"{worker}-{number}" for number in range(count)]


def sign_in_threads(db: Database, workers: Sequence[str], count: int) -> None:
    """Let each worker sign for this many guests in its own thread; every second guest gets a page."""

    def work(worker: str) -> None:
        for number, guest in enumerate(list_guests(worker, count)):
            db.run(sign, BOOKS[number % 2], guest, number % 2 == 1, **PATIENT)

    with ThreadPoolExecutor(len(workers)) as pool:
        for future in [pool.submit(work, worker) for worker in workers]:
            future.result()


if __name__ == "__main__":
    with Database(f"embedded:{sys.argv[1]}", durability="normal") as db:
        sign_in_threads(db, sys.argv[3:], int(sys.argv[2]))
