"""``holdall migrate``: bring the stored items of models up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdall.cli.module import load_models, models_argument, name_roots
from holdall.cli.options import rate_option, restart_option, segments_option
from holdall.cli.output import json_option, show, show_json
from holdall.cli.phrase import format_count
from holdall.cli.progress import count_roughly, interruptible, refuse_failures, run_progress
from holdall.cli.session import open_database, url_option

if TYPE_CHECKING:
    from holdall.transactions import MigrationReport


@click.command()
@models_argument
@segments_option(1)
@rate_option("items to write")
@click.option("--dry-run", is_flag=True, help="Change nothing; only count the items that would change.")
@restart_option
@json_option
@url_option
def migrate(names: tuple[str, ...], dry_run: bool, as_json: bool, **options: Any) -> None:
    """Bring stored items up to date with their models.

    This applies the models' migrations, renames attributes by the fields' aliases, and adds the attributes that new
    indexes need. MODULE:CLASS names a model together with the models derived from it, as in app.models:Order; MODULE
    alone names all models of the module.

    You can run it while other programs use the table, and as often as you like. After an interruption, the same
    command continues where it stopped. The exit status is 1 if items could not be brought up to date; the first of
    them are listed.
    """
    models = name_roots(load_models(names))
    reports: dict[str, MigrationReport] = {}
    with open_database() as db:
        for name, model in models.items():
            with run_progress(name, count_roughly(db, model), _phrase) as progress, interruptible(dry_run):
                reports[name] = db.migrate(model, dry_run=dry_run, progress=progress, **options)
            if not as_json:
                show(_summary(name, reports[name], dry_run))
    if as_json:
        facts = [{"model": name, **report._asdict()} for name, report in reports.items()]
        show_json({"dry_run": dry_run, "models": facts})
    refuse_failures(
        sum(report.failed for report in reports.values()),
        {name: report.problems for name, report in reports.items()},
        "could not be brought up to date",
        "correct the items or the model's conversions,",
    )


def _summary(name: str, report: MigrationReport, dry_run: bool) -> str:
    done = "would be brought up to date" if dry_run else "brought up to date"
    failed = f", {report.failed:,} failed" if report.failed else ""
    return f"{name}: {format_count(report.found, 'item')}, {report.changed:,} {done}{failed}\n"


def _phrase(report: MigrationReport) -> str:
    return f"{report.changed:,} changed"
