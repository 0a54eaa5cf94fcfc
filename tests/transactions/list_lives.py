"""Converts histories of lists that expire into plain ones, which `histories` can check.

An expired list counts as missing, and the next append begins a new one. Each such *life* of a list is identified by the
moment of its end, which is stored with the list and increases from life to life; `life_key` names it. A transaction
reads and appends to lives (``x@160``), or it reads that there is no list (``x``).

`unfold` expresses the same with one list per key that only grows: an expiry is a transaction of no process that appends
a mark (the negative moment), and the values of each life follow the mark of the previous one. If a transaction read a
life, and depends on a transaction for which that life had already ended, both are in a cycle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from histories import Append, Operation, Outcome, Read, Record, Transaction, Values

__all__ = ["life_key", "unfold"]


def life_key(key: str, ends: int) -> str:
    """Return the name of the life that ends at this moment."""
    return f"{key}@{ends}"


def _split_key(key: str) -> tuple[str, int]:
    name, _, ends = key.partition("@")
    return name, int(ends or 0)


def unfold(
    history: Sequence[Transaction], final: Transaction, reached: Mapping[int, int]
) -> tuple[list[Transaction], Transaction]:
    """Return the same history and final read, with all lives of each key in one list.

    ``reached`` has, for each moment at which a life ends, the time on the clock of the history just before it. A read
    of a missing list is omitted if it can have been before or after a life.
    """
    lives = _Lives([*history, final], reached)
    unfolded = [lives.unfold_transaction(place) for place in range(len(history) + 1)]
    return [*unfolded[:-1], *lives.list_expiries(final)], unfolded[-1]


class _Lives:
    """The lives of every key in their order, and the final values of each."""

    def __init__(self, transactions: Sequence[Transaction], reached: Mapping[int, int]) -> None:
        self._transactions = transactions
        self._reached = reached
        self._record = Record(transactions)
        users: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place in self._record.counted:
            for operation in transactions[place].operations:
                key, ends = _split_key(operation.key)
                if ends:
                    users[key][ends].append(place)
        self._users = users
        self._ends = {key: sorted(lives) for key, lives in users.items()}
        self._contents = {(key, ends): self._find_content(key, ends) for key in users for ends in users[key]}
        self._ended: set[tuple[str, int]] = {
            (key, ends) for key, lives in self._ends.items() for ends in lives[:-1]
        }
        """The lives that were followed by another life, or by a read of a missing list."""

    def _find_content(self, key: str, ends: int) -> Values:
        """Return the final values of a life: those that were read, and those appended afterwards and never read."""
        name = life_key(key, ends)
        content = self._record.versions.get(name, ())
        writers = [place for place in self._users[key][ends] if self._record.appended[place, name]]

        def continues(place: int) -> bool:
            seen = self._record.seen.get((place, name), ())
            return seen == content and self._record.appended[place, name][0] not in content

        while (following := next(filter(continues, writers), None)) is not None:
            content += tuple(self._record.appended[following, name])
        return content

    def _list_values_before(self, key: str, place: int) -> Values:
        """Return the values and marks of a key's earlier lives."""
        return tuple(
            value for ends in self._ends.get(key, [])[:place] for value in (*self._contents[key, ends], -ends)
        )

    # --- unfolding ----------------------------------------------------------------------------------

    def unfold_transaction(self, place: int) -> Transaction:
        """Return a transaction with one list per key instead of lives."""
        operations = (
            self._unfold_operation(place, operation) for operation in self._transactions[place].operations
        )
        return replace(self._transactions[place], operations=tuple(filter(None, operations)))

    def _unfold_operation(self, place: int, operation: Operation) -> Operation | None:
        key, ends = _split_key(operation.key)
        if isinstance(operation, Append):
            return Append(key, operation.value)
        if place not in self._record.counted:
            return None
        if ends:
            earlier = self._list_values_before(key, self._ends[key].index(ends))
            return Read(key, (*earlier, *(operation.values or ())))
        gap = self._count_lives_before(place, key)
        if gap is None:
            return None
        if gap > 0:
            self._ended.add((key, self._ends[key][gap - 1]))
        return Read(key, self._list_values_before(key, gap) or None)

    def _count_lives_before(self, place: int, key: str) -> int | None:
        """Return how many lives precede a read of a missing list; None if that is not certain."""
        ends = self._ends.get(key, [])
        for number, moment in enumerate(ends):
            name = life_key(key, moment)
            if self._record.appended[place, name] and not self._record.seen.get((place, name)):
                return number  # this transaction began the next life
        it = self._transactions[place]
        possible = [
            gap
            for gap in range(len(ends) + 1)
            if (gap == 0 or self._reached.get(ends[gap - 1], it.completed + 1) <= it.completed)
            and not any(self._is_used_before(key, later, it) for later in ends[gap:])
        ]
        return None if len(possible) > 1 else possible[0] if possible else 0

    def _is_used_before(self, key: str, ends: int, it: Transaction) -> bool:
        return any(
            self._transactions[place].outcome is Outcome.COMMITTED
            and self._transactions[place].completed < it.invoked
            for place in self._users[key][ends]
        )

    def list_expiries(self, final: Transaction) -> list[Transaction]:
        """Return the expiries as transactions of no process, each at any time since just before its moment."""
        return [
            Transaction(
                f"expiry of {life_key(key, ends)}",
                (Append(key, -ends),),
                Outcome.COMMITTED,
                self._reached.get(ends, final.invoked),
                final.invoked,
            )
            for key, ends in sorted(self._ended)
        ]
