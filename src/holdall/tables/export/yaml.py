"""YAML in block style, for documents of mappings, lists, strings, numbers and booleans. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z0-9_]+)*")
_ODD = re.compile(r"[^ -~]|[\"\\]")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def yaml_text(document: Mapping[str, Any]) -> str:
    """Return a document of mappings, lists, strings, numbers and booleans as YAML in block style."""
    return "".join(f"{line}\n" for line in _block(document))


def _block(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping) and part:
        for name, member in part.items():
            yield from _entry(f"{_scalar(name)}:", member)
    elif _is_list(part) and part:
        for member in part:
            first, *rest = _block(member)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(part)


def _entry(label: str, member: Any) -> Iterator[str]:
    if member and (isinstance(member, Mapping) or _is_list(member)):
        yield label
        yield from (f"  {line}" for line in _block(member))
    else:
        yield f"{label} {_scalar(member)}"


def _is_list(part: Any) -> bool:
    return isinstance(part, Sequence) and not isinstance(part, str)


def _scalar(part: Any) -> str:
    """Return a scalar that every YAML reader reads as the same value: in quotes, unless it is a plain word."""
    if not isinstance(part, str):
        return json.dumps(part)
    if _PLAIN.fullmatch(part) and part.lower() not in _WORDS:
        return part
    escaped = _ODD.sub(lambda odd: f"\\U{ord(odd[0]):08X}", part)
    return f'"{escaped}"'
