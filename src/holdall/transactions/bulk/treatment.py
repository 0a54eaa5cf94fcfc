"""What a run over many items does with each of them: delete it, assign fields, or call the caller's function.

A treatment records its change in the unit of a chunk's transaction. Items that it leaves as they are take no part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from holdall.core.context import Context
from holdall.errors import InvalidOptionsError, InvalidRequestError
from holdall.models.model import Model
from holdall.models.schema import ModelSchema
from holdall.transactions.entry.expectation import find_field
from holdall.transactions.entry.loaded import Loaded
from holdall.transactions.query.question import Question
from holdall.transactions.unit import Unit


class Deletion:
    """Deletes each item."""

    kind = "delete"

    async def apply(self, context: Context, unit: Unit, item: Model, question: Question) -> None:
        """Record the deletion."""
        unit.delete(item)


class Assignment:
    """Sets fields to the same values in each item."""

    kind = "update"

    def __init__(self, schema: ModelSchema, values: Mapping[str, Any]) -> None:
        if not values:
            raise InvalidRequestError("the update changes nothing", hint="name at least one field")
        for name, value in values.items():
            field = find_field(schema, name)
            if field.fixed:
                raise field.refuse_change()
            field.validate(value)
        self._values = dict(values)

    async def apply(self, context: Context, unit: Unit, item: Model, question: Question) -> None:
        """Assign the fields."""
        for name, value in self._values.items():
            setattr(item, name, value)
        _forget_unchanged(unit, item)


class Revision:
    """Calls the caller's function with each item."""

    kind = "update"

    def __init__(self, function: Callable[[Any], Any]) -> None:
        if not callable(function):
            raise InvalidOptionsError(
                f"the change must be a mapping of fields or a function, not {function!r:.60}"
            )
        self._function = function

    async def apply(self, context: Context, unit: Unit, item: Model, question: Question) -> None:
        """Call the function, and check that the query will not find the item again."""
        await context.port.call(self._function, item)
        entry = _forget_unchanged(unit, item)
        index = question.index
        if entry is None or entry.deleted or index is None:
            return
        changed = {field.name for field, _, _ in entry.changes()}
        changed |= {
            field.name
            for field in item._schema.computed
            if any(source.name in changed for source in field.components)
        }
        moved = [field for field in index.sort_key if field.name in changed]
        if moved and not any(field.name in changed for field in index.key):
            raise moved[0].refusal(
                f"the run reads the index {index.name!r} in its order, and would find the changed item again",
                hint="query the table, or pass the new values as a mapping",
            )


Treatment: TypeAlias = Deletion | Assignment | Revision


def _forget_unchanged(unit: Unit, item: Model) -> Loaded | None:
    """The entry of a changed item. An item that was left as it is takes no part in the transaction."""
    entry = unit.entries[item.key.identity]
    assert isinstance(entry, Loaded)
    if entry.is_dirty:
        return entry
    del unit.entries[item.key.identity]
    return None
