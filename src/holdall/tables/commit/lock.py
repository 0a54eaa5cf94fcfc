"""Locks: what a transaction demands of stored items, as conditions and, when one fails, in words.

Pure. A condition repeats a stored attribute exactly as it arrived, never a re-encoding of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from holdall.core.comparison import equal
from holdall.core.evaluation import holds
from holdall.core.expressions import (
    And,
    Comparator,
    Compare,
    Condition,
    Exists,
    NotExists,
    Or,
    Path,
    Value,
)
from holdall.core.frozen import dataclass
from holdall.core.values import Attribute, Item
from holdall.errors import Difference


@dataclass(frozen=True, slots=True)
class Lock:
    """An attribute has to be as it was; ``expected`` is None for one that was absent."""

    field: str
    attribute: str
    expected: Attribute | None

    def condition(self) -> Condition:
        """What to demand of the stored item."""
        path = Path((self.attribute,))
        return NotExists(path) if self.expected is None else Compare("=", path, Value(self.expected))

    def holds(self, item: Item) -> bool:
        """Whether an item that was read meets it."""
        stored = item.get(self.attribute)
        if stored is None or self.expected is None:
            return stored is self.expected
        return equal(stored, self.expected)


@dataclass(frozen=True, slots=True)
class Bound:
    """A number has to leave room for what is added to it; ``optional`` when it may also be absent."""

    field: str
    attribute: str
    comparator: Comparator
    expected: Attribute
    optional: bool

    def condition(self) -> Condition:
        """What to demand of the stored item."""
        path = Path((self.attribute,))
        bound = Compare(self.comparator, path, Value(self.expected))
        return NotExists(path) | bound if self.optional else bound

    def holds(self, item: Item) -> bool:
        """Whether an item that was read meets it."""
        return holds(self.condition(), item)


@dataclass(frozen=True, slots=True)
class Presence:
    """An attribute must exist, with any value: something is added to it. ``expected`` is what it was."""

    field: str
    attribute: str
    expected: Attribute

    def condition(self) -> Condition:
        """What to demand of the stored item."""
        return Exists(Path((self.attribute,)))

    def holds(self, item: Item) -> bool:
        """Whether an item that was read meets it."""
        return self.attribute in item


Demand: TypeAlias = Lock | Bound | Presence
"""What a transaction demands of one attribute."""


def present(partition: str, locks: Sequence[Demand]) -> list[Condition]:
    """The conditions that an item still exists; if one of them demands an attribute, that is enough."""
    conditions, enough = [], False
    for lock in locks:
        conditions.append(lock.condition())
        enough = enough or not (lock.expected is None or isinstance(lock, Bound))
    return conditions if enough else [Exists(Path((partition,))), *conditions]


def all_of(conditions: Iterable[Condition | None]) -> Condition | None:
    """All of them, None for nothing to demand."""
    given = tuple(filter(None, conditions))
    return given[0] if len(given) == 1 else And(given) if given else None


def any_of(*conditions: Condition | None) -> Condition:
    """One of them."""
    given = tuple(filter(None, conditions))
    return given[0] if len(given) == 1 else Or(given)


def differences(name: str, locks: Sequence[Demand], stored: Item | None) -> list[Difference]:
    """Where a stored item (None: there is none) is not as the locks demand."""
    if stored is None:
        return [Difference(name, None, None, None)]
    return [
        Difference(name, lock.field, lock.expected, stored.get(lock.attribute))
        for lock in locks
        if not lock.holds(stored)
    ]
