"""A handle on one field of one item, for what plain reads and assignments cannot do."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from holdall.core.internal import internal
from holdall.errors import InvalidFieldError
from holdall.models.fields import Field
from holdall.models.marks import Marks

if TYPE_CHECKING:
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
        in the same transaction, or on a new item, this assigns the sum.
        """
        field, item = self._field, self._item
        if isinstance(amount, bool) or not isinstance(amount, int | float | Decimal):
            raise field.refusal(f"it can be incremented only by a number, not by {amount!r}")
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
        if marks is None or item.is_new or field.name in marks.written or field.name in item._schema.locked:
            setattr(item, field.name, total)
            return
        marks.change(item)
        assert isinstance(marks, Marks)  # change() raises for all others
        marks.add(field.name, _sum(marks.increments.get(field.name, 0), amount))
        item.__dict__[field.name] = total

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
            return field.name in item.__dict__ and value != (
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
