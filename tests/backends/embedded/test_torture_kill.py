"""Writers killed at random moments: no acknowledged write is lost, and no write is partial."""

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
    """What we know from a writer's lines: its acknowledged writes, and the one it was sending when it died."""

    numbers: dict[int, str] = field(default_factory=dict)
    pair: int | None = None
    pending: Operation | None = None

    def read_lines(self, lines: Iterable[str]) -> None:
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
        """The possible states of the file: without and with the unacknowledged write."""
        known = dict(self.numbers), self.pair
        if self.pending is None:
            return [known]
        later = Account(dict(self.numbers), self.pair)
        later.apply(self.pending)
        return [known, (later.numbers, later.pair)]


def read_writers(path: Path) -> dict[str, tuple[dict[int, str], int | None]]:
    """Read the items of each writer from the file, and check that no transaction is partial."""
    with Database(f"embedded:{path}") as db:
        rows = [decode_item(item) for item in scan_table(db, NUMBERS.name)]
        halves = {item["half"]: item["number"] for item in map(decode_item, scan_table(db, PAIRS.name))}
    result: dict[str, tuple[dict[int, str], int | None]] = {}
    for writer in WRITERS:
        numbers = {int(row["number"]): str(row["bucket"]) for row in rows if row["writer"] == writer}
        first, second = halves.get(f"{writer}-a"), halves.get(f"{writer}-b")
        assert first == second, f"a partial transaction of {writer}: {first} and {second} {SEEDED}"
        result[writer] = numbers, None if first is None else int(first)
    return result


def run_round(path: Path, durability: str, accounts: dict[str, Account], choice: random.Random) -> None:
    """Run two writers, and kill one shortly after the other."""
    children = {
        writer: Child("numbered_writer.py", path, durability, writer, choice.random()) for writer in WRITERS
    }
    try:
        for writer in choice.sample(WRITERS, len(WRITERS)):
            lines = [children[writer].line() for _ in range(choice.randrange(1, 500))]
            accounts[writer].read_lines([*lines, *children[writer].kill()])
    finally:
        for child in children.values():
            child.__exit__(None, None, None)


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_killed_writers_lose_no_acknowledged_write_and_leave_no_partial_one(
    tmp_path: Path, durability: str
) -> None:
    path = tmp_path / "store.db"
    choice = random.Random(f"{SEED} {durability}")
    with Database(f"embedded:{path}") as db:
        db.send(CreateTable(NUMBERS))
        db.send(CreateTable(PAIRS))
    accounts = {writer: Account() for writer in WRITERS}
    for round in range(ROUNDS):
        run_round(path, durability, accounts, choice)
        context = f"after round {round} {SEEDED}"
        for writer, state in read_writers(path).items():
            account = accounts[writer]
            assert state in account.possible(), f"{writer} {context}: acknowledged {account}, stored {state}"
            accounts[writer] = Account(*state)
        audit(path, context)
