"""Values and conditions as they are typed: ``name=value``, ``name>=value``. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import click

from holdall.cli.output import format_json
from holdall.errors import InvalidFieldError

if TYPE_CHECKING:
    from holdall import Model, ModelKey
    from holdall.core import Attribute
    from holdall.models import Clause, Field

_PAIR = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_CONDITION = re.compile(r"([^=<>!^]+)(<=|>=|!=|\^=|=|<|>)(.*)", re.DOTALL)


def split_pairs(words: Iterable[str]) -> dict[str, str]:
    """Names and texts from words such as ``customer=ada``."""
    found: dict[str, str] = {}
    for word in words:
        match = _PAIR.fullmatch(word)
        if match is None:
            raise click.UsageError(f"{word!r} is not NAME=VALUE")
        if match[1] in found:
            raise click.UsageError(f"{match[1]} is given twice")
        found[match[1]] = match[2]
    return found


def split_condition(word: str) -> tuple[str, str, str]:
    """The name, the operator and the text of a condition such as ``quantity>=3``."""
    match = _CONDITION.fullmatch(word)
    if match is None:
        raise click.UsageError(f"{word!r} is not a condition; write NAME=VALUE, or use != < <= > >= or ^=")
    return match[1], match[2], match[3]


# --- by a model -------------------------------------------------------------------------------------------


def parse_fields(model: type[Model], texts: Mapping[str, str]) -> dict[str, Any]:
    """Typed values of fields."""
    from holdall.models import parse_text

    return {name: parse_text(find_field(model, name), text) for name, text in texts.items()}


def parse_key(model: type[Model], texts: Mapping[str, str]) -> ModelKey[Any]:
    """The key that was typed."""
    return model.key(**parse_fields(model, texts))


def find_field(model: type[Model], name: str) -> Field[Any]:
    """The field with this name; `InvalidFieldError` lists the others."""
    from holdall.models import Field

    found = getattr(model, name, None)
    if not isinstance(found, Field):
        names = [each for each in dir(model) if isinstance(getattr(model, each, None), Field)]
        raise InvalidFieldError(
            model.__name__, name, "the model has no such field", hint=f"the fields are: {', '.join(names)}"
        )
    return found


def parse_conditions(model: type[Model], words: Iterable[str]) -> Clause | None:
    """All conditions, joined with and; None if there are none."""
    clauses = [_parse_condition(model, *split_condition(word)) for word in words]
    return reduce(and_, clauses) if clauses else None


def _parse_condition(model: type[Model], name: str, operator: str, text: str) -> Clause:
    from holdall import col
    from holdall.models import parse_text

    field = find_field(model, name)
    column: Any = col(field)
    if operator == "^=":
        return column.begins_with(text)  # type: ignore[no-any-return]
    methods = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    return getattr(column, f"__{methods[operator]}__")(parse_text(field, text))  # type: ignore[no-any-return]


# --- as a table stores them -------------------------------------------------------------------------------


def parse_attribute(text: str, kind: str) -> Attribute:
    """A key attribute of a table, by its type: S, N or B (as ``0x`` and hexadecimal digits)."""
    from base64 import b64encode

    if kind != "B":
        return {kind: text}
    try:
        return {"B": b64encode(bytes.fromhex(text.removeprefix("0x"))).decode("ascii")}
    except ValueError:
        raise click.UsageError(f"{text!r} is not hexadecimal, as in 0x00ff") from None


def parse_json_value(text: str) -> Attribute:
    """Any other attribute: JSON such as 3, true or ["a"], or else a text."""
    from holdall.core import encode

    try:
        data = json.loads(text, parse_float=Decimal, parse_constant=Decimal)
    except (ValueError, RecursionError):
        return {"S": text}
    return encode(data)


def format_attribute(attribute: Attribute) -> str:
    """An attribute for people to read."""
    from base64 import b64decode

    ((kind, content),) = attribute.items()
    if kind in ("S", "N"):
        return str(content)
    if kind == "B":
        return f"0x{b64decode(content).hex()}"
    return format_json(content if kind in ("BOOL", "SS", "NS", "BS") else attribute)
