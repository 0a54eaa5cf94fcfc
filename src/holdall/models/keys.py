"""Keys of items: from their components to what is stored, in the database's table and in a model's own table.

Pure. In the database's table, the partition key is ``<root>#seg#seg`` and the sort key an order-preserving text (``#``
if the model has none). These forms must never change, because stored items contain them; see
``docs/decisions/0006-model-keys.md``. `foreign_keys` describes the keys in a model's own table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from holdall.core.internal import internal
from holdall.core.keys import SortPart, sort_text
from holdall.core.nearest_name import find_nearest
from holdall.core.numbers import number_text
from holdall.core.values import encode
from holdall.errors import InvalidFieldError, InvalidKeyError, InvalidRequestError, InvalidValueError
from holdall.models.fields import ABSENT

if TYPE_CHECKING:
    from holdall.models.fields import Field
    from holdall.models.foreign_keys import Kind
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema

M = TypeVar("M", bound="Model")
M_co = TypeVar("M_co", bound="Model", covariant=True)

KeyPart: TypeAlias = "str | int | float | Decimal"
"""A stored key: a text, or a number in a model's own table if the key is a single number."""

NO_SORT_KEY = "#"
"""The stored sort key of an item whose model has no sort key."""


class ModelKey(Generic[M_co]):
    """Identifies an item: a model and the components of its key. ``Order.key(...)`` makes one.

    ``encoded`` is the stored (partition, sort) key; the sort key is None in a model's own table without one. Keys with
    the same ``identity`` identify the same item: models that share a root or a table share their keys.
    """

    __slots__ = ("components", "encoded", "identity", "schema")

    schema: ModelSchema
    components: Mapping[str, Any]
    encoded: tuple[KeyPart, KeyPart | None]
    identity: tuple[object, ...]

    @internal
    def __init__(self, schema: ModelSchema, components: Mapping[str, Any]) -> None:
        if schema.mutable_keys:
            from copy import deepcopy

            components = deepcopy(
                dict(components)
            )  # a copy, so that later changes to a list do not affect the key
        _set_schema(self, schema)
        _set_components(self, components)
        partition, sort = encoded = schema.form.encode(components)
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
        return _remade, (self.schema.model, dict(self.components))

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


def _remade(model: type[Model], components: dict[str, Any]) -> ModelKey[Any]:
    return ModelKey(model._schema, components)


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
        key = ModelKey(schema, components)
        object.__setattr__(item, "_key", key)
    return key


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


# --- what is stored ---------------------------------------------------------------------------------------


def partition_text(root: str, keys: Sequence[Field[Any]], components: Mapping[str, Any]) -> str:
    """Return the partition key in the database's table."""
    text = root
    for key in keys:
        text = f"{text}#{segment(key, components[key.name])}"
    return text


def sort_key_text(sort_keys: Sequence[Field[Any]], components: Mapping[str, Any]) -> str:
    """Return the sort key in the database's table."""
    return join_sort_text(sort_keys, components) if sort_keys else NO_SORT_KEY


def join_sort_text(fields: Sequence[Field[Any]], values: Mapping[str, Any]) -> str:
    """Return the order-preserving text of several components."""
    if len(fields) == 1 and type(text := values[fields[0].name]) is str and text.isascii():
        return text
    try:
        return sort_text(*(_part(field, values[field.name]) for field in fields))
    except (InvalidKeyError, InvalidValueError) as error:
        raise _refuse(fields[0], error) from None


def sort_piece(field: Field[Any], value: Any, *, alone: bool) -> str:
    """Return the text of one component in a sort key."""
    part = _part(field, value)
    try:
        return sort_text(part) if alone else sort_text(part, "")[:-1]
    except (InvalidKeyError, InvalidValueError) as error:
        raise _refuse(field, error) from None


_PARTS = {str, int, float, Decimal, bool, datetime, bytes}
_ESCAPES = {character: f"%{character:02X}" for character in (*range(0x20), 0x7F, ord("%"), ord("#"))}


def segment(field: Field[Any], value: Any) -> str:
    """Return the text of one component in a partition key; separators in it are percent-encoded."""
    text = value if type(value) is str else _canonical(field, value)
    if text.isascii() and text.isprintable() and "%" not in text and "#" not in text:
        return text  # the usual case, with nothing to encode
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise field.refusal("a string with a lone surrogate cannot be part of a key") from None
    return text.translate(_ESCAPES)


def _canonical(field: Field[Any], value: Any) -> str:
    if field.codec.kind not in ("S", "N", "BOOL", "B", None):
        return _json(field, value)
    try:
        part = _part(field, value)
        if isinstance(part, int | float | Decimal) and not isinstance(part, bool):
            return number_text(part)
        return sort_text(part)
    except (InvalidKeyError, InvalidValueError) as error:
        raise _refuse(field, error) from None


def _json(field: Field[Any], value: Any) -> str:
    from holdall.models.ecmascript import stable_json
    from holdall.models.stored_form import plain

    try:
        return stable_json(plain(field.codec.encode(value)))
    except InvalidValueError as error:
        raise _refuse(field, error) from None


def _part(field: Field[Any], value: Any) -> SortPart:
    """Return a component as a value of a type that order-preserving texts support."""
    if type(value) in _PARTS or _is_uuid(value):
        return value  # type: ignore[no-any-return]
    from holdall.models.stored_form import plain

    if isinstance(value, time) and value.tzinfo is not None:
        raise field.refusal(
            "a time with a UTC offset cannot be part of a key, because its text does not sort like the time",
            hint="use a time without an offset, or a datetime",
        )
    stored = plain(field.codec.encode(value))  # an enum's value, a date's text
    if not isinstance(stored, str | int | float | Decimal | bytes):
        raise field.refusal(f"a value of type {type(value).__name__} cannot be part of a key")
    return stored


def _is_uuid(value: object) -> bool:
    return type(value).__name__ == "UUID" and hasattr(value, "hex")


def foreign_part(
    fields: Sequence[Field[Any]], components: Mapping[str, Any], *, numeric: bool = True
) -> KeyPart:
    """Return a key in a model's own table; without ``numeric``, a single number is stored as text, as in old tables."""
    from holdall.models.foreign_keys import encode_key
    from holdall.models.foreign_values import MAX_SAFE_INTEGER

    try:
        values = {field.stored: _spelt(field, components[field.name]) for field in fields}
        part = encode_key(values, _kinds(fields), numeric=numeric)
    except (InvalidKeyError, InvalidValueError) as error:
        named = [field for field in fields if error.message.startswith(f"{field.stored}:")]
        raise _refuse((named or fields)[0], error) from None
    if isinstance(part, int) and abs(part) > MAX_SAFE_INTEGER:
        raise fields[0].refusal(
            f"{part} is beyond 2^53 - 1, the largest whole number that JavaScript reads exactly"
        )
    return part


def own_part(field: Field[Any], value: Any) -> Any:
    """Return a field's own stored value, as the key of an index."""
    return _spelt(field, value)


def _spelt(field: Field[Any], value: Any) -> object:
    """Return a component's value for a key text. A float stays a float: its stored form would turn 1e25 into an int."""
    if type(value) is float:
        return value
    from holdall.models.stored_form import plain

    return plain(field.codec.encode(value))


def decode_components(fields: Sequence[Field[Any]], stored: KeyPart) -> dict[str, Any]:
    """Decode a stored key of a model's own table into its components."""
    from holdall.models.foreign_keys import decode_key

    values = decode_key(stored, _kinds(fields))
    return {field.name: _component(field, values[field.stored]) for field in fields}


def _component(field: Field[Any], value: object) -> Any:
    if isinstance(value, int) and field.codec.annotation is float:
        value = float(value)  # the integer may have more digits than DynamoDB allows
    return field.decode(encode(value))


def default_sort(schema: ModelSchema) -> KeyPart | None:
    """Return the stored sort key that results from the defaults of its components; None if one has no default."""
    components = {field.name: find_standing_default(field) for field in schema.sort_keys}
    if not components or any(value is ABSENT for value in components.values()):
        return None
    return foreign_part(schema.sort_keys, components)


def _refuse(field: Field[Any], error: InvalidRequestError) -> InvalidFieldError:
    """Turn an error about the text of a key into one that names the field."""
    return field.refusal(error.message.removeprefix(f"{field.stored}: "), hint=error.hint)


def numeric_part(fields: Sequence[Field[Any]]) -> bool:
    """Whether a key is a single number, which a model's own table stores as a number."""
    return len(fields) == 1 and fields[0].codec.kind == "N"


def _kinds(fields: Sequence[Field[Any]]) -> dict[str, Kind]:
    kinds: dict[str | None, Kind] = {"S": "text", "N": "number"}
    return {field.stored: kinds.get(field.codec.kind, "json") for field in fields}
