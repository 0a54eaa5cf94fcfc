"""The frozen description of a model class: its name, its table, its fields.

Pure. Each class has one, made when the class is defined; all code that reads or writes items works from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from holdall.core.frozen import dataclass

if TYPE_CHECKING:
    from holdall.core.values import Item
    from holdall.models.definition.computation import ComputedField
    from holdall.models.definition.derived import Derived
    from holdall.models.fields.field import Field, Key
    from holdall.models.hydrator import Hydrator, Joiner
    from holdall.models.indexes import BoundIndex
    from holdall.models.keys.form import KeyForm, Layout
    from holdall.models.migrations import Conversion, Migrations
    from holdall.models.model import Model

TYPE = "_type"
"""The attribute that names an item's model, in the database's table."""


@dataclass(frozen=True, slots=True)
class ModelSchema:
    """The schema of a model class.

    ``name`` is stored in ``_type``, ``root`` in keys; a subclass of a model with a key has the root of that model.
    ``record_type`` is the name of its items as owners of attachments. ``table`` is the model's own table, None for a
    model in the database's table; ``layout`` is what was declared about it, and ``form`` is how its keys are stored.
    ``fields`` are all fields by name, ``plain`` those that are not part of a key,
    ``key_fields`` those that are, the partition key's first; ``mutable_keys`` are the lists and maps among the latter.
    ``ttl`` is the field with the time at which an item expires, ``version`` the one that counts its writes.
    ``hooked`` names its hooks of writes, such as ``before_commit``; ``prepares``: it has an ``after_load``.
    ``joiners`` are class attributes that take part in transactions. ``derived`` are attributes that are computed from
    fields; ``locked`` are fields on which something else depends, so that they cannot be incremented without a lock.
    ``timed`` are fields that Holdall sets to the time of a write, ``computed`` those that it computes. ``hidden`` are
    the names of fields, and of stored attributes, whose values do not appear in messages. ``used_as_stored``: nothing
    converts stored items before they become instances; ``is_direct``: nothing else prepares instances either.
    """

    model: type[Model]
    name: str
    root: str
    record_type: str
    table: str | None
    layout: Layout | None
    form: KeyForm
    abstract: bool
    keys: tuple[Key[Any], ...]
    sort_keys: tuple[Key[Any], ...]
    key_fields: Mapping[str, Key[Any]]
    mutable_keys: tuple[Key[Any], ...]
    plain: tuple[Field[Any], ...]
    fields: Mapping[str, Field[Any]]
    ttl: Field[Any] | None
    version: Field[Any] | None
    hydrator: Hydrator | None
    joiners: Mapping[str, Joiner]
    hooked: tuple[str, ...]
    prepares: bool
    locked: frozenset[str]
    timed: tuple[Field[Any], ...]
    computed: tuple[ComputedField[Any], ...]
    hidden: frozenset[str]
    derived: tuple[Derived, ...]
    indexes: Mapping[str, BoundIndex]
    migrations: Migrations | None
    used_as_stored: bool
    is_direct: bool

    __eq__ = object.__eq__  # each class has one, so identity is enough
    __hash__ = object.__hash__

    @property
    def conversions(self) -> tuple[Conversion, ...]:
        """The conversions for items of older versions."""
        return () if self.migrations is None else self.migrations.conversions

    def family(self) -> Iterator[ModelSchema]:
        """Yield this model and those derived from it; of two with the same name, the one defined later first."""
        yield from list_derived(self.model)
        yield self

    @property
    def is_guarded(self) -> bool:
        """Whether an item under one of its keys, of this model or of a derived one, may have a unique field."""
        return any(field.unique for each in self.family() for field in each.plain)

    def find_hooked(self) -> ModelSchema | None:
        """This model, or one derived from it, that has a hook of writes; None if none has."""
        if self.hooked:
            return self
        return next((each for each in list_derived(self.model) if each.hooked), None)

    def list_hydrators(self) -> list[Hydrator]:
        """The hydrators of this model and of those derived from it."""
        if not self.model.__subclasses__():  # nearly always
            return [] if self.hydrator is None else [self.hydrator]
        return list(dict.fromkeys(each.hydrator for each in self.family() if each.hydrator is not None))

    def list_joiners(self) -> list[tuple[ModelSchema, Joiner]]:
        """The joiners of this model and of those derived from it, each with its model.

        Of those with the same name and the same record type, only one; this model's, if it has one.
        """
        if not self.model.__subclasses__():
            return [(self, joiner) for joiner in self.joiners.values()]
        found = {
            (each.record_type, name): (each, joiner)
            for each in self.family()
            for name, joiner in each.joiners.items()
        }
        return list(found.values())

    def list_read_only(self) -> list[Field[Any]]:
        """The read-only fields that an item under one of its keys may have, also as an item of a related model."""
        schemas = [base.__dict__.get("_schema") for base in self.model.__mro__]
        root = [schema for schema in schemas if schema is not None and not schema.abstract][-1]
        fields = [field for each in root.family() for field in each.plain if field.options.read_only]
        return list({field.stored: field for field in fields}.values())

    def of(self, item: Item, sort: object = None) -> ModelSchema | None:
        """The model of a stored item with this sort key: this one or one derived from it; None if it is neither."""
        return self.form.model_of(self, item, sort)

    @property
    def place(self) -> str:
        """The module and the name of the class, by which models of the same name differ."""
        return f"{self.model.__module__}.{self.model.__qualname__}"


def list_derived(model: type) -> Iterator[ModelSchema]:
    """Yield the models derived from a class; of two with the same name, the one defined later first.

    A class whose definition was refused is not among them, though Python keeps it until it is collected.
    """
    subclasses: list[type] = model.__subclasses__()
    for derived in reversed(subclasses):
        schema: ModelSchema | None = derived.__dict__.get("_schema")
        if schema is not None:
            yield from schema.family()
