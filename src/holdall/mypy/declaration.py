"""What a class statement declares, beside the types of its fields: kept with the class, in mypy's cache too.

Everything here is read from the source. None stands for what the source does not show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypedDict

from mypy.nodes import (
    AssignmentStmt,
    CallExpr,
    ClassDef,
    Decorator,
    DictExpr,
    Expression,
    ListExpr,
    NameExpr,
    RefExpr,
    StrExpr,
    TempNode,
    TupleExpr,
)
from mypy.plugin import ClassDefContext

METADATA = "holdall"

_COMPUTED = "holdall.models.definition.computation.computed"
_FIELD = "holdall.models.fields.options.field"
_INDEX = "holdall.models.indexes.Index"
_TEMPLATE = "holdall.models.keys.template.Template"
_SLOT = re.compile(r"\{(\w+)[^}]*\}")


class Declaration(TypedDict):
    """What one class statement declares.

    ``defaults`` maps each field to whether it has a default that also applies to keys; to None if the source does not
    show it. ``indexes`` has the fields of each index's partition key: an empty list stands for the table's partition
    key. It is None if the source does not show all of them.
    """

    abstract: bool
    fields: list[str]
    unique: list[str]
    defaults: dict[str, bool | None]
    indexes: dict[str, list[str] | None] | None


def record_class(context: ClassDefContext) -> None:
    """Keep what the class statement declares."""
    statement = context.cls
    found = Declaration(
        abstract=_is_true(statement.keywords.get("abstract")),
        fields=[],
        unique=[],
        defaults={},
        indexes=_read_indexes(statement),
    )
    for each in statement.defs.body:
        if isinstance(each, AssignmentStmt) and isinstance(target := each.lvalues[0], NameExpr):
            _record_field(found, target.name, each)
        elif isinstance(each, Decorator) and any(_is_computed(decorator) for decorator in each.decorators):
            found["fields"].append(each.name)
    statement.info.metadata[METADATA] = {**found}


def _record_field(found: Declaration, name: str, statement: AssignmentStmt) -> None:
    annotated = statement.unanalyzed_type is not None
    if annotated:
        found["fields"].append(name)
    value = statement.rvalue
    if isinstance(value, TempNode):  # an annotation without a value
        found["defaults"][name] = False
    elif not isinstance(value, CallExpr):
        found["defaults"][name] = True
    elif not _calls(value, _FIELD):
        found["defaults"][name] = None
    else:
        options = dict(_arguments(value, ()))
        if None in options:
            found["defaults"][name] = None
        elif annotated or "default" in options or "default_factory" in options:
            found["defaults"][name] = "default" in options
        if _is_true(options.get("unique")):
            found["unique"].append(name)


def _is_computed(decorator: Expression) -> bool:
    return isinstance(decorator, CallExpr) and _calls(decorator, _COMPUTED)


def _read_indexes(statement: ClassDef) -> dict[str, list[str] | None] | None:
    found: dict[str, list[str] | None] = {}
    declared = statement.keywords.get("indexes")
    if declared is not None:
        if not isinstance(declared, ListExpr | TupleExpr):
            return None
        for each in declared.items:
            if not isinstance(each, CallExpr) or not _calls(each, _INDEX):
                return None
            options = dict(_arguments(each, ("name", "key", "sort_key")))
            name = options.get("name")
            if not isinstance(name, StrExpr) or None in options:
                return None
            found[name.value] = _read_names(options["key"]) if "key" in options else []
    layout = statement.keywords.get("layout")
    if layout is None or isinstance(layout, StrExpr):
        return found
    if not isinstance(layout, CallExpr) or not _calls(layout, _TEMPLATE):
        return None
    for option, texts in _arguments(layout, ("key",)):
        if option is None:
            return None
        if option == "local":
            names = [name for name, _ in texts.items] if isinstance(texts, DictExpr) else [None]
            if not all(isinstance(name, StrExpr) for name in names):
                return None
            found |= {name.value: [] for name in names if isinstance(name, StrExpr)}
        elif option == "indexes":
            if not isinstance(texts, DictExpr):
                return None
            for name, inner in texts.items:
                if not isinstance(name, StrExpr):
                    return None
                found[name.value] = _read_slots(inner)
        elif option not in ("key", "pk", "sk", "type", "casing"):
            found[option] = _read_slots(texts)
    return found


def _read_names(names: Expression) -> list[str] | None:
    items = names.items if isinstance(names, ListExpr | TupleExpr) else []
    found = [item.value for item in items if isinstance(item, StrExpr)]
    return found if found and len(found) == len(items) else None


def _read_slots(texts: Expression) -> list[str] | None:
    """The fields of a template's first text, which is that of the partition key."""
    first: Expression | None = None
    if isinstance(texts, TupleExpr) and texts.items:
        first = texts.items[0]
    elif isinstance(texts, DictExpr) and texts.items:
        first = texts.items[0][1]
    return [*dict.fromkeys(_SLOT.findall(first.value))] if isinstance(first, StrExpr) else None


def _arguments(call: CallExpr, positions: tuple[str, ...]) -> Iterator[tuple[str | None, Any]]:
    """The arguments of a call by name; None is the name of those that the source does not show."""
    at = 0
    for kind, name, value in zip(call.arg_kinds, call.arg_names, call.args, strict=True):
        if kind.is_star():
            yield None, value
        elif name is not None:
            yield name, value
        else:
            yield (positions[at] if at < len(positions) else None), value
            at += 1


def _calls(call: CallExpr, fullname: str) -> bool:
    return isinstance(call.callee, RefExpr) and call.callee.fullname == fullname


def _is_true(value: Expression | None) -> bool:
    return isinstance(value, NameExpr) and value.fullname == "builtins.True"
