"""Codecs of values without parts: text, numbers, bytes, times and the like, and one of a few values.

Pure. `holdall.models.codec.codec` chooses the codec of a type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any

from holdall.core.numbers import canonical_number
from holdall.core.values import Attribute
from holdall.errors import InvalidValueError, ModelDefinitionError
from holdall.models.codec.everyday import make_quick
from holdall.models.codec.pattern import Pattern
from holdall.models.codec.stored_form import Scalar, encode_value, order_of, show

if TYPE_CHECKING:
    from holdall.models.codec.adapter import Adapter
    from holdall.models.codec.codec import Codec

_NULL: Attribute = {"NULL": True}
_UNREADABLE = (KeyError, ValueError, TypeError, AttributeError, ArithmeticError)


def _never(value: object) -> bool:
    return False


def refuse(noun: str, value: object) -> InvalidValueError:
    """The error for a value that is not of the type."""
    return InvalidValueError(f"Input should be {noun} (got {show(value)})")


def misfit(noun: str, attribute: object) -> InvalidValueError:
    """The error for a stored attribute that does not fit the type."""
    return InvalidValueError(f"Input should be {noun} (stored as {show(attribute)})")


def build_scalar(codec: Codec, scalar: Scalar, base: type, constraints: Adapter | None) -> None:
    """Make the functions of a codec for values without parts; ``constraints`` validate them besides."""
    codec._kind = scalar.kind
    codec.mutable = _never
    codec.encode = write = _nullable_write(scalar.write) if codec.nullable else scalar.write
    validate = _scalar_validate(scalar, base, codec.nullable)
    read_odd = _scalar_fallback(scalar, codec.nullable)
    decode = _scalar_decode(scalar, read_odd)
    if constraints is not None:
        validate, decode = _constrain(scalar, constraints, write, read_odd)
    else:
        codec.pattern = Pattern(scalar.kind, scalar.read)
    codec.validate, codec.decode = validate, decode
    codec.encode_checked = lambda value: write(validate(value))
    if constraints is None:
        codec.encode_checked = make_quick(base, codec.encode_checked)


def _nullable_write(write: Callable[[Any], Attribute]) -> Callable[[Any], Attribute]:
    return lambda value: _NULL if value is None else write(value)


def _scalar_validate(scalar: Scalar, base: type, nullable: bool) -> Callable[[Any], Any]:
    safe, write, convert = scalar.safe, scalar.write, scalar.convert

    def admit(value: Any) -> Any:
        if value is None and nullable:
            return None
        if not isinstance(value, scalar.accepts) or isinstance(value, scalar.refuses):
            raise refuse(scalar.noun, value)
        if convert is not None:
            try:
                value = convert(value)
            except OverflowError:
                raise refuse(scalar.noun, value) from None
        write(value)
        return value

    if safe is None:
        return lambda value: value if value.__class__ is base else admit(value)
    return lambda value: value if value.__class__ is base and safe(value) else admit(value)


def _scalar_fallback(scalar: Scalar, nullable: bool) -> Callable[[Any], Any]:
    """Return a function that reads an attribute that another program, or an older version, wrote in another form."""

    def read_odd(attribute: Any) -> Any:
        if nullable and isinstance(attribute, Mapping) and "NULL" in attribute:
            return None
        if scalar.read_odd is not None:
            try:
                return scalar.read_odd(attribute[scalar.kind])
            except _UNREADABLE:
                pass
        raise misfit(scalar.noun, attribute)

    return read_odd


def _scalar_decode(scalar: Scalar, read_odd: Callable[[Any], Any]) -> Callable[[Attribute], Any]:
    kind, read = scalar.kind, scalar.read

    def decode_as_is(attribute: Attribute) -> Any:
        try:
            return attribute[kind]
        except _UNREADABLE:
            return read_odd(attribute)

    def decode(attribute: Attribute) -> Any:
        try:
            return read(attribute[kind])  # type: ignore[misc]
        except _UNREADABLE:
            return read_odd(attribute)

    return decode_as_is if read is None else decode


def _constrain(
    scalar: Scalar,
    constraints: Adapter,
    write: Callable[[Any], Attribute],
    read_odd: Callable[[Any], Any],
) -> tuple[Callable[[Any], Any], Callable[[Attribute], Any]]:
    kind, read = scalar.kind, scalar.read or scalar.convert or bool

    def validate(value: Any) -> Any:
        value = constraints.strict(value)
        write(value)
        return value

    def decode(attribute: Attribute) -> Any:
        try:
            value = read(attribute[kind])
        except _UNREADABLE:
            value = read_odd(attribute)
        return constraints.strict(value)

    return validate, decode


# --- one of a few values --------------------------------------------------------------------------------


def build_choice(codec: Codec, choices: Iterable[Any], base: Any) -> None:
    """Make the functions of a codec for one of a few values."""
    written: dict[Any, Attribute] = {}
    tables: dict[str, dict[Any, Any]] = {}
    for choice in choices:
        attribute = encode_value(choice)
        ((kind, content),) = attribute.items()
        table = tables.setdefault(kind, {})
        if table.setdefault(_hashable(kind, content), choice) is not choice:
            raise ModelDefinitionError(f"two choices of {base} have the same stored form, {show(attribute)}")
        written[choice.__class__, choice] = attribute
    noun = f"one of {', '.join(show(choice) for _, choice in written)}"
    if codec.nullable:
        written[NoneType, None] = _NULL
        tables["NULL"] = {True: None}

    def validate(value: Any) -> Any:
        try:
            if (value.__class__, value) in written:
                return value
        except TypeError:  # not hashable, so it is not one of the choices
            pass
        raise refuse(noun, value)

    def encode(value: Any) -> Attribute:
        return written[value.__class__, value]

    def decode(attribute: Attribute) -> Any:
        try:
            for kind, content in attribute.items():
                return tables[kind][_hashable(kind, content)]
        except _UNREADABLE:
            pass
        raise misfit(noun, attribute)

    kinds = tables.keys() - {"NULL"}
    codec._kind = next(iter(kinds)) if len(kinds) == 1 else None
    codec.mutable = _never
    codec.validate, codec.encode, codec.decode = validate, encode, decode
    codec.encode_checked = lambda value: encode(validate(value))


def _hashable(kind: str, content: Any) -> Any:
    if kind == "N":
        return canonical_number(content)
    return content if content.__class__ in (str, bool) else order_of({kind: content})
