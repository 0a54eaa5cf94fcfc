"""Write the reference pages from the docstrings and signatures of the public names, and from the commands' help.

``python scripts/reference.py`` writes ``docs/reference/*.md``; ``--check`` writes nothing and exits with 1 when a
page is not what it would write. The pages depend on the source alone: no dates, no versions, no addresses.
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
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin, is_typeddict

import click

from holdall import core, errors
from holdall.cli.program import program

PUBLIC = (
    "holdall",
    "holdall.archive",
    "holdall.artifacts",
    "holdall.attachments",
    "holdall.backends.dax",
    "holdall.backends.disk",
    "holdall.backends.embedded",
    "holdall.backends.memory",
    "holdall.core",
    "holdall.core.objects",
    "holdall.errors",
    "holdall.files",
    "holdall.jobs",
    "holdall.models",
    "holdall.scope",
    "holdall.tables",
    "holdall.testing",
    "holdall.transactions",
    "holdall.web",
    "holdall.web.django",
    "holdall.web.fastapi",
    "holdall.web.flask",
    "holdall.web.wsgi",
    "holdall.worker",
)
"""The modules whose ``__all__`` is public: each has a page. Everything else may change without notice."""
PAGES = {name: f"{name.removeprefix('holdall.').replace('.', '-')}.md" for name in PUBLIC}
COMMANDS = "cli.md"
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
NOTE = "<!-- Written by scripts/reference.py from the docstrings. Change those, not this page. -->"
WIDTH = 100
VERSION = "The version of the package, as text."  # a plain string cannot carry a docstring


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    options.add_argument("--check", action="store_true", help="only say whether the pages are current")
    check = options.parse_args().check
    stale = [name for name, text in pages().items() if _on_disk(name) != text]
    if check:
        for name in stale:
            print(f"docs/reference/{name} is stale\nhint: run python scripts/reference.py", file=sys.stderr)
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    written = pages()
    for name, text in written.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{len(stale)} of {len(written)} reference pages written anew")
    return 0


def pages() -> dict[str, str]:
    """Every page as it should be: file name to text."""
    modules = {file: page(importlib.import_module(name)) for name, file in PAGES.items()}
    return {**modules, COMMANDS: command_page()}


def public_names(module: ModuleType) -> list[str]:
    """The names a module promises, in its own order."""
    return list(getattr(module, "__all__", ()))


def documentation(module: ModuleType, name: str) -> str:
    """The docstring of a public name; for a type alias, the text under its definition. Empty if it has none."""
    if name == "__version__":
        return VERSION
    found = getattr(module, name)
    if inspect.ismodule(found) or inspect.isclass(found) or inspect.isroutine(found):
        return inspect.cleandoc(found.__doc__ or "") if _is_own_docstring(found) else ""
    return _text_below(_tree(_home(module, name)).body, name)


def page(module: ModuleType) -> str:
    """One module's page."""
    names = public_names(module)
    parts = [NOTE, f"# `{module.__name__}`", _markdown(inspect.getdoc(module) or "")]
    links = {name: f"[`{name}`](#{anchor})" for name, anchor in anchors(names).items()}
    if module is errors:
        parts.append("\n".join(error_tree(errors.HoldallError, links)))
        links = {name: link for name, link in links.items() if link not in parts[-1]}
    parts.append(" · ".join(links.values()))
    for name in names:
        parts.extend(_entry(module, name))
    return "\n\n".join(part for part in parts if part) + "\n"


def error_tree(root: type, links: dict[str, str], depth: int = 0) -> Iterator[str]:
    """A list item for an error, and one for each error below it: its builtin bases, and its first sentence."""
    builtins = ", ".join(f"`{base.__name__}`" for base in root.__bases__ if base.__module__ == "builtins")
    first = re.split(r"(?<=[.:;]) ", inspect.cleandoc(root.__doc__ or "").partition("\n")[0])[0]
    also = f" ({builtins})" if builtins else ""
    retry = " *Retryable.*" if vars(root).get("retryable") else ""
    yield f"{'  ' * depth}- {links[root.__name__]}{also}: {first.rstrip('.:;')}.{retry}"
    for below in (getattr(errors, name) for name in links):
        if root in below.__bases__:
            yield from error_tree(below, links, depth + 1)


def anchors(names: list[str]) -> dict[str, str]:
    """Where on its page each name is: a second `path` beside a `Path` is numbered, as Markdown readers do."""
    taken: Counter[str] = Counter()
    places = {}
    for name in names:
        taken[name.lower()] += 1
        again = taken[name.lower()] - 1
        places[name] = f"{name.lower()}-{again}" if again else name.lower()
    return places


def command_page() -> str:
    """The page of the command line: what each command says when asked for help."""
    commands = dict(commands_below("holdall", program))
    links = (f"[`{name}`](#{name.replace(' ', '-')})" for name in commands)
    parts = [NOTE, "# The command line", "What each command says to `--help`.", " · ".join(links)]
    for name, command in commands.items():
        parts += [f"## {name}", _fenced(help_text(name, command))]
    return "\n\n".join(parts) + "\n"


def commands_below(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """A command and all that it contains, by the words one types."""
    yield name, command
    if isinstance(command, click.Group):
        for word in sorted(command.commands):
            yield from commands_below(f"{name} {word}", command.commands[word])


def help_text(name: str, command: click.Command) -> str:
    """A command's help, as wide on every terminal."""
    context = click.Context(
        command,
        info_name=name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    return command.get_help(context)


def _entry(module: ModuleType, name: str) -> Iterator[str]:
    found = getattr(module, name)
    yield f"## {name}"
    if inspect.isclass(found):
        yield _fenced(_class_head(name, found))
        yield _markdown(documentation(module, name))
        yield from _error_facts(found)
        yield from _members(name, found)
    elif inspect.isroutine(found):
        yield _fenced(_prefix(found) + name + _signature(found))
        yield _markdown(documentation(module, name))
    else:
        yield _fenced(_definition(module, name))
        yield _markdown(documentation(module, name))


def _class_head(name: str, found: type) -> str:
    if is_typeddict(found):
        hints = {each: getattr(hint, "__forward_arg__", hint) for each, hint in found.__annotations__.items()}
        fields = [f"    {each}: {hint}" for each, hint in hints.items()]
        return "\n".join([f"class {name}(TypedDict, total={found.__total__}):", *fields])  # type: ignore[attr-defined]
    bases = [_base(base) for base in vars(found).get("__orig_bases__", found.__bases__) if base is not object]
    head = f"class {name}" + (f"({', '.join(bases)})" if bases else "")
    silent = issubclass(found, Exception) and "__init__" not in vars(found)
    if issubclass(found, Enum) or getattr(found, "_is_protocol", False):
        return head
    if silent or found.__init__ is object.__init__:
        return head
    return f"{head}\n\n{name}{_signature(found)}"


def _base(base: Any) -> str:
    """A base class as one would write it, type arguments and all; for a private one, the public one behind it."""
    if isinstance(base, list):  # the parameters of a callable
        return f"[{', '.join(map(_base, base))}]"
    origin = get_origin(base) or base
    if not hasattr(origin, "__name__"):
        return "..." if origin is Ellipsis else _annotation(base)
    line = getattr(origin, "__mro__", (origin,))
    name = next(each.__name__ for each in line if not each.__name__.startswith("_"))
    if origin is base:
        return str(name)
    return f"{name}[{', '.join(_base(argument) for argument in get_args(base))}]"


def _error_facts(found: type) -> Iterator[str]:
    code = vars(found).get("code")
    if isinstance(code, str) and issubclass(found, Exception):
        yield f"Its code is [`{code}`](../errors.md#{code})."


def _members(owner: str, found: type) -> Iterator[str]:
    if issubclass(found, Enum):
        body = ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]
        assert isinstance(body, ast.ClassDef)
        yield "\n".join(f"- `{member.name}`: {_text_below(body.body, member.name)}" for member in found)
    members = {
        name: member for kind in reversed(_undocumented_line(found)) for name, member in vars(kind).items()
    }
    for name, member in members.items():
        if name.startswith("_") or any(name in vars(base) for base in _documented_bases(found)):
            continue
        if isinstance(member, property):
            kind, target = "property", member.fget
        elif isinstance(member, classmethod | staticmethod):
            kind, target = "method", member.__func__
        elif inspect.isfunction(member):
            kind, target = "method", member
        else:
            continue
        assert target is not None
        if kind == "property":
            yield f"### {owner}.{name}"
            yield _fenced(f"{name}: {_annotation(inspect.signature(target).return_annotation)}")
        else:
            yield f"### {owner}.{name}()"
            yield _fenced(
                _prefix(target) + name + _signature(target, method=not isinstance(member, staticmethod))
            )
        yield _markdown(inspect.getdoc(target) or "")


def _undocumented_line(found: type) -> list[type]:
    """A class, and those of its bases that are ours and have no entry of their own."""
    ours = (base for base in found.__mro__[1:] if base.__module__.partition(".")[0] == "holdall")
    return [found, *(base for base in ours if base not in _public_classes())]


@cache
def _public_classes() -> list[Any]:
    modules = [importlib.import_module(name) for name in PUBLIC]
    return [getattr(module, name) for module in modules for name in public_names(module)]


def _documented_bases(found: type) -> list[type]:
    """The bases of values whose members are documented once, with the base."""
    return [base for base in found.__mro__[1:] if base in (core.Node, core.Request)]


# --- signatures -----------------------------------------------------------------------------------------


def _prefix(function: Any) -> str:
    return "async def " if inspect.iscoroutinefunction(function) else "def "


def _signature(function: Any, *, method: bool = False) -> str:
    """As one would write it, without the quotes of postponed annotations; one line each when it is long."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1 if method else 0 :]
    parts: list[str] = []
    star = False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        parts.append(_parameter(parameter))
    returns = signature.return_annotation
    given = inspect.isclass(function) or returns is inspect.Signature.empty
    arrow = "" if given else f" -> {_annotation(returns)}"
    line = f"({', '.join(parts)}){arrow}"
    if len(line) <= 80:
        return line
    return "(\n" + "".join(f"    {part},\n" for part in parts) + f"){arrow}"


_STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def _parameter(parameter: inspect.Parameter) -> str:
    text = _STARS.get(parameter.kind, "") + parameter.name
    typed = parameter.annotation is not parameter.empty
    if typed:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        text += f" = {_default(parameter.default)}" if typed else f"={_default(parameter.default)}"
    return text


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else str(inspect.formatannotation(annotation))


def _default(default: Any) -> str:
    """A default's text; functions and the like by name, because their repr holds an address."""
    if inspect.isroutine(default) or inspect.isclass(default):
        return str(default.__qualname__)
    kind = type(default)
    if dataclasses.is_dataclass(default) and default == kind():
        return f"{kind.__name__}()"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(default))


# --- names that are not classes or functions ------------------------------------------------------------


def _is_own_docstring(found: Any) -> bool:
    """A dataclass without a docstring is given its signature as one; that documents nothing."""
    given = dataclasses.is_dataclass(found) and found.__doc__ is not None
    return not (given and found.__doc__.startswith(getattr(found, "__name__", "") + "("))


def _home(module: ModuleType, name: str) -> ModuleType:
    """The module in which a name is defined, following the imports of the one that shows it."""
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and any(a.name == name for a in node.names):
            return _home(importlib.import_module(node.module), name)
    return module


def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _assignment(body: list[ast.stmt], name: str) -> tuple[ast.stmt, ast.stmt | None]:
    """The statement that defines a name, and the one after it."""
    for place, node in enumerate(body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node, body[place + 1] if place + 1 < len(body) else None
    raise LookupError(f"{name} is not defined here")


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
    return name if value is None else f"{name} = {ast.unparse(value)}"


# --- text -----------------------------------------------------------------------------------------------


def _markdown(docstring: str) -> str:
    """A docstring as Markdown: a literal block after ``::`` becomes a fenced one, the rest stays."""
    out: list[str] = []
    for part in re.split(r"\n{2,}(?=\S)", docstring):
        opening, literal, block = part.partition("::\n\n")
        if not literal:
            out.append(part)
            continue
        if opening.strip():
            out.append(f"{opening}:")
        out.append(_fenced(textwrap.dedent(block)))
    return "\n\n".join(out)


def _fenced(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def _on_disk(name: str) -> str | None:
    file = FOLDER / name
    return file.read_text(encoding="utf-8") if file.exists() else None


if __name__ == "__main__":
    sys.exit(main())
