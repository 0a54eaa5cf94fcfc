"""Conditions on fields, as users write them: ``col(Order.quantity) > 1``, ``Order.number.begins_with("2026")``.

Pure. A clause keeps the field and the Python values, so that whoever uses it can decide what it means there: a filter
on stored attributes, or a range of a sort key. Clauses combine with ``&``, ``|`` and ``~``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Literal, TypeAlias, TypeVar, overload

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

T = TypeVar("T")

Operator: TypeAlias = Literal[
    "=", "<>", "<", "<=", ">", ">=", "between", "begins_with", "contains", "in", "exists", "absent"
]
"""How a term compares its field."""


class Clause:
    """The base of all conditions on fields."""

    __slots__ = ()

    def __and__(self, other: Clause) -> All:
        return All((*_members(All, self), *_members(All, other)))

    def __or__(self, other: Clause) -> Either:
        return Either((*_members(Either, self), *_members(Either, other)))

    def __invert__(self) -> Negated:
        return Negated(self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a condition has no truth of its own: combine conditions with &, | and ~, not and, or, not"
        )

    @internal
    def fields(self) -> Iterator[Field[Any]]:
        """The fields it speaks of."""
        raise NotImplementedError

    @internal
    def condition(self) -> Condition:
        """It as a condition on stored attributes."""
        raise NotImplementedError


class Term(Clause):
    """One comparison: of a field, of something inside of it, or of its size."""

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
        """The one field."""
        yield self.field

    def condition(self) -> Condition:
        """A comparison of the stored attribute; None is compared with as absence."""
        path = Path((self.field.stored, *self.inside))
        if self.operator == "exists" or self.operator == "absent":
            return self._presence(path, there=self.operator == "exists")
        if self.values == (None,) and self.operator in ("=", "<>"):
            return self._presence(path, there=self.operator == "<>")
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
        """That there is a value, or none. A field that is None is not stored; inside of one, None is stored as null."""
        if not self.inside:
            return Exists(path) if there else NotExists(path)
        null = Value({"NULL": True})
        if there:
            return And((Exists(path), Compare("<>", path, null)))
        return Or((NotExists(path), Compare("=", path, null)))

    def _attribute(self, value: Any) -> Any:
        """The stored form of a value to compare with: the field's own, unless it is only a part of the field's."""
        if self.sized or self.inside or self.operator in ("contains", "begins_with"):
            return _encode(self.field, value)
        try:
            return self.field.codec.encode(self.field.validate(value))
        except InvalidFieldError:
            # what no item could hold can still be compared with, if it is of the kind: quantity > -1
            attribute = _encode(self.field, value)
            if self.field.codec.kind not in (None, *attribute):
                raise
            return attribute

    def __repr__(self) -> str:
        return f"{self.field!r} {self.operator} {', '.join(map(repr, self.values))}".rstrip()


class All(Clause):
    """Each of them."""

    __slots__ = ("clauses",)

    def __init__(self, clauses: tuple[Clause, ...]) -> None:
        self.clauses = clauses

    def fields(self) -> Iterator[Field[Any]]:
        """Those of each."""
        for clause in self.clauses:
            yield from clause.fields()

    def condition(self) -> Condition:
        """All at once."""
        return And(tuple(clause.condition() for clause in self.clauses))


class Either(Clause):
    """At least one of them."""

    __slots__ = ("clauses",)

    def __init__(self, clauses: tuple[Clause, ...]) -> None:
        self.clauses = clauses

    def fields(self) -> Iterator[Field[Any]]:
        """Those of each."""
        for clause in self.clauses:
            yield from clause.fields()

    def condition(self) -> Condition:
        """One at least."""
        return Or(tuple(clause.condition() for clause in self.clauses))


class Negated(Clause):
    """Not so."""

    __slots__ = ("clause",)

    def __init__(self, clause: Clause) -> None:
        self.clause = clause

    def fields(self) -> Iterator[Field[Any]]:
        """Those of what is denied."""
        return self.clause.fields()

    def condition(self) -> Condition:
        """The contrary."""
        return Not(self.clause.condition())


def terms(clause: Clause) -> list[Term] | None:
    """The terms of a plain conjunction, None when it is anything else."""
    clauses = clause.clauses if isinstance(clause, All) else (clause,)
    found = [each for each in clauses if isinstance(each, Term)]
    return found if len(found) == len(clauses) else None


class Column(Generic[T]):
    """A field to build conditions from: ``col(Order.quantity)``; with ``["city"]`` or ``[0]``, what is inside of it."""

    __slots__ = ("_field", "_inside", "_sized")

    @internal
    def __init__(self, field: Field[Any], inside: tuple[str | int, ...] = (), sized: bool = False) -> None:
        self._field = field
        self._inside = inside
        self._sized = sized

    def _term(self, operator: Operator, *values: Any) -> Term:
        if operator not in ("=", "<>", "contains") and any(value is None for value in values):
            raise self._field.refusal(
                "None can only be asked for with == or !=",
                hint="join it with |: (col(x) == None) | (col(x) > 1)",
            )
        if self._sized:
            _check_size(self._field, operator, values)
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
        """From low up to high, both included."""
        return self._term("between", low, high)

    def in_(self, *options: T) -> Term:
        """One of up to 100 values."""
        return self._term("in", *options)

    def begins_with(self, prefix: str | bytes) -> Term:
        """The text or bytes begin so."""
        return self._term("begins_with", prefix)

    def contains(self, member: Any) -> Term:
        """The text has this part, or the list or set this member."""
        return self._term("contains", member)

    def exists(self) -> Term:
        """There is a value."""
        return self._term("exists")

    def absent(self) -> Term:
        """There is no value."""
        return self._term("absent")

    @property
    def size(self) -> Column[int]:
        """The length of a text or of bytes, the number of members of the rest; to be compared."""
        return Column(self._field, self._inside, sized=True)

    def __getitem__(self, part: str | int) -> Column[Any]:
        return Column(self._field, (*self._inside, part))

    def __repr__(self) -> str:
        return f"col({self._field!r}){''.join(f'[{part!r}]' for part in self._inside)}"


@overload
def col(field: Key[T]) -> Column[T]: ...
@overload
def col(field: T) -> Column[T]: ...
def col(field: Any) -> Any:
    """A field as something to build conditions from: ``where=(col(Order.quantity) > 1) & col(Order.note).exists()``."""
    if not isinstance(field, Field):
        raise TypeError(f"col() takes a field of a model class, such as Order.quantity, not {field!r:.60}")
    return Column(field)


def _check_size(field: Field[Any], operator: Operator, values: tuple[Any, ...]) -> None:
    if operator not in ("=", "<>", "<", "<=", ">", ">=", "between", "in"):
        raise field.refusal(f"a size is a number, and cannot be asked for {operator}")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int):
            raise field.refusal(f"a size is a whole number, not {value!r:.60}")


def _encode(field: Field[Any], value: Any) -> Any:
    from holdall.models.stored_form import encode_value

    try:
        return encode_value(value)
    except InvalidValueError as error:
        raise field.refusal(f"cannot be compared with {value!r:.60}: {error}") from None


def _members(kind: type[All] | type[Either], clause: object) -> tuple[Clause, ...]:
    if not isinstance(clause, Clause):
        raise TypeError(f"conditions combine with conditions, not with {clause!r:.60}")
    return clause.clauses if isinstance(clause, kind) else (clause,)
