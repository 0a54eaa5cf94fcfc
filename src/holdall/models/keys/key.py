"""Keys of items: a model and the components of its key, as callers make and compare them.

Pure. `part` describes what is stored for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from holdall.core.internal import internal
from holdall.core.nearest_name import find_nearest
from holdall.core.numbers import canonical_number, number_text
from holdall.core.values import Item
from holdall.errors import InvalidFieldError, InvalidKeyError, InvalidRequestError, InvalidValueError
from holdall.models.fields.options import ABSENT
from holdall.models.keys.part import KeyPart, foreign_part

if TYPE_CHECKING:
    from holdall.models.fields.field import Field
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema

Encoded: TypeAlias = "tuple[KeyPart, KeyPart | None]"
"""The contents of the partition and the sort key."""

M = TypeVar("M", bound="Model")
M_co = TypeVar("M_co", bound="Model", covariant=True)


class ModelKey(Generic[M_co]):
    """Identifies an item: a model and the components of its key. ``Order.key(...)`` makes one.

    ``encoded`` is the stored (partition, sort) key; the sort key is None in a model's own table without one. Another
    program may have spelt it otherwise than Holdall does: then it is passed. Keys with the same ``identity`` identify
    the same item: models that share a root or a table share their keys.
    """

    __slots__ = ("components", "encoded", "identity", "schema")

    schema: ModelSchema
    components: Mapping[str, Any]
    encoded: Encoded
    identity: tuple[object, ...]

    @internal
    def __init__(
        self, schema: ModelSchema, components: Mapping[str, Any], encoded: Encoded | None = None
    ) -> None:
        if schema.mutable_keys:
            from copy import deepcopy

            # a copy, so that later changes to a list do not affect the key
            components = deepcopy(dict(components))
        _set_schema(self, schema)
        _set_components(self, components)
        if encoded is None:
            encoded = schema.form.encode(components)
        partition, sort = encoded
        _set_encoded(self, encoded)
        if type(partition) is str and type(sort) is str:
            _set_identity(self, (schema.table, partition, sort))
        else:
            _set_identity(self, (schema.table, _text(partition), _text(sort)))

    @property
    def model(self) -> type[M_co]:
        """The model class."""
        return self.schema.model  # type: ignore[return-value]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a key cannot be changed, so {name} cannot be assigned")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModelKey):
            return NotImplemented
        return self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __reduce__(self) -> tuple[Any, ...]:
        spelt = () if self.schema.layout is None else (self.encoded,)
        return _remade, (self.schema.model, dict(self.components), *spelt)

    def __repr__(self) -> str:
        return f"{self.schema.name}({show_components(self.components)})"

    @internal
    def hides(self, name: str) -> bool:
        """Whether messages must not show the values of this field or stored attribute of the item."""
        return name in self.schema.hidden


_set_schema = ModelKey.__dict__["schema"].__set__
_set_components = ModelKey.__dict__["components"].__set__
_set_encoded = ModelKey.__dict__["encoded"].__set__
_set_identity = ModelKey.__dict__["identity"].__set__


def _text(part: KeyPart | None) -> str | None:
    return part if part is None or isinstance(part, str) else number_text(part)


def _remade(model: type[Model], components: dict[str, Any], encoded: Encoded | None = None) -> ModelKey[Any]:
    return ModelKey(model._schema, components, encoded)


def show_components(components: Mapping[str, Any]) -> str:
    """Return the components for a message."""
    return ", ".join(f"{name}={value!r}" for name, value in components.items())


class KeyMaker(Generic[M_co]):
    """``Order.key``: makes keys from their components, or from a single value if there is only one component."""

    __slots__ = ("_schema",)

    @internal
    def __init__(self, schema: ModelSchema) -> None:
        self._schema = schema

    @overload
    def __call__(self, value: object, /) -> ModelKey[M_co]: ...
    @overload
    def __call__(self, **components: Any) -> ModelKey[M_co]: ...
    def __call__(self, *values: object, **components: Any) -> ModelKey[M_co]:
        """Make a key. Several components can also be passed as one mapping."""
        return make_key(self._schema, values, components)


class KeyAccess:
    """``Order.key(...)`` makes a key, ``order.key`` is an item's key."""

    @overload
    def __get__(self, item: None, model: type[M]) -> KeyMaker[M]: ...
    @overload
    def __get__(self, item: M, model: type[M]) -> ModelKey[M]: ...
    def __get__(self, item: Any, model: Any) -> Any:
        """Return the maker of keys, or the item's key."""
        if item is None:
            return KeyMaker(model._schema)
        return item_key(item)


def item_key(item: M) -> ModelKey[M]:
    """Return the key of an item, which is made once; this marks no field as read."""
    key = item._key
    if key is None:
        schema = item._schema
        values = item.__dict__
        components = {
            name: values[name] if name in values else field.peek(item)
            for name, field in schema.key_fields.items()
        }
        stored = item._stored
        if stored is None or not schema.form.key_names:
            key = ModelKey(schema, components)
        else:
            key = find_stored_key(schema, components, stored)
        object.__setattr__(item, "_key", key)
    return key


def find_stored_key(schema: ModelSchema, components: Mapping[str, Any], stored: Item) -> ModelKey[Any]:
    """Return the key under which an item of a table of other programs is stored, also if they spelt it otherwise."""
    names = schema.form.key_names
    if not names or not all(name in stored for name in names):
        return ModelKey(schema, components)
    attributes = [stored[name] for name in names]
    parts = [
        canonical_number(part) if kind == "N" else part
        for attribute in attributes
        for kind, part in attribute.items()
    ]
    encoded: Encoded = (parts[0], parts[1] if len(parts) > 1 else None)
    with suppress(InvalidRequestError):
        key: ModelKey[Any] = ModelKey(schema, components)
        if key.encoded == encoded:
            return key
    with suppress(InvalidRequestError):
        components = {**components, **schema.form.components(attributes[0], *attributes[1:] or (None,))}
    return ModelKey(schema, components, encoded)


def check_unchanged(key: ModelKey[Any], values: Mapping[str, Any]) -> None:
    """Raise an error if a list or map in an item's key was changed in place: the item would contradict its key."""
    for field in key.schema.mutable_keys:
        if (
            field.name in values
            and ModelKey(key.schema, {**key.components, field.name: values[field.name]}) != key
        ):
            raise field.refusal(
                "it is part of the key, but was changed in place",
                hint="create another item and delete this one",
            )


def make_key(schema: ModelSchema, values: tuple[object, ...], components: Mapping[str, Any]) -> ModelKey[Any]:
    """Make a key from a caller's arguments; `InvalidFieldError` names the component that is wrong."""
    given = _take_components(schema, values, components) if values else components
    fields = schema.key_fields
    if given.keys() != fields.keys():
        given = _complete(schema, given)
    valid = {}
    for name, field in fields.items():
        try:
            valid[name] = field.codec.validate(given[name])
        except InvalidValueError:
            valid[name] = field.validate(given[name])  # its error names the field
    return ModelKey(schema, valid)


def _take_components(
    schema: ModelSchema, values: tuple[object, ...], components: Mapping[str, Any]
) -> Mapping[str, Any]:
    if len(values) > 1 or components:
        raise InvalidKeyError(
            f"{schema.name}.key takes either a single value or the components by name",
            hint=f"write {_example(schema)}",
        )
    (value,) = values
    needed = [field for field in schema.key_fields.values() if find_standing_default(field) is ABSENT]
    if len(needed) == 1:
        return {needed[0].name: value}
    if isinstance(value, Mapping):
        return value
    raise InvalidKeyError(
        f"the key of {schema.name} has {len(needed)} components, but {value!r:.60} is a single value",
        hint=f"write {_example(schema)}",
    )


def find_standing_default(field: Field[Any]) -> Any:
    """Return the default that a sort key has for every item, or ABSENT; a factory makes a new value for each item."""
    return field.default() if field.is_sort_key and field.options.default is not ABSENT else ABSENT


def _complete(schema: ModelSchema, given: Mapping[str, Any]) -> dict[str, Any]:
    """Add the defaults of sort keys; all names must be components, and all components must be given."""
    fields = schema.key_fields
    for name in given:
        if name not in fields:
            problem = "it is not part of the key" if name in schema.fields else "the model has no such field"
            near = find_nearest(name, [each for each in fields if each not in given])
            meant = "" if near is None else f"did you mean {near!r}? "
            raise InvalidFieldError(schema.name, str(name), problem, hint=f"{meant}write {_example(schema)}")
    complete = dict(given)
    for name, field in fields.items():
        if name not in complete:
            value = find_standing_default(field)
            if value is ABSENT:
                raise field.refusal("it is missing from the key", hint=f"write {_example(schema)}")
            complete[name] = value
    return complete


def _example(schema: ModelSchema) -> str:
    names = ", ".join(f"{field.name}=…" for field in schema.key_fields.values())
    return f"{schema.name}.key({names})"


def default_sort(schema: ModelSchema) -> KeyPart | None:
    """Return the stored sort key that results from the defaults of its components; None if one has no default."""
    components = {field.name: find_standing_default(field) for field in schema.sort_keys}
    if not components or any(value is ABSENT for value in components.values()):
        return None
    return foreign_part(schema.sort_keys, components)
