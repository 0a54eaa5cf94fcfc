"""A program that changes things while another process migrates them, with an old or the new version of the model.

``racing_writer.py URL VERSION SEED ROUNDS ITEMS`` starts when it reads a line from stdin, and finally prints, as JSON,
how much it has added to the hits and to the quantity of each thing. `Work` does the same in threads and tasks.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from typing import Any

from race_models import OldThing, Thing

from holdall import AsyncDatabase, Database

PATIENT: dict[str, Any] = {"retries": 1000, "initial_backoff": 0.001, "max_backoff": 0.02}
TAGS = [None, "red", "green", "blue"]


class Work:
    """A writer's random changes, and the sums of those that were committed: ``hits`` and ``quantities`` by thing."""

    def __init__(self, version: str, seed: object, rounds: int, items: int) -> None:
        self.model: Any = {"old": OldThing, "new": Thing}[version]
        self.hits: Counter[int] = Counter()
        self.quantities: Counter[int] = Counter()
        self._choice = random.Random(f"{version} {seed}")
        self._rounds = rounds
        self._items = items

    def __iter__(self) -> Any:
        """Yield the number of a thing, an amount, whether to assign it, a tag, and the number of a second thing."""
        choice = self._choice
        for _ in range(self._rounds):
            number, other = choice.sample(range(self._items), 2)
            yield number, choice.randrange(1, 5), choice.random() < 0.5, choice.choice(TAGS), other

    def change(self, thing: Any, amount: int, assigned: bool, tag: str | None) -> None:
        """Add to the hits, either by an assignment, together with a tag, or by an increment."""
        if assigned:
            thing.hits += amount
            thing.tag = tag
        else:
            thing.field("hits").increment_by(amount)

    def order(self, thing: Any, amount: int) -> None:
        """Add to the quantity; only new programs know the field by that name."""
        if self.model is Thing:
            thing.field("quantity").increment_by(amount)

    def note(self, number: int, amount: int, other: int) -> None:
        """Record the amounts after the commit."""
        self.hits[number] += amount
        self.hits[other] += 1
        if self.model is Thing:
            self.quantities[number] += amount

    def run(self, db: Database) -> None:
        """Make all changes, each to two things in one transaction."""
        for number, amount, assigned, tag, other in self:

            def body(
                tx: Any,
                number: int = number,
                amount: int = amount,
                assigned: bool = assigned,
                tag: Any = tag,
                other: int = other,
            ) -> None:
                thing = tx.get_one(self.model, number)
                self.change(thing, amount, assigned, tag)
                self.order(thing, amount)
                tx.get_one(self.model, other).field("hits").increment_by(1)

            db.run(body, **PATIENT)
            self.note(number, amount, other)

    async def run_awaiting(self, db: AsyncDatabase) -> None:
        """Make all changes in an async task."""
        for number, amount, assigned, tag, other in self:

            async def body(
                tx: Any,
                number: int = number,
                amount: int = amount,
                assigned: bool = assigned,
                tag: Any = tag,
                other: int = other,
            ) -> None:
                thing = await tx.get_one(self.model, number)
                self.change(thing, amount, assigned, tag)
                self.order(thing, amount)
                (await tx.get_one(self.model, other)).field("hits").increment_by(1)

            await db.run(body, **PATIENT)
            self.note(number, amount, other)


def main(url: str, version: str, seed: str, rounds: str, items: str) -> None:
    work = Work(version, seed, int(rounds), int(items))
    with Database(url, manage_table=False) as db:
        print("ready", flush=True)
        sys.stdin.readline()
        work.run(db)
    print(json.dumps([work.hits, work.quantities]))


if __name__ == "__main__":
    main(*sys.argv[1:])
