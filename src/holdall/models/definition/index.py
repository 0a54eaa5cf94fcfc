"""Binds the indexes that a class declares to its fields, and checks that they can work.

Pure. Mistakes raise `ModelDefinitionError`, which names the class and the index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from holdall.core.nearest_name import suggest_name
from holdall.core.rules.schema import MAX_LOCAL_INDEXES, check_schema
from holdall.core.schema import TableSchema
from holdall.errors import ConfigurationError, ModelDefinitionError
from holdall.models.definition.field import SCALARS
from holdall.models.fields.field import Field
from holdall.models.indexes import BoundIndex, ForeignIndex, Index, PlainIndex, SlotIndex, projection_of
from holdall.models.keys.form import AncestorForm, KeyForm, SharedForm, check_collection, plain_attribute
from holdall.models.schema import ModelSchema

if TYPE_CHECKING:
    from holdall.models.model import Model

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")
_SLOTS = 20

Refuse: TypeAlias = Callable[..., ModelDefinitionError]
"""Makes the error about one index: called with the problem, and perhaps ``hint=``."""


def define_indexes(
    cls: type[Model],
    own: Sequence[Index],
    parents: list[ModelSchema],
    fields: Mapping[str, Field[Any]],
    form: KeyForm,
) -> list[BoundIndex]:
    """Return the indexes of the class, including inherited ones, each bound to its fields."""
    for index in own:
        if not isinstance(index, Index):
            raise ModelDefinitionError(
                f"{cls.__name__}: indexes= must be a list of Index, not of {index!r:.60}"
            )
    names = [index.name for index in own]
    for index in own:
        if names.count(index.name) > 1:
            raise _refuse(cls, index, "the class declares two indexes of this name")
    known = (index for parent in reversed(parents) for index in parent.indexes.values())
    inherited = [index.declared for index in known if not index.is_of_layout]
    declared = {index.name: index for index in (*inherited, *own)}
    return _bind(cls, list(declared.values()), fields, form)


def _bind(
    cls: type[Model],
    declared: Sequence[Index],
    fields: Mapping[str, Field[Any]],
    form: KeyForm,
) -> list[BoundIndex]:
    bound: list[BoundIndex] = []
    for index in declared:
        refuse = partial(_refuse, cls, index)
        _check(refuse, index, fields)
        if index.local:
            _check_local(refuse, index, form)
        key = form.keys if index.local else tuple(fields[name] for name in index.key)
        sort_key = tuple(fields[name] for name in index.sort_key)
        if isinstance(form, SharedForm):
            _check_alike(refuse, key)
            check_collection(f"{cls.__name__}: the index {index.name!r}", index.collection)
            slot = _slot(refuse, index, sort_key, len(declared))
            bound.append(SlotIndex(index, key, sort_key, form.root, slot))
        elif isinstance(form, AncestorForm):
            bound.append(_foreign(refuse, index, key, sort_key, fields, form))
        else:
            bound.append(_plain(refuse, index, key, sort_key, fields, form))
    bound += form.indexes()
    _check_apart(cls, bound)
    _check_definitions(cls, bound, form)
    return bound


def _check(refuse: Refuse, index: Index, fields: Mapping[str, Field[Any]]) -> None:
    if not isinstance(index.name, str) or not _NAME.fullmatch(index.name):
        raise refuse("its name is invalid", hint="use letters, digits and . _ -")
    for part in ("key", "sort_key"):
        if isinstance(getattr(index, part), str):
            raise refuse(
                f"{part} must be a list of field names, not a text",
                hint=f'write {part}=["{getattr(index, part)}"]',
            )
    if not index.key and not index.local:
        raise refuse("it has no key", hint='add the fields of its key: key=["field"]')
    names = [*index.key, *index.sort_key]
    for name in names:
        if name not in fields:
            raise refuse(
                f"the model has no field {name!r}",
                hint=suggest_name(name, fields, "fields"),
            )
        if names.count(name) > 1:
            raise refuse(f"it has the field {name!r} twice")


def _check_local(refuse: Refuse, index: Index, form: KeyForm) -> None:
    keys = form.table_keys()
    if keys is None:
        raise refuse(
            "a local index would limit every partition of the table that all models share to 10 GB",
            hint="remove local=True, or give the model its own table: table=...",
        )
    if index.key and {*index.key} != {field.name for field in form.keys}:
        names = ", ".join(field.name for field in form.keys)
        raise refuse(
            f"a local index has the key of its table ({names})",
            hint="leave out key= or local=True",
        )
    if keys[1] is None:
        raise refuse(
            "a table without a sort key cannot have local indexes",
            hint="declare a SortKey, or remove local=True",
        )
    if not index.sort_key:
        raise refuse("it has no sort key", hint='add its fields: sort_key=["field"]')


def _check_alike(refuse: Refuse, key: Sequence[Field[Any]]) -> None:
    for field in key:
        if field.codec.kind is None:
            raise refuse(
                f"the values of {field.name} have different stored types: 1 and '1' would be found together",
                hint="index a field of a single type: str, int, UUID, datetime, ...",
            )


def _slot(refuse: Refuse, index: Index, sort_key: Sequence[Field[Any]], count: int) -> int:
    if index.include is not None or index.sparse:
        raise refuse(
            "include= and sparse= are only for models with their own table (table=)",
            hint="remove them: a shared index holds whole items, and only those that have all its fields",
        )
    if index.slot is None and count > 1:
        raise refuse("a model with several indexes needs a slot for each", hint="add slot=1, slot=2, …")
    slot = 1 if index.slot is None else index.slot
    if isinstance(slot, bool) or not isinstance(slot, int) or not 1 <= slot <= _SLOTS:
        raise refuse(f"slot must be a whole number from 1 to {_SLOTS}, not {slot!r}")
    for field in sort_key:
        if field.codec.kind not in SCALARS:
            raise refuse(f"{field.name} has no order, so it cannot be part of a sort key")
    return slot


def _plain(
    refuse: Refuse,
    index: Index,
    key: tuple[Field[Any], ...],
    sort_key: tuple[Field[Any], ...],
    fields: Mapping[str, Field[Any]],
    form: KeyForm,
) -> PlainIndex:
    _check_own(refuse, index)
    own = sort_key if index.local else (*key, *sort_key)  # of a local index, the layout has checked the key
    for field in own:
        if field.codec.kind not in ("S", "N", "B"):
            raise refuse(f"{field.name} is not stored as a string, a number or binary")
    if index.include is not None and not form.is_plain:
        raise refuse(
            "include= cannot be used with a Template: its rows need the attributes that identify an item",
            hint="leave out include=; if the table's index holds only some attributes, items are fetched by their keys",
        )
    keys = form.table_keys() if index.local else None
    partitions = [plain_attribute(field) for field in key] if keys is None else [keys[0]]
    projection = projection_of(_list_included(refuse, index, fields))
    found = PlainIndex(index, key, sort_key, partitions, projection)
    found.fetches = not form.is_plain
    return found


def _check_own(refuse: Refuse, index: Index) -> None:
    if index.collection is not None:
        raise refuse("collection= is for models in the database's table", hint="leave it out")
    if index.slot is not None:
        raise refuse("slot= does not apply to a model with its own table (table=)", hint="remove slot=")


def _list_included(refuse: Refuse, index: Index, fields: Mapping[str, Field[Any]]) -> list[str] | None:
    """The attributes that ``include`` names; None for all."""
    if index.include is None:
        return None
    for name in index.include:
        if name not in fields:
            raise refuse(
                f"include= names {name!r}, which is not a field",
                hint=suggest_name(name, fields, "fields"),
            )
        if fields[name].is_key:
            raise refuse(f"include= names {name!r}, which is part of the key and always included")
    return [fields[name].stored for name in index.include]


def _foreign(
    refuse: Refuse,
    index: Index,
    key: tuple[Field[Any], ...],
    sort_key: tuple[Field[Any], ...],
    fields: Mapping[str, Field[Any]],
    form: AncestorForm,
) -> ForeignIndex:
    _check_own(refuse, index)
    for field in (*key, *sort_key):
        if field.codec.nullable and not index.sparse:
            raise refuse(
                f"{field.name} is optional, so some items would not be in the index",
                hint="if that is intended, set sparse=True",
            )
    return ForeignIndex(
        index, key, sort_key, form.keys, form.sort_keys, _list_included(refuse, index, fields)
    )


def _check_apart(cls: type[Model], bound: Sequence[BoundIndex]) -> None:
    """Check that no two indexes use the same slot, and that no derived attribute would hold two different values."""
    slots: dict[int, BoundIndex] = {}
    made_up: dict[str, tuple[str, ...]] = {}
    for index in bound:
        if isinstance(index, SlotIndex):
            if index.slot in slots:
                raise _refuse(
                    cls, index.declared, f"slot {index.slot} is already used by {slots[index.slot].name!r}"
                )
            slots[index.slot] = index
        if isinstance(index, PlainIndex):
            continue
        for attribute, part in zip(index.schema.keys, (index.key, index.sort_key), strict=False):
            names = tuple(sorted(field.name for field in part))
            if attribute.name.startswith("_c_") and made_up.setdefault(attribute.name, names) != names:
                raise _refuse(
                    cls, index.declared, f"the attribute {attribute.name} would hold two different values"
                )


def _check_definitions(cls: type[Model], bound: Sequence[BoundIndex], form: KeyForm) -> None:
    """Check names, keys and projections in a model's own table against DynamoDB's rules."""
    keys = form.table_keys()
    if keys is None:
        return
    local = [index.declared for index in bound if index.local]
    if len(local) > MAX_LOCAL_INDEXES:
        raise _refuse(
            cls, local[-1], f"a table can have {MAX_LOCAL_INDEXES} local indexes, and these are {len(local)}"
        )
    for indexes in ((), *((index.schema,) for index in bound)):
        try:
            check_schema(TableSchema("own", *keys, indexes))
        except ConfigurationError as error:
            problem = error.message.removeprefix("own: ")
            raise ModelDefinitionError(f"{cls.__name__}: {problem}", hint=error.hint) from None


def _refuse(cls: type, index: Index, problem: str, *, hint: str | None = None) -> ModelDefinitionError:
    return ModelDefinitionError(f"{cls.__name__}: the index {index.name!r}: {problem}", hint=hint)
