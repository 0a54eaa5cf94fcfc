"""What commands print: data on stdout, everything else on stderr; no output depends on colour.

Names, metadata and messages can come from anyone who can write to the table, and a terminal obeys control characters
instead of showing them. Everything printed here has them escaped, as in ``\\x1b``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import IO, Any

import click

from holdall.cli.exit_status import ExitStatus, exit_status
from holdall.errors import HoldallError

_UNBROKEN = re.compile(r"[^\n\t]+")

JSON = "holdall.json"
"""The context's mark that failures are printed as JSON."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print the data as JSON.")
"""``--json``: the command's data, and its error if it fails, as JSON."""

_ARGUMENTS = re.compile(
    r"\b(allow_protected|create|drop_aliases|dry_run|exclusive|force|overwrite|restart)=True|\b(sort|where|only)=(?![\w\"'(])"
)
_FILES = re.compile(r'open (it|the database) with files="s3://bucket" or files="file:PATH"', re.IGNORECASE)


class Refusal(click.ClickException):
    """Ends a command that could not do its work.

    ``code`` is the code of the Holdall error; a failure that only the command line knows has the name of its exit
    status instead. With ``--json`` the error is printed as a JSON object, on stderr like every message.
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
        self._as_json = context is not None and JSON in context.meta

    @classmethod
    def of(cls, error: HoldallError) -> Refusal:
        """The refusal that reports an error; its hint names options instead of arguments."""
        hint = None if error.hint is None else _translate_hint(error.hint)
        return cls(error.message, hint, status=exit_status(error), code=error.code)

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """The program's exit status."""
        return self.status

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message and the hint."""
        if self._as_json:
            facts = {"code": self.code, "message": self.message, "hint": self.hint}
            click.echo(json.dumps({"error": facts}), file=file, err=True)
            return
        lines = map(
            escape, self.message.split("\n  ")
        )  # what was tried, for example: one indented line for each
        click.echo("error: " + "\n  ".join(lines), file=file, err=True)
        if self.hint is not None:
            click.echo(f"hint: {escape_lines(self.hint)}", file=file, err=True)


def _translate_hint(hint: str) -> str:
    hint = re.split(", or (?:set|pass) manage_table", hint)[0]  # the rest is for programs that create tables
    hint = _FILES.sub(
        "set HOLDALL_FILES=s3://BUCKET or file:PATH", hint.removeprefix("pass service=..., or ")
    )
    hint = hint.replace(
        'open the target with files={"default": "s3://BUCKET"}', "pass --target-files s3://BUCKET"
    )
    hint = hint.replace("(files=False)", "(--no-files)")
    return _ARGUMENTS.sub(lambda found: f"--{(found[1] or found[2]).replace('_', '-')}", hint)


def escape(text: str) -> str:
    """A text on one line, with its control characters escaped."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def escape_lines(text: str) -> str:
    """A text of several lines, with all control characters escaped except newlines and tabs."""
    return _UNBROKEN.sub(lambda found: escape(found[0]), text)


def read_text(file: IO[str]) -> str:
    """The content of a file that was named on the command line."""
    try:
        return file.read()
    except UnicodeDecodeError:
        raise Refusal(f"{file.name} is not text in UTF-8", status=ExitStatus.USAGE) from None


def say(text: str) -> None:
    """Print one line for the person at the terminal."""
    click.echo(escape(text), err=True)


def show(text: str) -> None:
    """Print data that already ends with a newline."""
    click.echo(escape_lines(text), nl=False)


def show_json(data: Mapping[str, Any]) -> None:
    """Print data as JSON."""
    show(format_json(data, indent=2) + "\n")


def format_json(data: Any, indent: int | None = None) -> str:
    """Data as JSON; a decimal becomes a JSON number, any other type that JSON lacks becomes a string."""
    from decimal import Decimal

    def convert(value: object) -> float | str:
        return float(value) if isinstance(value, Decimal) else str(value)

    return json.dumps(data, indent=indent, default=convert)


def show_pairs(pairs: Mapping[str, str]) -> None:
    """Print names and values in two columns."""
    pairs = {escape(name): escape(text) for name, text in pairs.items()}
    width = max(map(_measure, pairs))
    show("".join(f"{_pad(name, width)}  {text}\n" for name, text in pairs.items()))


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, under their headings."""
    rows = [[escape(text) for text in row] for row in rows]
    widths = [max(map(_measure, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        show("  ".join(map(_pad, row, widths)).rstrip() + "\n")


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _measure(text))


def _measure(text: str) -> int:
    """The columns of a terminal that a text takes; a Chinese character takes two, an accent of its own none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def format_time(moment: datetime) -> str:
    """A time, to the second, for people to read."""
    return moment.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
