"""A handle on one field of one item: what cannot be said by reading and assigning it."""

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
    """``order.field("quantity")``."""

    __slots__ = ("_field", "_item")

    @internal
    def __init__(self, item: Model, field: Field[Any]) -> None:
        self._item = item
        self._field = field

    def increment_by(self, amount: int | float | Decimal) -> None:
        """Add to a number without locking it: whatever others add meanwhile is kept.

        The bounds of the field's type (``Ge``, ``Le``, ...) still hold for what is stored in the end. After an
        assignment in the same transaction, or on a new item, it is an assignment of the sum.
        """
        field, item = self._field, self._item
        if isinstance(amount, bool) or not isinstance(amount, int | float | Decimal):
            raise field.refusal(f"cannot be incremented by {amount!r}")
        if field.codec.number is None:
            raise field.refusal("only a number can be incremented")
        if field.fixed:
            raise field.refusal("it cannot be changed")
        current = field.peek(item)
        if current is None:
            raise field.refusal("it has no value to add to", hint="assign one")
        total = field.validate(_sum(current, amount))
        field.encode(total)  # a sum that cannot be stored is refused now
        marks = item._marks
        if marks is None or item.is_new or field.name in marks.written or field.name in item._schema.locked:
            setattr(item, field.name, total)
            return
        marks.change(item)
        assert isinstance(marks, Marks)  # the others refuse
        marks.add(field.name, _sum(marks.increments.get(field.name, 0), amount))
        item.__dict__[field.name] = total

    def validate(self) -> None:
        """Check the value as it is now, also inside of it; `InvalidFieldError` when it does not fit. Marks nothing."""
        self._field.encode(self._field.peek(self._item))

    @property
    def accessed(self) -> bool:
        """Whether the field was read or written since the item was loaded.

        Of an item that was read outside of a transaction, one or two fields that are read count for all.
        """
        return self._field.name in self._item.__dict__

    @property
    def changed(self) -> bool:
        """Whether the value differs from the stored one; always, for a new item."""
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
    """The sum in the type of the left side; a float meets a Decimal by its shortest text."""
    if isinstance(left, Decimal) and isinstance(right, float):
        right = Decimal(repr(right))
    elif isinstance(left, float) and isinstance(right, Decimal):
        right = float(right)
    return left + right
