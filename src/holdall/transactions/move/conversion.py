"""Conversions: an item of one model from an item of another.

Fields correspond by their names. A value must fit the field that it is copied to, or its stored form must be readable
as that field's: a text as an enum, a Decimal as an int.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from holdall.core.port import Port
from holdall.errors import InvalidFieldError, InvalidOptionsError, InvalidRequestError
from holdall.models.model import Model
from holdall.models.schema import ModelSchema

Values: TypeAlias = Mapping[str, Any] | None
"""The values of a new item by field name; None to leave the item out."""

M = TypeVar("M", bound=Model)

Convert: TypeAlias = Callable[[M], Values]
"""A function from an item of the source to the values of the new item."""

AsyncConvert: TypeAlias = Callable[[M], Values] | Callable[[M], Awaitable[Values]]
"""A function from an item of the source to the values of the new item; it may be async."""


class Converted(NamedTuple):
    """A new item, and the names of the fields whose values follow from the source's item."""

    item: Model
    given: frozenset[str]


class Conversion:
    """Turns items of ``source`` into items of ``target``, by the names of their fields or with ``convert``.

    ``dropped`` are fields that the target lacks, ``added`` those that only the target has. With ``convert``, neither is
    known beforehand.
    """

    def __init__(self, source: ModelSchema, target: ModelSchema, convert: AsyncConvert[Any] | None) -> None:
        self._source = source
        self._target = target
        self._convert = convert
        self._names = {name for name, field in target.fields.items() if not field.is_computed}
        by_name = convert is None
        self.dropped = tuple(name for name in source.fields if name not in target.fields) if by_name else ()
        self.added = tuple(
            name for name in target.fields if name in self._names - {*source.fields} and by_name
        )
        fields = [target.fields[name] for name in self.added]
        missing = [field.name for field in fields if not field.has_default and not field.is_kept]
        if missing:
            raise InvalidOptionsError(
                f"{source.name} has no field for {', '.join(missing)}, which {target.name} requires",
                hint="give it a default, or pass convert=, a function that returns the values of each new item",
            )

    async def apply(self, port: Port, item: Model) -> Converted | None:
        """The new item; None if ``convert`` leaves it out."""
        if self._convert is None:
            values: Mapping[str, Any] = {
                name: value for name, value in item.to_dict(hidden=True).items() if name in self._names
            }
        else:
            found = await self._call(port, item)
            if found is None:
                return None
            values = found
        given = {
            name: self._fit(name, value)
            for name, value in values.items()
            if not self._is_left_out(name, value)
        }
        item = self._target.model(**given)
        known = {*(given.keys() & self._names), *(name for name in values if self._has_fixed_default(name))}
        return Converted(item, frozenset(known))

    async def _call(self, port: Port, item: Model) -> Values:
        assert self._convert is not None
        try:
            found: Any = await port.call(self._convert, item)
        except Exception as error:
            raise InvalidRequestError(f"convert failed: {type(error).__name__}: {error}") from error
        if found is None or isinstance(found, Mapping):
            return found
        raise InvalidRequestError(
            f"convert returned {type(found).__name__}, not a mapping of fields and their values, or None"
        )

    def _is_left_out(self, name: str, value: Any) -> bool:
        """Whether there is no value to copy: None is stored as absence, for which a field may have a default."""
        field = self._target.fields.get(name)
        return value is None and field is not None and not field.codec.nullable

    def _has_fixed_default(self, name: str) -> bool:
        field = self._target.fields[name]
        return field.has_default and field.options.default_factory is None and not field.is_computed

    def _fit(self, name: str, value: Any) -> Any:
        target, source = self._target.fields.get(name), self._source.fields.get(name)
        if target is None or value is None:
            return value  # the model refuses an unknown name
        try:
            return target.validate(value)
        except InvalidFieldError:
            if source is None or self._convert is not None:
                raise
            attribute = source.form(value)
            try:
                assert attribute is not None
                return target.decode(attribute)
            except InvalidFieldError:
                pass
            raise
