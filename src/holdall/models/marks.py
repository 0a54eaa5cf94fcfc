"""Marks: what was done to an item since it was loaded or made, for whoever has to write it.

Pure. An item that belongs to a transaction carries `Marks`; one that was read outside of a transaction is `Frozen`; one
that nobody keeps (``Order(...)``) carries none and can be changed freely.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from holdall.errors import FrozenItemError

if TYPE_CHECKING:
    from decimal import Decimal

    from holdall.core.values import Attribute
    from holdall.models.fields import Field
    from holdall.models.model import Model


_NO_NAMES: frozenset[str] = frozenset()
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Keeper(Protocol):
    """Whoever writes the items that it keeps: a transaction."""

    def touch(self, item: Model) -> None:
        """The item is looked at or changed for the first time."""

    def allow_change(self, item: Model) -> None:
        """Raise when the item cannot be changed now."""


class Marks:
    """The marks of one item. That a loaded field was read is marked by its name being in the item's ``__dict__``.

    ``held``: its keeper knows that it is looked at. ``seen`` are the fields that were read or assigned.
    """

    __slots__ = ("held", "increments", "keeper", "seen", "shown", "written")

    tracks = True

    def __init__(self, keeper: Keeper, *, held: bool = False) -> None:
        self.keeper = keeper
        self.held = held
        # all but ``seen`` are replaced, never changed: most items are only read, and need none of their own
        self.written: frozenset[str] = _NO_NAMES
        self.seen: set[str] = set()
        self.increments: Mapping[str, int | float | Decimal] = _NOTHING
        self.shown: Mapping[str, Attribute | None] = _NOTHING

    def read(self, item: Model, field: Field[Any], value: Any) -> None:
        """A loaded field is read for the first time.

        A default that can be changed in place is remembered as it was shown, or nobody could tell later whether it was.
        """
        if not field.is_key:
            self._hold(item)
            if item._stored is not None and field.stored not in item._stored and field.codec.mutable(value):
                self.shown = {**self.shown, field.name: field.encode(value)}

    def change(self, item: Model) -> None:
        """A field is about to be changed; raises when it cannot be."""
        self.keeper.allow_change(item)
        self._hold(item)

    def _hold(self, item: Model) -> None:
        """Tell the keeper once that the item is looked at."""
        if not self.held:
            self.held = True
            self.keeper.touch(item)

    def wrote(self, name: str) -> None:
        """A field was assigned; what was added to it before does not matter any more."""
        self.written |= {name}
        self.seen.add(name)
        if name in self.increments:
            self.increments = {other: amount for other, amount in self.increments.items() if other != name}

    def add(self, name: str, amount: int | float | Decimal) -> None:
        """So much is to be added to a field, all in all."""
        self.seen.add(name)
        self.increments = {**self.increments, name: amount}


class Frozen:
    """The marks of an item that nobody would write."""

    __slots__ = ()

    tracks = False
    held = True  # there is nobody to be told
    seen: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    increments: dict[str, Any] = {}  # noqa: RUF012 - always empty

    def read(self, item: Model, field: Field[Any], value: Any) -> None:
        """Reading is free."""

    def change(self, item: Model) -> None:
        """Refuse."""
        raise FrozenItemError(
            f"{item.key!r} was read outside of a transaction, so a change would never be written",
            hint="read it with tx.get in a transaction, or change a copy: copy.copy(item)",
        )

    def wrote(self, name: str) -> None:
        """Never reached: `change` refuses."""


FROZEN = Frozen()
"""For all of them: it holds nothing."""

OPENED = Frozen()
"""The same for items of which one field was read, and for rows of a query, of which seldom just one is: the next field
that is read is decoded together with all others."""

DECODED = Frozen()
"""The same once that was done or, because of an unusual attribute, cannot be."""


class Partial(Frozen):
    """The marks of an item of which only some fields were fetched; asking for another one is an error."""

    __slots__ = ("fetched",)

    def __init__(self, fetched: frozenset[str]) -> None:
        self.fetched = fetched

    def change(self, item: Model) -> None:
        """Refuse."""
        raise FrozenItemError(
            f"only a part of {item.key!r} was fetched, so it cannot be changed",
            hint="fetch the whole item: leave out only=, or get it by its key",
        )
