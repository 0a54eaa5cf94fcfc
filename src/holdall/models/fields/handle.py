"""A handle on one field of one item, for what plain reads and assignments cannot do."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from holdall.core.internal import internal
from holdall.errors import InvalidFieldError
from holdall.models.fields.field import Field
from holdall.models.marks import Marks

if TYPE_CHECKING:
    from holdall.models.fields.update import Verb
    from holdall.models.model import Model


class FieldHandle:
    """A handle on one field of one item: ``order.field("quantity")``."""

    __slots__ = ("_field", "_item")

    @internal
    def __init__(self, item: Model, field: Field[Any]) -> None:
        self._item = item
        self._field = field

    def increment_by(self, amount: int | float | Decimal) -> None:
        """Add to a number without locking it: concurrent increments are all kept.

        The stored result must still be within the bounds of the field's type (``Ge``, ``Le``, ...). After an assignment
        in the same transaction, on a new item, or if the type has other rules, this assigns the sum.
        """
        field, item = self._field, self._item
        if isinstance(amount, bool) or not isinstance(amount, int | float | Decimal):
            given = "this value" if field.hidden else repr(amount)
            raise field.refusal(f"it can be incremented only by a number, not by {given}")
        if field.codec.number is None:
            raise field.refusal("it is not a number, so it cannot be incremented")
        if field.fixed:
            raise field.refusal("it cannot be changed")
        current = field.peek(item)
        if current is None:
            raise field.refusal("it has no value to increment", hint="assign a value first")
        total = field.validate(_sum(current, amount))
        field.encode(total)  # refuse a sum that cannot be stored
        marks = item._marks
        unlocked = field.name not in item._schema.locked and not field.codec.number.more
        if marks is None or item.is_new or field.name in marks.written or not unlocked:
            setattr(item, field.name, total)
            return
        marks.change(item)
        assert isinstance(marks, Marks)  # change() raises for all others
        marks.add(field.name, _sum(marks.increments.get(field.name, 0), amount))
        item.__dict__[field.name] = total

    def add(self, *members: Any) -> None:
        """Add members to a set without locking it: members that other transactions add meanwhile are kept.

        After an assignment or a change in place in the same transaction, or on a new item, it is an assignment.
        """
        self._update("add", members)

    def discard(self, *members: Any) -> None:
        """Remove members from a set without locking it; members that it does not have are ignored.

        After `add` in the same transaction it is an assignment, which locks the field, and the other way round.
        """
        self._update("discard", members)

    def append(self, *values: Any) -> None:
        """Append values to a list without locking it: values that other transactions append meanwhile are kept."""
        self._update("append", values)

    def _update(self, verb: Verb, values: tuple[Any, ...]) -> None:
        from holdall.models.fields.update import FieldUpdate

        field, item, name = self._field, self._item, self._field.name
        update: FieldUpdate | None = FieldUpdate(field, (), verb, values)
        assert update is not None
        changed = field.validate(update.apply_to(field.peek(item)))
        field.encode(changed)  # a value that cannot be stored is refused now
        marks = item._marks
        if marks is None or item.is_new or name in marks.written or name in item._schema.locked:
            setattr(item, name, changed)
            return
        marks.change(item)
        assert isinstance(marks, Marks)  # the others refuse
        if name in marks.updates:
            update = marks.updates[name].join(update)
        if update is None:
            setattr(item, name, changed)
            return
        marks.update(name, update)
        shown = item.__dict__.get(name)
        if isinstance(shown, set):  # the caller may hold it
            shown.clear()
            shown |= changed
        elif isinstance(shown, list):
            shown[:] = changed
        else:
            item.__dict__[name] = changed

    def validate(self) -> None:
        """Check the current value, including its contents; raise `InvalidFieldError` if it does not fit the type.

        This does not count as reading the field.
        """
        self._field.encode(self._field.peek(self._item))

    @property
    def accessed(self) -> bool:
        """Whether the field was read or written since the item was loaded.

        For an item that was read outside a transaction, reading one or two fields can count as reading all.
        """
        return self._field.name in self._item.__dict__

    @property
    def changed(self) -> bool:
        """Whether the value differs from the stored one; always True for a new item."""
        item, field = self._item, self._field
        if item._stored is None:
            return True
        try:
            initial = item._stored.get(field.stored)
            value = field.peek(item)
            return (field.is_computed or field.name in item.__dict__) and value != (
                field.absent_value() if initial is None else field.decode(initial)
            )
        except InvalidFieldError:
            return field.name in item.__dict__


def _sum(left: Any, right: Any) -> Any:
    """Return the sum in the type of the left side; a float is added to a Decimal by its shortest text."""
    if isinstance(left, Decimal) and isinstance(right, float):
        right = Decimal(repr(right))
    elif isinstance(left, float) and isinstance(right, Decimal):
        right = float(right)
    return left + right
