"""``holdall archive``: move old items to a file service, report on them, and bring them back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

import click

from holdall.cli.archive.cost import cost_lines, format_saving, report_facts
from holdall.cli.archive.model import dry_run_option, find_archived, read_keys
from holdall.cli.archive.upkeep import compact, export, rebuild, rekey, sweep
from holdall.cli.artifacts.place import pairs
from holdall.cli.items.values import parse_key
from holdall.cli.module import load_model, model_argument, models_argument
from holdall.cli.options import rate_option, restart_option, segments_option
from holdall.cli.output import json_option, say, show, show_json, show_table
from holdall.cli.phrase import format_count, format_size
from holdall.cli.progress import count_roughly, interruptible, refuse_failures, run_progress
from holdall.cli.session import open_database, url_option

if TYPE_CHECKING:
    from holdall.archive import ArchiveReport, Prices

_key = click.argument("components", metavar="FIELD=VALUE...", nargs=-1, callback=pairs)


@click.group()
def archive() -> None:
    """Move old items to a file service, and bring them back.

    A model declares its archive: class Order(Model, archive=Archive(timestamp="placed_at")). MODULE:CLASS names a
    model, as in app.models:Order; MODULE alone names all its models that have an archive. Items in the table are hot;
    archived items are cold.
    """


@archive.command()
@models_argument
@dry_run_option
@click.option("--force", is_flag=True, help="Archive even if it costs more than it saves in --keep-months.")
@click.option(
    "--keep-months",
    type=click.FloatRange(0),
    default=36.0,
    help="How many months the items will be kept; a run must pay for itself within that time.",
)
@click.option("--max-items", type=click.IntRange(1), help="Stop after this many items of each model.")
@segments_option(4)
@rate_option("capacity units to use")
@click.option(
    "--price",
    "prices",
    metavar="NAME=DOLLARS",
    multiple=True,
    callback=pairs,
    help="A price in your region, such as table_storage=0.306; can be given several times.",
)
@restart_option
@json_option
@url_option
def run(
    names: tuple[str, ...], dry_run: bool, prices: Mapping[str, str], as_json: bool, **options: Any
) -> None:
    """Archive the items that are old enough.

    You can run it while other programs use the table, and stop it at any time: the same command continues where it
    stopped. On DynamoDB, a run that would not pay for itself within --keep-months is refused. With --dry-run it
    reports sizes, costs and savings, and how many items would not pay off. The exit status is 1 if items could not be
    archived.
    """
    table = _read_prices(prices)
    reports: dict[str, ArchiveReport] = {}
    with open_database() as db:
        for name, model in find_archived(names).items():
            phrase = _phrase_progress(dry_run)
            with run_progress(name, count_roughly(db, model), phrase) as progress, interruptible(dry_run):
                reports[name] = db.archive.run(
                    model, dry_run=dry_run, prices=table, progress=progress, **options
                )
            if not as_json:
                show(_summarize(name, reports[name], dry_run))
    if as_json:
        facts = [{"model": name, **report_facts(report)} for name, report in reports.items()]
        show_json({"dry_run": dry_run, "models": facts})
    refuse_failures(
        sum(report.failed for report in reports.values()),
        {name: report.problems for name, report in reports.items()},
        "could not be archived and stayed in the table",
    )


@archive.command()
@model_argument
@_key
@json_option
@url_option
def key(name: str, components: Mapping[str, str], as_json: bool) -> None:
    """Print the key of an item's object in the archive.

    Name the item by its key, as in shop:Order customer=ada number=7. The item need not exist or be archived.
    """
    with open_database() as db:
        found = db.archive.key(parse_key(load_model(name), components))
    if as_json:
        show_json({"key": found})
    else:
        show(f"{found}\n")


@archive.command()
@models_argument
@json_option
@url_option
def report(names: tuple[str, ...], as_json: bool) -> None:
    """Count the items in the table and in the archive. This reads the whole table."""
    with open_database() as db:
        found = {name: db.archive.report(model) for name, model in find_archived(names).items()}
    if as_json:
        show_json({"models": [{"model": name, **asdict(each)} for name, each in found.items()]})
        return
    rows = [
        (
            name,
            f"{each.hot_items:,}",
            format_size(each.hot_bytes),
            f"{each.cold_items:,}",
            format_size(each.cold_bytes),
            format_size(each.pointer_bytes),
        )
        for name, each in found.items()
    ]
    show_table(("model", "hot", "in the table", "cold", "as objects", "pointers"), rows)


@archive.command()
@model_argument
@_key
@click.option("--all", "everything", is_flag=True, help="Restore all archived items of the model.")
@click.option(
    "--keys",
    type=click.File("r", encoding="utf-8"),
    help='A file with one key per line, as JSON: {"customer": "ada", "number": 7}; - is stdin.',
)
@json_option
@url_option
def restore(
    name: str, components: Mapping[str, str], everything: bool, keys: IO[str] | None, as_json: bool
) -> None:
    """Bring archived items back into the table.

    Name one item by its key, as in shop:Order customer=ada number=7, pass a file with --keys, or pass --all. An item's
    object is deleted once the whole item is back in the table.
    """
    if sum((bool(components), everything, keys is not None)) != 1:
        raise click.UsageError("name the items in one way: a key as FIELD=VALUE..., --keys, or --all")
    model = load_model(name)
    with open_database() as db:
        if everything:
            restored = db.archive.restore_all(model)
        else:
            wanted = [parse_key(model, components)] if keys is None else read_keys(model, keys)
            restored = db.archive.restore(*wanted)
    if as_json:
        show_json({"restored": restored})
    else:
        say(f"{format_count(restored, 'item')} restored")


for _command in (rekey, rebuild, compact, sweep, export):
    archive.add_command(_command)


# --- words ------------------------------------------------------------------------------------------------


def _phrase_progress(dry_run: bool) -> Callable[[ArchiveReport], str]:
    started = datetime.now(UTC)

    def phrase(report: ArchiveReport) -> str:
        seconds = max((datetime.now(UTC) - started).total_seconds(), 1e-3)
        saved = format_saving(report.estimate.monthly)
        if dry_run:
            return f"{report.archived:,} would be archived: {saved}"
        return f"{report.archived:,} archived ({report.archived / seconds:,.0f} per second), {saved}"

    return phrase


def _summarize(name: str, report: ArchiveReport, dry_run: bool) -> str:
    looked_at = report.archived + report.failed + sum(report.skipped.values())
    verb = "would be archived" if dry_run else "archived"
    stay = ", ".join(f"{count:,} {reason}" for reason, count in sorted(report.skipped.items()))
    kept = f" (left in the table: {stay})" if stay else ""
    lines = [f"{name}: {report.archived:,} of {format_count(looked_at, 'hot item')} {verb}{kept}"]
    if dry_run:
        lines += [f"  {line}".rstrip() for line in cost_lines(report)]
    elif report.archived:
        lines.append(
            f"  {format_size(report.item_bytes)} in the table became {format_size(report.object_bytes)} of objects: "
            f"{format_saving(report.estimate.monthly)}"
        )
    return "".join(f"{line}\n" for line in lines)


def _read_prices(given: Mapping[str, str]) -> Prices | None:
    if not given:
        return None
    from holdall.archive import Prices

    try:
        found: dict[str, Any] = {
            name: text if name in ("date", "region") else float(text) for name, text in given.items()
        }
        return Prices(**found)
    except (TypeError, ValueError):
        raise click.BadParameter(
            f"{given} are not prices; write table_storage=0.306 or table_write=0.000000762",
            param_hint="--price",
        ) from None
