"""What commands print: data on stdout, everything else on stderr, nothing that needs colour.

Names, metadata and messages can come from anyone who can write to the table. A terminal obeys some characters instead
of showing them, so everything printed here has those escaped, as in ``\\x1b``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import IO, Any, TypeVar

import click

from holdall.cli.exit_status import ExitStatus, exit_status
from holdall.errors import HoldallError

F = TypeVar("F", bound=Callable[..., Any])

_UNBROKEN = re.compile(r"[^\n\t]+")


_JSON = "holdall.json"


class Refusal(click.ClickException):
    """Ends a command that could not do its work.

    ``code`` is the error's own; a failure that only the command line knows has the name of its status as its code. With
    ``--json`` the error is also an object, on stderr like every message.
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        status: ExitStatus = ExitStatus.ERROR,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.status = status
        self.code = code or status.name.lower().replace("_", "-")
        context = click.get_current_context(silent=True)
        self._as_json = context is not None and bool(context.meta.get(_JSON))

    @classmethod
    def of(cls, error: HoldallError, hint: str | None = None) -> Refusal:
        """The refusal that reports an error; ``hint`` replaces the error's own."""
        return cls(error.message, hint or error.hint, status=exit_status(error), code=error.code)

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """The program's exit status."""
        return self.status

    def show(self, file: IO[Any] | None = None) -> None:
        """Print what happened, and what to do about it."""
        if self._as_json:
            facts = {"code": self.code, "message": self.message, "hint": self.hint}
            click.echo(json.dumps({"error": facts}), file=file, err=True)
            return
        click.echo(f"error: {escape(self.message)}", file=file, err=True)
        if self.hint is not None:
            click.echo(f"hint: {escape_lines(self.hint)}", file=file, err=True)


def escape(text: str) -> str:
    """A text on one line, its control characters as escapes."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def escape_lines(text: str) -> str:
    """The same for text of several lines: line ends and tabs stay."""
    return _UNBROKEN.sub(lambda found: escape(found[0]), text)


def json_option(function: F) -> F:
    """``--json``: the command's data, and its error if it fails, for another program."""
    return click.option(
        "--json", "as_json", is_flag=True, callback=_remember_json, help="Print the data as JSON."
    )(function)


def _remember_json(context: click.Context, parameter: click.Parameter, wanted: bool) -> bool:
    context.meta[_JSON] = wanted
    return wanted


def say(text: str) -> None:
    """Print one line for the person at the terminal."""
    click.echo(escape(text), err=True)


def show(text: str) -> None:
    """Print data; it ends with a line's end already."""
    click.echo(escape_lines(text), nl=False)


def show_json(data: Mapping[str, Any]) -> None:
    """Print data as JSON."""
    show(format_json(data, indent=2) + "\n")


def format_json(data: Any, indent: int | None = None) -> str:
    """Data as JSON; a decimal number becomes a JSON number, anything else that JSON lacks becomes text."""
    from decimal import Decimal

    def convert(value: object) -> float | str:
        return float(value) if isinstance(value, Decimal) else str(value)

    return json.dumps(data, indent=indent, default=convert)


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


def format_time(moment: datetime) -> str:
    """A moment as people read it, to the second."""
    return moment.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
