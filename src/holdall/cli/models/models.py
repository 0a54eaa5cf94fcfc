"""``holdall models``: what models declare, and models for tables that other programs use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdall.cli.exit_status import ExitStatus
from holdall.cli.models.facts import list_models, show_model
from holdall.cli.models.move import move_items
from holdall.cli.models.stubs import write_model_stubs
from holdall.cli.output import Refusal, say, show
from holdall.cli.phrase import format_count
from holdall.cli.session import open_database, url_option

if TYPE_CHECKING:
    from pathlib import Path

    from holdall import Database
    from holdall.cli.inspect.table_sample import TableSample


@click.group()
def models() -> None:
    """Describe models, write models for existing tables, move items."""


models.add_command(list_models)
models.add_command(show_model)
models.add_command(move_items)
models.add_command(write_model_stubs)


@models.command()
@click.argument("table")
@click.option(
    "--sample",
    "size",
    metavar="COUNT",
    type=click.IntRange(1, 100_000),
    default=200,
    help="The most items to read.",
)
@click.option(
    "--class-name",
    metavar="NAME",
    help="The model's name, if there is one model; by default it follows from the table's name.",
)
@click.option("--output", metavar="FILE", help="Write to this new file instead of stdout.")
@click.option("--force", is_flag=True, help="Write a model even if Holdall seems to have laid out the table.")
@url_option
def inspect(table: str, size: int, class_name: str | None, output: str | None, force: bool) -> None:
    """Write a model for a table that other programs use.

    This describes the table, reads the first items of a scan, and prints a Python module with a model that reads them:
    its key, the attributes with their types, the indexes and the attribute of expiry. If the keys show a single-table
    design, there is a model with a Template for each kind of items. A comment at the top lists what the sample does not
    prove. The table is not changed.

    TABLE is the table's name as a model declares it, without the table_prefix of the settings. A table that Holdall
    itself seems to have laid out is reported with exit status 5, because its models are declared without layout=.
    """
    from holdall.cli.inspect.source import is_class_name, name_class, recognize_layout, write_source

    if class_name is not None and not is_class_name(class_name):
        raise click.BadParameter(
            f"{class_name!r} must be letters and digits, beginning with a capital letter, and not a name that"
            " the module imports",
            param_hint="--class-name",
        )
    target = None if output is None else _check_target(output)
    with open_database() as db:
        sample = _fetch_sample(db, table, size)
        own = sample.schema.name == db.table.name
    advice = recognize_layout(sample)
    if advice is not None and not (force and not own):
        raise Refusal(
            f"table {sample.schema.name} has Holdall's own layout",
            advice if own else f"{advice}; if another program laid it out, pass --force",
            status=ExitStatus.REFUSED,
        )
    if own:
        raise Refusal(
            f"table {sample.schema.name} is the database's own table, so a model cannot name it with table=",
            "if another program laid it out, give the database another table_name",
            status=ExitStatus.REFUSED,
        )
    source = write_source(sample, class_name or name_class(table))
    if target is None:
        show(source)
        return
    _write(target, source)
    count = source.count("\nclass ")
    models = "a model" if count == 1 else format_count(count, "model")
    say(f"{output}: {models} of table {sample.schema.name}, from {format_count(len(sample.items), 'item')}")


def _fetch_sample(db: Database, table: str, size: int) -> TableSample:
    from holdall.cli.inspect.table_sample import TableSample
    from holdall.core import DescribeTable, DescribeTtl, Item, Scan

    name = _find_name(db, table)
    schema = db.send(DescribeTable(name, counts=False)).schema
    items: list[Item] = []
    complete = True
    for page in db.pages(Scan(name, limit=size)):
        items += page.items
        if len(items) >= size:
            complete = page.last_key is None and len(items) == size
            break
    return TableSample(table, schema, db.send(DescribeTtl(name)).attribute, items[:size], complete)


def _find_name(db: Database, table: str) -> str:
    """The whole name of a table: with the prefix that the settings add, unless it is the database's own."""
    from holdall import Key, Model
    from holdall.errors import ModelDefinitionError

    if table == db.table.name:
        return table
    try:

        class Inspected(Model, table=table, layout="plain"):
            id: Key[str]

    except ModelDefinitionError as error:
        message = error.message.removeprefix("Inspected: ")
        raise Refusal(message, error.hint, status=ExitStatus.USAGE) from error
    (planned,) = db.table.plan(models=[Inspected]).tables
    return planned.name


def _check_target(output: str) -> Path:
    from pathlib import Path

    target = Path(output)
    if target.exists():
        raise _refuse_existing(output)
    return target


def _write(target: Path, source: str) -> None:
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(source)
    except FileExistsError:
        raise _refuse_existing(str(target)) from None
    except OSError as error:
        raise Refusal(f"{target} cannot be written: {error.strerror}") from error


def _refuse_existing(output: str) -> Refusal:
    return Refusal(
        f"{output} already exists", "name a new file, or delete this one first", status=ExitStatus.CONFLICT
    )
