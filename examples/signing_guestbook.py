"""A guestbook that many guests sign at once: no name is lost, although the code has no lock.

Run it: python examples/signing_guestbook.py
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from holdall import Database, Key, Model, Transaction, field


class Guestbook(Model):
    place: Key[str]
    names: list[str] = field(default_factory=list)


GUESTS = ["Ada", "Alan", "Barbara", "Donald", "Edsger", "Grace", "Katherine", "Margaret"]


def main() -> None:
    attempts: list[str] = []
    all_have_read = threading.Barrier(len(GUESTS))

    def sign(tx: Transaction, name: str) -> None:
        attempts.append(name)
        book = tx.get(Guestbook, "hotel", create_if_missing=True)
        names = book.names
        if attempts.count(name) == 1:
            all_have_read.wait()  # now every guest has read an empty page, so all but one will collide
        names.append(name)

    with Database("memory:") as db:

        def visit(name: str) -> None:
            db.run(sign, name)

        with ThreadPoolExecutor(len(GUESTS)) as pool:
            list(pool.map(visit, GUESTS))

        signed = db.get_one(Guestbook, "hotel").names
        assert sorted(signed) == GUESTS
        print(f"{len(signed)} guests signed in {len(attempts)} attempts: {', '.join(sorted(signed))}")


if __name__ == "__main__":
    main()
