"""Migrations: how items that were written by an older version of a model become items of this one.

Pure. A renamed field is read under its old names too. A conversion is a function from an item's values to its values;
a model's conversions are numbered by their order, and ``_v`` says how many an item has been through. An item is
brought up to date whenever it is read, and stored so when it is next written, or by a bulk run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias

from holdall.core.values import Attribute, Item
from holdall.errors import InvalidFieldError, InvalidRequestError, InvalidValueError
from holdall.models.stored_form import encode_value, plain

Conversion: TypeAlias = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Takes an item's values by stored name, and gives them as they should be. Called for each item at most once."""

VERSION = "_v"
"""The attribute that counts the conversions that an item has been through; absent for none."""

_OF_INDEXES = re.compile(r"gsi\d+_(pk|sk)")


class Migrations:
    """The renames and conversions of one model. ``fixed`` are stored names whose values conversions cannot change."""

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
    def renames(self) -> Mapping[str, str]:
        """The names that attributes had before, and those that they have."""
        return self._renames

    def aliases(self, stored: str) -> list[str]:
        """The names that an attribute had before."""
        return [old for old, new in self._renames.items() if new == stored]

    @property
    def mark(self) -> Attribute | None:
        """What ``_v`` holds in an item that is up to date; None when there is nothing to count."""
        return {"N": str(self.version)} if self._conversions else None

    def current(self, item: Item, keys: Sequence[str]) -> Item:
        """The item as this version of the model has it: the very same one when it is up to date.

        ``keys`` are the table's key attributes, which conversions do not see.
        """
        done = self._count_done(item, keys) if VERSION in item else 0
        if done > self.version:
            return item  # a newer version of the program has written it, and may mean something else by an old name
        found = self._rename(item)
        return found if done == self.version else self._convert(found, done, keys)

    def _count_done(self, item: Item, keys: Sequence[str]) -> int:
        try:
            return int(item[VERSION]["N"])
        except (KeyError, ValueError):
            raise InvalidRequestError(
                f"{self._model}: {VERSION} of the item {_where(item, keys)} is {dict(item[VERSION])}, and no count"
            ) from None

    def _rename(self, item: Item) -> Item:
        found: dict[str, Attribute] | None = None
        for old, new in self._renames.items():
            if old in item:
                found = dict(item) if found is None else found
                attribute = found.pop(old)
                found.setdefault(new, attribute)
        return item if found is None else found

    def _convert(self, item: Item, done: int, keys: Sequence[str]) -> Item:
        where = _where(item, keys)
        hidden = {name: value for name, value in item.items() if name in keys or _is_ours(name)}
        values = {name: plain(value) for name, value in item.items() if name not in hidden}
        for conversion in self._conversions[done:]:
            values = self._call(conversion, values, where)
        attributes: dict[str, Attribute] = {}
        for name, value in values.items():
            attribute = self._store(name, value, where)
            before = item.get(name)
            if before is not None and attribute == self._store(name, plain(before), where):
                attribute = before  # untouched: exactly as it is stored
            if attribute is not None:
                attributes[name] = attribute
        for name in self._fixed:
            if attributes.get(name) != item.get(name):
                raise InvalidFieldError(
                    self._model,
                    name,
                    f"a conversion cannot change it: it is a key, or unique (item {where})",
                )
        return {**hidden, **attributes, VERSION: {"N": str(self.version)}}

    def _call(self, conversion: Conversion, values: dict[str, Any], where: str) -> dict[str, Any]:
        name = getattr(conversion, "__name__", repr(conversion))
        try:
            found = conversion(values)
        except Exception as error:
            raise InvalidRequestError(
                f"{self._model}: the conversion {name} failed for the item {where}: {type(error).__name__}: {error}",
                hint="a conversion has to take every item there is; the item stays as it was",
            ) from error
        if isinstance(found, Mapping):
            return dict(found)
        if isinstance(found, Coroutine):
            found.close()
        raise InvalidRequestError(
            f"{self._model}: the conversion {name} gave {type(found).__name__} for the item {where}",
            hint="let it be a plain function that returns the item's values",
        )

    def _store(self, name: str, value: Any, where: str) -> Attribute | None:
        try:
            return None if value is None else encode_value(value)
        except InvalidValueError as error:
            problem = f"a conversion gave {value!r:.60} for the item {where}: {error}"
            raise InvalidFieldError(self._model, name, problem) from None


def _where(item: Item, keys: Sequence[str]) -> str:
    return ", ".join(str(*item[name].values()) for name in keys if name in item)


def _is_ours(name: str) -> bool:
    """Whether an attribute is none of a field's: conversions do not see it, and it is made anew afterwards."""
    return name.startswith("_") or (name.startswith("gsi") and _OF_INDEXES.fullmatch(name) is not None)
