"""``holdall models move``: copy the items of a model, in any layout, as items of another model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdall.cli.module import load_condition, load_function, load_model
from holdall.cli.options import rate_option, restart_option, segments_option
from holdall.cli.output import json_option, say, show, show_json
from holdall.cli.phrase import format_count, format_money, format_size
from holdall.cli.progress import count_roughly, interruptible, refuse_failures, run_progress
from holdall.cli.session import open_database, url_option
from holdall.cli.suggestion import suggest_model

if TYPE_CHECKING:
    from holdall import Model
    from holdall.transactions import MoveReport

_COUNTS = {
    "copied": ("would be copied", "copied"),
    "updated": ("would be updated", "updated"),
    "same": ("already there", "already there"),
    "differing": ("there with other values", "there with other values"),
    "skipped": ("left out", "left out"),
    "failed": ("would fail", "failed"),
}


@click.command(name="move")
@click.argument("source", metavar="SOURCE", shell_complete=suggest_model)
@click.argument("target", metavar="DESTINATION", shell_complete=suggest_model)
@click.option(
    "--convert",
    metavar="MODULE:FUNCTION",
    help="A function that returns the values of the new item for each old one, or None to leave it out.",
)
@click.option(
    "--where", metavar="MODULE:CONDITION", help="A condition: copy only the source's items that meet it."
)
@click.option(
    "--update",
    is_flag=True,
    help="Replace items that an earlier move wrote, that no program has changed, and that differ now.",
)
@segments_option(1)
@rate_option("items to write")
@click.option("--dry-run", is_flag=True, help="Write nothing; only report what the command would do.")
@restart_option
@json_option
@url_option
def move_items(
    source: str,
    target: str,
    convert: str | None,
    where: str | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Copy the items of a model as items of another one.

    SOURCE and DESTINATION are models in different tables, as in app.old:Product app.models:Product. Fields correspond
    by name. The source is not changed, and no item at the destination is overwritten, except as --update says: items
    that are there with other values are counted and listed.

    You can run it while other programs use the source, and as often as you like: each run copies what is missing.
    After an interruption, the same command continues where it stopped. The exit status is 1 if items could not be
    copied; the first of them are listed.
    """
    old, new = load_model(source), load_model(target)
    function = None if convert is None else load_function(convert)
    condition = None if where is None else load_condition(where)
    if function is None:
        _name_unmatched(old, new)
    with (
        open_database() as db,
        run_progress(source, count_roughly(db, old), _phrase) as progress,
        interruptible(dry_run),
    ):
        report = db.move(old, new, function, where=condition, dry_run=dry_run, progress=progress, **options)
    if as_json:
        show_json({"source": source, "destination": target, "dry_run": dry_run, **report._asdict()})
    else:
        show(_summarize(f"{source} to {target}", report, dry_run))
    undeclared = [name for name in report.dropped if name not in _list_fields(old)]
    if undeclared:
        say(f"not copied, because {old.__name__} does not declare them: {', '.join(undeclared)}")
    for line in report.differences:
        say(f"differs: {line}")
    hidden = report.differing - len(report.differences)
    if hidden > 0:
        say(f"… and {hidden:,} more")
    outcome = "could not be copied" if not dry_run else "cannot be copied"
    refuse_failures(report.failed, {source: report.problems}, outcome, "correct the items or use --convert,")


def _name_unmatched(old: type[Model], new: type[Model]) -> None:
    """Print which fields only one of the models has, before anything is written."""
    before, after = _list_fields(old), _list_fields(new)
    if only := [name for name in before if name not in after]:
        say(f"not copied, because {new.__name__} has no such field: {', '.join(only)}")
    if only := [name for name in after if name not in before]:
        say(f"not in {old.__name__}, so new items get defaults: {', '.join(only)}")


def _list_fields(model: type[Model]) -> list[str]:
    from holdall.models import describe_model

    return [field["name"] for field in describe_model(model)["fields"]]


def _phrase(report: MoveReport) -> str:
    return f"{report.copied + report.updated:,} copied"


def _summarize(name: str, report: MoveReport, dry_run: bool) -> str:
    facts: dict[str, Any] = report._asdict()
    parts = [
        f"{facts[count]:,} {words[0 if dry_run else 1]}" for count, words in _COUNTS.items() if facts[count]
    ]
    lines = [", ".join([f"{name}: {format_count(report.found, 'item')}", *parts])]
    if report.copied or report.updated:
        size, units = format_size(report.item_bytes), format_count(report.write_units, "write unit")
        lines.append(f"{size}; on DynamoDB about {units}, {_price(report.write_units)}")
    return "".join(f"{line}\n" for line in lines)


def _price(units: int) -> str:
    from holdall.archive import Prices

    prices = Prices()
    return (
        f"{format_money(units * prices.table_write)} (on demand, prices of {prices.date} in {prices.region})"
    )
