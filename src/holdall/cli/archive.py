"""``holdall archive``: move old items to a file service, look at what is there, and bring items back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from holdall.cli.archive_model import (
    dry_run_option,
    find_archived,
    load_model,
    model_argument,
    models_argument,
    read_key,
    read_keys,
)
from holdall.cli.archive_upkeep import compact, export, rebuild, rekey, sweep
from holdall.cli.cost import cost_lines, format_saving, report_facts
from holdall.cli.output import Refusal, json_option, say, show, show_json, show_table
from holdall.cli.phrase import format_count, format_size
from holdall.cli.place import pairs
from holdall.cli.progress import count_roughly, interruptible, run_progress
from holdall.cli.session import open_database, url_option
from holdall.errors import ArchiveLossError

if TYPE_CHECKING:
    from holdall.archive import ArchiveReport, Holdings, Prices

_key = click.argument("components", metavar="FIELD=VALUE...", nargs=-1, callback=pairs)


@click.group()
def archive() -> None:
    """Move old items of models to a file service, and bring them back; look, sweep and export.

    A model declares its archive: class Order(Model, archive=Archive(timestamp="placed_at")). MODULE:CLASS is a model,
    as in app.models:Order; MODULE alone is all its models that have an archive.
    """


@archive.command()
@models_argument
@dry_run_option
@click.option("--force", is_flag=True, help="Also when it costs more than it saves in --keep-months.")
@click.option(
    "--keep-months",
    type=click.FloatRange(0),
    default=36.0,
    show_default=True,
    help="How long the items will be kept: a run has to pay for itself by then.",
)
@click.option("--max-items", type=click.IntRange(1), help="Stop after so many items of each model.")
@click.option(
    "--segments",
    type=click.IntRange(1, 1000),
    default=4,
    show_default=True,
    help="Parts of the table to work on side by side.",
)
@click.option(
    "--rate", type=click.FloatRange(0, min_open=True), help="The most capacity units to use in a second."
)
@click.option(
    "--price",
    "prices",
    metavar="NAME=DOLLARS",
    multiple=True,
    callback=pairs,
    help="A price of your region, such as table_storage=0.306; can be given several times.",
)
@click.option("--restart", is_flag=True, help="Begin anew, also where an earlier run was stopped.")
@json_option
@url_option
def run(
    names: tuple[str, ...],
    dry_run: bool,
    force: bool,
    keep_months: float,
    max_items: int | None,
    segments: int,
    rate: float | None,
    prices: Mapping[str, str],
    restart: bool,
    as_json: bool,
) -> None:
    """Archive the items that are old enough.

    It is safe beside programs that use the table, and can be stopped at any time: the same command goes on where it
    was. On DynamoDB, a run that would not pay for itself in --keep-months is refused. With --dry-run it reports sizes,
    costs, savings, and the items that would lose money. The exit code is 1 when items could not be archived.
    """
    table = _read_prices(prices)
    reports: dict[str, ArchiveReport] = {}
    with open_database() as db:
        for name, model in find_archived(names).items():
            phrase = _tell_progress(dry_run)
            with run_progress(name, count_roughly(db, model), phrase) as progress, interruptible(dry_run):
                try:
                    reports[name] = db.archive.run(
                        model,
                        dry_run=dry_run,
                        force=force,
                        keep_months=keep_months,
                        max_items=max_items,
                        segments=segments,
                        rate=rate,
                        prices=table,
                        restart=restart,
                        progress=progress,
                    )
                except ArchiveLossError as error:
                    raise Refusal.of(
                        error,
                        "--dry-run shows the costs; Archive(min_item_bytes=...) leaves small items in the table, "
                        "pack=True lets them share objects, and --force archives them all the same",
                    ) from error
            if not as_json:
                show(_summarize(name, reports[name], dry_run))
    if as_json:
        told = [{"model": name, **report_facts(report)} for name, report in reports.items()]
        show_json({"dry_run": dry_run, "models": told})
    _refuse_failures(reports)


@archive.command()
@model_argument
@_key
@json_option
@url_option
def key(name: str, components: Mapping[str, str], as_json: bool) -> None:
    """Print the key of the object that an item is, or would be, archived to: shop:Order customer=ada number=7."""
    with open_database() as db:
        found = db.archive.key(read_key(load_model(name), components))
    if as_json:
        show_json({"key": found})
    else:
        show(f"{found}\n")


@archive.command()
@models_argument
@json_option
@url_option
def report(names: tuple[str, ...], as_json: bool) -> None:
    """Show how many items are in the table and how many in the archive. It reads the whole table."""
    with open_database() as db:
        found = {name: db.archive.report(model) for name, model in find_archived(names).items()}
    if as_json:
        show_json({"models": [_count_facts(name, each) for name, each in found.items()]})
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
@click.option("--all", "everything", is_flag=True, help="All archived items of the model.")
@click.option(
    "--keys",
    type=click.File("r", encoding="utf-8"),
    help='A file with one key per line, as JSON: {"customer": "ada", "number": 7}; - is stdin.',
)
@json_option
@url_option
def restore(
    name: str, components: Mapping[str, str], everything: bool, keys: Iterable[str] | None, as_json: bool
) -> None:
    """Bring archived items back into the table: one by its key, those of a file, or all.

    The object of an item is deleted when the item is whole in the table again.
    """
    if sum((bool(components), everything, keys is not None)) != 1:
        raise click.UsageError("give the key of an item as FIELD=VALUE..., or --keys, or --all")
    model = load_model(name)
    with open_database() as db:
        if everything:
            restored = db.archive.restore_all(model)
        else:
            wanted = [read_key(model, components)] if keys is None else read_keys(model, keys)
            restored = db.archive.restore(*wanted)
    if as_json:
        show_json({"restored": restored})
    else:
        say(f"{format_count(restored, 'item')} brought back")


for _command in (rekey, rebuild, compact, sweep, export):
    archive.add_command(_command)


# --- words ------------------------------------------------------------------------------------------------


def _tell_progress(dry_run: bool) -> Callable[[ArchiveReport], str]:
    started = datetime.now(UTC)

    def phrase(report: ArchiveReport) -> str:
        seconds = max((datetime.now(UTC) - started).total_seconds(), 1e-3)
        saved = format_saving(report.estimate.monthly)
        if dry_run:
            return f"{report.archived:,} to be archived: {saved}"
        return f"{report.archived:,} archived ({report.archived / seconds:,.0f} a second), {saved}"

    return phrase


def _summarize(name: str, report: ArchiveReport, dry_run: bool) -> str:
    looked_at = report.archived + report.failed + sum(report.skipped.values())
    verb = "would be archived" if dry_run else "archived"
    stay = ", ".join(f"{count:,} {reason}" for reason, count in sorted(report.skipped.items()))
    kept = f" (others: {stay})" if stay else ""
    lines = [f"{name}: {report.archived:,} of {format_count(looked_at, 'hot item')} {verb}{kept}"]
    if dry_run:
        lines += [f"  {line}".rstrip() for line in cost_lines(report)]
    elif report.archived:
        lines.append(
            f"  {format_size(report.item_bytes)} are {format_size(report.object_bytes)} as objects now: "
            f"{format_saving(report.estimate.monthly)}"
        )
    return "".join(f"{line}\n" for line in lines)


def _count_facts(name: str, found: Holdings) -> dict[str, Any]:
    return {
        "model": name,
        "hot_items": found.hot_items,
        "hot_bytes": found.hot_bytes,
        "cold_items": found.cold_items,
        "cold_bytes": found.cold_bytes,
        "pointer_bytes": found.pointer_bytes,
    }


# --- asking and refusing ----------------------------------------------------------------------------------


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
            f"{given} are not prices; write table_storage=0.306, table_write=0.000000762",
            param_hint="--price",
        ) from None


def _refuse_failures(reports: Mapping[str, ArchiveReport]) -> None:
    """List the first items that could not be archived, and end the program so."""
    failed = sum(report.failed for report in reports.values())
    if not failed:
        return
    for name, report in reports.items():
        for problem in report.problems:
            say(f"problem: {name}: {problem}")
    raise Refusal(
        f"{format_count(failed, 'item')} could not be archived, and stayed in the table",
        "remove the cause and run the same command again",
    )
