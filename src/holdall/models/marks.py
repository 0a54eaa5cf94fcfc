"""Marks: what was done to an item since it was read or created, for the transaction that writes it.

Pure. An item of a transaction carries `Marks`; an item that was read outside a transaction is `Frozen`; an item that
belongs to no transaction (``Order(...)``) carries none and can be changed freely.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from holdall.errors import FrozenItemError

if TYPE_CHECKING:
    from decimal import Decimal

    from holdall.core.values import Attribute
    from holdall.models.fields.field import Field
    from holdall.models.fields.update import FieldUpdate
    from holdall.models.model import Model


_NO_NAMES: frozenset[str] = frozenset()
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Keeper(Protocol):
    """The owner of items, which will write them: a transaction."""

    def touch(self, item: Model) -> None:
        """Called when the item is read or changed for the first time."""

    def allow_change(self, item: Model) -> None:
        """Raise an error if the item cannot be changed now."""


class Marks:
    """The marks of one item. A field of a loaded item was read if its name is in the item's ``__dict__``.

    ``held``: the keeper knows that the item was read or changed. ``seen`` are the fields that were read or assigned.
    """

    __slots__ = ("held", "increments", "keeper", "seen", "shown", "updates", "written")

    def __init__(self, keeper: Keeper, held: bool = False) -> None:
        self.keeper = keeper
        self.held = held
        # all are replaced, not changed, while they are empty: the rows of a query share the empty ones
        self.written: frozenset[str] = _NO_NAMES
        self.seen: set[str] | frozenset[str] = _NO_NAMES
        self.increments: Mapping[str, int | float | Decimal] = _NOTHING
        self.shown: Mapping[str, Attribute | None] = _NOTHING
        self.updates: Mapping[str, FieldUpdate] = _NOTHING

    def read(self, item: Model, field: Field[Any], value: Any) -> None:
        """Mark a loaded field as read for the first time.

        A default that can be changed in place is remembered as it was returned, so that a change can be detected later.
        """
        if not field.is_key:
            self._hold(item)
            if item._stored is not None and field.stored not in item._stored and field.codec.mutable(value):
                self.shown = {**self.shown, field.name: field.encode(value)}

    def change(self, item: Model) -> None:
        """Prepare to change a field; raises if it cannot be changed."""
        self.keeper.allow_change(item)
        self._hold(item)

    def _hold(self, item: Model) -> None:
        """Report to the keeper, once, that the item is used."""
        if not self.held:
            self.held = True
            self.keeper.touch(item)

    @property
    def changes_unread(self) -> bool:
        """Whether a field is changed whatever it is, so that it need not be locked."""
        return bool(self.increments or self.updates)

    def wrote(self, name: str) -> None:
        """Mark a field as assigned; earlier increments no longer matter."""
        self.written |= {name}
        self.seen = {*self.seen, name}
        if name in self.increments:
            self.increments = {other: amount for other, amount in self.increments.items() if other != name}
        if name in self.updates:
            self.updates = {other: update for other, update in self.updates.items() if other != name}

    def add(self, name: str, amount: int | float | Decimal) -> None:
        """Record the total that will be added to a field."""
        self.seen = {*self.seen, name}
        self.increments = {**self.increments, name: amount}

    def update(self, name: str, update: FieldUpdate) -> None:
        """Record the one update that combines all changes of a set or list field."""
        self.seen = {*self.seen, name}
        self.updates = {**self.updates, name: update}


class Frozen:
    """The marks of an item that no transaction will write."""

    __slots__ = ()

    held = True  # there is no keeper to report to
    seen: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    increments: dict[str, Any] = {}  # noqa: RUF012 - always empty
    updates: dict[str, Any] = {}  # noqa: RUF012 - always empty

    def read(self, item: Model, field: Field[Any], value: Any) -> None:
        """Do nothing: reads are not tracked."""

    def change(self, item: Model) -> None:
        """Raise `FrozenItemError`."""
        raise FrozenItemError(
            f"{item.key!r} was read outside a transaction, so a change would never be written",
            hint="read it with tx.get in a transaction, or change a copy: copy.copy(item)",
        )

    def wrote(self, name: str) -> None:
        """Never called, because `change` raises."""


FROZEN = Frozen()
"""The marks of all such items; they hold no state."""

OPENED = Frozen()
"""The same for items of which one field was read, and for rows of a query: the next read of a field decodes all fields
together."""

DECODED = Frozen()
"""The same after all fields were decoded together, or could not be because of an unusual attribute."""


class Partial(Frozen):
    """The marks of an item that was fetched in part; reading a field that was not fetched is an error."""

    __slots__ = ("fetched",)

    def __init__(self, fetched: frozenset[str]) -> None:
        self.fetched = fetched

    def change(self, item: Model) -> None:
        """Raise `FrozenItemError`."""
        raise FrozenItemError(
            f"only some fields of {item.key!r} were fetched, so it cannot be changed",
            hint="fetch the whole item: remove only=, or get it by its key",
        )
