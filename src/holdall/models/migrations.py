"""Migrations: how items that were written by an older version of a model become items of this one.

Pure. A renamed field is read under its old names too. A conversion is a function from an item's values to its values;
a model's conversions are numbered by their order, and ``_v`` says how many an item has been through. An item is
brought up to date whenever it is read, and stored so when it is next written, or by a bulk run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from holdall.core.values import Attribute, Item
from holdall.errors import InvalidFieldError, InvalidValueError
from holdall.models.stored_form import plain, stored

__all__ = ["VERSION", "Conversion", "Migrations"]

Conversion: TypeAlias = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Takes an item's values by stored name, and gives them as they should be. Called for each item at most once."""

VERSION = "_v"
"""The attribute that counts the conversions that an item has been through; absent for none."""


class Migrations:
    """The renames and conversions of one model."""

    __slots__ = ("_conversions", "_fixed", "_model", "_renames")

    def __init__(
        self,
        model: str,
        renames: Mapping[str, str],
        conversions: Sequence[Conversion],
        fixed: Sequence[str],
    ) -> None:
        self._model = model
        self._renames = renames
        self._conversions = tuple(conversions)
        self._fixed = frozenset(fixed)

    @property
    def conversions(self) -> tuple[Conversion, ...]:
        """The conversions, in their order."""
        return self._conversions

    @property
    def version(self) -> int:
        """How many conversions there are."""
        return len(self._conversions)

    @property
    def mark(self) -> Attribute | None:
        """What ``_v`` holds in an item that is up to date; None when there is nothing to count."""
        return {"N": str(self.version)} if self._conversions else None

    def current(self, item: Item, keys: Sequence[str]) -> Item:
        """The item as this version of the model has it: the very same one when it is up to date.

        ``keys`` are the table's key attributes, which conversions do not see.
        """
        found = self._renamed(item)
        done = int(item[VERSION]["N"]) if VERSION in item else 0
        if done >= self.version:
            return found  # also what a newer version of the program has written
        return self._converted(found, done, keys)

    def _renamed(self, item: Item) -> Item:
        found: dict[str, Attribute] | None = None
        for old, new in self._renames.items():
            if old in item:
                found = dict(item) if found is None else found
                attribute = found.pop(old)
                found.setdefault(new, attribute)
        return item if found is None else found

    def _converted(self, item: Item, done: int, keys: Sequence[str]) -> Item:
        hidden = {name: value for name, value in item.items() if name.startswith("_") or name in keys}
        before = {name: plain(value) for name, value in item.items() if name not in hidden}
        values = dict(before)
        for conversion in self._conversions[done:]:
            values = dict(conversion(values))
        attributes: dict[str, Attribute] = {}
        for name, value in values.items():
            if name in before and value is before[name]:
                attributes[name] = item[name]  # untouched: exactly as it is stored
            elif value is not None:
                attributes[name] = self._stored(name, value)
        for name in self._fixed:
            if attributes.get(name) != item.get(name):
                raise InvalidFieldError(self._model, name, "a conversion cannot change a key")
        return {**hidden, **attributes, VERSION: {"N": str(self.version)}}

    def _stored(self, name: str, value: Any) -> Attribute:
        try:
            return stored(value)
        except InvalidValueError as error:
            raise InvalidFieldError(self._model, name, f"a conversion gave {value!r:.60}: {error}") from None
