"""``holdall table``: the table of a database, and the tables that models declare for themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdall.cli.confirmation import confirm_by_typing, require_terminal
from holdall.cli.module import load_models, models_option
from holdall.cli.options import yes_option
from holdall.cli.output import (
    json_option,
    say,
    show,
    show_json,
    show_pairs,
)
from holdall.cli.session import command_text, open_database, settings_only, url_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdall import Database, Model
    from holdall.core import TableDescription
    from holdall.tables import Format, Mode, PolicyFeature

_mode_option = click.option(
    "--mode",
    type=click.Choice(["A", "B"]),
    help="For a new table: A (default) has a string sort key; B has a numeric one, and an index.",
)


@click.group()
def table() -> None:
    """Create, describe, check, export or delete the table, or remove an index.

    This is the database's table. Commands with --models also handle the separate tables of those models.
    """


@table.command()
@_mode_option
@models_option()
@json_option
@url_option
def create(mode: Mode | None, names: tuple[str, ...], as_json: bool) -> None:
    """Create the table and whatever else is missing.

    This creates the table itself, the index that a numeric sort key needs, and expiry by the attribute _ttl, and waits
    until they can be used. It never alters what exists, so you can safely run it again.

    With --models, it also creates the indexes and separate tables that those models need. If an existing table or
    index does not fit the models, nothing is created.
    """
    models = load_models(names)
    with open_database(missing="create") as db:
        description = db.table.create(mode=mode, models=models)
        found = db.table.layout().mode
        own = _own_tables(db, models)
        if as_json:
            facts = _facts(db, description)
            show_json({**facts, "own_tables": [_common_facts(db, each) for each in own]} if names else facts)
    say(f"table {description.schema.name} is ready: {_ready(description)}, mode {found}")
    for each in own:
        say(f"table {each.schema.name} is ready: {_ready(each)}")


@table.command()
@models_option(required=True)
@json_option
@url_option
@click.pass_context
def plan(context: click.Context, names: tuple[str, ...], as_json: bool) -> None:
    """Compare the tables with what models need.

    Nothing is changed. The exit status is 1 if something is missing or wrong; an index that no model needs is listed,
    but is not an error.
    """
    models = load_models(names)
    with open_database(missing="empty") as db:
        found = db.table.plan(models=models)
    if as_json:
        show_json(found.to_dict())
    else:
        show(found.text())
    if any(table.unused for table in found.tables):
        say(f"hint: {command_text('table remove-index NAME')} removes an index that no program needs")
    if found.ok:
        return
    create = command_text(f"table create {' '.join(f'--models {name}' for name in names)}")
    if any(table.faulty for table in found.tables):
        say(
            f"hint: Holdall does not alter what is wrong, so change it yourself; {create} shows what is needed"
        )
    else:
        say(f"hint: {create} adds what is missing")
    context.exit(1)


@table.command("remove-index")
@click.argument("name")
@click.option("--table", "own", metavar="TABLE", help="The table= of models, if they have their own table.")
@models_option()
@click.option("--dry-run", is_flag=True, help="Change nothing; only report what the command would do.")
@yes_option
@url_option
def remove_index(name: str, own: str | None, names: tuple[str, ...], dry_run: bool, yes: bool) -> None:
    """Remove the global index NAME.

    The items keep their attributes, but no program can query the index any more. You confirm by typing the index's
    name, and the command waits until the index is gone. Without a terminal, nothing is removed unless you pass --yes.
    It is not an error if the index does not exist.

    With --models, the index is not removed if one of those models needs it.
    """
    models = load_models(names)
    with open_database() as db:
        found = db.table.remove_index(name, table=own, models=models, dry_run=True)
        where = f"table {own or db.table.name}"
        if found is None:
            say(f"{where} has no index {name}: nothing to remove")
            return
        keys = ", ".join(f"{key.name} ({key.type})" for key in found.keys)
        say(
            f"This {'would remove' if dry_run else 'removes'} index {name} of {where}: {keys}. The items stay."
        )
        if dry_run:
            return
        if not yes:
            confirm_by_typing(name, "index's name", "remove", f"index {name} was not removed")
        db.table.remove_index(name, table=own, models=models)
        say(f"index {name} removed")


@table.command()
@yes_option
@url_option
def delete(yes: bool) -> None:
    """Delete the table with everything in it.

    You confirm by typing the table's name, and the command waits until the table is gone. Without a terminal, nothing
    is deleted unless you pass --yes. It is not an error if the table does not exist.
    """
    with open_database(missing="empty") as db:
        name = db.table.name
        if not db.table.exists():
            say(f"there is no table {name}: nothing to delete")
            return
        if not yes:
            require_terminal(undone := f"table {name} was not deleted")
            say(
                f"This deletes table {name} and its {db.table.describe().item_count:,} items. It cannot be undone."
            )
            confirm_by_typing(name, "table's name", "delete", undone)
        db.table.delete()
        say(f"table {name} deleted")


@table.command()
@json_option
@url_option
def describe(as_json: bool) -> None:
    """Show the table: keys, indexes, size, how Holdall uses it."""
    with open_database() as db:
        facts = _facts(db, db.table.describe())
    if as_json:
        show_json(facts)
        return
    show_pairs(_words(facts))
    if facts["problem"] is not None:
        for line in f"warning: Holdall cannot use this table: {facts['problem']}".splitlines():
            say(line)


@table.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "yaml", "terraform", "cdk"]),
    default="json",
    help="json and yaml are CloudFormation templates, cdk is TypeScript.",
)
@_mode_option
@click.option(
    "--existing", is_flag=True, help="Describe the table that exists, not the one that create would make."
)
@click.option(
    "--policy",
    "features",
    multiple=True,
    metavar="FEATURE",
    help="Let the policy allow only what this feature needs, as table policy does. Repeatable.",
)
@models_option()
@url_option
def export(
    form: Format,
    mode: Mode | None,
    existing: bool,
    features: tuple[PolicyFeature, ...],
    names: tuple[str, ...],
) -> None:
    """Print the table for CloudFormation, Terraform or the CDK.

    It contains the table that create would make, and a policy with the actions that Holdall needs. Without --existing,
    no connection is made, so no credentials are needed. Deleting the stack later keeps the table; Terraform refuses to
    destroy it.

    With --models, it also contains the indexes and separate tables that those models need.
    """
    if mode is not None and existing:
        raise click.UsageError(
            "--mode is for a new table and --existing for an existing one; pass one or the other"
        )
    models = load_models(names)
    with open_database() if existing else settings_only() as db:
        show(db.table.export(format=form, mode=mode, existing=existing, models=models, policy=features))


@table.command()
@click.argument("features", nargs=-1, required=True, metavar="FEATURE...")
@click.option("--account", metavar="ID", help="The number of the AWS account; without it, any account.")
@models_option()
@url_option
def policy(features: tuple[PolicyFeature, ...], account: str | None, names: tuple[str, ...]) -> None:
    """Print an IAM policy with only the permissions that features need.

    FEATURE is reads, models, bulk, scan, migrate, jobs, files, attachments, artifacts, archive, copy, doctor, plan or
    create; several are combined. The policy names the table, its indexes and the bucket of each file service on S3. No
    connection is made, so no credentials are needed.

    With --models, it also names the separate tables of those models.
    """
    models = load_models(names)
    with settings_only() as db:
        show(db.table.export_policy(features, models=models, account=account))


def _own_tables(db: Database, models: Sequence[type[Model]]) -> list[TableDescription]:
    """The separate tables of these models, as they exist."""
    from holdall.core import DescribeTable

    planned = db.table.plan(models=models).tables if models else ()
    return [db.send(DescribeTable(each.name)) for each in planned if each.name != db.table.name]


def _ready(description: TableDescription) -> str:
    return "keys " + " and ".join(key.name for key in description.schema.keys)


def _facts(db: Database, description: TableDescription) -> dict[str, Any]:
    """The table as JSON data; programs rely on these names."""
    from holdall.errors import ConfigurationError

    mode: str | None = None
    problem: str | None = None
    try:
        mode = db.table.layout().mode
    except ConfigurationError as error:
        problem = str(error)
    return {**_common_facts(db, description), "mode": mode, "problem": problem}


def _common_facts(db: Database, description: TableDescription) -> dict[str, Any]:
    from holdall.core import DescribeTtl

    schema = description.schema
    return {
        "table": schema.name,
        "status": description.status,
        "partition_key": schema.partition.describe(),
        "sort_key": None if schema.sort is None else schema.sort.describe(),
        "ttl": db.send(DescribeTtl(schema.name)).attribute,
        "items": description.item_count,
        "size_bytes": description.size_bytes,
        "indexes": [
            {
                "name": index.name,
                "status": description.index_status.get(index.name, "ACTIVE"),
                **index.describe(),
            }
            for index in schema.indexes
        ],
    }


_MODES = {
    "A": "A: the sort key is a string",
    "B": "B: the sort key is a number, and an index lists items",
    None: "none: Holdall cannot use this table",
}


def _words(facts: dict[str, Any]) -> dict[str, str]:
    words = {
        "table": facts["table"],
        "status": facts["status"],
        "partition key": _key_words(facts["partition_key"]),
        "sort key": _key_words(facts["sort_key"]),
        "mode": _MODES[facts["mode"]],
        "expires by": facts["ttl"] or "nothing",
        "items": f"{facts['items']:,}",
        "size": f"{facts['size_bytes']:,} bytes",
    }
    for index in facts["indexes"]:
        roles = [
            [_key_words(key) for key in index["keys"] if key["role"] == role]
            for role in ("partition", "sort")
        ]
        keys = ", ".join(" + ".join(words) for words in roles if words)
        held = ", ".join(index["projected"]) or index["projection"]
        words[f"index {index['name']}"] = (
            f"{keys}; holds {held}; {'local; ' * index['local']}{index['status']}"
        )
    return words


def _key_words(key: dict[str, str] | None) -> str:
    return "none" if key is None else f"{key['name']} ({key['type']})"
