"""``holdall migrate``: bring stored items of models up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdall.cli.module import load_models
from holdall.cli.output import Refusal, json_option, say, show, show_json
from holdall.cli.progress import count_roughly, interruptible, run_progress
from holdall.cli.session import open_database, url_option

if TYPE_CHECKING:
    from holdall import Model
    from holdall.transactions.migration.bulk import MigrationReport


@click.command()
@click.argument("names", metavar="MODULE[:CLASS]...", nargs=-1, required=True)
@click.option(
    "--segments",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Parts of the table to work on side by side.",
)
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="The most items to write in a second.")
@click.option("--dry-run", is_flag=True, help="Only count what would be changed.")
@click.option("--restart", is_flag=True, help="Begin anew, also where an earlier run was stopped.")
@json_option
@url_option
def migrate(
    names: tuple[str, ...], segments: int, rate: float | None, dry_run: bool, restart: bool, as_json: bool
) -> None:
    """Bring all stored items of models up to date with their classes.

    That is what their migrations convert, what their fields' aliases rename, and the attributes of new indexes.
    MODULE:CLASS is a model with those derived from it, as in app.models:Order; MODULE alone is all its models.

    It is safe beside programs that use the table, and when it is run twice. A run that was stopped goes on where it
    was. The exit code is 1 when items could not be brought up to date; the first of them are listed.
    """
    models = {f"{model.__module__}:{model.__qualname__}": model for model in _roots(load_models(names))}
    reports: dict[str, MigrationReport] = {}
    with open_database() as db:
        for name, model in models.items():
            with run_progress(name, count_roughly(db, model), _phrase) as progress, interruptible(dry_run):
                reports[name] = db.migrate(
                    model, segments=segments, rate=rate, dry_run=dry_run, restart=restart, progress=progress
                )
            if not as_json:
                show(_summary(name, reports[name], dry_run))
    if as_json:
        told = [{"model": name, **report._asdict()} for name, report in reports.items()]
        show_json({"dry_run": dry_run, "models": told})
    _refuse_failures(reports)


def _roots(models: list[type[Model]]) -> list[type[Model]]:
    """Without those that derive from another, as they are looked after with that."""
    return [model for model in models if not any(base in models for base in model.__mro__[1:])]


def _summary(name: str, report: MigrationReport, dry_run: bool) -> str:
    done = "to be brought up to date" if dry_run else "brought up to date"
    failed = f", {report.failed:,} failed" if report.failed else ""
    return f"{name}: {_items(report.found)}, {report.changed:,} {done}{failed}\n"


def _phrase(report: MigrationReport) -> str:
    return f"{report.changed:,} changed"


def _items(count: int) -> str:
    return f"{count:,} {'item' if count == 1 else 'items'}"


def _refuse_failures(reports: dict[str, MigrationReport]) -> None:
    """Tell of the first items that could not be brought up to date, and end the program so."""
    failed = sum(report.failed for report in reports.values())
    if not failed:
        return
    for name, report in reports.items():
        for problem in report.problems:
            say(f"problem: {name}: {problem}")
    untold = failed - sum(len(report.problems) for report in reports.values())
    if untold > 0:
        say(f"… and {untold:,} more")
    raise Refusal(
        f"{_items(failed)} could not be brought up to date",
        "put them or the conversions right, and run the same command again",
    )
