"""The frozen description of a model class: what it is called, where it lives, which fields it has.

Pure. One per class, made when the class is defined; everything that reads or writes items works from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from holdall.core.frozen import dataclass

if TYPE_CHECKING:
    from holdall.core.values import Item
    from holdall.models.derived import Derived
    from holdall.models.fields import Field, Key
    from holdall.models.hydrator import Hydrator, Joiner
    from holdall.models.indexes import BoundIndex
    from holdall.models.migrations import Conversion, Migrations
    from holdall.models.model import Model

TYPE = "_type"
"""The attribute that names an item's model, in the one table."""


@dataclass(frozen=True, slots=True)
class ModelSchema:
    """A model class.

    ``name`` stands in ``_type``, ``root`` in keys: a subclass of a model with a key has its root's. ``record_type`` is
    what its items are called as owners of attachments. ``table`` is the model's own table, None for one that lives in
    the database's. ``fields`` are all of them, by name, ``plain`` those that are not in a key, ``key_fields`` those
    that are, the partition key's first; ``mutable_keys`` are the lists and maps among those. ``ttl`` is the field with
    the time at which an item expires. ``hooked``: the class has a ``before_commit``. ``joiners`` are class attributes
    that take part in transactions.
    ``derived`` is what is stored besides the fields; ``locked`` are the fields that something
    depends on, so that they cannot be incremented unseen.
    """

    model: type[Model]
    name: str
    root: str
    record_type: str
    table: str | None
    abstract: bool
    keys: tuple[Key[Any], ...]
    sort_keys: tuple[Key[Any], ...]
    key_fields: Mapping[str, Key[Any]]
    mutable_keys: tuple[Key[Any], ...]
    plain: tuple[Field[Any], ...]
    fields: Mapping[str, Field[Any]]
    ttl: Field[Any] | None
    hydrator: Hydrator | None
    joiners: tuple[Joiner, ...]
    hooked: bool
    locked: frozenset[str]
    derived: tuple[Derived, ...]
    indexes: Mapping[str, BoundIndex]
    migrations: Migrations | None
    used_as_stored: bool

    __eq__ = object.__eq__  # one per class, so a thing of its own
    __hash__ = object.__hash__

    @property
    def conversions(self) -> tuple[Conversion, ...]:
        """The conversions that items of older versions go through."""
        return () if self.migrations is None else self.migrations.conversions

    def family(self) -> Iterator[ModelSchema]:
        """This model and those derived from it; of two that were defined under one name, the later first."""
        for derived in reversed(self.model.__subclasses__()):
            schema: ModelSchema | None = derived.__dict__.get("_schema")
            if schema is not None:
                yield from schema.family()
        yield self

    def of(self, item: Item, sort: object = None) -> ModelSchema | None:
        """The model of a stored item: this one or one derived from it; None when it is neither.

        In the one table the item says so itself. In a model's own table nothing does, and it is the one whose sort
        key's default is the item's sort key ``sort``, as stored.
        """
        if self.table is not None:
            return self._by_sort_key(sort)
        kind = item.get(TYPE)
        name = None if kind is None else kind.get("S")
        if name == self.name:
            return self
        return next((schema for schema in self.family() if schema.name == name), None)

    def _by_sort_key(self, sort: object) -> ModelSchema | None:
        """The model with this default sort key; whatever has none of the defaults is of the root."""
        for schema in self.family():
            default = schema.sort_default()
            if default is not None and sort in (default, str(default)):  # a number may be kept as text
                return schema
        return self if self.name == self.root or self.sort_default() is None else None

    def sort_default(self) -> object:
        """The stored sort key that the defaults give, None when not all its components have one."""
        from holdall.models.keys import default_sort

        return default_sort(self)
