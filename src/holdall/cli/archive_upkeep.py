"""``holdall archive rekey``, ``rebuild``, ``compact``, ``sweep`` and ``export``: what an archive needs now and then."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdall.cli.archive_model import (
    dry_run_option,
    find_archived,
    load_model,
    model_argument,
    models_argument,
)
from holdall.cli.exit_status import ExitStatus
from holdall.cli.output import Refusal, json_option, say, show_json
from holdall.cli.phrase import format_count, format_size
from holdall.cli.progress import count_roughly, run_progress
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


@click.command()
@models_argument
@dry_run_option
@json_option
@url_option
def rekey(names: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Move archived objects to the keys of the present template, after that was changed.

    Items are read from where they are until then. It reads the whole table, can be stopped at any time and run again.
    """
    with open_database() as db:
        found = {
            name: db.archive.rekey(model, dry_run=dry_run) for name, model in find_archived(names).items()
        }
    if as_json:
        told = [{"model": name, **_rekey_facts(each)} for name, each in found.items()]
        show_json({"dry_run": dry_run, "models": told})
    else:
        verb = "would move" if dry_run else "moved"
        for name, each in found.items():
            changed = f", {each.changed:,} changed meanwhile" if each.changed else ""
            say(
                f"{name}: {each.moved:,} of {format_count(each.examined, 'archived item')} {verb}, "
                f"{each.current:,} where they belong{changed}"
            )
    problems = [f"{name}: {problem}" for name, each in found.items() for problem in each.problems]
    _refuse(
        problems, sum(each.failed for each in found.values()), "could not be moved, and is read as before"
    )


@click.command()
@models_argument
@dry_run_option
@json_option
@url_option
def rebuild(names: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Point items whose pointer or object is damaged to the newest of their objects that verifies.

    It reads the whole table and every archived object. The exit code is 1 when no object was found for an item.
    """
    with open_database() as db:
        found = {
            name: db.archive.rebuild_pointers(model, dry_run=dry_run)
            for name, model in find_archived(names).items()
        }
    if as_json:
        told = [{"model": name, **_rebuild_facts(each)} for name, each in found.items()]
        show_json({"dry_run": dry_run, "models": told})
    else:
        verb = "would be rebuilt" if dry_run else "rebuilt"
        for name, each in found.items():
            older = f", {each.older:,} of them with older content" if each.older else ""
            say(
                f"{name}: {each.sound:,} of {format_count(each.examined, 'archived item')} sound, "
                f"{each.rebuilt:,} {verb}{older}"
            )
    problems = [f"{name}: {problem}" for name, each in found.items() for problem in each.problems]
    _refuse(problems, sum(each.lost for each in found.values()), "has no object any more")


@click.command()
@models_argument
@dry_run_option
@click.option(
    "--live-share",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.5,
    show_default=True,
    help="Rewrite packs of which less than this is needed; 1: of which anything is not.",
)
@click.option(
    "--older-than",
    callback=duration,
    metavar="DURATION",
    default="7d",
    show_default=True,
    help="Only packs that are older: 7d, 2w.",
)
@json_option
@url_option
def compact(
    names: tuple[str, ...], dry_run: bool, live_share: float, older_than: timedelta, as_json: bool
) -> None:
    """Rewrite packs that are mostly of items which were changed or deleted since. For models with pack=True.

    A sweep deletes the old packs. It can be stopped at any time and run again. The exit code is 1 when an item is
    damaged.
    """
    options: dict[str, Any] = {"dry_run": dry_run, "live_share": live_share, "older_than": older_than}
    with open_database() as db:
        found = {name: db.archive.compact(model, **options) for name, model in find_archived(names).items()}
    if as_json:
        told = [{"model": name, **_compaction_facts(each)} for name, each in found.items()]
        show_json({"dry_run": dry_run, "models": told})
    else:
        verb = "would be rewritten" if dry_run else "rewritten"
        for name, each in found.items():
            say(
                f"{name}: {each.rewritten:,} of {format_count(each.packs, 'pack')} {verb}, "
                f"with {format_count(each.moved, 'item')}; {format_size(each.dead_bytes)} were not needed"
            )
    _refuse([], sum(each.damaged for each in found.values()), "damaged in its pack, and left there")


@click.command()
@models_argument
@dry_run_option
@click.option(
    "--older-than",
    callback=duration,
    metavar="DURATION",
    default="7d",
    show_default=True,
    help="Only objects that are older: 7d, 2w.",
)
@click.option(
    "--prefix", metavar="TEXT", help="What keys begin with, if not as the template says; for one model."
)
@click.option(
    "--exclusive",
    is_flag=True,
    help="Delete also where the server ignores conditions: nothing may archive meanwhile.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@url_option
def sweep(
    names: tuple[str, ...],
    dry_run: bool,
    older_than: timedelta,
    prefix: str | None,
    exclusive: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete objects that no item points to: what interrupted runs and later writes left behind.

    You are asked first. Without a terminal to ask on, nothing is deleted unless you say --yes.
    """
    models = find_archived(names)
    if prefix is not None and len(models) != 1:
        raise click.UsageError("--prefix is for one model")
    options: dict[str, Any] = {"older_than": older_than, "prefix": prefix}
    with open_database() as db:
        found = {name: db.archive.sweep(model, dry_run=True, **options) for name, model in models.items()}
        doomed = sum(each.unreferenced for each in found.values())
        if doomed and not dry_run:
            _confirm(doomed, yes)
            for name, model in models.items():
                found[name] = db.archive.sweep(model, dry_run=False, exclusive=exclusive, **options)
    if as_json:
        told = [{"model": name, **_sweep_facts(each)} for name, each in found.items()]
        show_json({"dry_run": dry_run, "models": told})
        return
    for name, each in found.items():
        count, verb = (each.unreferenced, "would be deleted") if dry_run else (each.deleted, "deleted")
        say(f"{name}: {count:,} of {format_count(each.examined, 'object')} {verb}{_tell_kept(each)}")


@click.command()
@model_argument
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["dynamodb-json", "parquet"]),
    default="dynamodb-json",
    show_default=True,
    help="Lines that DynamoDB can import from S3, gzipped; or Parquet, which needs pyarrow.",
)
@json_option
@url_option
def export(name: str, target: Path, format_: ExportFormat, as_json: bool) -> None:
    """Write all items of a model, hot and cold, into a file. It reads the whole table."""
    model = load_model(name)
    with open_database() as db, run_progress(name, count_roughly(db, model), _tell_export) as progress:
        done = db.archive.export(model, to=target, format=format_, progress=progress)
    if as_json:
        show_json({"items": done.items, "cold": done.cold, "bytes": done.bytes})
    else:
        say(f"{target}: {_tell_export(done)}, {format_size(done.bytes)}")


# --- words ------------------------------------------------------------------------------------------------


def _tell_export(report: ExportReport) -> str:
    return f"{format_count(report.items, 'item')}, {report.cold:,} of them archived"


def _tell_kept(found: ArchiveSweep) -> str:
    kept = f"; {found.foreign:,} not of this table, and kept" if found.foreign else ""
    if found.retained:
        kept += f"; {found.retained:,} kept, as this server ignores conditions: see --exclusive"
    return kept


def _rekey_facts(found: ArchiveRekey) -> dict[str, Any]:
    return {
        "examined": found.examined,
        "moved": found.moved,
        "current": found.current,
        "changed": found.changed,
        "failed": found.failed,
        "problems": list(found.problems),
    }


def _rebuild_facts(found: ArchiveRebuild) -> dict[str, Any]:
    return {
        "examined": found.examined,
        "sound": found.sound,
        "rebuilt": found.rebuilt,
        "older": found.older,
        "changed": found.changed,
        "lost": found.lost,
        "problems": list(found.problems),
    }


def _compaction_facts(found: Compaction) -> dict[str, Any]:
    return {
        "packs": found.packs,
        "live_bytes": found.live_bytes,
        "dead_bytes": found.dead_bytes,
        "rewritten": found.rewritten,
        "moved": found.moved,
        "damaged": found.damaged,
    }


def _sweep_facts(found: ArchiveSweep) -> dict[str, Any]:
    return {
        "examined": found.examined,
        "unreferenced": found.unreferenced,
        "deleted": found.deleted,
        "retained": found.retained,
        "foreign": found.foreign,
    }


# --- asking and refusing ----------------------------------------------------------------------------------


def _confirm(doomed: int, yes: bool) -> None:
    many = format_count(doomed, "object")
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refusal(
            f"{many} not deleted: there is no terminal to ask on",
            "add --yes if you are sure",
            status=ExitStatus.REFUSED,
        )
    if not click.confirm(f"Delete {many} that no item points to? There is no way back.", err=True):
        raise Refusal("nothing was deleted", status=ExitStatus.REFUSED)


def _refuse(problems: list[str], count: int, what: str) -> None:
    """End the program, after the first problems, if there are any."""
    if not count:
        return
    for problem in problems:
        say(f"problem: {problem}")
    raise Refusal(f"{format_count(count, 'item')}: {what}", "remove the cause and run the same command again")
