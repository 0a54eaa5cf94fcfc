"""Renders expression trees as DynamoDB's expression text.

Pure. Every name and every value gets an alias (``#0``, ``:0``), so names may contain reserved words, dots, dashes and
any Unicode, and no alias is ever undefined or unused. The expressions of one request are rendered together, because
they share their aliases. Each combination of shapes is rendered only once, because its text is always the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from holdall.core.expressions import (
    Add,
    And,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Delete,
    Exists,
    IfNotExists,
    In,
    KeyCondition,
    ListAppend,
    Minus,
    Not,
    NotExists,
    Operand,
    Or,
    Path,
    Plus,
    Remove,
    Set,
    SetValue,
    Size,
    TypeIs,
    Update,
    Value,
    value,
)
from holdall.core.expressions.shape import Expression, Memory, shape_of
from holdall.core.frozen import dataclass
from holdall.core.values import Attribute


@dataclass(frozen=True, slots=True)
class _Texts:
    """What requests of one shape have in common."""

    parameters: Mapping[str, Any]
    aliases: tuple[str, ...]


_known: Memory[_Texts] = Memory()


def render(expressions: Mapping[str, Expression]) -> dict[str, Any]:
    """Return the parameters of a request with these expressions, which are given by their parameters' names."""
    literals: list[Attribute] = []
    shape: tuple[Hashable, ...] = ()
    for name, part in expressions.items():
        shape += name, shape_of(part, literals)
    texts = _known.get(shape)
    if texts is None:
        renderer = Renderer()
        texts = _texts(renderer, expressions)
        literals = list(renderer.values.values())
        if None not in shape:
            _known.keep(shape, texts)
    parameters = dict(texts.parameters)
    if literals:
        parameters["ExpressionAttributeValues"] = dict(zip(texts.aliases, literals, strict=True))
    return parameters


def _texts(renderer: Renderer, expressions: Mapping[str, Expression]) -> _Texts:
    parameters: dict[str, Any] = {name: renderer.text(part) for name, part in expressions.items()}
    if renderer.names:
        parameters["ExpressionAttributeNames"] = renderer.names
    return _Texts(parameters, tuple(renderer.values))


class Renderer:
    """Renders the expressions of one request, and collects their ``names`` and ``values``."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}
        self.values: dict[str, Attribute] = {}

    @property
    def names(self) -> dict[str, str]:
        """The attribute names by their aliases, for ExpressionAttributeNames."""
        return {alias: name for name, alias in self._aliases.items()}

    def text(self, expression: Expression) -> str:
        """Render an expression of any kind."""
        match expression:
            case Update():
                return self.update(expression)
            case KeyCondition():
                return self.key_condition(expression)
            case tuple():
                return self.projection(expression)
        return self.condition(expression)

    def condition(self, condition: Condition) -> str:
        """Render a ConditionExpression or FilterExpression."""
        match condition:
            case Compare(comparator, left, right):
                return f"{self._operand(left)} {comparator} {self._operand(right)}"
            case Between(operand, low, high):
                bounds = (self._operand(part) for part in (operand, low, high))
                return "{} BETWEEN {} AND {}".format(*bounds)
            case In(operand, options):
                return f"{self._operand(operand)} IN ({', '.join(map(self._operand, options))})"
            case Exists(path):
                return f"attribute_exists({self._path(path)})"
            case NotExists(path):
                return f"attribute_not_exists({self._path(path)})"
            case TypeIs(path, kind):
                return f"attribute_type({self._path(path)}, {self._operand(value(kind))})"
            case BeginsWith(path, prefix):
                return f"begins_with({self._path(path)}, {self._operand(prefix)})"
            case Contains(path, member):
                return f"contains({self._path(path)}, {self._operand(member)})"
            case And(conditions):
                return " AND ".join(map(self._inner, conditions))
            case Or(conditions):
                return " OR ".join(map(self._inner, conditions))
            case Not(inner):
                return f"NOT {self._inner(inner)}"
        raise TypeError(f"{type(condition).__name__} is not a condition")

    def update(self, update: Update) -> str:
        """Render an UpdateExpression."""
        clauses: dict[str, list[str]] = {}
        for action in update.actions:
            match action:
                case Set(path, new):
                    clauses.setdefault("SET", []).append(f"{self._path(path)} = {self._new(new)}")
                case Remove(path):
                    clauses.setdefault("REMOVE", []).append(self._path(path))
                case Add(path, amount):
                    clauses.setdefault("ADD", []).append(f"{self._path(path)} {self._operand(amount)}")
                case Delete(path, members):
                    clauses.setdefault("DELETE", []).append(f"{self._path(path)} {self._operand(members)}")
        return " ".join(f"{word} {', '.join(steps)}" for word, steps in clauses.items())

    def projection(self, paths: Iterable[Path]) -> str:
        """Render a ProjectionExpression."""
        return ", ".join(map(self._path, paths))

    def key_condition(self, key: KeyCondition) -> str:
        """Render a KeyConditionExpression."""
        parts = [f"{self._name(name)} = {self._operand(Value(equals))}" for name, equals in key.equalities]
        return " AND ".join(parts if key.sort is None else [*parts, self.condition(key.sort)])

    def _inner(self, condition: Condition) -> str:
        while isinstance(condition, And | Or) and len(condition.conditions) == 1:
            (condition,) = condition.conditions  # DynamoDB refuses redundant parentheses
        text = self.condition(condition)
        return f"({text})" if isinstance(condition, And | Or | Not) else text

    def _operand(self, operand: Operand) -> str:
        match operand:
            case Path():
                return self._path(operand)
            case Size(path):
                return f"size({self._path(path)})"
            case Value(attribute):
                alias = f":{len(self.values)}"
                self.values[alias] = attribute
                return alias

    def _new(self, new: SetValue) -> str:
        match new:
            case Path() | Value():
                return self._operand(new)
            case IfNotExists(path, fallback):
                return f"if_not_exists({self._path(path)}, {self._new(fallback)})"
            case ListAppend(first, second):
                return f"list_append({self._new(first)}, {self._new(second)})"
            case Plus(left, right):
                return f"{self._new(left)} + {self._new(right)}"
            case Minus(left, right):
                return f"{self._new(left)} - {self._new(right)}"

    def _path(self, path: Path) -> str:
        head, *rest = path.parts
        text = self._name(str(head))
        for part in rest:
            text += f"[{part}]" if isinstance(part, int) else f".{self._name(part)}"
        return text

    def _name(self, name: str) -> str:
        alias = self._aliases.get(name)
        if alias is None:
            alias = self._aliases[name] = f"#{len(self._aliases)}"
        return alias
