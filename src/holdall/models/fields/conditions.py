"""Conditions on fields, as `column` and the fields of keys make them: ``col(Order.quantity) > 1``.

Pure. A clause keeps the field and the Python values, so that it can become a filter on stored attributes or a range of
a sort key. Clauses combine with ``&``, ``|`` and ``~``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, TypeAlias

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
from holdall.models.fields.field import Field

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
        ordered = self.operator in ("<", "<=", ">", ">=", "between")
        partly = self.sized or self.operator in ("begins_with", "contains")
        if form == "json" or (form in ("iso", "base64") and ordered) or (form == "base64" and partly):
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


class _Combination(Clause):
    """Several clauses, and the node that combines their conditions."""

    __slots__ = ("clauses",)
    node: ClassVar[type[And | Or]]
    sign: ClassVar[str]

    def __init__(self, clauses: tuple[Clause, ...]) -> None:
        self.clauses = clauses

    def fields(self) -> Iterator[Field[Any]]:
        """Yield the fields of all clauses."""
        for clause in self.clauses:
            yield from clause.fields()

    def condition(self) -> Condition:
        """Return the conditions of the clauses, combined."""
        return self.node(tuple(clause.condition() for clause in self.clauses))

    def __repr__(self) -> str:
        return f" {self.sign} ".join(f"({clause!r})" for clause in self.clauses)


class All(_Combination):
    """All the clauses are true."""

    __slots__ = ()
    node = And
    sign = "&"


class Either(_Combination):
    """At least one of the clauses is true."""

    __slots__ = ()
    node = Or
    sign = "|"


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


def _encode(field: Field[Any], value: Any) -> Any:
    from holdall.models.codec.stored_form import encode_value

    try:
        return encode_value(value)
    except InvalidValueError as error:
        raise field.refusal(f"it cannot be compared with {value!r:.60}: {error}") from None


def _members(kind: type[_Combination], clause: object) -> tuple[Clause, ...]:
    if not isinstance(clause, Clause):
        raise TypeError(f"a condition can be combined only with another condition, not with {clause!r:.60}")
    return clause.clauses if isinstance(clause, kind) else (clause,)
