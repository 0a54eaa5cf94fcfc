"""Migrations: convert items that an older version of a model wrote into items of the current version.

Pure. A renamed field is also read under its old names. A conversion is a function from an item's old values to its new
ones; the conversions of a model are ordered, and ``_v`` counts how many of them were applied to an item. An item is
converted whenever it is read, and stored in the new form when it is next written, or by a bulk run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from holdall.core.values import Attribute, Item
from holdall.errors import InvalidFieldError, InvalidRequestError, InvalidValueError, ModelDefinitionError
from holdall.models.codec.stored_form import encode_value, plain
from holdall.models.definition.field import refuse_field
from holdall.models.fields.field import Field

if TYPE_CHECKING:
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema


Conversion: TypeAlias = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Takes an item's values by stored name, and returns the new values. It is applied to each item at most once."""

VERSION = "_v"
"""The attribute that counts how many conversions were applied to an item; absent for none."""

INDEX_ATTRIBUTE = re.compile(r"gsi\d+_(pk|sk)")
"""The key attributes of the indexes that models share."""


class Migrations:
    """The renames and conversions of one model.

    ``renames`` are the current names of attributes by their former names. ``fixed`` are the stored names that
    conversions must not change.
    """

    __slots__ = ("_fixed", "_model", "conversions", "renames")

    def __init__(
        self,
        model: str,
        renames: Mapping[str, str],
        conversions: Sequence[Conversion],
        fixed: Sequence[str],
    ) -> None:
        self._model = model
        self.renames = renames
        self.conversions = tuple(conversions)
        self._fixed = frozenset(fixed)

    @property
    def version(self) -> int:
        """The number of conversions."""
        return len(self.conversions)

    def aliases(self, stored: str) -> list[str]:
        """Return the former names of an attribute."""
        return [old for old, new in self.renames.items() if new == stored]

    @property
    def mark(self) -> Attribute | None:
        """The value of ``_v`` in an item that is up to date; None if the model has no conversions."""
        return {"N": str(self.version)} if self.conversions else None

    def current(self, item: Item, keys: Sequence[str]) -> Item:
        """Return the item in the form of this version of the model; the same object if it is up to date.

        ``keys`` are the table's key attributes, which are not passed to conversions.
        """
        done = self._count_done(item, keys) if VERSION in item else 0
        if done > self.version:
            return item  # a newer version of the program wrote it, and may use an old name for something else
        found = self._rename(item)
        return found if done == self.version else self._convert(found, done, keys)

    def _count_done(self, item: Item, keys: Sequence[str]) -> int:
        try:
            return int(item[VERSION]["N"])
        except (KeyError, ValueError):
            raise InvalidRequestError(
                f"{self._model}: {VERSION} of the item {_where(item, keys)} must be a whole number, "
                f"not {dict(item[VERSION])}"
            ) from None

    def _rename(self, item: Item) -> Item:
        found: dict[str, Attribute] | None = None
        for old, new in self.renames.items():
            if old in item:
                found = dict(item) if found is None else found
                attribute = found.pop(old)
                found.setdefault(new, attribute)
        return item if found is None else found

    def _convert(self, item: Item, done: int, keys: Sequence[str]) -> Item:
        where = _where(item, keys)
        hidden = {name: value for name, value in item.items() if name in keys or _is_ours(name)}
        values = {name: plain(value) for name, value in item.items() if name not in hidden}
        for conversion in self.conversions[done:]:
            values = self._call(conversion, values, where)
        attributes: dict[str, Attribute] = {}
        for name, value in values.items():
            attribute = self._store(name, value, where)
            before = item.get(name)
            if before is not None and attribute == self._store(name, plain(before), where):
                attribute = before  # unchanged, so exactly as it is stored
            if attribute is not None:
                attributes[name] = attribute
        for name in self._fixed:
            if attributes.get(name) != item.get(name):
                raise InvalidFieldError(
                    self._model,
                    name,
                    f"a conversion changed it for the item {where}, but it is part of the key or unique",
                )
        return {**hidden, **attributes, VERSION: {"N": str(self.version)}}

    def _call(self, conversion: Conversion, values: dict[str, Any], where: str) -> dict[str, Any]:
        name = getattr(conversion, "__name__", repr(conversion))
        try:
            found = conversion(values)
        except Exception as error:
            raise InvalidRequestError(
                f"{self._model}: the conversion {name} failed for the item {where}: {type(error).__name__}: {error}",
                hint="a conversion must handle every stored item; this item was not changed",
            ) from error
        if isinstance(found, Mapping):
            return dict(found)
        if isinstance(found, Coroutine):
            found.close()
        raise InvalidRequestError(
            f"{self._model}: the conversion {name} returned {type(found).__name__} for the item {where}",
            hint="a conversion must be a plain function that returns the item's values as a dict",
        )

    def _store(self, name: str, value: Any, where: str) -> Attribute | None:
        try:
            return None if value is None else encode_value(value)
        except InvalidValueError as error:
            problem = f"a conversion returned {value!r:.60} for the item {where}: {error}"
            raise InvalidFieldError(self._model, name, problem) from None


def _where(item: Item, keys: Sequence[str]) -> str:
    return ", ".join(str(*item[name].values()) for name in keys if name in item)


def _is_ours(name: str) -> bool:
    """Whether an attribute is not a field's: it is not passed to conversions, and is computed again afterwards."""
    return name.startswith("_") or (name.startswith("gsi") and INDEX_ATTRIBUTE.fullmatch(name) is not None)


def bind_migrations(
    cls: type[Model],
    fields: Mapping[str, Field[Any]],
    own: Sequence[Conversion],
    parents: Sequence[ModelSchema],
    table: str | None,
) -> Migrations | None:
    """Collect the renames from the fields, and the conversions from the class or its nearest parent that has some."""
    renames = _renames(cls, fields)
    conversions = _conversions(cls, own, parents, table)
    if not renames and not conversions:
        return None
    fixed = [field.stored for field in fields.values() if field.is_key or field.unique]
    return Migrations(cls.__name__, renames, conversions, fixed)


def _renames(cls: type[Model], fields: Mapping[str, Field[Any]]) -> dict[str, str]:
    renames: dict[str, str] = {}
    taken = {field.stored for field in fields.values()}
    for field in fields.values():
        aliases = field.options.aliases
        if isinstance(aliases, str):
            raise refuse_field(
                cls,
                field.name,
                "aliases must be a list of names, not a text",
                hint=f'write aliases=["{aliases}"]',
            )
        for alias in aliases:
            _check_renamed(cls, field)
            if alias in taken or alias in renames or alias.startswith("_"):
                raise refuse_field(
                    cls,
                    field.name,
                    f"the alias {alias!r} begins with an underscore, or is the name of another field",
                )
            renames[alias] = field.stored
    return renames


def _check_renamed(cls: type[Model], field: Field[Any]) -> None:
    hint = "keep its old stored name with name="
    if field.is_key:
        raise refuse_field(cls, field.name, "part of a key cannot be renamed", hint=hint)
    if field.unique:
        problem = "a unique field cannot be renamed, because its values are reserved under the stored name"
        raise refuse_field(cls, field.name, problem, hint=hint)


def _conversions(
    cls: type[Model], own: Sequence[Conversion], parents: Sequence[ModelSchema], table: str | None
) -> tuple[Conversion, ...]:
    if callable(own):
        raise ModelDefinitionError(
            f"{cls.__name__}: migrations= must be a list of functions",
            hint=f"write migrations=[{getattr(own, '__name__', 'a_function')}]",
        )
    found = tuple(own) or next((parent.conversions for parent in parents if parent.conversions), ())
    if found and table is not None:
        raise ModelDefinitionError(
            f"{cls.__name__}: a model with its own table (table=) cannot have migrations",
            hint="rename fields with aliases=, or convert the table with a program of your own",
        )
    for conversion in found:
        if not callable(conversion):
            raise ModelDefinitionError(
                f"{cls.__name__}: migrations= contains {conversion!r:.60}, which is not callable"
            )
    return found
