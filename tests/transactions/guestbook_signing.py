"""A guestbook that many sign at once: in threads of a process, and in processes on one file."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from holdall import Database, Key, Model, field

__all__ = ["PATIENT", "Guestbook", "Page", "guests", "in_a_process", "in_threads", "sign"]

PATIENT: dict[str, Any] = {"retries": 1000, "initial_backoff": 0.0005, "max_backoff": 0.01}
"""As often as it takes: everybody wants to write into the same book."""


class Guestbook(Model):
    """The names of all who came, and how many they are."""

    name: Key[str]
    guests: list[str] = field(default_factory=list)
    visits: int = 0


class Page(Model):
    """One guest's own words."""

    guest: Key[str]
    book: str
    place: int


def sign(tx: Any, book: str, guest: str, page: bool) -> None:
    """Add a name to the book; with a page of one's own, in one transaction."""
    found = tx.get(Guestbook, book, create_if_missing=True)
    found.guests.append(guest)
    found.field("visits").increment_by(1)
    if page:
        tx.create(Page, guest=guest, book=book, place=len(found.guests))


def guests(worker: str, count: int) -> list[str]:
    return [f"{worker}-{number}" for number in range(count)]


def in_threads(db: Database, workers: Sequence[str], count: int, books: Sequence[str]) -> None:
    """Let each worker, in a thread, bring so many guests, every second of them with a page."""

    def work(worker: str) -> None:
        for number, guest in enumerate(guests(worker, count)):
            db.run(sign, books[number % len(books)], guest, number % 2 == 1, **PATIENT)

    with ThreadPoolExecutor(len(workers)) as pool:
        for done in [pool.submit(work, worker) for worker in workers]:
            done.result()


def in_a_process(file: str, workers: Sequence[str], count: int, books: Sequence[str]) -> None:
    """The same in this process, on a file."""
    with Database(f"embedded:{file}", durability="normal") as db:
        in_threads(db, workers, count, books)
