"""``holdall items``: read, count, write and delete items, by their models or as a table stores them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import IO, Any, TypeVar

import click

from holdall.cli.confirmation import confirm, require_terminal
from holdall.cli.exit_status import ExitStatus
from holdall.cli.items.source import Listing, Shown, Wanted, name_key, open_source
from holdall.cli.options import combine, yes_option
from holdall.cli.output import (
    Refusal,
    json_option,
    read_text,
    say,
    show,
    show_json,
    show_pairs,
    show_table,
)
from holdall.cli.session import open_database, url_option
from holdall.cli.suggestion import suggest_model
from holdall.errors import RecordNotFound

F = TypeVar("F", bound=Callable[..., Any])

_WIDEST = 60
_QUOTED = re.compile(r"[,\"\r\n]")


@click.group()
def items() -> None:
    """Read, count, write and delete items.

    SOURCE is a model, as in app.models:Order, or a table as it is stored, as in table:holdall. Keys, fields and
    attributes are given as NAME=VALUE. A text is written as it is, a time as in ISO 8601, bytes as 0x and hexadecimal
    digits, and other types as JSON: tags='["a"]'. For a table, a value that is JSON gets its type, and any other is a
    text; only --file can give it bytes and sets.
    """


_source = click.argument("source", metavar="SOURCE", shell_complete=suggest_model)


def _words(*, required: bool = False) -> Callable[[F], F]:
    return click.argument("words", metavar="NAME=VALUE...", nargs=-1, required=required)


_index_option = click.option("--index", metavar="NAME", help="Use this index, by its own key.")
_where_option = click.option(
    "--where",
    "conditions",
    metavar="CONDITION",
    multiple=True,
    help="Only items that meet it, such as 'quantity>=3' or 'note^=gift'; can be given several times.",
)


def _split(context: click.Context, parameter: click.Parameter, only: str | None) -> list[str] | None:
    return None if only is None else [name.strip() for name in only.split(",") if name.strip()]


_listing_options = combine(
    _where_option,
    click.option("--only", metavar="NAME,...", callback=_split, help="Only these fields."),
    click.option("--after", metavar="TOKEN", help="Continue after an earlier page."),
    click.option(
        "--limit",
        type=click.IntRange(1, 1_000_000_000),
        default=50,
        help="The most items.",
    ),
    json_option,
    click.option("--csv", "as_csv", is_flag=True, help="Print the items as CSV."),
)


@items.command()
@_source
@_words(required=True)
@json_option
@url_option
def get(source: str, words: tuple[str, ...], as_json: bool) -> None:
    """Show the item with this key."""
    with open_database() as db:
        shelf = open_source(db, source)
        key = shelf.key(words)
        item = shelf.get(key)
    if item is None:
        raise _refuse_missing(key)
    _show_item(item, as_json)


@items.command()
@_source
@_words(required=True)
@click.option(
    "--sort", "sorts", metavar="CONDITION", multiple=True, help="A range of the sort key: 'number>=10'."
)
@_index_option
@click.option("--reverse", is_flag=True, help="The last items first.")
@_listing_options
@url_option
def query(source: str, as_json: bool, as_csv: bool, **wanted: Any) -> None:
    """List the items of one partition, in the order of their sort key.

    NAME=VALUE is the partition key of the table, or of --index.
    """
    _check_form(as_json, as_csv)
    with open_database() as db:
        listing = open_source(db, source).query(Wanted(**wanted))
    _show_items(listing, as_json=as_json, as_csv=as_csv)


@items.command()
@_source
@_listing_options
@url_option
def scan(source: str, as_json: bool, as_csv: bool, **wanted: Any) -> None:
    """List items by reading the whole table, in no order.

    For a model in the database's table, this reads, and you pay for, the items of all models.
    """
    _check_form(as_json, as_csv)
    with open_database() as db:
        listing = open_source(db, source).scan(Wanted(**wanted))
    _show_items(listing, as_json=as_json, as_csv=as_csv)


@items.command()
@_source
@_words()
@_index_option
@_where_option
@json_option
@url_option
def count(source: str, as_json: bool, **wanted: Any) -> None:
    """Count the items of one partition, or without a key all items, by reading the whole table."""
    if wanted["index"] is not None and not wanted["words"]:
        raise click.UsageError("--index needs the key of the index: NAME=VALUE")
    with open_database() as db:
        found = open_source(db, source).count(Wanted(**wanted))
    if as_json:
        show_json({"count": found})
    else:
        show(f"{found}\n")


@items.command()
@_source
@_words()
@click.option(
    "--file", type=click.File("r", encoding="utf-8"), help="Read the item as JSON; - is standard input."
)
@click.option("--replace", is_flag=True, help="Replace an item that exists.")
@json_option
@url_option
def put(source: str, words: tuple[str, ...], file: IO[str] | None, replace: bool, as_json: bool) -> None:
    """Create an item from the values of its fields, or from JSON."""
    if (file is None) == (not words):
        raise click.UsageError("give the values of the fields, or --file, but not both")
    with open_database() as db:
        text = None if file is None else read_text(file)
        key, item = open_source(db, source).put(words, text, replace=replace)
    _show_written(key, item, as_json)


@items.command()
@_source
@_words(required=True)
@click.option("--set", "changes", metavar="NAME=VALUE", multiple=True, help="Assign a value.")
@click.option("--clear", "cleared", metavar="NAME", multiple=True, help="Remove a value.")
@json_option
@url_option
def update(
    source: str, words: tuple[str, ...], changes: tuple[str, ...], cleared: tuple[str, ...], as_json: bool
) -> None:
    """Change fields of the item with this key."""
    if not changes and not cleared:
        raise click.UsageError("nothing to change: add --set NAME=VALUE or --clear NAME")
    with open_database() as db:
        shelf = open_source(db, source)
        key = shelf.key(words)
        try:
            item = shelf.update(key, changes, cleared)
        except RecordNotFound:
            raise _refuse_missing(key) from None
    _show_written(key, item, as_json)


@items.command()
@_source
@_words(required=True)
@yes_option
@url_option
def delete(source: str, words: tuple[str, ...], yes: bool) -> None:
    """Delete the item with this key.

    An item of a model is deleted with its attachments. A stored item is deleted alone: what belongs to it stays.
    """
    with open_database() as db:
        shelf = open_source(db, source)
        key = shelf.key(words)
        item = shelf.get(key)
        if item is None:
            raise _refuse_missing(key)
        if not yes:
            require_terminal(undone := f"{name_key(key)} was not deleted")
            show_pairs(item.texts)
            confirm("Delete it?", undone)
        shelf.delete(key)
    say(f"{name_key(key)} was deleted")


def _check_form(as_json: bool, as_csv: bool) -> None:
    if as_json and as_csv:
        raise click.UsageError("--json and --csv were both given; pass one or the other")


def _refuse_missing(key: Any) -> Refusal:
    return Refusal(f"there is no {name_key(key)}", status=ExitStatus.NOT_FOUND, code=RecordNotFound.code)


def _show_item(item: Shown, as_json: bool) -> None:
    if as_json:
        show_json(item.data)
    else:
        show_pairs(item.texts)


def _show_written(key: Any, item: Shown, as_json: bool) -> None:
    if as_json:
        show_json(item.data)
    else:
        say(f"{name_key(key)} was written")


def _show_items(listing: Listing, *, as_json: bool, as_csv: bool) -> None:
    heads = list(dict.fromkeys(name for item in listing.items for name in item.texts))
    rows = [[item.texts.get(name, "") for name in heads] for item in listing.items]
    if as_json:
        show_json(
            {"items": [item.data for item in listing.items], "more": listing.more, "next": listing.token}
        )
        return
    if as_csv:
        show("".join(map(_csv_line, (heads, *rows))))
    elif not rows:
        say("no item matches")
    else:
        show_table(heads, [[_shorten(text) for text in row] for row in rows])
    if listing.more:
        token = "" if listing.token is None else f", or continue with --after {listing.token}"
        say(f"there are more items: raise --limit{token}")


def _shorten(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _csv_line(row: Sequence[str]) -> str:
    """A line of CSV (RFC 4180); a value with a separator or a quote is quoted."""
    cells = [f'"{text.replace(chr(34), chr(34) * 2)}"' if _QUOTED.search(text) else text for text in row]
    return ",".join(cells) + "\n"
