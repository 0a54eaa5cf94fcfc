"""Columns: fields to build conditions and updates from, as in ``col(Order.quantity) > 1``. Pure."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from holdall.core.internal import internal
from holdall.models.fields.conditions import Operator, Term
from holdall.models.fields.field import Field, Key

if TYPE_CHECKING:
    from holdall.models.fields.update import FieldUpdate, Verb

T = TypeVar("T")
E = TypeVar("E")
_Set: TypeAlias = set[E]  # `Column.set` hides the name inside the class


class Column(Generic[T]):
    """A field to build conditions from: ``col(Order.quantity)``. ``["city"]`` or ``[0]`` is a part of its value."""

    __slots__ = ("_field", "_inside", "_sized")

    @internal
    def __init__(self, field: Field[Any], inside: tuple[str | int, ...] = (), sized: bool = False) -> None:
        self._field = field
        self._inside = inside
        self._sized = sized

    def _term(self, operator: Operator, *values: Any) -> Term:
        if operator not in ("=", "<>", "contains") and any(value is None for value in values):
            raise self._field.refusal(
                "None can be compared only with == or !=",
                hint="combine two conditions with |: (col(x) == None) | (col(x) > 1)",
            )
        if self._sized:
            _check_size(self._field, operator, values)
        else:
            values = tuple(map(self._field.fold, values))
        return Term(self._field, operator, values, inside=self._inside, sized=self._sized)

    def __eq__(self, other: T | None) -> Term:  # type: ignore[override]
        return self._term("=", other)

    def __ne__(self, other: T | None) -> Term:  # type: ignore[override]
        return self._term("<>", other)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: T) -> Term:
        return self._term("<", other)

    def __le__(self, other: T) -> Term:
        return self._term("<=", other)

    def __gt__(self, other: T) -> Term:
        return self._term(">", other)

    def __ge__(self, other: T) -> Term:
        return self._term(">=", other)

    def between(self, low: T, high: T) -> Term:
        """The value is from ``low`` to ``high``, both included."""
        return self._term("between", low, high)

    def in_(self, *options: T) -> Term:
        """The value is one of up to 100 values."""
        return self._term("in", *options)

    def begins_with(self, prefix: str | bytes) -> Term:
        """The text or bytes begin with ``prefix``."""
        return self._term("begins_with", prefix)

    def contains(self, member: Any) -> Term:
        """The text contains this part, or the list or set contains this member."""
        return self._term("contains", member)

    def exists(self) -> Term:
        """The field has a value."""
        return self._term("exists")

    def absent(self) -> Term:
        """The field has no value."""
        return self._term("absent")

    @property
    def size(self) -> Column[int]:
        """The length of text or bytes, or the number of members of a list, set or map; compare it with a number."""
        return Column(self._field, self._inside, sized=True)

    def __getitem__(self, part: str | int) -> Column[Any]:
        return Column(self._field, (*self._inside, part))

    # --- updates --------------------------------------------------------------------------------------------

    def set(self, value: T) -> FieldUpdate:
        """Give it this value, for ``tx.update(key, ...)``. None removes it if it is optional."""
        return self._update("set", value)

    def remove(self) -> FieldUpdate:
        """Remove it: an optional field is then None, and one with a default has its default."""
        return self._update("remove")

    @overload
    def add(self: Column[_Set[E]], *members: E) -> FieldUpdate: ...
    @overload
    def add(self: Column[_Set[E] | None], *members: E) -> FieldUpdate: ...
    @overload
    def add(self: Column[frozenset[E]], *members: E) -> FieldUpdate: ...
    @overload
    def add(self: Column[frozenset[E] | None], *members: E) -> FieldUpdate: ...
    def add(self: Column[Any], *members: Any) -> FieldUpdate:
        """Add members to a set, also to one that another transaction adds to at the same time."""
        return self._update("add", *members)

    @overload
    def discard(self: Column[_Set[E]], *members: E) -> FieldUpdate: ...
    @overload
    def discard(self: Column[_Set[E] | None], *members: E) -> FieldUpdate: ...
    @overload
    def discard(self: Column[frozenset[E]], *members: E) -> FieldUpdate: ...
    @overload
    def discard(self: Column[frozenset[E] | None], *members: E) -> FieldUpdate: ...
    def discard(self: Column[Any], *members: Any) -> FieldUpdate:
        """Remove members from a set; members that it does not have are ignored."""
        return self._update("discard", *members)

    @overload
    def append(self: Column[list[E]], *values: E) -> FieldUpdate: ...
    @overload
    def append(self: Column[list[E] | None], *values: E) -> FieldUpdate: ...
    def append(self: Column[Any], *values: Any) -> FieldUpdate:
        """Append values to a list, also to one that another transaction appends to at the same time."""
        return self._update("append", *values)

    @overload
    def increment_by(self: Column[int], amount: int) -> FieldUpdate: ...
    @overload
    def increment_by(self: Column[int | None], amount: int) -> FieldUpdate: ...
    @overload
    def increment_by(self: Column[float], amount: float) -> FieldUpdate: ...
    @overload
    def increment_by(self: Column[float | None], amount: float) -> FieldUpdate: ...
    @overload
    def increment_by(self: Column[Decimal], amount: Decimal | float) -> FieldUpdate: ...
    @overload
    def increment_by(self: Column[Decimal | None], amount: Decimal | float) -> FieldUpdate: ...
    def increment_by(self: Column[Any], amount: Any) -> FieldUpdate:
        """Add to a number. The bounds of its type (``Ge``, ``Le``, ...) hold for the result."""
        return self._update("increment_by", amount)

    def _update(self, verb: Verb, *values: Any) -> FieldUpdate:
        from holdall.models.fields.update import FieldUpdate

        if self._sized:
            raise self._field.refusal("a size can be compared, but not changed")
        return FieldUpdate(self._field, self._inside, verb, values)

    def __repr__(self) -> str:
        return f"col({self._field!r}){''.join(f'[{part!r}]' for part in self._inside)}"


@overload
def col(field: Key[T]) -> Column[T]: ...
@overload
def col(field: T) -> Column[T]: ...
def col(field: Any) -> Any:
    """Build a condition on a field: ``where=(col(Order.quantity) > 1) & col(Order.note).exists()``."""
    if not isinstance(field, Field):
        raise TypeError(f"col() takes a field of a model class, such as Order.quantity, not {field!r:.60}")
    return Column(field)


def _check_size(field: Field[Any], operator: Operator, values: tuple[Any, ...]) -> None:
    if operator not in ("=", "<>", "<", "<=", ">", ">=", "between", "in"):
        raise field.refusal(f"a size is a number, so {operator} does not apply to it")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int):
            raise field.refusal(f"a size must be compared with a whole number, not with {value!r:.60}")
