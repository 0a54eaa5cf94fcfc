"""Write the reference pages from the docstrings and signatures of the public names, and from the commands' help.

``python scripts/reference.py`` writes ``docs/reference/*.md``; ``--check`` writes nothing and exits with 1 if a page
differs from what it would write. The pages depend only on the source: they have no dates, versions or addresses.

Public modules are those that the docstring of the package names; there is no other list. Public names are those in
their ``__all__``. A class shows its public members, and those of bases that are not public themselves; members of a
public base are links. Members marked with ``@internal`` are left out, and a constructor so marked is not shown.
Signatures come from the source text, so that overloads and annotations are those that type checkers see.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import inspect
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_args, get_origin, is_typeddict

import click

import holdall
from holdall import core, errors
from holdall.cli.program import program

PUBLIC = ("holdall", *sorted(re.findall(r"`(holdall\.[\w.]+)`", holdall.__doc__ or "")))
"""The modules whose ``__all__`` is public: each has a page. Everything else may change without notice."""
PAGES = {name: f"{name.removeprefix('holdall.').replace('.', '-')}.md" for name in PUBLIC}
COMMANDS = "cli.md"
INDEX = "index.md"
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
NOTE = "<!-- Written by scripts/reference.py from the docstrings. Change those, not this page. -->"
WIDTH = 100
LINE = 80
VERSION = "The version of the package, as text."  # a plain string cannot carry a docstring
FAMILIES = (errors.HoldallError, core.Node, core.Request)
"""Bases of many classes; a class does not list again what it inherits from them."""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    options.add_argument("--check", action="store_true", help="only report whether the pages are current")
    check = options.parse_args().check
    written = pages()
    stale = [name for name, text in written.items() if _on_disk(name) != text]
    if check:
        for name in stale:
            print(f"docs/reference/{name} is stale\nhint: run python scripts/reference.py", file=sys.stderr)
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in written.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{len(stale)} of {len(written)} reference pages rewritten")
    return 0


def pages() -> dict[str, str]:
    """The text of every page, by file name."""
    modules = {file: page(importlib.import_module(name)) for name, file in PAGES.items()}
    return {INDEX: index_page(), **modules, COMMANDS: command_page()}


def public_names(module: ModuleType) -> list[str]:
    """The names that a module exports, in its own order."""
    return list(getattr(module, "__all__", ()))


def documentation(module: ModuleType, name: str) -> str:
    """The docstring of a public name; for a type alias, the text under its definition. Empty if it has none."""
    if name == "__version__":
        return VERSION
    found = getattr(module, name)
    if inspect.ismodule(found) or inspect.isclass(found) or inspect.isroutine(found):
        return inspect.cleandoc(found.__doc__ or "") if _is_own_docstring(found) else ""
    return _text_below(_tree(_home(module, name)).body, name)


# --- pages ----------------------------------------------------------------------------------------------


def index_page() -> str:
    """The page that links to all others: each module with its first sentence and its names."""
    parts = [NOTE, "# Reference", "Everything public, by module. [The command line](cli.md) has a page, too."]
    for module in map(importlib.import_module, PUBLIC):
        file = PAGES[module.__name__]
        headed = headings(module)
        names = " · ".join(f"[`{name}`]({file}#{slug(headed[name])})" for name in public_names(module))
        sentence = _first_sentence(inspect.getdoc(module) or "")
        parts += [f"## [`{module.__name__}`]({file})", sentence, names]
    return "\n\n".join(parts) + "\n"


@cache
def page(module: ModuleType) -> str:
    """The page of one module."""
    names = public_names(module)
    headed = headings(module)
    parts = [NOTE, f"# `{module.__name__}`", _markdown(inspect.getdoc(module) or "", module)]
    links = {name: f"[`{name}`](#{slug(headed[name])})" for name in names}
    if module is errors:
        parts.append("\n".join(error_tree(errors.HoldallError, links)))
        links = {name: link for name, link in links.items() if link not in parts[-1]}
    parts.append(" · ".join(links.values()))
    for name in names:
        parts.append(f"## {headed[name]}")
        parts.extend(_entry(module, name))
    return "\n\n".join(part for part in parts if part) + "\n"


@cache
def headings(module: ModuleType) -> dict[str, str]:
    """The heading of each name; the kind tells a function ``path`` from a class ``Path``, because links ignore case."""
    taken: Counter[str] = Counter()
    found = {}
    for name in public_names(module):
        taken[name.lower()] += 1
        kind = "function" if inspect.isroutine(getattr(module, name)) else "value"
        found[name] = f"{name} ({kind})" if taken[name.lower()] > 1 else name
    return found


def slug(heading: str) -> str:
    """A heading's anchor, as Markdown readers make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def error_tree(root: type, links: dict[str, str], depth: int = 0) -> Iterator[str]:
    """A list item for an error and for each of its subclasses: the builtin bases, and the first sentence."""
    builtins = ", ".join(f"`{base.__name__}`" for base in root.__bases__ if base.__module__ == "builtins")
    first = re.split(r"(?<=[.:;]) ", inspect.cleandoc(root.__doc__ or "").partition("\n")[0])[0]
    also = f" ({builtins})" if builtins else ""
    retry = " *Retryable.*" if vars(root).get("retryable") else ""
    yield f"{'  ' * depth}- {links[root.__name__]}{also}: {first.rstrip('.:;')}.{retry}"
    for below in (getattr(errors, name) for name in links):
        if root in below.__bases__:
            yield from error_tree(below, links, depth + 1)


def command_page() -> str:
    """The page of the command line: the help of each command."""
    commands = dict(commands_below("holdall", program))
    links = (f"[`{name}`](#{name.replace(' ', '-')})" for name in commands)
    parts = [NOTE, "# The command line", "What each command prints for `--help`.", " · ".join(links)]
    for name, command in commands.items():
        parts += [f"## {name}", _fence(help_text(name, command))]
    return "\n\n".join(parts) + "\n"


def commands_below(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """A command and all its subcommands, by the words that a user types."""
    yield name, command
    if isinstance(command, click.Group):
        for word in sorted(command.commands):
            yield from commands_below(f"{name} {word}", command.commands[word])


def help_text(name: str, command: click.Command) -> str:
    """The help of a command, with the same width on every terminal."""
    context = click.Context(
        command,
        info_name=name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        **program.context_settings,
    )
    return command.get_help(context)


# --- entries --------------------------------------------------------------------------------------------


def _entry(module: ModuleType, name: str) -> Iterator[str]:
    found = getattr(module, name)
    home, its_name = _place(found) or (module.__name__, name)
    if home != module.__name__:  # documented once
        kind = "class " if inspect.isclass(found) else ""
        yield _fence(f"{kind}{name}")
        yield _markdown(documentation(module, name).partition("\n\n")[0], module)
        yield f"This is [`{home}.{its_name}`]({_link(home, its_name)}), documented there."
    elif inspect.isclass(found):
        yield _fence(_class_head(name, found))
        yield _markdown(documentation(module, name), module, found)
        yield from _error_facts(found)
        yield from _members(module, name, found)
    elif inspect.isroutine(found):
        source = _module_of(found)
        yield _fence(_function_text(name, _functions(_tree(source).body, found.__name__), source))
        yield _markdown(documentation(module, name), module)
    else:
        yield _fence(_definition(module, name))
        yield _markdown(documentation(module, name), module)


def _class_head(name: str, found: type) -> str:
    fields = _fields(found)
    if is_typeddict(found):
        return "\n".join([f"class {name}(TypedDict, total={found.__total__}):", *fields.values()])  # type: ignore[attr-defined]
    bases = [_base(base) for base in vars(found).get("__orig_bases__", found.__bases__) if _is_shown(base)]
    head = f"class {name}" + (f"({', '.join(bases)})" if bases else "")
    if fields:
        note = "@dataclass\n" if dataclasses.is_dataclass(found) else ""
        text = "\n".join([f"{note}{head}:", *fields.values()])
        return text + _aliases(text, _module_of(found))
    init = _constructor(found)
    if init is None:
        return head
    return f"{head}\n\n" + _function_text(name, *init, prefix="")


def _is_shown(base: Any) -> bool:
    origin = get_origin(base) or base
    if origin is object:
        return False
    return not getattr(origin, "__module__", "").startswith("holdall") or _place(origin) is not None


def _fields(found: type) -> dict[str, str]:
    """The public fields of a dataclass, a named tuple or a typed dictionary, as source text."""
    if dataclasses.is_dataclass(found):
        names: Iterable[str] = [each.name for each in dataclasses.fields(found)]
    elif issubclass(found, tuple) and hasattr(found, "_fields"):
        names = found._fields
    elif is_typeddict(found):
        names = found.__annotations__
    else:
        return {}
    written = {}
    for kind in reversed(found.__mro__ if not is_typeddict(found) else _find_typed_dicts(found)):
        if kind.__module__.startswith("holdall"):
            for node in _statements(_class_node(kind).body):
                if isinstance(node, ast.AnnAssign) and _text(node.target) in names:
                    default = f" = {_value(node.value, _module_of(kind))}" if node.value else ""
                    default = re.sub(r"^ = field\(default=(.*)\)$", r" = \1", default)
                    default = re.sub(r"^ = field\(default_factory=(\w+)\)$", r" = \1()", default)
                    name = _text(node.target)
                    written[name] = f"    {name}: {_text(node.annotation)}{default}"
    return {name: written[name] for name in names if not name.startswith("_")}


def _find_typed_dicts(found: Any) -> list[Any]:
    """A typed dictionary and its bases, which its method resolution order lacks."""
    module = _module_of(found)
    names = [base.id for base in _class_node(found).bases if isinstance(base, ast.Name)]
    bases = [getattr(_home(module, name), name) for name in names]
    return [found, *(each for base in bases if is_typeddict(base) for each in _find_typed_dicts(base))]


def _base(base: Any) -> str:
    """A base class as source text, with its type arguments."""
    if isinstance(base, list):  # the parameters of a callable
        return f"[{', '.join(map(_base, base))}]"
    origin = get_origin(base) or base
    if not hasattr(origin, "__name__"):
        return "..." if origin is Ellipsis else str(inspect.formatannotation(base)).removeprefix("~")
    if origin is base:
        return str(origin.__name__)
    return f"{origin.__name__}[{', '.join(_base(argument) for argument in get_args(base))}]"


def _error_facts(found: type) -> Iterator[str]:
    code = vars(found).get("code")
    if isinstance(code, str) and issubclass(found, Exception):
        yield f"Its code is [`{code}`](../errors.md#{code})."


# --- members --------------------------------------------------------------------------------------------


class Member(NamedTuple):
    """A public attribute or method of a class, with the class that defines it and its definitions in the source."""

    name: str
    kind: str
    home: type
    functions: list[Function]
    attribute: ast.Assign | ast.AnnAssign | None = None
    source: ModuleType | None = None  # the module of the functions, if it is not the class's

    @property
    def heading(self) -> str:
        """Its name, with parentheses if it is called."""
        return f"{self.name}()" if self.kind == "method" else self.name


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _members(module: ModuleType, owner: str, found: type) -> Iterator[str]:
    if issubclass(found, Enum):
        body = _class_node(found).body
        yield "\n".join(
            f"- `{member.name}`: {_markdown(_text_below(body, member.name), module)}" for member in found
        )
    notes = _field_notes(found)
    if notes:
        yield "\n".join(f"- `{name}`: {_markdown(note, module, found)}" for name, note in notes.items())
    own, inherited = _own_and_inherited(found)
    for member in own.values():
        yield f"### {owner}.{member.heading}"
        if member.kind == "method":
            yield _fence(
                _function_text(member.name, member.functions, member.source or _module_of(member.home))
            )
        else:
            text = _attribute_text(member)
            yield _fence(text + _aliases(text, _module_of(member.home)))
        yield _markdown(_member_documentation(found, member), module, found)
    for base, members in inherited.items():
        place = _place(base)
        assert place is not None
        names = " · ".join(
            f"[`{each.heading}`]({_link(*place, each.heading, here=module)})" for each in members
        )
        yield f"Inherited from [`{place[1]}`]({_link(*place, here=module)}): {names}"


def _field_notes(found: type) -> dict[str, str]:
    """The docstrings of a class's fields."""
    notes = {}
    for name in _fields(found):
        for kind in _find_typed_dicts(found) if is_typeddict(found) else found.__mro__:
            if kind.__module__.startswith("holdall") and name in vars(kind).get("__annotations__", {}):
                note = _text_below(_statements(_class_node(kind).body), name)
                if note:
                    notes[name] = note
                break
    return notes


@cache
def _own_and_inherited(found: Any) -> tuple[dict[str, Member], dict[type, list[Member]]]:
    """The members that a class documents itself, and those that it inherits from public bases."""
    if is_typeddict(found):
        return {}, {}
    bases = [base for base in found.__mro__[1:] if _place(base) is not None]
    private = [
        base
        for base in found.__mro__[1:]
        if base.__module__.partition(".")[0] == "holdall"
        and base not in bases
        and not any(issubclass(public, base) for public in bases)
    ]
    own: dict[str, Member] = {}
    for kind in (*reversed(private), found):
        for name, member in _class_members(kind).items():
            if not own.get(name) or member.attribute is None:
                if kind is not found:
                    own.pop(
                        name, None
                    )  # among the private bases, the last definition is the one with its neighbours
                own[name] = member
    if issubclass(found, Exception) and "__init__" not in vars(found):
        own = {name: member for name, member in own.items() if member.home is found}
    inherited: dict[type, list[Member]] = {}
    seen = set(own)
    for base in bases:
        if base not in FAMILIES:
            theirs = [each for name, each in _own_and_inherited(base)[0].items() if name not in seen]
            seen |= {each.name for each in theirs}
            if theirs:
                inherited[base] = theirs
    shown = {
        name: member for name, member in own.items() if not any(_is_same(base, member) for base in bases)
    }
    return shown, inherited


def _is_same(base: type, member: Member) -> bool:
    """Whether a public base documents this member and the class only implements it."""
    return base in FAMILIES and member.name in _own_and_inherited(base)[0]


@cache
def _class_members(kind: type) -> dict[str, Member]:
    """The public members that one class defines, in the order of its source."""
    body = _class_node(kind).body
    fields = _fields(kind)
    found: dict[str, Member] = {}
    for node in _statements(body):
        if isinstance(node, Function) and not node.name.startswith("_") and node.name not in found:
            functions = _functions(body, node.name)
            marks = {_text(mark) for each in functions for mark in each.decorator_list}
            if "internal" not in marks and not any(mark.endswith(".setter") for mark in marks):
                is_property = bool(marks & {"property", "cached_property"})
                found[node.name] = Member(node.name, "property" if is_property else "method", kind, functions)
        elif isinstance(node, ast.Assign) and (member := _find_bound_flow(kind, node)):
            found[member.name] = member
    for name, attribute in _attributes(body):
        if not name.startswith("_") and name not in fields and name not in found:
            found[name] = Member(name, "attribute", kind, [], attribute=attribute)
    return found


def _find_bound_flow(kind: type, node: ast.Assign) -> Member | None:
    """The method that ``name = blocking(flow)`` makes: the flow without its first parameter."""
    if not (isinstance(node.value, ast.Call) and _text(node.value.func) in ("blocking", "awaiting")):
        return None
    flow = eval(ast.unparse(node.value.args[0]), vars(_module_of(kind)))
    (written,) = _functions(_tree(_module_of(flow)).body, flow.__name__)
    make = ast.AsyncFunctionDef if _text(node.value.func) == "awaiting" else ast.FunctionDef
    plain = {field: getattr(written, field) for field in written._fields}
    arguments = written.args
    first = [*arguments.posonlyargs, *arguments.args][0].arg
    rest = {
        "posonlyargs": [each for each in arguments.posonlyargs if each.arg != first],
        "args": [each for each in arguments.args if each.arg != first],
    }
    plain["args"] = ast.arguments(
        **{**{field: getattr(arguments, field) for field in arguments._fields}, **rest}
    )
    return Member(_text(node.targets[0]), "method", kind, [make(**plain)], source=_module_of(flow))


def _attributes(body: list[ast.stmt]) -> Iterator[tuple[str, ast.Assign | ast.AnnAssign]]:
    """The attributes of a class, declared in its body or its constructor, that have a docstring below them."""
    blocks = [list(_statements(body))]
    blocks += [
        list(each.body) for each in blocks[0] if isinstance(each, Function) and each.name == "__init__"
    ]
    for block in blocks:
        for node, below in pairwise(block):
            if isinstance(node, ast.Assign | ast.AnnAssign) and _is_text(below):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                yield _text(target).removeprefix("self."), node


def _member_documentation(found: type, member: Member) -> str:
    if member.attribute is not None:
        name = member.name
        for block in (each for each in ast.walk(_class_node(member.home)) if hasattr(each, "body")):
            if isinstance(block, ast.ClassDef | Function) and _has_assignment(block.body, name):
                return _text_below(block.body, name)
    text = next((ast.get_docstring(each) for each in member.functions if ast.get_docstring(each)), None)
    return text or inspect.getdoc(getattr(found, member.name)) or ""


def _has_assignment(body: list[ast.stmt], name: str) -> bool:
    try:
        return bool(_text_below(body, name))
    except LookupError:
        return False


def _constructor(found: type) -> tuple[list[Function], ModuleType] | None:
    """The constructor that users call; None if users do not call it, or if it takes no arguments."""
    if issubclass(found, Enum) or getattr(found, "_is_protocol", False):
        return None
    if issubclass(found, Exception) and "__init__" not in vars(found):
        return None
    for kind in found.__mro__:
        if kind is object or not kind.__module__.startswith("holdall"):
            return None
        for name in ("__init__", "__new__"):
            functions = _functions(_class_node(kind).body, name)
            if functions:
                marks = {_text(mark) for each in functions for mark in each.decorator_list}
                return None if "internal" in marks else (functions, _module_of(kind))
    return None


# --- signatures -----------------------------------------------------------------------------------------


def _functions(body: list[ast.stmt], name: str) -> list[Function]:
    """The definitions of a function: its overloads if any, then the function itself."""
    found = [node for node in _statements(body) if isinstance(node, Function) and node.name == name]
    marked = [each for each in found if any(_text(mark) == "overload" for mark in each.decorator_list)]
    return [*marked, *(each for each in found if each not in marked)]


def _function_text(
    name: str, functions: list[Function], module: ModuleType, prefix: str | None = None
) -> str:
    """The signatures of a function, without ``self``; if it has overloads, theirs."""
    overloads = [each for each in functions if any(_text(mark) == "overload" for mark in each.decorator_list)]
    lines = []
    for each in overloads or functions[:1]:
        marks = {_text(mark) for mark in each.decorator_list}
        head = (
            ("async def " if isinstance(each, ast.AsyncFunctionDef) else "def ") if prefix is None else prefix
        )
        is_method = bool(each.args.posonlyargs or each.args.args) and "staticmethod" not in marks
        first = [*each.args.posonlyargs, *each.args.args][:1]
        bound = is_method and first[0].arg in ("self", "cls")
        text = head + name + _signature(each, module, bound=bound, returns=prefix is None)
        lines += ["@classmethod"] * ("classmethod" in marks) + ["@staticmethod"] * ("staticmethod" in marks)
        lines += ["@asynccontextmanager"] * ("asynccontextmanager" in marks)
        lines += ["@contextmanager"] * ("contextmanager" in marks)
        lines.append(text)
    dicts = [kind for each in functions for kind in _keyword_dicts(each.args.kwarg, module)]
    return "\n".join(lines) + _aliases("\n".join(lines), module, *map(_module_of, dicts))


def _aliases(text: str, *modules: ModuleType) -> str:
    """The definitions of the type aliases in a signature that have no entry."""
    found: dict[str, str] = {}
    names = type_names(text)
    for name in names:  # the list grows, because an alias can name others
        if any(name in public_names(importlib.import_module(each)) for each in PUBLIC):
            continue
        for home in [_home(module, name) for module in modules]:
            with suppress(LookupError):
                node, _ = _assignment(_statements(_tree(home).body), name)
                value = _text(getattr(node, "value", None) or ast.Constant(None))
                if not value.startswith(("TypeVar(", "TypeVarTuple(", "ParamSpec(")):
                    found[name] = f"{name} = {value}"
                    names += [each for each in type_names(value) if each not in names]
                    modules = (*modules, home)
    return "\n\n" + "\n".join(found.values()) if found else ""


def type_names(text: str) -> list[str]:
    """The names in a signature that may be types, each once."""
    return list(dict.fromkeys(re.findall(r"\b[A-Z]\w*[a-z]\w*", re.sub(r'"[^"]*"', "", text))))


def _signature(function: Function, module: ModuleType, *, bound: bool, returns: bool) -> str:
    """The signature as source text, with one line per parameter if it is long."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + given.defaults
    parts = [_parameter(each, default, module) for each, default in zip(plain, defaults, strict=True)]
    if given.posonlyargs and len(given.posonlyargs) > bound:
        parts.insert(len(given.posonlyargs), "/")
    parts = parts[1 if bound else 0 :]
    expanded = list(_expand(given.kwarg, module)) if given.kwarg else []
    if given.vararg:
        parts.append(f"*{_parameter(given.vararg, None, module)}")
    elif given.kwonlyargs or expanded:
        parts.append("*")
    for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        parts.append(_parameter(each, value, module))
    if given.kwarg:
        parts += expanded or [f"**{_parameter(given.kwarg, None, module)}"]
    arrow = f" -> {_text(function.returns)}" if returns and function.returns else ""
    line = f"({', '.join(parts)}){arrow}"
    if len(line) <= LINE:
        return line
    return "(\n" + "".join(f"    {part},\n" for part in parts) + f"){arrow}"


def _parameter(parameter: ast.arg, default: ast.expr | None, module: ModuleType) -> str:
    typed = f": {_text(parameter.annotation)}" if parameter.annotation else ""
    if default is None:
        return f"{parameter.arg}{typed}"
    equals = " = " if typed else "="
    return f"{parameter.arg}{typed}{equals}{_value(default, module)}"


def _expand(keywords: ast.arg, module: ModuleType) -> Iterator[str]:
    """The keywords that a typed dictionary stands for: ``**settings: Unpack[Arguments]``."""
    for arguments in _keyword_dicts(keywords, module)[:1]:
        for name, line in _fields(arguments).items():
            yield line.strip() if name in arguments.__required_keys__ else f"{line.strip()} = ..."


def _keyword_dicts(keywords: ast.arg | None, module: ModuleType) -> list[Any]:
    """The typed dictionary of ``**keywords``, and its bases."""
    annotation = _text(keywords.annotation) if keywords and keywords.annotation else ""
    match = re.fullmatch(r"Unpack\[(\w+)\]", annotation)
    return _find_typed_dicts(getattr(_home(module, match[1]), match[1])) if match else []


def _attribute_text(member: Member) -> str:
    if member.attribute is not None:
        annotation = getattr(member.attribute, "annotation", None)
        return f"{member.name}: {_text(annotation)}" if annotation else member.name
    returns = member.functions[0].returns
    return f"{member.name}: {_text(returns)}" if returns else member.name


def _text(node: ast.AST) -> str:
    """The source text on one line; a quoted annotation loses its quotes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return _quote(re.sub(r",\]", "]", ast.unparse(node)))


def _quote(text: str) -> str:
    """Use double quotes, as Holdall's source does."""
    return text if '"' in text else text.replace("'", '"')


def _value(node: ast.expr, module: ModuleType) -> str:
    """The source text of a default; for a constant of the module, its value."""
    if isinstance(node, ast.Name) and (node.id.isupper() or node.id.startswith("_")):
        home = _home(module, node.id)
        value = getattr(home, node.id, None)
        if isinstance(value, str | int | float | tuple):
            return _quote(repr(value))
        if not isinstance(value, timedelta):
            return "..."
        written = getattr(_assignment(_statements(_tree(home).body), node.id)[0], "value", None)
        return _text(written) if written else "..."
    if isinstance(node, ast.Tuple) and any(isinstance(each, ast.Name) for each in node.elts):
        return f"({', '.join(_value(each, module) for each in node.elts)}{',' * (len(node.elts) == 1)})"
    return _quote(ast.unparse(node))


# --- places ---------------------------------------------------------------------------------------------


@cache
def _places() -> dict[int, tuple[str, str]]:
    """Where each public class and function is documented: on the page with the shortest name."""
    found: dict[int, tuple[str, str]] = {}
    for module in map(importlib.import_module, sorted(PUBLIC, key=lambda name: (name.count("."), name))):
        for name in public_names(module):
            member = getattr(module, name)
            if inspect.isclass(member) or inspect.isroutine(member):
                found.setdefault(id(member), (module.__name__, name))
    return found


def _place(found: Any) -> tuple[str, str] | None:
    return _places().get(id(found))


def _link(home: str, name: str, member: str = "", *, here: ModuleType | None = None) -> str:
    heading = headings(importlib.import_module(home))[name]
    file = "" if here is not None and here.__name__ == home else PAGES[home]
    return f"{file}#{slug(f'{heading}.{member}' if member else heading)}"


def _module_of(found: Any) -> ModuleType:
    """The module that has the source of a class or function."""
    return _home(sys.modules[found.__module__], found.__qualname__.partition(".")[0])


@cache
def _class_node(found: type) -> ast.ClassDef:
    body = _tree(_module_of(found)).body
    node: ast.ClassDef | None = None
    for name in found.__qualname__.split("."):
        nodes = [each for each in _statements(body) if isinstance(each, ast.ClassDef) and each.name == name]
        assert nodes, f"{found} has no source"
        node = nodes[0]
        body = node.body
    assert node is not None
    return node


def _statements(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    """The statements of a body, and those that only type checkers see."""
    found: list[ast.stmt] = []
    for node in body:
        found += _statements(node.body) if isinstance(node, ast.If) else [node]
    return found


def _is_own_docstring(found: Any) -> bool:
    """Whether a class has a docstring; Python gives a dataclass without one its signature, which documents nothing."""
    given = dataclasses.is_dataclass(found) and found.__doc__ is not None
    return not (given and found.__doc__.startswith(getattr(found, "__name__", "") + "("))


@cache
def _home(module: ModuleType, name: str) -> ModuleType:
    """The module that defines a name, found by following imports."""
    if any(getattr(node, "name", None) == name for node in _statements(_tree(module).body)):
        return module
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdall"):
            assert node.module
            names = {alias.name for alias in node.names}
            if name in names:
                return _home(importlib.import_module(node.module), name)
            if "*" in names and name in public_names(importlib.import_module(node.module)):
                return importlib.import_module(node.module)
    return module


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _assignment(body: list[ast.stmt], name: str) -> tuple[ast.stmt, ast.stmt | None]:
    """The statement that defines a name, and the one after it."""
    for place, node in enumerate(body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(name in (getattr(each, "id", None), getattr(each, "attr", None)) for each in targets):
            return node, body[place + 1] if place + 1 < len(body) else None
    raise LookupError(f"{name} is not defined here")


def _is_text(node: ast.stmt | None) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _text_below(body: list[ast.stmt], name: str) -> str:
    _, below = _assignment(body, name)
    if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
        return inspect.cleandoc(str(below.value.value))
    return ""


def _definition(module: ModuleType, name: str) -> str:
    if name == "__version__":
        return "__version__: str"
    node, _ = _assignment(_tree(_home(module, name)).body, name)
    value = getattr(node, "value", None)
    return name if value is None else f"{name} = {_text(value)}"


# --- text -----------------------------------------------------------------------------------------------


def _markdown(docstring: str, module: ModuleType, owner: type | None = None) -> str:
    """A docstring as Markdown: a literal block after ``::`` becomes a fenced one, and public names become links."""
    out: list[str] = []
    for part in re.split(r"\n{2,}(?=\S)", docstring):
        opening, literal, block = part.partition("::\n\n")
        if not literal:
            out.append(_add_links(part, module, owner))
            continue
        if opening.strip():
            out.append(_add_links(f"{opening}:", module, owner))
        out.append(_fence(textwrap.dedent(block)))
    return "\n\n".join(out)


def _add_links(text: str, module: ModuleType, owner: type | None) -> str:
    def link(match: re.Match[str]) -> str:
        target = _target(match[1], module, owner)
        return f"[{match[0]}]({target})" if target else match[0]

    return re.sub(r"(?<!`)`([A-Za-z_][\w.]*)`(?!`)", link, text)


def _target(name: str, module: ModuleType, owner: type | None) -> str | None:
    """The link for a name in a docstring: a member of the same class, a name of the page, or a public name."""
    if name in PAGES:
        return None if name == module.__name__ else PAGES[name]
    if owner is not None and (place := _place(owner)):
        own, inherited = _own_and_inherited(owner)
        if name in own:
            return _link(*place, own[name].heading, here=module)
        for base, members in inherited.items():
            home = _place(base)
            for member in members:
                if member.name == name and home:
                    return _link(*home, member.heading, here=module)
        if name == place[1]:
            return None
    home_name, _, last = name.rpartition(".")
    for candidate in (module.__name__, home_name, *PUBLIC):
        if candidate in PAGES and last in public_names(importlib.import_module(candidate)):
            found = getattr(importlib.import_module(candidate), last)
            if not home_name or home_name == candidate:
                return _link(*(_place(found) or (candidate, last)), here=module)
    for candidate in PUBLIC:  # Class.member
        kind = getattr(importlib.import_module(candidate), home_name, None)
        if inspect.isclass(kind) and (place := _place(kind)):
            known: dict[str, Member] = _own_and_inherited(
                getattr(importlib.import_module(place[0]), place[1])
            )[0]
            if last in known:
                return _link(*place, known[last].heading, here=module)
    return None


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", inspect.cleandoc(text))[0].replace("\n", " ")


def _fence(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def _on_disk(name: str) -> str | None:
    file = FOLDER / name
    return file.read_text(encoding="utf-8") if file.exists() else None


if __name__ == "__main__":
    sys.exit(main())
