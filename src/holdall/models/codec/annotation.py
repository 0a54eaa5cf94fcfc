"""Annotations: takes a field's type expression apart.

Pure, and light: nothing here loads pydantic or annotated_types. An annotation can contain their metadata only if the
program has loaded them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from holdall.core.frozen import dataclass
from holdall.core.numbers import Number

_NUMBERS = (int, float, Decimal)
_METHODS = (
    "__post_init__",
    "model_post_init",
    "__get_pydantic_core_schema__",
)  # which may check a value, or change it


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits in a number's annotation, set by ``Ge`` and the like or by pydantic's ``Field(ge=...)``.

    ``more``: the annotation demands something else, too, such as ``MultipleOf`` or a validator.
    """

    ge: Number | None = None
    gt: Number | None = None
    le: Number | None = None
    lt: Number | None = None
    more: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """The parts of an annotation: the type itself, the metadata of ``Annotated``, and whether it allows None."""

    base: Any
    notes: tuple[Any, ...]
    nullable: bool


def peel(annotation: Any) -> Form:
    """Remove ``Annotated``, ``| None``, ``NewType`` and ``type`` aliases from an annotation, from the outside in."""
    base, notes, nullable = annotation, [], False
    while True:
        origin = get_origin(base)
        if origin is Annotated:
            base, *more = get_args(base)
            notes += more
        elif isinstance(base, NewType):
            base = base.__supertype__
        elif type(base).__name__ == "TypeAliasType":
            base = base.__value__
        elif origin in (Union, UnionType) and NoneType in get_args(base):
            nullable = True
            members = [member for member in get_args(base) if member is not NoneType]
            if len(members) > 1:
                break
            base = members[0]
        else:
            break
    return Form(base, tuple(notes), nullable or _takes_none(base))


def is_set(annotation: Any) -> bool:
    """Whether a type is a set, possibly with notes or ``| None``."""
    base = peel(annotation).base
    return (get_origin(base) or base) in (set, frozenset)


def _takes_none(base: Any) -> bool:
    origin = get_origin(base)
    if origin is Literal:
        return None in get_args(base)
    if origin in (Union, UnionType):
        return any(peel(member).nullable for member in get_args(base))
    return base in (Any, object, None, NoneType)


def has_hook(thing: object) -> bool:
    """Whether this defines its own pydantic schema."""
    return hasattr(thing, "__get_pydantic_core_schema__")


def means_something(note: object) -> bool:
    """Whether pydantic understands this metadata of an annotation; it ignores most strings and markers."""
    if type(note).__name__ == "FieldInfo":
        return bool(note.metadata)  # type: ignore[attr-defined]
    homes = {kind.__module__.partition(".")[0] for kind in type(note).__mro__}
    return bool(homes & {"pydantic", "annotated_types"}) or has_hook(note)


def bounds_of(form: Form) -> Bounds | None:
    """Return the limits of a number's type, None for any other type."""
    union = get_origin(form.base) in (Union, UnionType)
    bases = [member for member in get_args(form.base) if member is not NoneType] if union else [form.base]
    if not all(base in _NUMBERS for base in bases):
        return None
    known = sys.modules.get("annotated_types")  # if it is not loaded, no annotation can have a bound
    if known is None:
        return Bounds(more=any(map(means_something, form.notes)))
    found: dict[str, list[Any]] = {"ge": [], "gt": [], "le": [], "lt": []}
    more = False
    for note in _flat(form.notes):
        kinds = [name for name in found if isinstance(note, getattr(known, name.capitalize()))]
        for name in kinds:
            found[name].append(getattr(note, name))
        more = more or (not kinds and means_something(note))
    tightest = {"ge": max, "gt": max, "le": min, "lt": min}
    return Bounds(**{name: tightest[name](limits) for name, limits in found.items() if limits}, more=more)


def has_rules(annotation: Any) -> bool:
    """Whether a type demands anything of the whole value, besides what it demands of the values inside it."""
    form = peel(annotation)
    if any(map(means_something, form.notes)):
        return True
    validators = getattr(form.base, "__pydantic_decorators__", None)
    kinds = ("validators", "field_validators", "root_validators", "model_validators")
    config = getattr(form.base, "model_config", None) or getattr(form.base, "__pydantic_config__", None)
    classes = [each for each in getattr(form.base, "__mro__", ()) if each.__module__ != "pydantic.main"]
    return (
        any(getattr(validators, kind, None) for kind in kinds)
        or any(name.startswith("str_") for name in config or ())
        or any(name in vars(each) for each in classes for name in _METHODS)
    )


@dataclass(frozen=True, slots=True)
class Lengths:
    """The limits that an annotation sets for the number of members of a list or set."""

    least: int = 0
    most: int | None = None


def lengths_of(form: Form) -> Lengths | None:
    """The limits of a list's or set's length; None if the annotation demands anything else of the whole value."""
    notes = [note for note in form.notes if means_something(note)]
    least, most = 0, None
    for note in _flat(notes):
        match type(note).__name__:
            case "MinLen":
                least = max(least, note.min_length)
            case "MaxLen":
                most = note.max_length if most is None else min(most, note.max_length)
            case _:
                return None
    return Lengths(least, most)


def _flat(notes: Iterable[Any]) -> Iterator[Any]:
    for note in notes:
        if getattr(note, "__is_annotated_types_grouped_metadata__", False):
            yield from _flat(note)
        elif type(note).__name__ == "FieldInfo":
            yield from _flat(note.metadata)
        else:
            yield note
