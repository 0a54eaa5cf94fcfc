"""One database shared by threads, tasks and processes: all append to the same lists, which contain every name once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from guestbook_signing import BOOKS, PATIENT, Guestbook, Page, list_guests, sign_in_threads
from rig.torture import Child

from holdall import AsyncDatabase, Database

ROUNDS = int(os.environ.get("HOLDALL_TORTURE_ROUNDS", "4"))
WORKERS = [f"worker{number}" for number in range(8)]


def check_books(db: Database, workers: Sequence[str], count: int) -> None:
    """Check that every guest is in one book, once, and that every page has its guest's place in the book."""
    names = [name for worker in workers for name in list_guests(worker, count)]
    books = [db.get_one(Guestbook, book) for book in BOOKS]
    assert sorted(guest for book in books for guest in book.guests) == sorted(names)
    assert [book.visits for book in books] == [len(book.guests) for book in books]
    places = {(book.name, place): guest for book in books for place, guest in enumerate(book.guests, 1)}
    pages = [page for name in names if (page := db.get(Page, name)) is not None]
    assert len(pages) == len(workers) * (count // 2)
    assert all(places[page.book, page.place] == page.guest for page in pages)


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_threads_that_sign_the_same_guestbooks_lose_no_name(kind: str, tmp_path: Path) -> None:
    count = 4 * ROUNDS
    url = "memory:" if kind == "memory" else f"embedded:{tmp_path / 'store.db'}"
    with Database(url, durability="normal") as db:
        sign_in_threads(db, WORKERS, count)
        check_books(db, WORKERS, count)


def test_tasks_that_sign_the_same_guestbooks_lose_no_name() -> None:
    count = 4 * ROUNDS

    async def main() -> None:
        async with AsyncDatabase("memory:") as db:

            async def work(worker: str) -> None:
                for number, guest in enumerate(list_guests(worker, count)):
                    await db.run(sign_book, BOOKS[number % 2], guest, number % 2 == 1, **PATIENT)

            async def sign_book(tx: Any, book: str, guest: str, page: bool) -> None:
                found = await tx.get(Guestbook, book, create_if_missing=True)
                found.guests.append(guest)
                found.field("visits").increment_by(1)
                if page:
                    tx.create(Page, guest=guest, book=book, place=len(found.guests))

            await asyncio.gather(*map(work, WORKERS))
            await asyncio.to_thread(check_books, db.sync, WORKERS, count)

    asyncio.run(main())


def test_processes_that_sign_the_same_guestbooks_in_a_file_lose_no_name(tmp_path: Path) -> None:
    count = 2 * ROUNDS
    file = tmp_path / "store.db"
    teams = [WORKERS[at : at + 2] for at in range(0, len(WORKERS), 2)]
    with ExitStack() as stack:
        children = [stack.enter_context(Child("guestbook_signing.py", file, count, *team)) for team in teams]
        for child in children:
            child.finish()
    with Database(f"embedded:{file}") as db:
        check_books(db, WORKERS, count)
