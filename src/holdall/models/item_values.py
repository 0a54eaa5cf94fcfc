"""The values of an item: given to a new one, and collected from any, without marking fields as read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdall.core.nearest_name import find_nearest, suggest_name
from holdall.errors import InvalidFieldError, InvalidValueError
from holdall.models.fields.field import Field
from holdall.models.fields.options import ABSENT

if TYPE_CHECKING:
    from holdall.models.model import Declared
    from holdall.models.schema import ModelSchema


def fill(item: Declared, values: Mapping[str, Any], *, complete: bool = True) -> None:
    """Give a blank item its values and defaults; ``complete``: all required values must be given."""
    schema = getattr(type(item), "_schema", None)
    if schema is None or schema.abstract:
        raise TypeError(
            f"{type(item).__name__} is abstract, so it has no items: define a model that derives from it"
        )
    fields = schema.fields
    if not fields.keys() >= values.keys():
        raise unknown_field(schema, next(name for name in values if name not in fields))
    own = item.__dict__
    missing = []
    given: Sequence[tuple[Field[Any], Any]] = ()
    if schema.computed:
        given = [(each, values[each.name]) for each in schema.computed if each.name in values]
        values = {name: value for name, value in values.items() if not fields[name].is_computed}
    for name, known in fields.items():
        if name in values:
            try:
                own[name] = known.codec.validate(values[name])
            except InvalidValueError:
                own[name] = known.validate(values[name])  # its error names the field
        else:
            value = known.default()
            if value is not ABSENT:
                own[name] = value
            elif (complete and not known.is_kept) or known.is_key:
                missing.append(name)
    if missing:
        also = "" if len(missing) == 1 else f" (also missing: {', '.join(missing[1:])})"
        raise fields[missing[0]].refusal(f"the value is missing{also}")
    for each, value in given:
        if each.peek(item) != each.validate(value):  # type: ignore[arg-type]
            raise each.refusal(
                "Holdall computes it from other fields, and gets another value", hint="leave it out"
            )


def unknown_field(schema: ModelSchema, name: str, options: Iterable[str] = ()) -> InvalidFieldError:
    """Return the error for an unknown field, with the most similar name of a field or of one of the options."""
    near = find_nearest(name, options)
    hint = suggest_name(name, [*schema.fields, *([] if near is None else [near])], "fields")
    return InvalidFieldError(schema.name, name, "the model has no such field", hint=hint)


def readable_values(item: Declared, *, initial: bool = False) -> dict[str, Any]:
    """Return all values, also hidden ones, without those whose stored forms no longer fit."""
    from holdall.models.model import build_instance

    try:
        return item.to_dict(initial=initial, hidden=True)
    except InvalidFieldError:
        fits: dict[str, Any] = {}
        for name, known in item._fields.items():
            one = build_instance(type(item), item._stored, None, None)  # type: ignore[arg-type]
            if name in item.__dict__ and (known.is_key or not initial):
                one.__dict__[name] = item.__dict__[name]
            with suppress(InvalidFieldError):
                fits[name] = known.peek(item if known.is_computed and not initial else one)  # type: ignore[arg-type]
        return fits


def current_values(item: Declared, hidden: bool) -> dict[str, Any]:
    """Return the values by field name, without marking any field as read; ``hidden``: also those of hidden fields."""
    from copy import deepcopy

    found: dict[str, Any] = {}
    for name, known in item._fields.items():
        if known.hidden and not hidden:
            continue
        if name in item.__dict__:
            value = item.__dict__[name]
            found[name] = deepcopy(value) if known.codec.mutable(value) else value
        elif known.is_computed:
            with suppress(InvalidFieldError):  # a source has no value, or was not fetched
                found[name] = known.peek(item)  # type: ignore[arg-type]
        elif is_known(known, item):
            found[name] = known.peek(item)  # type: ignore[arg-type]
    return found


def is_known(field: Field[Any], item: Declared) -> bool:
    """Whether a loaded item has a value for a field: a stored one, or its default if it was fetched and is absent."""
    if item._stored is None:
        return False
    if field.stored in item._stored:
        return True
    return field.was_fetched(item) and field.absent_value() is not ABSENT  # type: ignore[arg-type]


def initial_values(item: Declared, hidden: bool) -> dict[str, Any]:
    """Return the values with which a stored item was loaded."""
    stored = item._stored
    assert stored is not None
    found: dict[str, Any] = {}
    for name, known in item._fields.items():
        attribute = stored.get(known.stored)
        if known.hidden and not hidden:
            continue
        if attribute is not None:
            found[name] = known.decode(attribute)
        elif known.is_key:  # a model's own table stores it only in the key
            found[name] = known.peek(item)  # type: ignore[arg-type]
        elif is_known(known, item):
            found[name] = known.absent_value()
    return found
