"""Codecs: convert between a field's type, which can be any type that pydantic validates, and its stored attribute.

Pure; imports the core. `codec_for` returns the codec of a type. The stored forms are those of `stored_form`, and every
encoded value decodes to an equal value. Where the type alone cannot guarantee this (a union, a user's serializer or
validator, a type from another package), each value is read back before it is written, and refused if it would come back
as another value.

Validation is strict: ``'1'`` is not an int and ``1`` is not a bool, but an int is accepted as a float, and a dict as a
pydantic model. Common types (str, int, float, bool, bytes, Decimal, datetime, date, time, timedelta, UUID, Enum,
Literal, Any, ``list[Any]``, ``dict[str, Any]``, and any of these ``| None``) do not need pydantic; for other types it
is imported with the first value.

A value that does not fit raises `InvalidValueError` with the place inside the value. A type that cannot be stored
raises `ModelDefinitionError`, at the latest with the first value.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import Enum, Flag
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from holdall.core.values import Attribute, encode
from holdall.errors import InvalidValueError
from holdall.models.codec.adapter import Adapter
from holdall.models.codec.annotation import Bounds, Form, bounds_of, has_hook, means_something, peel
from holdall.models.codec.difference import difference, explain_change
from holdall.models.codec.everyday import make_quick
from holdall.models.codec.pattern import Pattern
from holdall.models.codec.scalar import build_choice, build_scalar, misfit, refuse
from holdall.models.codec.stored_form import (
    encode_value,
    plain,
    scalar_of,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["Bounds", "Codec", "codec_for"]

_SCALAR_KINDS = ("S", "N", "B", "BOOL")


class Codec:
    """The conversions between a type and its stored form, as plain functions."""

    __slots__ = (
        *("_adapter", "_kind", "annotation", "comparable", "decode", "encode", "encode_checked", "is_time"),
        *("mutable", "nullable", "number", "pattern", "quick", "stored_as", "validate"),
    )

    annotation: Any
    nullable: bool
    """Whether the type allows None."""
    number: Bounds | None
    """The limits of an int, float or Decimal; None for other types."""
    is_time: bool
    """Whether the type is datetime."""
    stored_as: str | None
    """The form of another program in which values are stored, see `peer_form`; None for Holdall's own."""
    validate: Callable[[Any], Any]
    """Returns the value as it is kept, or raises `InvalidValueError`."""
    comparable: Callable[[Any], Any]
    """Like `validate`, for a value that stored ones are compared with: it keeps its whole precision."""
    encode: Callable[[Any], Attribute]
    """Returns the attribute of a validated value."""
    decode: Callable[[Attribute], Any]
    """Returns the value of a stored attribute; raises `InvalidValueError` if it does not fit the type."""
    pattern: Pattern | None
    """The usual form of the attributes, if there is one that is faster to read than with `decode`."""
    quick: Callable[[Attribute], Any]
    """Like `decode`, for attributes of the pattern; for others it raises any exception."""
    encode_checked: Callable[[Any], Attribute]
    """Validates the current value again, including its contents, and returns its attribute."""
    mutable: Callable[[Any], bool]
    """Whether a value can be changed in place."""

    def __init__(self, annotation: Any) -> None:
        form = peel(annotation)
        self.annotation = annotation
        self.nullable = form.nullable
        self.number = bounds_of(form)
        self.is_time = form.base is datetime
        self._adapter = Adapter(annotation)
        self._kind: str | None = None
        self.pattern = None
        self.stored_as = None
        _build(self, form)
        self.comparable = self.validate
        self.quick = self.decode if self.pattern is None else self.pattern.compile()

    @property
    def kind(self) -> str | None:
        """The letter under which every value except None is stored; None if there are several."""
        return self._kind if self._kind != _ASK else self._adapter.facts.kind

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """Pydantic's adapter of the type, for its JSON schema."""
        return self._adapter.adapter

    def __repr__(self) -> str:
        return f"codec_for({self.annotation!r})"


_ASK = "?"  # the kind follows from pydantic's schema


def codec_for(annotation: Any) -> Codec:
    """Return the codec of a type expression; the same codec for the same expression."""
    if not _is_hashable(annotation):
        return Codec(annotation)
    # the text distinguishes `int | str` from `str | int`, which are equal but differ for pydantic
    return _find_codec(annotation, str(annotation))


@lru_cache(maxsize=1024)
def _find_codec(annotation: Any, text: str) -> Codec:
    return Codec(annotation)


def _is_hashable(annotation: Any) -> bool:
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


# --- which codec a type gets ----------------------------------------------------------------------------


def _build(codec: Codec, form: Form) -> None:
    base, notes = form.base, [note for note in form.notes if means_something(note)]
    scalar = scalar_of(base)
    if scalar is not None and not any(map(has_hook, notes)):
        build_scalar(codec, scalar, base, codec._adapter if notes else None)
    elif notes or has_hook(base):
        _build_structured(codec, codec._adapter)
    elif get_origin(base) is Literal:
        build_choice(codec, get_args(base), base)
    elif isinstance(base, type) and issubclass(base, Enum) and not issubclass(base, Flag):
        build_choice(codec, list(base), base)
    elif (shape := _shape(base)) is not None:
        _build_plain(codec, shape)
    else:
        _build_structured(codec, codec._adapter)
        codec.pattern = _everyday_members(base)
        if codec.pattern is not None:
            codec.encode_checked = make_quick(base, codec.encode_checked)


# --- plain values: Any, and lists and dicts of it -------------------------------------------------------

_Shape = tuple[type, "_Shape | None"] | tuple[()]


def _shape(base: Any) -> _Shape | None:
    """Return ``()`` for Any, ``(list, …)`` or ``(dict, …)`` around it; None for a more specific type."""
    if base is Any or base is object:
        return ()
    if base is list or base is dict:
        return base, ()
    origin, members = get_origin(base), get_args(base)
    if origin is list or (origin is dict and members[0] is str):
        inner = _shape(members[-1])
        return None if inner is None else (origin, inner)
    return None


def _build_plain(codec: Codec, shape: _Shape) -> None:
    nullable = codec.nullable

    def encode_same(value: Any) -> Attribute:
        attribute = encode(value)
        back = plain(attribute)
        if back != value:
            raise explain_change(difference(value, back) or ("", value, back))
        return attribute

    def shape_value(value: Any) -> Any:
        return None if value is None and nullable else _reshape(value, shape)

    def validate(value: Any) -> Any:
        value = shape_value(value)
        encode_same(value)
        return value

    codec._kind = ("L" if shape[0] is list else "M") if shape else None
    codec.mutable = _mutable
    codec.validate, codec.encode = validate, encode_same
    codec.decode = lambda attribute: shape_value(plain(attribute))
    codec.encode_checked = lambda value: encode_same(shape_value(value))


def _reshape(value: Any, shape: _Shape | None) -> Any:
    """Copy the lists and dicts that the type requires; raise `InvalidValueError` if the value has others."""
    if not shape:
        return value
    kind, inner = shape
    if not isinstance(value, kind):
        raise refuse("a valid list" if kind is list else "a valid dictionary", value)
    copy = kind(value)
    for place, member in () if not inner else enumerate(copy) if kind is list else copy.items():
        try:
            copy[place] = _reshape(member, inner)
        except InvalidValueError as error:
            raise error.inside(f"[{place}]" if kind is list else str(place)) from None
    return copy


def _mutable(value: object) -> bool:
    """Whether a value, or a part of it, can be changed in place."""
    if isinstance(value, tuple | frozenset):
        return any(map(_mutable, value))
    return not (value is None or isinstance(value, Enum) or scalar_of(type(value)) is not None)


# --- the rest, by pydantic ------------------------------------------------------------------------------


def _build_structured(codec: Codec, adapter: Adapter) -> None:
    def write(value: Any) -> Attribute:
        try:
            return encode_value(adapter.dump(value) if adapter.facts.dumped else value)
        except RecursionError:
            raise InvalidValueError("lists and maps are nested too deeply, or contain themselves") from None

    def encode(value: Any) -> Attribute:
        attribute = write(value)
        if not adapter.facts.exact:
            _compare(value, attribute, decode)
        return attribute

    def decode(attribute: Attribute) -> Any:
        kind = adapter.facts.kind
        if kind in _SCALAR_KINDS and kind not in attribute and "NULL" not in attribute:
            raise misfit(f"of DynamoDB type {kind}", attribute)
        return adapter.loose(plain(attribute))

    def validate(value: Any) -> Any:
        value = adapter.strict(value)
        if not adapter.facts.exact:
            encode(value)
        return value

    def encode_checked(value: Any) -> Attribute:
        value = adapter.strict(value)
        return encode(_revalidate(value, adapter) if adapter.facts.instances else value)

    codec._kind = _ASK
    codec.mutable = _mutable
    codec.validate, codec.encode, codec.decode = validate, encode, decode
    codec.encode_checked = encode_checked


def _everyday_members(base: Any) -> Pattern | None:
    """Return the pattern of a list of one common type, or of a dict from text to it; None for any other type."""
    origin, members = get_origin(base), get_args(base)
    if not (origin is list or (origin is dict and members[0] is str)) or members[-1] not in (
        str,
        bool,
        int,
        float,
    ):
        return None
    scalar = scalar_of(members[-1])
    assert scalar is not None
    return Pattern(scalar.kind, scalar.read, origin)


def _compare(value: Any, attribute: Attribute, decode: Callable[[Attribute], Any]) -> None:
    """Raise `InvalidValueError` if a value would be read back as another."""
    try:
        back = decode(attribute)
    except InvalidValueError as error:
        raise InvalidValueError(
            f"it could not be read back from the database: {error.problem}",
            hint=error.hint,
            place=error.place,
        ) from None
    if (found := difference(value, back)) is not None:
        raise explain_change(found)


def _revalidate(value: Any, adapter: Adapter) -> Any:
    """Validate all models inside a value again, which pydantic does not do when they are changed.

    A validator may normalize values. But ``'5'`` is not an int here either, a subclass would lose its fields, and what
    a serializer omits would be lost silently.
    """
    again = adapter.loose(adapter.dump(value))
    if again != value:
        found = difference(value, again, types_only=adapter.facts.faithful)
        if found is not None:
            raise explain_change(found)
    return again
