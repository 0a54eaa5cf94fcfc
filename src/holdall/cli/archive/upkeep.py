"""``holdall archive rekey``, ``rebuild``, ``compact``, ``sweep`` and ``export``: maintenance of an archive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdall.cli.archive.model import dry_run_option, find_archived
from holdall.cli.confirmation import confirm
from holdall.cli.module import load_model, model_argument, models_argument
from holdall.cli.options import combine, yes_option
from holdall.cli.output import json_option, say, show_json
from holdall.cli.phrase import format_count, format_size
from holdall.cli.progress import count_roughly, refuse_failures, run_progress
from holdall.cli.session import open_database, url_option
from holdall.cli.times import duration

if TYPE_CHECKING:
    from holdall.archive import (
        ArchiveRebuild,
        ArchiveRekey,
        ArchiveSweep,
        Compaction,
        ExportFormat,
        ExportReport,
    )

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


_upkeep_options = combine(models_argument, dry_run_option, json_option, url_option)


def _older_than_option(things: str) -> Callable[[F], F]:
    return click.option(
        "--older-than",
        callback=duration,
        metavar="DURATION",
        default="7d",
        help=f"Only {things} older than this: 7d, 2w.",
    )


def _show_reports(
    found: dict[str, R], dry_run: bool, as_json: bool, describe: Callable[[R, bool], str]
) -> None:
    """Print each model's report: as JSON, or as the line that ``describe`` returns."""
    if as_json:
        facts = [{"model": name, **asdict(each)} for name, each in found.items()]  # type: ignore[call-overload]
        show_json({"dry_run": dry_run, "models": facts})
    else:
        for name, each in found.items():
            say(f"{name}: {describe(each, dry_run)}")


@click.command()
@_upkeep_options
def rekey(names: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Move objects to new keys after the key template changed.

    Until an object has moved, its item is read from the old key. This reads the whole table. You can stop it at any
    time and run it again.
    """
    with open_database() as db:
        found = {
            name: db.archive.rekey(model, dry_run=dry_run) for name, model in find_archived(names).items()
        }
    _show_reports(found, dry_run, as_json, _describe_rekey)
    refuse_failures(
        sum(each.failed for each in found.values()),
        {name: each.problems for name, each in found.items()},
        "could not be moved and can still be read from the old key",
    )


@click.command()
@_upkeep_options
def rebuild(names: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Repair archived items that cannot be read.

    An item whose pointer or object is damaged is pointed to its newest intact object. This reads the whole table and
    every archived object. The exit status is 1 if an item has no intact object.
    """
    with open_database() as db:
        found = {
            name: db.archive.rebuild_pointers(model, dry_run=dry_run)
            for name, model in find_archived(names).items()
        }
    _show_reports(found, dry_run, as_json, _describe_rebuild)
    refuse_failures(
        sum(each.lost for each in found.values()),
        {name: each.problems for name, each in found.items()},
        "could not be repaired: no intact object was found",
        "bring the objects back from an older version of the bucket",
    )


@click.command()
@_upkeep_options
@click.option(
    "--live-share",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.5,
    help="Rewrite packs of which less than this share is still needed; 1: packs with anything not needed.",
)
@_older_than_option("packs")
def compact(names: tuple[str, ...], dry_run: bool, as_json: bool, **options: Any) -> None:
    """Rewrite packs whose items are mostly no longer needed.

    This is for models with Archive(pack=True), whose packs still hold items that were changed or deleted since. A later
    sweep deletes the old packs. You can stop it at any time and run it again. The exit status is 1 if a packed item is
    damaged.
    """
    with open_database() as db:
        found = {
            name: db.archive.compact(model, dry_run=dry_run, **options)
            for name, model in find_archived(names).items()
        }
    _show_reports(found, dry_run, as_json, _describe_compaction)
    refuse_failures(
        sum(each.damaged for each in found.values()),
        {},
        "could not be moved to a new pack: the stored content is damaged",
        "bring the packs back from an older version of the bucket",
    )


@click.command()
@_upkeep_options
@_older_than_option("objects")
@click.option(
    "--prefix",
    metavar="TEXT",
    help="Look at objects whose keys have this prefix, not the template's; for one model only.",
)
@click.option(
    "--exclusive",
    is_flag=True,
    help="Delete even if the server ignores conditions; make sure that nothing is archived meanwhile.",
)
@yes_option
def sweep(
    names: tuple[str, ...], dry_run: bool, exclusive: bool, yes: bool, as_json: bool, **options: Any
) -> None:
    """Delete objects that no item points to.

    Interrupted runs and later writes leave such objects behind. You are asked for confirmation. Without a terminal,
    nothing is deleted unless you pass --yes.
    """
    models = find_archived(names)
    if options["prefix"] is not None and len(models) != 1:
        raise click.UsageError(f"--prefix needs exactly one model, and {len(models):,} are named")
    with open_database() as db:
        found = {name: db.archive.sweep(model, dry_run=True, **options) for name, model in models.items()}
        doomed = sum(each.unreferenced for each in found.values())
        if doomed and not dry_run:
            if not yes:
                many = format_count(doomed, "object")
                confirm(
                    f"Delete {many} that no item points to? This cannot be undone.", f"{many} not deleted"
                )
            for name, model in models.items():
                found[name] = db.archive.sweep(model, dry_run=False, exclusive=exclusive, **options)
    _show_reports(found, dry_run, as_json, _describe_sweep)


@click.command()
@model_argument
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["dynamodb-json", "parquet"]),
    default="dynamodb-json",
    help="Gzipped lines that DynamoDB can import from S3, or Parquet, which needs pyarrow.",
)
@json_option
@url_option
def export(name: str, target: Path, format_: ExportFormat, as_json: bool) -> None:
    """Write all items of a model, hot and cold, into a file. This reads the whole table."""
    model = load_model(name)
    with open_database() as db, run_progress(name, count_roughly(db, model), _describe_export) as progress:
        done = db.archive.export(model, to=target, format=format_, progress=progress)
    if as_json:
        show_json({"items": done.items, "cold": done.cold, "bytes": done.bytes})
    else:
        say(f"{target}: {_describe_export(done)}, {format_size(done.bytes)}")


# --- words ------------------------------------------------------------------------------------------------


def _describe_rekey(found: ArchiveRekey, dry_run: bool) -> str:
    changed = f", {found.changed:,} changed meanwhile" if found.changed else ""
    return (
        f"{found.moved:,} of {format_count(found.examined, 'archived item')} "
        f"{'would be moved' if dry_run else 'moved'}, {found.current:,} already in place{changed}"
    )


def _describe_rebuild(found: ArchiveRebuild, dry_run: bool) -> str:
    older = f", {found.older:,} of them with older content" if found.older else ""
    return (
        f"{found.sound:,} of {format_count(found.examined, 'archived item')} intact, "
        f"{found.rebuilt:,} {'would be repaired' if dry_run else 'repaired'}{older}"
    )


def _describe_compaction(found: Compaction, dry_run: bool) -> str:
    return (
        f"{found.rewritten:,} of {format_count(found.packs, 'pack')} "
        f"{'would be rewritten' if dry_run else 'rewritten'}, with {format_count(found.moved, 'item')}; "
        f"{format_size(found.dead_bytes)} no longer needed"
    )


def _describe_sweep(found: ArchiveSweep, dry_run: bool) -> str:
    count, verb = (found.unreferenced, "would be deleted") if dry_run else (found.deleted, "deleted")
    text = f"{count:,} of {format_count(found.examined, 'object')} {verb}"
    if found.foreign:
        text += f"; {found.foreign:,} kept, because they do not belong to this table"
    if found.retained:
        text += f"; {found.retained:,} kept, because only --exclusive deletes them"
    return text


def _describe_export(report: ExportReport) -> str:
    return f"{format_count(report.items, 'item')}, {report.cold:,} of them archived"
