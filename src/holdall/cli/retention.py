"""What becomes of old versions: deleted, restored, pruned, purged. Commands of ``holdall artifacts``."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from holdall.cli.exit_status import ExitStatus
from holdall.cli.output import Refusal, json_option, say, show, show_json
from holdall.cli.phrase import format_count, format_size, tell_artifact, what_is
from holdall.cli.place import (
    allow_protected_option,
    app_option,
    expect_revision_option,
    open_for_change,
    place_options,
)
from holdall.cli.times import duration

if TYPE_CHECKING:
    from holdall.artifacts import PurgeReport


@click.command()
@click.argument("name")
@click.argument("version")
@click.option("--drop-aliases", is_flag=True, help="Delete the aliases that serve it, too.")
@allow_protected_option
@expect_revision_option
@app_option
@place_options
def delete(name: str, version: str, modules: tuple[str, ...], **options: Any) -> None:
    """Delete a version, a number or LATEST; it can be restored until it is purged.

    What an alias serves is not deleted, unless you say --drop-aliases. What is not there is no error.
    """
    with open_for_change(modules) as db:
        deleted = db.artifacts.delete(name, version, **options)
    if deleted:
        say(f"{what_is(name, version)} is deleted")
    else:
        say(f"there is no {what_is(name, version)}: nothing to delete")


@click.command()
@click.argument("name")
@click.argument("version")
@app_option
@json_option
@place_options
def restore(name: str, version: str, modules: tuple[str, ...], as_json: bool) -> None:
    """Bring a deleted version back, a number or LATEST."""
    with open_for_change(modules) as db:
        found = db.artifacts.restore(name, version)
    tell_artifact(found, "is there:", as_json)


@click.command()
@click.argument("name")
@click.option(
    "--keep-last",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Versions that stay however old.",
)
@click.option(
    "--older-than",
    callback=duration,
    default="90d",
    show_default=True,
    metavar="DURATION",
    help="Younger ones stay: 12h, 7d, 2w.",
)
@click.option("--dry-run", is_flag=True, help="Only tell what would be deleted.")
@app_option
@json_option
@place_options
def prune(
    name: str, keep_last: int, older_than: timedelta, dry_run: bool, modules: tuple[str, ...], as_json: bool
) -> None:
    """Delete old versions of an artifact; they can be restored until they are purged.

    LATEST stays, and so does what an alias serves.
    """
    with open_for_change(modules) as db:
        report = db.artifacts.prune(name, keep_last=keep_last, older_than=older_than, dry_run=dry_run)
    if as_json:
        show_json(
            {
                "name": name,
                "dry_run": dry_run,
                "at": report.at.isoformat(),
                "pruned": [each.describe() for each in report.pruned],
                "in_use": [each.describe() for each in report.in_use],
            }
        )
        return
    for each in report.pruned:
        show(f"{each.version}\n")
    count = len(report.pruned)
    say(
        f"{format_count(count, 'version')} {'would be' if dry_run else 'is' if count == 1 else 'are'} deleted"
    )
    for each in report.in_use:
        say(f"version {each.version} stays: {', '.join(each.aliases) or 'an alias'} serves it")


@click.command()
@click.argument("name")
@click.argument("version", required=False)
@click.option("--drop-aliases", is_flag=True, help="Delete the aliases that serve it, too.")
@allow_protected_option
@click.option("--dry-run", is_flag=True, help="Only tell what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@app_option
@json_option
@place_options
def purge(
    name: str,
    version: str | None,
    dry_run: bool,
    yes: bool,
    modules: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Delete a version for good, or, without a VERSION, the artifact with all of them, and free the bytes.

    You are asked to type the version, or the artifact's name. Without a terminal to ask on, nothing is purged unless
    you say --yes. Numbers are not used again. What is not there is no error.
    """
    with open_for_change(modules) as db:
        report = db.artifacts.purge(name, version, dry_run=True, **options)
        if report.versions and not dry_run and not yes:
            _confirm(name, version, report)
        if not dry_run and (report.versions or yes):  # also to go on with a purge that was broken off
            report = db.artifacts.purge(name, version, **options)
    if as_json:
        show_json(
            {
                "name": name,
                "versions": list(report.versions),
                "aliases": list(report.aliases),
                "objects": report.objects,
                "bytes": report.bytes,
                "dry_run": dry_run,
            }
        )
    elif not report.versions:
        say(f"there is no {what_is(name, version)}: nothing to purge")
    else:
        say(f"{'would be gone' if dry_run else 'gone'}: {_describe_purge(report)}")


def _confirm(name: str, version: str | None, report: PurgeReport) -> None:
    what = what_is(name, version)
    if not sys.stdin.isatty():
        raise Refusal(
            f"{what} was not purged: there is no terminal to ask on",
            "add --yes if you are sure",
            status=ExitStatus.REFUSED,
        )
    say(f"This purges {_describe_purge(report)} of {name}. There is no way back.")
    wanted, called = (name, "artifact's name") if version is None else (version, "version")
    typed = click.prompt(f"Type the {called} to purge it", default="", show_default=False, err=True)
    if typed != wanted:
        raise Refusal(f"{what} was not purged: that was not the {called}", status=ExitStatus.REFUSED)


def _describe_purge(report: PurgeReport) -> str:
    aliases = f", {format_count(len(report.aliases), 'alias', 'aliases')}" if report.aliases else ""
    return (
        f"{format_count(len(report.versions), 'version')}{aliases}, {format_count(report.objects, 'object')} "
        f"with {format_size(report.bytes)}"
    )
