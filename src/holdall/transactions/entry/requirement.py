"""Requirements: the conditions (``where=``) of a write on the item that it meets. Pure."""

from __future__ import annotations

from typing import Any

from holdall.core.expressions import Condition, Path
from holdall.core.expressions.evaluation import holds, resolve
from holdall.core.values import Item
from holdall.errors import InvalidFieldError, InvalidModelUpdateError, InvalidRequestError
from holdall.models.fields.conditions import All, Clause, Term, terms
from holdall.models.fields.field import Field
from holdall.models.keys.key import ModelKey
from holdall.models.schema import ModelSchema
from holdall.tables.commit.explanation import describe_difference, show_attribute
from holdall.tables.commit.lock import Lock, differences


class Requirement:
    """What the caller demands of the item under a key, as a condition and as a message if it does not hold."""

    def __init__(self, schema: ModelSchema, clause: Clause) -> None:
        if not isinstance(clause, Clause):
            raise InvalidRequestError(
                f"where= must be a condition, not {clause!r:.60}",
                hint="build it with col(): col(Order.quantity) >= 3",
            )
        self._clause = clause
        self.fields = tuple(dict.fromkeys(_own_field(schema, field) for field in clause.fields()))
        self.condition: Condition = clause.condition()
        self._schema = schema

    def equalities(self) -> dict[Field[Any], Any]:
        """The fields whose values it determines, with those values."""
        found = {}
        for term in terms(self._clause) or ():
            if term.operator == "=" and not term.inside and not term.sized:
                field = _own_field(self._schema, term.field)
                try:
                    found[field] = None if term.values == (None,) else field.validate(term.values[0])
                except InvalidFieldError:
                    continue  # no item has it
        return found

    def explain(self, key: ModelKey[Any], item: Item) -> list[str]:
        """Where a stored item differs from what is demanded."""
        return [f"{key!r}{each}" for each in _misfits(self._clause, item)]


def _own_field(schema: ModelSchema, field: Field[Any]) -> Field[Any]:
    own = schema.fields.get(field.name)
    if own is None or own.stored != field.stored:
        raise InvalidFieldError(
            schema.name, field.name, f"where= uses {field!r}, which is a field of another model"
        )
    if own.is_key and schema.form.in_key_alone:
        raise own.refusal("its table stores it in the key alone, so where= cannot use it")
    return own


def _misfits(clause: Clause, item: Item) -> list[str]:
    if holds(clause.condition(), item):
        return []
    if isinstance(clause, All):
        return [misfit for each in clause.clauses for misfit in _misfits(each, item)]
    if isinstance(clause, Term):
        if clause.field.hidden:
            return [f".{clause.field.name} is not as expected"]
        found = resolve(Path((clause.field.stored, *clause.inside)), item)
        inside = "".join(f"[{part!r}]" for part in clause.inside)
        demand = clause.demand.removeprefix("= ")
        demand = f"a size {demand}" if clause.sized else demand
        return [f".{clause.field.name}{inside} is {show_attribute(found)}, expected {demand}"]
    values = {
        field.name: "hidden" if field.hidden else show_attribute(item.get(field.stored))
        for field in clause.fields()
    }
    shown = ", ".join(f"{name} is {value}" for name, value in values.items())
    return [f" does not meet {clause!r}: {shown}"]


def explain_unmet(
    key: ModelKey[Any], locks: tuple[Lock, ...], where: Requirement | None, stored: Item | None
) -> InvalidModelUpdateError | None:
    """The error of a write whose conditions the stored item (None if there is none) does not meet; None if it does."""
    problems = [describe_difference(each) for each in differences(key, locks, stored)]
    if where is not None and stored is not None:
        problems += where.explain(key, stored)
    if not problems:
        return None
    return InvalidModelUpdateError("; ".join(problems), hint="read the item with get, then update it")
