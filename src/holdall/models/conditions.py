"""Conditions on fields, as users write them: ``col(Order.quantity) > 1``, ``Order.number.begins_with("2026")``.

Pure. A clause keeps the field and the Python values, so that it can become a filter on stored attributes or a range of
a sort key. Clauses combine with ``&``, ``|`` and ``~``.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, overload

from holdall.core.expressions import (
    And,
    BeginsWith,
    Between,
    Comparator,
    Compare,
    Condition,
    Contains,
    Exists,
    In,
    Not,
    NotExists,
    Or,
    Path,
    Size,
    Value,
)
from holdall.core.internal import internal
from holdall.errors import InvalidFieldError, InvalidValueError
from holdall.models.fields import Field, Key

if TYPE_CHECKING:
    from holdall.models.field_update import FieldUpdate, Verb

T = TypeVar("T")
E = TypeVar("E")
_Set: TypeAlias = set[E]  # `Column.set` hides the name inside the class

Operator: TypeAlias = Literal[
    "=", "<>", "<", "<=", ">", ">=", "between", "begins_with", "contains", "in", "exists", "absent"
]
"""The operators with which a term can compare its field."""


class Clause:
    """The base class of all conditions on fields."""

    __slots__ = ()

    def __and__(self, other: Clause) -> All:
        return All((*_members(All, self), *_members(All, other)))

    def __or__(self, other: Clause) -> Either:
        return Either((*_members(Either, self), *_members(Either, other)))

    def __invert__(self) -> Negated:
        return Negated(self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a condition is neither true nor false: combine conditions with &, | and ~, not with and, or and not"
        )

    @internal
    def fields(self) -> Iterator[Field[Any]]:
        """Yield the fields that it uses."""
        raise NotImplementedError

    @internal
    def condition(self) -> Condition:
        """Return it as a condition on stored attributes."""
        raise NotImplementedError


class Term(Clause):
    """One comparison: of a field, of a part of it, or of its size."""

    __slots__ = ("field", "inside", "operator", "sized", "values")

    def __init__(
        self,
        field: Field[Any],
        operator: Operator,
        values: tuple[Any, ...],
        *,
        inside: tuple[str | int, ...] = (),
        sized: bool = False,
    ) -> None:
        self.field = field
        self.operator = operator
        self.values = values
        self.inside = inside
        self.sized = sized

    def fields(self) -> Iterator[Field[Any]]:
        """Yield its field."""
        yield self.field

    def condition(self) -> Condition:
        """Return a comparison of the stored attribute; None means absence."""
        path = Path((self.field.stored, *self.inside))
        if self.operator == "exists" or self.operator == "absent":
            return self._presence(path, there=self.operator == "exists")
        if self.values == (None,) and self.operator in ("=", "<>"):
            return self._presence(path, there=self.operator == "<>")
        self._check_form()
        values = [Value(self._attribute(value)) for value in self.values]
        subject = Size(path) if self.sized else path
        match self.operator:
            case "between":
                return Between(subject, *values)
            case "in":
                return In(subject, tuple(values))
            case "begins_with":
                return BeginsWith(path, values[0])
            case "contains":
                return Contains(path, values[0])
        comparator: Comparator = self.operator
        return Compare(comparator, subject, values[0])

    def _presence(self, path: Path, *, there: bool) -> Condition:
        """Return the condition that there is a value, or none.

        We store None as absence, inside a field as null; other programs store null for a field, too.
        """
        null = Value({"NULL": True})
        if there:
            return And((Exists(path), Compare("<>", path, null)))
        return Or((NotExists(path), Compare("=", path, null)))

    def _attribute(self, value: Any) -> Any:
        """Return the stored form of a value to compare with: the field's form, unless only a part is compared."""
        if self.sized or self.inside or self.operator in ("contains", "begins_with"):
            return _encode(self.field, value)
        codec = self.field.codec
        if codec.stored_as is not None:
            exact = self.operator not in ("=", "<>", "in")
            return codec.encode(self.field.comparable(value) if exact else self.field.validate(value))
        try:
            return codec.encode(self.field.validate(value))
        except InvalidFieldError:
            # a value that no item could have can still be compared with, if its type fits: quantity > -1
            attribute = _encode(self.field, value)
            if codec.kind not in (None, *attribute):
                raise
            return attribute

    def _check_form(self) -> None:
        """Refuse what DynamoDB cannot compare, because another program's form has another order or none."""
        form = self.field.codec.stored_as
        if form == "json" or (form == "iso" and self.operator in ("<", "<=", ">", ">=", "between")):
            raise self.field.refusal(
                f'it is stored as text (stored="{form}"), which DynamoDB cannot compare',
                hint="compare it in your code",
            )

    def __repr__(self) -> str:
        inside = "".join(f"[{part!r}]" for part in self.inside)
        return f"{self.field!r}{inside}{'.size' if self.sized else ''} {self.demand}"

    @property
    @internal
    def demand(self) -> str:
        """What it demands of the value, for a message: ``>= 3``."""
        if self.values == (None,) and self.operator in ("=", "<>"):
            return "absent" if self.operator == "=" else "a value"
        values = ["…" if self.field.hidden else repr(value) for value in self.values]
        return f"{self.operator} {', '.join(values)}".rstrip()


class All(Clause):
    """All the clauses are true."""

    __slots__ = ("clauses",)

    def __init__(self, clauses: tuple[Clause, ...]) -> None:
        self.clauses = clauses

    def fields(self) -> Iterator[Field[Any]]:
        """Yield the fields of all clauses."""
        for clause in self.clauses:
            yield from clause.fields()

    def condition(self) -> Condition:
        """Return the conjunction of the clauses."""
        return And(tuple(clause.condition() for clause in self.clauses))

    def __repr__(self) -> str:
        return " & ".join(f"({clause!r})" for clause in self.clauses)


class Either(Clause):
    """At least one of the clauses is true."""

    __slots__ = ("clauses",)

    def __init__(self, clauses: tuple[Clause, ...]) -> None:
        self.clauses = clauses

    def fields(self) -> Iterator[Field[Any]]:
        """Yield the fields of all clauses."""
        for clause in self.clauses:
            yield from clause.fields()

    def condition(self) -> Condition:
        """Return the disjunction of the clauses."""
        return Or(tuple(clause.condition() for clause in self.clauses))

    def __repr__(self) -> str:
        return " | ".join(f"({clause!r})" for clause in self.clauses)


class Negated(Clause):
    """The clause is false."""

    __slots__ = ("clause",)

    def __init__(self, clause: Clause) -> None:
        self.clause = clause

    def fields(self) -> Iterator[Field[Any]]:
        """Return the fields of the clause."""
        return self.clause.fields()

    def condition(self) -> Condition:
        """Return the negation of the clause."""
        return Not(self.clause.condition())

    def __repr__(self) -> str:
        return f"~({self.clause!r})"


def terms(clause: Clause) -> list[Term] | None:
    """Return the terms of a plain conjunction, None for any other clause."""
    clauses = clause.clauses if isinstance(clause, All) else (clause,)
    found = [each for each in clauses if isinstance(each, Term)]
    return found if len(found) == len(clauses) else None


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
        from holdall.models.field_update import FieldUpdate

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


def _encode(field: Field[Any], value: Any) -> Any:
    from holdall.models.stored_form import encode_value

    try:
        return encode_value(value)
    except InvalidValueError as error:
        raise field.refusal(f"it cannot be compared with {value!r:.60}: {error}") from None


def _members(kind: type[All] | type[Either], clause: object) -> tuple[Clause, ...]:
    if not isinstance(clause, Clause):
        raise TypeError(f"a condition can be combined only with another condition, not with {clause!r:.60}")
    return clause.clauses if isinstance(clause, kind) else (clause,)
