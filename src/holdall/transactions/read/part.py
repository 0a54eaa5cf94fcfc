"""Parts of items: some fields, fetched by key or by a query. Pure.

A part cannot be changed. In a transaction, the fields of it that were read must not change before the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdall.core.values import Item
from holdall.models.fields.field import Field
from holdall.models.keys.key import ModelKey
from holdall.models.marks import Partial
from holdall.models.model import Model
from holdall.models.schema import ModelSchema
from holdall.tables.commit.lock import Lock
from holdall.transactions.binding import Binding
from holdall.transactions.entry.base import Fragment
from holdall.transactions.entry.loaded import whole_locks
from holdall.transactions.read.instance import make_instance, mismatch, model_of


def list_attributes(
    binding: Binding, schemas: Sequence[ModelSchema], fields: Iterable[Field[Any]]
) -> list[str]:
    """The attributes to fetch for these fields, and those that identify an item of one of the models."""
    form = binding.schema.form
    names = [field.stored for field in fields if not (field.is_key and form.in_key_alone)]
    names += [attribute.name for attribute in (binding.partition, binding.sort) if attribute is not None]
    if form.type_attribute is not None:
        names += [form.type_attribute, *(name for each in schemas for name in each.form.constants)]
    if not form.in_key_alone:
        names += [field.stored for each in schemas for field in each.key_fields.values()]
    if binding.ttl is not None and any(each.ttl is not None for each in schemas):
        names.append(binding.ttl)
    return list(dict.fromkeys(names))


def make_part(binding: Binding, stored: Item, key: ModelKey[Any], fields: Iterable[Field[Any]]) -> Any:
    """An instance with some of the fields of a stored item."""
    found = model_of(binding, stored, key)
    if found is None:
        raise mismatch(key, binding.name_of(stored), binding.schema)
    fetched = frozenset({*found.key_fields, *(field.name for field in fields)})
    return make_instance(binding, found, remove_others(stored, found, fetched), Partial(fetched), key)


def remove_others(stored: Item, schema: ModelSchema, fetched: frozenset[str]) -> Item:
    """The item without the fields that the caller did not request."""
    others = {field.stored for field in schema.plain if field.name not in fetched}
    return {name: value for name, value in stored.items() if name not in others}


class Part(Fragment):
    """An item of which some fields were fetched by its key, once or several times."""

    def __init__(self, key: ModelKey[Any], raw: Item) -> None:
        self._found_by: tuple[Lock, ...] = ()
        self._read: list[tuple[Model, Item, tuple[Lock, ...] | None]] = []
        super().__init__(key, raw, ())

    def add(self, binding: Binding, item: Model, raw: Item, *, whole: bool) -> None:
        """Note another read of it; ``whole``: what the item shows may depend on all of what is stored."""
        locks = whole_locks(binding, item._schema, raw) if whole else None
        self._read.append((item, raw, locks))

    @property
    def locks(self) -> tuple[Lock, ...]:
        """Locks on the fields that were read, and on what a query found it by."""
        return self._list_locks(fetched=False)

    @locks.setter
    def locks(self, locks: tuple[Lock, ...]) -> None:
        self._found_by = locks

    def all_locks(self) -> tuple[Lock, ...]:
        """The same for all fields that were fetched: it is replaced by the whole item, and will not see later reads."""
        return self._list_locks(fetched=True)

    def _list_locks(self, *, fetched: bool) -> tuple[Lock, ...]:
        found = list(self._found_by)
        for item, raw, all_of_it in self._read:
            read = [
                field
                for field in item._schema.plain
                if (field.was_fetched(item) if fetched else field.name in item.__dict__)
            ]
            locks = [Lock(field.name, field.stored, raw.get(field.stored)) for field in read]
            for lock in locks if all_of_it is None or not read else all_of_it:
                found += [] if lock in found else [lock]
        return tuple(found)
