"""A model as its class declares it: its key, its fields and its indexes, with their types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from mypy.nodes import Decorator, TypeInfo, Var
from mypy.plugin import CheckerPluginInterface
from mypy.types import (
    CallableType,
    FunctionLike,
    Instance,
    TupleType,
    Type,
    TypeType,
    TypeVarType,
    get_proper_type,
)

from holdall.mypy.declaration import METADATA, Declaration

MODEL = "holdall.models.model.Model"
KEY = "holdall.models.keys.key.ModelKey"
_PARTITION = "holdall.models.fields.field.Key"
_SORT = "holdall.models.fields.field.SortKey"


@dataclass(frozen=True)
class ModelType:
    """A model class. ``partition`` and ``sort`` are the types of its key's components, ``fields`` those of all fields.

    ``optional`` are components that a key may leave out. ``indexes`` has the fields of each index's partition key, None
    if they are unknown; it is itself None if the class may have others.
    """

    name: str
    partition: dict[str, Type]
    sort: dict[str, Type]
    optional: frozenset[str]
    fields: dict[str, Type]
    unique: frozenset[str]
    indexes: dict[str, list[str] | None] | None

    @property
    def key(self) -> dict[str, Type]:
        """All components of the key."""
        return {**self.partition, **self.sort}


def find_model(given: Type, api: CheckerPluginInterface) -> ModelType | None:
    """Return the model whose class, key or item has this type; None if it is not one, or not known."""
    kind = get_proper_type(given)
    if isinstance(kind, FunctionLike) and kind.is_type_obj():
        return read_model(kind.type_object(), api)
    if isinstance(kind, TupleType):  # several models of a query; all of them have the same key
        return find_model(kind.items[0], api) if kind.items else None
    if isinstance(kind, TypeType):
        kind = get_proper_type(kind.item)
    if isinstance(kind, TypeVarType):
        kind = get_proper_type(kind.upper_bound)
    if not isinstance(kind, Instance):
        return None
    return find_model(kind.args[0], api) if kind.type.fullname == KEY else read_model(kind.type, api)


def make_instance(given: Type) -> Instance | None:
    """Return the type of the items of a model's class; None if it is not one."""
    kind = get_proper_type(given)
    if isinstance(kind, TypeType):
        kind = get_proper_type(kind.item)
    elif isinstance(kind, FunctionLike) and kind.is_type_obj():
        kind = Instance(kind.type_object(), [])
    return kind if isinstance(kind, Instance) and kind.type.has_base(MODEL) else None


def read_model(info: TypeInfo, api: CheckerPluginInterface) -> ModelType | None:
    """Return what a class declares; None for an abstract one, and for any other class."""
    own = info.metadata.get(METADATA)
    if own is None or own["abstract"] or not info.has_base(MODEL):
        return None
    partition: dict[str, Type] = {}
    sort: dict[str, Type] = {}
    fields: dict[str, Type] = {}
    defaults: dict[str, bool | None] = {}
    unique: set[str] = set()
    indexes: dict[str, list[str] | None] | None = {}
    for base in reversed(info.mro):
        if METADATA not in base.metadata:
            continue
        declared = cast("Declaration", base.metadata[METADATA])
        defaults |= declared["defaults"]
        unique |= {*declared["unique"]}
        found = declared["indexes"]
        indexes = None if indexes is None or found is None else indexes | found
        for name in declared["fields"]:
            node = base.names[name].node if name in base.names else None
            if isinstance(node, Decorator) and isinstance(node.func.type, CallableType):
                fields[name] = node.func.type.ret_type  # a computed field
            if not isinstance(node, Var) or node.is_classvar or node.type is None:
                continue
            kind = get_proper_type(node.type)
            fields[name] = node.type
            if isinstance(kind, Instance) and kind.type.fullname in (_PARTITION, _SORT):
                fields[name] = kind.args[0]
                (sort if kind.type.fullname == _SORT else partition)[name] = kind.args[0]
    if not partition:
        partition = {"id": api.named_generic_type("builtins.str", [])}
        fields |= partition
    optional = frozenset(name for name in sort if defaults.get(name) is not False)
    return ModelType(info.name, partition, sort, optional, fields, frozenset(unique), indexes)
