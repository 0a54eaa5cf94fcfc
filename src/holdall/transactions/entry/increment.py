"""Increments: numbers that a commit adds to stored ones, which it does not lock.

Pure. ``amounts`` are the numbers to add, by the names of their fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdall.core.expressions import IfNotExists, Path, Plus, Set, UpdateAction, Value
from holdall.core.frozen import replace
from holdall.core.numbers import exact_number, number_text
from holdall.core.values import Attribute, Item
from holdall.models.fields.field import Field
from holdall.models.fields.options import ABSENT
from holdall.models.schema import ModelSchema
from holdall.tables.commit.lock import Bound, Demand, Presence
from holdall.transactions.entry.field_change import former_locks


def add_amounts(schema: ModelSchema, amounts: Mapping[str, Any]) -> list[UpdateAction]:
    """The actions that add the amounts; a number that is not stored begins with its default."""
    found: list[UpdateAction] = []
    for name, amount in amounts.items():
        if amount:
            field = schema.fields[name]
            path, start = Path((field.stored,)), _start(field)
            base = path if start is None else IfNotExists(path, Value(_number(start)))
            found.append(Set(path, Plus(base, Value(_number(amount)))))
    return found


def find_room(schema: ModelSchema, amounts: Mapping[str, Any], raw: Item) -> list[Demand]:
    """What increments require: a stored number if there is no default, and a sum within the bounds of its type."""
    fields = [schema.fields[name] for name in amounts]
    others = [lock for field in fields for lock in former_locks(schema, field)]
    addends = [
        Presence(field.name, field.stored, raw[field.stored])
        for field in fields
        if _start(field) is None and field.stored in raw
    ]
    return [*_list_bounds(schema, amounts), *addends, *others]


def _list_bounds(schema: ModelSchema, amounts: Mapping[str, Any]) -> list[Bound]:
    """The bounds that the types of incremented fields set for the sum, as bounds on the stored number."""
    found = []
    for name, amount in amounts.items():
        field = schema.fields[name]
        limits = field.codec.number
        if limits is None or not amount:
            continue
        upper: list[tuple[Any, Any]] = [("<=", limits.le), ("<", limits.lt)]
        lower: list[tuple[Any, Any]] = [(">=", limits.ge), (">", limits.gt)]
        for comparator, limit in upper if amount > 0 else lower:
            if limit is not None:
                room, start = exact_number(limit) - exact_number(amount), _start(field)
                bound = Bound(name, field.stored, comparator, _number(room), optional=False)
                fits = start is not None and bound.holds({field.stored: _number(start)})
                found.append(replace(bound, optional=fits))
    return found


def _start(field: Field[Any]) -> Any:
    """The value of a number that is not stored; None if it must be stored."""
    start = field.absent_value()
    return None if start is ABSENT else start


def _number(value: Any) -> Attribute:
    return {"N": number_text(value)}
