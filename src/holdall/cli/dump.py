"""``holdall dump`` and ``holdall load``: items as lines of JSON."""

from __future__ import annotations

from typing import TextIO

import click

from holdall.cli.module import load_models, models_option
from holdall.cli.output import say
from holdall.cli.phrase import format_count
from holdall.cli.session import open_database, url_option


@click.command()
@models_option()
@click.option(
    "--table", "tables", metavar="NAME", multiple=True, help="Another table to dump; can be repeated."
)
@url_option
def dump(names: tuple[str, ...], tables: tuple[str, ...]) -> None:
    """Print all items as lines of JSON, for fixtures; `holdall load` puts them into a table.

    This reads the database's table, the tables of models with table= that --models names, and those that --table
    names. Files are not included: `holdall copy` copies a whole database.
    """
    models = load_models(names)
    with open_database() as db:
        for line in db.dump_lines(models=models, tables=tables):
            click.echo(line)


@click.command()
@click.argument("lines", metavar="FILE", type=click.File(encoding="utf-8"))
@url_option
def load(lines: TextIO) -> None:
    """Put the items that `holdall dump` printed into their tables. FILE can be - for standard input.

    Items with the same keys are replaced. The tables must exist: `holdall table create` creates them. A file is checked
    first: if a line cannot be loaded, nothing is. Of standard input, the lines before it may have been loaded.
    """
    with open_database() as db:
        loaded = db.load_lines(lines)
    say(f"{format_count(loaded, 'item')} loaded")
