"""Expressions as values: conditions, updates and projections are small trees, never text.

Pure. `renderer` turns a tree into DynamoDB's expression text, `evaluation` evaluates a condition on an item, and
`application` applies an update to one (`holdall.core.rules.expression` checks a tree). Nodes are frozen and comparable.
Conditions combine with ``&``, ``|`` and ``~``.

A node knows its operands and its own rules, so code that walks a tree needs to know only the leaves, `Path` and
`Value`.
"""

from __future__ import annotations

from holdall.core.expressions.condition import (
    And,
    BeginsWith,
    Between,
    Comparator,
    Compare,
    Condition,
    Contains,
    Exists,
    In,
    KeyCondition,
    Not,
    NotExists,
    Or,
    TypeIs,
)
from holdall.core.expressions.node import Node, Operand, Path, Size, Value, path, value
from holdall.core.expressions.update import (
    Add,
    Delete,
    IfNotExists,
    ListAppend,
    Minus,
    Plus,
    Remove,
    Set,
    SetValue,
    Term,
    Update,
    UpdateAction,
)

__all__ = [
    "Add",
    "And",
    "BeginsWith",
    "Between",
    "Comparator",
    "Compare",
    "Condition",
    "Contains",
    "Delete",
    "Exists",
    "IfNotExists",
    "In",
    "KeyCondition",
    "ListAppend",
    "Minus",
    "Node",
    "Not",
    "NotExists",
    "Operand",
    "Or",
    "Path",
    "Plus",
    "Remove",
    "Set",
    "SetValue",
    "Size",
    "Term",
    "TypeIs",
    "Update",
    "UpdateAction",
    "Value",
    "path",
    "value",
]
