"""Locks: what a transaction requires of stored items, as conditions, and as differences if a condition fails.

Pure. A condition repeats a stored attribute exactly as it arrived, never re-encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from holdall.core.comparison import equal
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
from holdall.core.expressions.evaluation import holds
from holdall.core.frozen import dataclass
from holdall.core.values import Attribute, Item
from holdall.errors import Difference


@dataclass(frozen=True, slots=True)
class Lock:
    """Requires that an attribute is as it was read; ``expected`` is None if it was absent."""

    field: str
    attribute: str
    expected: Attribute | None

    def condition(self) -> Condition:
        """The condition on the stored item."""
        path = Path((self.attribute,))
        return NotExists(path) if self.expected is None else Compare("=", path, Value(self.expected))

    def holds(self, item: Item) -> bool:
        """Whether an item that was read meets the requirement."""
        stored = item.get(self.attribute)
        if stored is None or self.expected is None:
            return stored is self.expected
        return equal(stored, self.expected)


@dataclass(frozen=True, slots=True)
class Bound:
    """Requires that a number stays within its field's limits after the addition; ``optional``: it may be absent."""

    field: str
    attribute: str
    comparator: Comparator
    expected: Attribute
    optional: bool

    def condition(self) -> Condition:
        """The condition on the stored item."""
        path = Path((self.attribute,))
        bound = Compare(self.comparator, path, Value(self.expected))
        return NotExists(path) | bound if self.optional else bound

    def holds(self, item: Item) -> bool:
        """Whether an item that was read meets the requirement."""
        return holds(self.condition(), item)


@dataclass(frozen=True, slots=True)
class Presence:
    """Requires that an attribute exists, with any value, because an update adds to it. ``expected`` was its value."""

    field: str
    attribute: str
    expected: Attribute

    def condition(self) -> Condition:
        """The condition on the stored item."""
        return Exists(Path((self.attribute,)))

    def holds(self, item: Item) -> bool:
        """Whether an item that was read meets the requirement."""
        return self.attribute in item


Demand: TypeAlias = Lock | Bound | Presence
"""What a transaction requires of one attribute."""


def present(partition: str, locks: Sequence[Demand]) -> list[Condition]:
    """Return the conditions of the locks, and that the item exists unless one of them implies it."""
    conditions, enough = [], False
    for lock in locks:
        conditions.append(lock.condition())
        enough = enough or not (lock.expected is None or isinstance(lock, Bound))
    return conditions if enough else [Exists(Path((partition,))), *conditions]


def all_of(conditions: Iterable[Condition | None]) -> Condition | None:
    """Return the condition that all of these are true; None if there are none."""
    given = tuple(filter(None, conditions))
    return given[0] if len(given) == 1 else And(given) if given else None


def any_of(*conditions: Condition | None) -> Condition:
    """Return the condition that at least one of these is true."""
    given = tuple(filter(None, conditions))
    return given[0] if len(given) == 1 else Or(given)


def differences(item: object, locks: Sequence[Demand], stored: Item | None) -> list[Difference]:
    """Return where a stored item (None if it does not exist) differs from what the locks require.

    ``item`` is what the messages call the item. If it has ``hides(name)``, the values of some attributes are left out.
    """
    name = repr(item)
    if stored is None:
        return [Difference(name, None, None, None)]
    hides = getattr(item, "hides", lambda name: False)
    return [
        Difference(name, lock.field, None, None)
        if hides(lock.field) or hides(lock.attribute)
        else Difference(name, lock.field, lock.expected, stored.get(lock.attribute))
        for lock in locks
        if not lock.holds(stored)
    ]
