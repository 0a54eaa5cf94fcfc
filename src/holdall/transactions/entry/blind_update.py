"""A blind update from the caller's updates of fields: what is known, what is refused. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdall.core.values import Attribute
from holdall.errors import InvalidOptionsError, InvalidRequestError
from holdall.models.fields.conditions import Clause
from holdall.models.fields.field import Field
from holdall.models.fields.options import ABSENT
from holdall.models.fields.update import FieldUpdate, apply_all, find_overlap
from holdall.models.keys.key import ModelKey
from holdall.models.schema import ModelSchema
from holdall.transactions.entry.blind import BlindUpdate
from holdall.transactions.entry.expectation import find_field
from holdall.transactions.entry.requirement import Requirement


def plan_blind_update(
    key: ModelKey[Any],
    updates: Sequence[FieldUpdate],
    where: Clause | None,
    create_if_missing: bool | Mapping[str, Any],
) -> BlindUpdate:
    """The entry for these updates of the item under a key; refused if a derived attribute could be wrong afterwards."""
    schema = key.schema
    own = [_check_update(schema, update) for update in updates]
    if not own:
        raise InvalidRequestError(
            f"the update of {key!r} changes nothing",
            hint='pass at least one change: col(Order.note).set("x")',
        )
    if (pair := find_overlap(own)) is not None:
        raise InvalidRequestError(
            f"{pair[0]!r} and {pair[1]!r} change the same value in one update", hint="combine them into one"
        )
    requirement = None if where is None else Requirement(schema, where)
    equal = {} if requirement is None else requirement.equalities()
    known = {field: None if value is None else field.encode(value) for field, value in equal.items()}
    changed: dict[Field[Any], Attribute | None] = {}
    values = {**{field.name: value for field, value in equal.items()}, **key.components}
    for update in own:
        if update.is_whole:
            changed[update.field] = update.attribute
            values[update.field.name] = _value_of(schema, update)
            if update.field.unique and update.field not in known:
                raise update.field.refusal(
                    "it is unique, so its old value is needed to release it",
                    hint=f"add the old value to where=: col({update.field!r}) == value",
                )
    rest = [update for update in own if not update.is_whole]
    new = _new_values(schema, key, changed, values, rest, create_if_missing)
    return BlindUpdate(key, {}, changed, values, known=known, updates=rest, where=requirement, new=new)


def _check_update(schema: ModelSchema, update: FieldUpdate) -> FieldUpdate:
    if not isinstance(update, FieldUpdate):
        raise InvalidRequestError(
            f"{update!r:.60} is not a change of a field", hint='build it with col(): col(Order.note).set("x")'
        )
    field = schema.fields.get(update.field.name)
    if field is None or field.stored != update.field.stored:
        raise InvalidRequestError(f"{update!r} changes a field of another model than {schema.name}")
    if field.name in schema.locked and not update.is_whole:
        raise field.refusal(
            "it is unique, or a stored attribute is computed from it, so it can only be set as a whole",
            hint=f"use col({field!r}).set(...), or read the item and change it",
        )
    return update.of(field)


def _value_of(schema: ModelSchema, update: FieldUpdate) -> Any:
    """The field's value after an update of the whole field."""
    if update.verb == "set":
        return update.value
    field = update.field
    made = not field.codec.nullable and field.options.default_factory is not None
    if made and field.name in schema.locked:
        raise field.refusal(
            "a stored attribute is computed from it, and its default can differ from read to read",
            hint="set a value instead of removing it",
        )
    return field.absent_value()


def _new_values(
    schema: ModelSchema,
    key: ModelKey[Any],
    changed: Mapping[Field[Any], Attribute | None],
    values: Mapping[str, Any],
    updates: Sequence[FieldUpdate],
    create_if_missing: bool | Mapping[str, Any],
) -> dict[str, Any] | None:
    """The values of the item to create if there is none: given ones, defaults, and what the updates make of both."""
    if create_if_missing is False:
        return None
    if create_if_missing is not True and not isinstance(create_if_missing, Mapping):
        raise InvalidOptionsError(
            f"create_if_missing must be True, False or the values of a new item, not {create_if_missing!r:.60}"
        )
    given = {} if create_if_missing is True else dict(create_if_missing)
    for name in given:
        if find_field(schema, name).is_key and given[name] != key.components[name]:
            raise schema.fields[name].refusal("it is part of the key, so create_if_missing cannot change it")
    given |= {field.name: values[field.name] for field in changed}
    by_field: dict[Field[Any], list[FieldUpdate]] = {}
    for update in updates:
        by_field.setdefault(update.field, []).append(update)
    for field, each in by_field.items():
        value = given.get(field.name, field.default())
        start = None if value is None or value is ABSENT else field.encode(field.validate(value))
        if start is None and field.codec.number is not None:
            start = {"N": "0"}
        result = apply_all(each, start)
        given[field.name] = None if result is None else field.decode(result)
    return dict(schema.model(**{**given, **key.components}).__dict__)
