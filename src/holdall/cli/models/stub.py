"""Stubs of Holdall's own modules, with overloads for the keys of given models.

They are for type checkers that have no plugins: pyright prefers stubs in the directory ``typings`` to an installed
package. A stub is the module without its code. Before each signature that takes any model, it has one for each given
model, with the components of its key. Right after those stands one that takes anything and is deprecated: a checker
reports that a call uses it, and shows its text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from importlib.resources import files
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from holdall.models import Field, Model, describe_model

_MODULES = (
    "models/keys/key.py",
    "transactions/api.py",
    "transactions/bulk/runner.py",
    "transactions/read/reader.py",
    "transactions/run/runner.py",
)
_METHODS = {
    **dict.fromkeys(("Runner", "AsyncRunner"), ("update",)),
    **dict.fromkeys(("BulkRunner", "AsyncBulkRunner"), ("update_all", "delete_all")),
    **dict.fromkeys(("Reader", "AsyncReader"), ("get", "get_one", "get_by", "query")),
    **dict.fromkeys(("Transaction", "AsyncTransaction"), ("get",)),
    "KeyMaker": ("__call__",),
}
_HEADER = """\
# Written by `holdall models stubs`; run it again when a model or Holdall changes.
# type: ignore
# pyright: basic, reportInconsistentOverload=false, reportOverlappingOverload=false, reportDeprecated=false
import typing as _typing
from typing import overload
import typing_extensions as _extensions
"""


def write_stubs(models: Iterable[type[Model]]) -> dict[str, str]:
    """Return the stubs by their paths."""
    imports = _Imports()
    derived_first = sorted(models, key=lambda model: -len(model.__mro__))
    typed = [_TypedModel(f"_M{at}", model, imports) for at, model in enumerate(derived_first)]
    variables = [f'{each.variable} = _typing.TypeVar("{each.variable}", bound={each.name})' for each in typed]
    top = "\n".join([_HEADER + imports.text(), *variables])
    found = {}
    for path in _MODULES:
        tree = ast.parse(files("holdall").joinpath(path).read_text(encoding="utf-8"))
        tree.body = [*_skim(tree.body, typed)]
        first = next(at for at, node in enumerate(tree.body) if isinstance(node, ast.ImportFrom)) + 1
        head, rest = (ast.unparse(ast.Module(part, [])) for part in (tree.body[:first], tree.body[first:]))
        found[f"holdall/{path}i"] = f"{head}\n{top}\n{rest}\n"
    return found


# --- models -----------------------------------------------------------------------------------------------


class _Imports:
    """The modules that a stub imports, each under a name of its own."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def add(self, module: str) -> str:
        """Return the name of a module."""
        return self._names.setdefault(module, f"_m{len(self._names)}")

    def text(self) -> str:
        """Return the statements."""
        return "\n".join(f"import {module} as {name}" for module, name in self._names.items())

    def spell(self, annotation: Any) -> str:
        """Return an annotation as source; ``Any`` for one that other modules cannot name."""
        origin, members = get_origin(annotation), get_args(annotation)
        if annotation in (None, NoneType):
            return "None"
        if origin is Annotated:
            return self.spell(members[0])
        if origin in (Union, UnionType):
            return " | ".join(map(self.spell, members))
        if origin is Literal and all(isinstance(member, str | int | bytes | None) for member in members):
            return f"_typing.Literal[{', '.join(map(repr, members))}]"
        if origin is not None and members:
            return f"{self.spell(origin)}[{', '.join(map(self.spell, members))}]"
        name = getattr(annotation, "__qualname__", "<locals>")
        if isinstance(annotation, type | NewType) and "<locals>" not in name:
            return (
                name if annotation.__module__ == "builtins" else f"{self.add(annotation.__module__)}.{name}"
            )
        return "..." if annotation is Ellipsis else "_typing.Any"


class _TypedModel:
    """A model as stubs show it; ``variable`` stands for the model and those derived from it."""

    def __init__(self, variable: str, model: type[Model], imports: _Imports) -> None:
        facts = describe_model(model)
        self.variable = variable
        self.plain_name = model.__name__
        self.name = imports.spell(model)
        fields: dict[str, Field[Any]] = {
            each["name"]: getattr(model, each["name"]) for each in facts["fields"]
        }
        self.types = {name: imports.spell(field.codec.annotation) for name, field in fields.items()}
        self.partition = facts["key"]
        self.key = [*facts["key"], *facts["sort_key"]]
        self.optional = {name for name in facts["sort_key"] if _has_default(fields[name])}
        self.needed = [name for name in self.key if name not in self.optional]
        self.changeable = [name for name, field in fields.items() if not field.fixed]
        self.unique = facts["unique"]
        self.indexes = {each["name"]: each["key"] for each in facts["indexes"]}

    def show(self, names: Iterable[str]) -> str:
        """The fields for a message."""
        shown = (f"{name}: {self.types[name].rpartition('.')[2]}" for name in names)
        return ", ".join(shown)


def _has_default(field: Field[Any]) -> bool:
    """Whether a component has the same default for all items, so that a key can leave it out."""
    return field.has_default and field.options.default_factory is None


# --- modules ----------------------------------------------------------------------------------------------


def _skim(body: Sequence[ast.stmt], models: Sequence[_TypedModel]) -> Iterator[ast.stmt]:
    """The statements without code, as type checkers see them, and with overloads for the models."""
    for node in body:
        if isinstance(node, ast.If):
            if ast.unparse(node.test) == "TYPE_CHECKING":
                yield from _skim(node.body, models)
        elif isinstance(node, ast.ClassDef):
            members = [*_skim(node.body, models)]
            node.body = [each for at, each in enumerate(members) if not _is_implementation(members, at)]
            node.body = [*_expand(node, models)] or [_make_ellipsis()]
            yield node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node)
            node.body = [_make_ellipsis()] if doc is None else [ast.Expr(ast.Constant(doc)), _make_ellipsis()]
            yield node
        else:
            yield node


def _make_ellipsis() -> ast.stmt:
    return ast.Expr(ast.Constant(...))


def _is_implementation(members: Sequence[ast.stmt], at: int) -> bool:
    """Whether a function is what its overloads are implemented by; a stub leaves it out."""
    node, before = members[at], members[at - 1] if at else None
    return (
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance(before, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == before.name
        and _is_overload(before)
        and not _is_overload(node)
    )


def _is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)


# --- methods ----------------------------------------------------------------------------------------------

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _expand(owner: ast.ClassDef, models: Sequence[_TypedModel]) -> Iterator[ast.stmt]:
    """The members of a class, and before each group of signatures those for the models."""
    wanted = _METHODS.get(owner.name, ())
    groups: dict[str, list[_Function]] = {name: [] for name in wanted}
    for node in owner.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in groups:
            groups[node.name].append(node)
            if not _is_overload(node):
                node.decorator_list.append(ast.Name("overload"))
    seen = set()
    for node in owner.body:
        name = getattr(node, "name", "")
        if name in groups and name not in seen:
            seen.add(name)
            for model in models:
                yield from _write_overloads(owner.name, groups[name], model)
        yield node


def _write_overloads(owner: str, group: Sequence[_Function], model: _TypedModel) -> Iterator[ast.stmt]:
    signatures = [node for node in group if owner == "KeyMaker" or _is_generic(node)]
    for node in signatures:
        named = "" if node.args.kwarg is None else node.args.kwarg.arg
        options = [arg.arg for arg in node.args.kwonlyargs]
        if named == "value":  # get_by
            for field in model.unique:
                yield _specialize(owner, node, model, [field])
        elif named == "values":  # update
            yield _specialize(owner, node, model, model.changeable, optional=model.changeable)
        elif named == "components" and "index" in options:
            yield _specialize(owner, node, model, model.partition, index="None")
            for index, fields in model.indexes.items():
                yield _specialize(owner, node, model, fields, index=f"_typing.Literal[{index!r}]")
            if "scan" in options:
                yield _specialize(owner, node, model, [], scan="_typing.Literal[True]")
        elif named == "components":
            yield _specialize(owner, node, model, model.key, optional=model.optional)
        else:
            yield _specialize(owner, node, model, [])
    yield _refuse(owner, signatures[-1], model)


def _is_generic(node: _Function) -> bool:
    """Whether a signature is for any one model: it takes a class or a key."""
    second = [*node.args.posonlyargs, *node.args.args][1]
    return ast.unparse(second.annotation or second) in (
        "type[M]",
        "type[Model]",
        "ModelKey[M]",
        "ModelKey[Any]",
    )


def _specialize(
    owner: str,
    node: _Function,
    model: _TypedModel,
    fields: Iterable[str],
    optional: Iterable[str] = (),
    **options: str,
) -> ast.stmt:
    """A signature for one model, with parameters for these fields; ``options`` are the types of options."""
    copy = _put_variable(owner, node, model)
    arguments = copy.args
    for arg in arguments.posonlyargs:
        if arg.annotation is not None and ast.unparse(arg.annotation) == "object":
            single = len(model.needed) == 1
            text = model.types[model.needed[0]] if single else "_typing.Mapping[str, _typing.Any]"
            arg.annotation = _parse(text)
    if arguments.kwarg is not None and not _holds_options(arguments.kwarg):
        arguments.vararg = arguments.kwarg = None
    for at, arg in enumerate(arguments.kwonlyargs):
        if arg.arg in options:
            arg.annotation = _parse(options[arg.arg])
            arguments.kw_defaults[at] = _parse("None") if options[arg.arg] == "None" else None
    for name in fields:
        arguments.kwonlyargs.append(ast.arg(name, _parse(model.types[name])))
        arguments.kw_defaults.append(ast.Constant(...) if name in optional else None)
    return copy


def _holds_options(keywords: ast.arg) -> bool:
    """Whether keywords are options, ``**options: Unpack[...]``, and not fields."""
    return keywords.annotation is not None and ast.unparse(keywords.annotation).startswith("Unpack[")


def _refuse(owner: str, node: _Function, model: _TypedModel) -> ast.stmt:
    """The signature that takes anything: a checker reports each call that uses it."""
    copy = _put_variable(owner, node, model)
    text = f"this does not fit {model.plain_name}, whose key is ({model.show(model.key)})"
    if node.name == "get_by":
        text = f"this does not fit {model.plain_name}, whose unique fields are ({model.show(model.unique)})"
    elif node.name == "update":
        text = f"this does not fit {model.plain_name}, whose fields are ({model.show(model.changeable)})"
    elif "index" in [arg.arg for arg in node.args.kwonlyargs] and model.indexes:
        text += f" and whose indexes are {', '.join(model.indexes)}"
    copy.decorator_list.append(_parse(f"_extensions.deprecated({text!r})"))
    anything = ast.parse("def f(*values: _typing.Any, **options: _typing.Any): ...").body[0]
    assert isinstance(anything, ast.FunctionDef)
    kept = [*copy.args.posonlyargs, *copy.args.args][: 1 if owner == "KeyMaker" else 2]
    copy.args = anything.args
    copy.args.posonlyargs = kept
    return copy


def _put_variable(owner: str, node: _Function, model: _TypedModel) -> _Function:
    """A copy of a signature, in which the model's variable stands for any model."""
    copy = deepcopy(node)
    copy.body = [_make_ellipsis()]
    if owner == "KeyMaker":
        first = [*copy.args.posonlyargs, *copy.args.args][0]
        first.annotation = _parse("KeyMaker[M_co]")
    for each in ast.walk(copy):
        if isinstance(each, ast.Name) and each.id in ("M", "M_co", "Model"):
            each.id = model.variable
    return copy


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
