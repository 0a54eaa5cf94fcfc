"""From declared indexes to bound ones, with the checks that can be made before an item exists. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdall.errors import ModelDefinitionError
from holdall.models.fields import Field
from holdall.models.indexes import BoundIndex, ForeignIndex, Index, SlotIndex

if TYPE_CHECKING:
    from holdall.models.model import Model

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")
_ORDERED = {"S", "N", "B", "BOOL"}
_SLOTS = 20


def bind_indexes(
    cls: type[Model],
    declared: Sequence[Index],
    fields: Mapping[str, Field[Any]],
    root: str,
    table: str | None,
) -> list[BoundIndex]:
    """The indexes with their fields; `ModelDefinitionError` names the class and the index that cannot work."""
    bound: list[BoundIndex] = []
    for index in declared:
        _check(cls, index, fields)
        key = tuple(fields[name] for name in index.key)
        sort_key = tuple(fields[name] for name in index.sort_key)
        if table is None:
            _check_alike(cls, index, key)
            bound.append(SlotIndex(index, key, sort_key, root, _slot(cls, index, sort_key, len(declared))))
        else:
            bound.append(_foreign(cls, index, key, sort_key, fields))
    _check_apart(cls, bound)
    return bound


def _check(cls: type[Model], index: Index, fields: Mapping[str, Field[Any]]) -> None:
    if not _NAME.fullmatch(index.name) or "#" in index.name:
        raise _wrong(cls, index, "letters, digits and . _ - make a name", hint="choose another")
    for part in ("key", "sort_key"):
        if isinstance(getattr(index, part), str):
            raise _wrong(
                cls, index, f"{part} is a list of field names", hint=f'{part}=["{getattr(index, part)}"]'
            )
    if not index.key:
        raise _wrong(cls, index, "it has no key")
    names = [*index.key, *index.sort_key]
    for name in names:
        if name not in fields:
            raise _wrong(cls, index, f"there is no field {name!r}")
        if names.count(name) > 1:
            raise _wrong(cls, index, f"{name!r} is in it twice")


def _check_alike(cls: type[Model], index: Index, key: Sequence[Field[Any]]) -> None:
    for field in key:
        if field.codec.kind is None:
            raise _wrong(
                cls,
                index,
                f"the values of {field.name} are not all stored alike: 1 and '1' would be found together",
                hint="index a field of one type: str, int, UUID, datetime, ...",
            )


def _slot(cls: type[Model], index: Index, sort_key: Sequence[Field[Any]], count: int) -> int:
    if index.include is not None or index.sparse:
        raise _wrong(
            cls,
            index,
            "include= and sparse= are for tables of a model's own",
            hint="a shared index holds whole items, and only those that have all its fields",
        )
    if index.slot is None and count > 1:
        raise _wrong(
            cls, index, "a model with several indexes says which slot each uses", hint="add slot=1, slot=2, …"
        )
    slot = 1 if index.slot is None else index.slot
    if isinstance(slot, bool) or not isinstance(slot, int) or not 1 <= slot <= _SLOTS:
        raise _wrong(cls, index, f"slot is {slot!r}; a table has up to {_SLOTS} indexes, from 1 up")
    for field in sort_key:
        if field.codec.kind not in _ORDERED:
            raise _wrong(cls, index, f"{field.name} has no order, and cannot be in a sort key")
    return slot


def _foreign(
    cls: type[Model],
    index: Index,
    key: tuple[Field[Any], ...],
    sort_key: tuple[Field[Any], ...],
    fields: Mapping[str, Field[Any]],
) -> ForeignIndex:
    if len(index.name) < 3:
        raise _wrong(cls, index, "an index of a table has a name of 3 characters or more")
    if index.slot is not None:
        raise _wrong(
            cls, index, "slot= is for the database's table; here each index is one of the table's own"
        )
    for field in (*key, *sort_key):
        if field.codec.nullable and not index.sparse:
            raise _wrong(
                cls,
                index,
                f"{field.name} is optional",
                hint="sparse=True leaves items without it out of the index",
            )
    included = None
    if index.include is not None:
        for name in index.include:
            if name not in fields:
                raise _wrong(cls, index, f"include names {name!r}, which is no field")
            if fields[name].is_key:
                raise _wrong(cls, index, f"include names {name!r}, which is in the key and always there")
        included = [fields[name].stored for name in index.include]
    keys = tuple(field for field in fields.values() if field.is_key and not field.is_sort_key)
    sort_keys = tuple(field for field in fields.values() if field.is_sort_key)
    return ForeignIndex(index, key, sort_key, keys, sort_keys, included)


def _check_apart(cls: type[Model], bound: Sequence[BoundIndex]) -> None:
    """No two indexes in one place, and no made-up attribute that would have to hold two things."""
    slots: dict[int, BoundIndex] = {}
    made_up: dict[str, tuple[str, ...]] = {}
    for index in bound:
        if isinstance(index, SlotIndex):
            if index.slot in slots:
                raise _wrong(cls, index.declared, f"slot {index.slot} is taken by {slots[index.slot].name!r}")
            slots[index.slot] = index
        for attribute, part in zip(index.schema.keys, (index.key, index.sort_key), strict=False):
            names = tuple(sorted(field.name for field in part))
            if attribute.name.startswith("_c_") and made_up.setdefault(attribute.name, names) != names:
                raise _wrong(cls, index.declared, f"{attribute.name} would have to hold two different things")


def _wrong(cls: type, index: Index, problem: str, *, hint: str | None = None) -> ModelDefinitionError:
    return ModelDefinitionError(f"{cls.__name__}: the index {index.name!r}: {problem}", hint=hint)
