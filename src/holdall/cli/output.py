"""What commands say: data on stdout, everything else on stderr, nothing that needs colour."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import IO, Any, TypeVar

import click

__all__ = ["Refusal", "json_option", "say", "show", "show_json", "show_pairs", "show_table", "shown_time"]

F = TypeVar("F", bound=Callable[..., Any])


class Refusal(click.ClickException):
    """The end of a command that did not do what it was asked to; exit code 1."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        """Say why, and what to do about it."""
        click.echo(f"error: {self.message}", file=file, err=True)
        if self.hint is not None:
            click.echo(f"hint: {self.hint}", file=file, err=True)


def json_option(function: F) -> F:
    """``--json``: the command's data for another program."""
    return click.option("--json", "as_json", is_flag=True, help="Print the data as JSON.")(function)


def say(text: str) -> None:
    """Tell the person at the terminal."""
    click.echo(text, err=True)


def show(text: str) -> None:
    """Print data; it ends with a line's end already."""
    click.echo(text, nl=False)


def show_json(data: Mapping[str, Any]) -> None:
    """Print data as JSON."""
    show(json.dumps(data, indent=2) + "\n")


def show_pairs(pairs: Mapping[str, str]) -> None:
    """Print names and what they are, in two columns."""
    width = max(map(len, pairs))
    show("".join(f"{name:<{width}}  {text}\n" for name, text in pairs.items()))


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, their heads above."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = [f"{text:<{width}}" for text, width in zip(row, widths, strict=True)]
        show("  ".join(cells).rstrip() + "\n")


def shown_time(moment: datetime) -> str:
    """A moment as people read it, to the second."""
    return moment.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
