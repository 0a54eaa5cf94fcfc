"""Histories of lists that expire, made into plain ones: what `histories` needs to judge them.

A list that has expired counts as missing, and the next append begins another. Each such life is known by the moment at
which it ends, which is stored with the list and grows from life to life; `life_key` names it. A transaction's reads
and appends go to lives (``x@160``), or it reads that there is none (``x``).

`unfold` expresses the same as one list per key that only grows: an expiry is a transaction without a process, which
appends a mark (the negative moment), and each life's values follow the mark of the previous one. A transaction that
read a life that had ended for another, on which it depends, is then found in a cycle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from histories import Append, Operation, Outcome, Read, Record, Transaction, Values

__all__ = ["life_key", "unfold"]


def life_key(key: str, ends: int) -> str:
    """The name of the life of a list that ends at that moment."""
    return f"{key}@{ends}"


def _part(key: str) -> tuple[str, int]:
    name, _, ends = key.partition("@")
    return name, int(ends or 0)


def unfold(
    history: Sequence[Transaction], final: Transaction, reached: Mapping[int, int]
) -> tuple[list[Transaction], Transaction]:
    """The same history and final read, with each key's lives in one list.

    ``reached`` says when, on the clock of the history, the moments at which lives end were about to come. A read of
    nothing that may have been before or after a life is left out.
    """
    lives = _Lives([*history, final], reached)
    told = [lives.tell(place) for place in range(len(history) + 1)]
    return [*told[:-1], *lives.expiries(final)], told[-1]


class _Lives:
    """The lives of every key, one after the other, and what each came to hold."""

    def __init__(self, transactions: Sequence[Transaction], reached: Mapping[int, int]) -> None:
        self._transactions = transactions
        self._reached = reached
        self._record = Record(transactions)
        users: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place in self._record.counted:
            for operation in transactions[place].operations:
                key, ends = _part(operation.key)
                if ends:
                    users[key][ends].append(place)
        self._users = users
        self._ends = {key: sorted(lives) for key, lives in users.items()}
        self._held = {(key, ends): self._content(key, ends) for key in users for ends in users[key]}
        self._over: set[tuple[str, int]] = {
            (key, ends) for key, lives in self._ends.items() for ends in lives[:-1]
        }
        """The lives that others, or reads of nothing, came after."""

    def _content(self, key: str, ends: int) -> Values:
        """What a life came to hold: what was read of it, and what was appended to that and never read."""
        name = life_key(key, ends)
        content = self._record.versions.get(name, ())
        writers = [place for place in self._users[key][ends] if self._record.appended[place, name]]

        def continues(place: int) -> bool:
            seen = self._record.seen.get((place, name), ())
            return seen == content and self._record.appended[place, name][0] not in content

        while (following := next(filter(continues, writers), None)) is not None:
            content += tuple(self._record.appended[following, name])
        return content

    def _before(self, key: str, place: int) -> Values:
        """All that came before a key's life of that place in their order, marks included."""
        return tuple(
            value for ends in self._ends.get(key, [])[:place] for value in (*self._held[key, ends], -ends)
        )

    # --- telling it anew ----------------------------------------------------------------------------------

    def tell(self, place: int) -> Transaction:
        """A transaction with the one list of each key in place of its lives."""
        operations = (self._retold(place, operation) for operation in self._transactions[place].operations)
        return replace(self._transactions[place], operations=tuple(filter(None, operations)))

    def _retold(self, place: int, operation: Operation) -> Operation | None:
        key, ends = _part(operation.key)
        if isinstance(operation, Append):
            return Append(key, operation.value)
        if place not in self._record.counted:
            return None
        if ends:
            earlier = self._before(key, self._ends[key].index(ends))
            return Read(key, (*earlier, *(operation.values or ())))
        gap = self._gap(place, key)
        if gap is None:
            return None
        if gap > 0:
            self._over.add((key, self._ends[key][gap - 1]))
        return Read(key, self._before(key, gap) or None)

    def _gap(self, place: int, key: str) -> int | None:
        """How many lives a read of nothing came after; None when it cannot be told."""
        ends = self._ends.get(key, [])
        for number, moment in enumerate(ends):
            name = life_key(key, moment)
            if self._record.appended[place, name] and not self._record.seen.get((place, name)):
                return number  # this very transaction began the next
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

    def expiries(self, final: Transaction) -> list[Transaction]:
        """The transactions without a process, each at any time since its moment was about to come."""
        return [
            Transaction(
                f"expiry of {life_key(key, ends)}",
                (Append(key, -ends),),
                Outcome.COMMITTED,
                self._reached.get(ends, final.invoked),
                final.invoked,
            )
            for key, ends in sorted(self._over)
        ]
