"""Writers killed at random moments: nothing acknowledged is lost, nothing is half-written."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from numbered_writer import NUMBERS, PAIRS, Operation
from rig.store_audit import audit, scan_table
from rig.torture import ROUNDS, SEED, SEEDED, Child

from holdall import Database
from holdall.core import CreateTable, decode_item

pytestmark = pytest.mark.torture

WRITERS = ("ada", "bob")


@dataclass
class Account:
    """What a writer has told us: what it did for certain, and what it was doing when it died."""

    numbers: dict[int, str] = field(default_factory=dict)
    pair: int | None = None
    pending: Operation | None = None

    def hear(self, lines: Iterable[str]) -> None:
        for line in lines:
            word, _, text = line.partition(" ")
            operation: Operation = json.loads(text)
            if word == "try":
                self.pending = operation
            else:
                self.apply(operation)
                self.pending = None

    def apply(self, operation: Operation) -> None:
        kind, number, *rest = operation
        assert isinstance(number, int)
        if kind == "pair":
            self.pair = number
        elif kind == "delete":
            del self.numbers[number]
        else:
            self.numbers[number] = str(rest[0])

    def possible(self) -> list[tuple[dict[int, str], int | None]]:
        """The states the file may be in: without and with what was under way."""
        known = dict(self.numbers), self.pair
        if self.pending is None:
            return [known]
        later = Account(dict(self.numbers), self.pair)
        later.apply(self.pending)
        return [known, (later.numbers, later.pair)]


def read_writers(path: Path) -> dict[str, tuple[dict[int, str], int | None]]:
    """What the file holds of each writer; a transaction of which only half is there is an error."""
    with Database(f"embedded:{path}") as db:
        rows = [decode_item(item) for item in scan_table(db, NUMBERS.name)]
        halves = {item["half"]: item["number"] for item in map(decode_item, scan_table(db, PAIRS.name))}
    result: dict[str, tuple[dict[int, str], int | None]] = {}
    for writer in WRITERS:
        numbers = {int(row["number"]): str(row["bucket"]) for row in rows if row["writer"] == writer}
        first, second = halves.get(f"{writer}-a"), halves.get(f"{writer}-b")
        assert first == second, f"half a transaction of {writer}: {first} and {second} {SEEDED}"
        result[writer] = numbers, None if first is None else int(first)
    return result


def one_round(path: Path, durability: str, accounts: dict[str, Account], choice: random.Random) -> None:
    """Two writers run, and are killed one soon after the other."""
    children = {
        writer: Child("numbered_writer.py", path, durability, writer, choice.random()) for writer in WRITERS
    }
    try:
        for writer in choice.sample(WRITERS, len(WRITERS)):
            lines = [children[writer].line() for _ in range(choice.randrange(1, 500))]
            accounts[writer].hear([*lines, *children[writer].kill()])
    finally:
        for child in children.values():
            child.__exit__(None, None, None)


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_killed_writers_lose_nothing_acknowledged_and_leave_nothing_half_done(
    tmp_path: Path, durability: str
) -> None:
    path = tmp_path / "store.db"
    choice = random.Random(f"{SEED} {durability}")
    with Database(f"embedded:{path}") as db:
        db.send(CreateTable(NUMBERS))
        db.send(CreateTable(PAIRS))
    accounts = {writer: Account() for writer in WRITERS}
    for round in range(ROUNDS):
        one_round(path, durability, accounts, choice)
        said = f"after round {round} {SEEDED}"
        for writer, state in read_writers(path).items():
            account = accounts[writer]
            assert state in account.possible(), f"{writer} {said}: acknowledged {account}, stored {state}"
            accounts[writer] = Account(*state)
        audit(path, said)
