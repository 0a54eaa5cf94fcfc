"""What commands say: data on stdout, everything else on stderr, nothing that needs colour.

Names, metadata and messages can come from anybody who can write to the table. A terminal obeys some characters instead
of showing them, so whatever is printed here has those escaped, as in ``\\x1b``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import IO, Any, TypeVar

import click

__all__ = [
    "Refusal",
    "escape",
    "escape_lines",
    "json_option",
    "say",
    "show",
    "show_json",
    "show_pairs",
    "show_table",
    "shown_time",
]

F = TypeVar("F", bound=Callable[..., Any])

_UNBROKEN = re.compile(r"[^\n\t]+")


class Refusal(click.ClickException):
    """The end of a command that did not do what it was asked to; exit code 1."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        """Say why, and what to do about it; that may take several lines."""
        click.echo(f"error: {escape(self.message)}", file=file, err=True)
        if self.hint is not None:
            click.echo(f"hint: {escape_lines(self.hint)}", file=file, err=True)


def escape(text: str) -> str:
    """A text on one line, its control characters as escapes."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def escape_lines(text: str) -> str:
    """The same for a text of several lines: line ends and tabs stay."""
    return _UNBROKEN.sub(lambda found: escape(found[0]), text)


def json_option(function: F) -> F:
    """``--json``: the command's data for another program."""
    return click.option("--json", "as_json", is_flag=True, help="Print the data as JSON.")(function)


def say(text: str) -> None:
    """Tell the person at the terminal, in one line."""
    click.echo(escape(text), err=True)


def show(text: str) -> None:
    """Print data; it ends with a line's end already."""
    click.echo(escape_lines(text), nl=False)


def show_json(data: Mapping[str, Any]) -> None:
    """Print data as JSON."""
    show(json.dumps(data, indent=2) + "\n")


def show_pairs(pairs: Mapping[str, str]) -> None:
    """Print names and what they are, in two columns."""
    pairs = {escape(name): escape(text) for name, text in pairs.items()}
    width = max(map(len, pairs))
    show("".join(f"{name:<{width}}  {text}\n" for name, text in pairs.items()))


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, their heads above."""
    rows = [[escape(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = [f"{text:<{width}}" for text, width in zip(row, widths, strict=True)]
        show("  ".join(cells).rstrip() + "\n")


def shown_time(moment: datetime) -> str:
    """A moment as people read it, to the second."""
    return moment.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
