"""Values as source text: what Terraform's configuration language and TypeScript have in common. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


class Code(str):
    """An expression of the target language, written as it is."""

    __slots__ = ()


_WIDTH = 80
_HCL_ODD = re.compile(r'[\x00-\x1f\x7f"\\]')


def write_value(value: Any, *, hcl: bool) -> list[str]:
    """Return the lines of a value: a mapping, list, string, boolean or expression. Names of mappings are words."""
    if isinstance(value, Code):
        return [str(value)]
    if isinstance(value, str):
        return [quote_hcl(value) if hcl else json.dumps(value)]
    if isinstance(value, Mapping):
        label = "{} = " if hcl else "{}: "
        members = [_label(label.format(name), write_value(member, hcl=hcl)) for name, member in value.items()]
        return _enclose("{ ", members, " }", end="" if hcl else ",")
    if isinstance(value, list):
        return _enclose("[", [write_value(member, hcl=hcl) for member in value], "]", end=",")
    return [json.dumps(value)]


def _label(label: str, lines: list[str]) -> list[str]:
    return [f"{label}{lines[0]}", *lines[1:]]


def _enclose(opening: str, members: list[list[str]], closing: str, *, end: str) -> list[str]:
    """Return the members on one line if they fit, else below each other."""
    line = f"{opening}{', '.join(lines[0] for lines in members)}{closing}"
    if len(line) <= _WIDTH and all(len(lines) == 1 for lines in members):
        return [line]
    inner = [[*lines[:-1], f"{lines[-1]}{end}"] for lines in members]
    return [opening.strip(), *(f"  {line}" for lines in inner for line in lines), closing.strip()]


def quote_hcl(text: str) -> str:
    """Return a string of Terraform's language; nothing in it is evaluated."""
    escaped = _HCL_ODD.sub(lambda odd: f"\\{odd[0]}" if odd[0] in '"\\' else f"\\u{ord(odd[0]):04x}", text)
    return f'"{escaped}"'.replace("${", "$${").replace("%{", "%%{")
