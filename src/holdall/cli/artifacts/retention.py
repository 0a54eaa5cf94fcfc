"""``holdall artifacts delete``, ``restore``, ``prune`` and ``purge``: the end of old versions."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from holdall.cli.artifacts.place import (
    allow_protected_option,
    app_option,
    expect_revision_option,
    open_for_change,
    place_options,
)
from holdall.cli.confirmation import confirm_by_typing, require_terminal
from holdall.cli.options import yes_option
from holdall.cli.output import json_option, say, show, show_json
from holdall.cli.phrase import format_count, format_size, print_artifact, what_is
from holdall.cli.suggestion import suggest_artifact, suggest_version
from holdall.cli.times import duration

if TYPE_CHECKING:
    from holdall.artifacts import PurgeReport


@click.command()
@click.argument("name", shell_complete=suggest_artifact)
@click.argument("version", shell_complete=suggest_version)
@click.option("--drop-aliases", is_flag=True, help="Delete the aliases that serve it, too.")
@allow_protected_option
@expect_revision_option
@app_option
@place_options
def delete(name: str, version: str, modules: tuple[str, ...], **options: Any) -> None:
    """Delete a version (a number or LATEST).

    It can be restored until it is purged. A version that an alias serves is not deleted unless you pass --drop-aliases.
    It is not an error if the version does not exist.
    """
    with open_for_change(modules) as db:
        deleted = db.artifacts.delete(name, version, **options)
    if deleted:
        say(f"{what_is(name, version)} deleted")
    else:
        say(f"there is no {what_is(name, version)}: nothing to delete")


@click.command()
@click.argument("name", shell_complete=suggest_artifact)
@click.argument("version", shell_complete=suggest_version)
@app_option
@json_option
@place_options
def restore(name: str, version: str, modules: tuple[str, ...], as_json: bool) -> None:
    """Restore a deleted version (a number or LATEST)."""
    with open_for_change(modules) as db:
        found = db.artifacts.restore(name, version)
    print_artifact(found, "restored:", as_json)


@click.command()
@click.argument("name", shell_complete=suggest_artifact)
@click.option(
    "--keep-last",
    type=click.IntRange(0),
    default=10,
    help="How many of the newest versions to keep, however old they are.",
)
@click.option(
    "--older-than",
    callback=duration,
    default="90d",
    metavar="DURATION",
    help="Keep versions younger than this: 12h, 7d, 2w.",
)
@click.option("--dry-run", is_flag=True, help="Delete nothing; only report what would be deleted.")
@app_option
@json_option
@place_options
def prune(
    name: str, keep_last: int, older_than: timedelta, dry_run: bool, modules: tuple[str, ...], as_json: bool
) -> None:
    """Delete old versions of an artifact.

    They can be restored until they are purged. LATEST and versions that an alias serves are kept.
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
    say(f"{format_count(count, 'version')} {'would be deleted' if dry_run else 'deleted'}")
    for each in report.in_use:
        say(f"version {each.version} kept: it is served by {', '.join(each.aliases) or 'an alias'}")


@click.command()
@click.argument("name", shell_complete=suggest_artifact)
@click.argument("version", required=False, shell_complete=suggest_version)
@click.option("--drop-aliases", is_flag=True, help="Delete the aliases that serve it, too.")
@allow_protected_option
@click.option("--dry-run", is_flag=True, help="Purge nothing; only report what would be purged.")
@yes_option
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
    """Permanently delete a version, or a whole artifact.

    Without a VERSION, the artifact is deleted with all its versions. You confirm by typing the version, or the
    artifact's name. Without a terminal, nothing is purged unless you pass --yes. Version numbers are not reused. It is
    not an error if the version or artifact does not exist.
    """
    with open_for_change(modules) as db:
        report = db.artifacts.purge(name, version, dry_run=True, **options)
        if report.versions and not dry_run and not yes:
            _confirm(name, version, report)
        if not dry_run and (report.versions or yes):  # --yes also continues a purge that was interrupted
            report = db.artifacts.purge(name, version, **options)
    if as_json:
        show_json({**asdict(report), "dry_run": dry_run})
    elif not report.versions:
        say(f"there is no {what_is(name, version)}: nothing to purge")
    else:
        say(f"{'would be purged' if dry_run else 'purged'}: {_describe_purge(report)}")


def _confirm(name: str, version: str | None, report: PurgeReport) -> None:
    require_terminal(undone := f"{what_is(name, version)} was not purged")
    say(f"This purges {_describe_purge(report)} of {name}. It cannot be undone.")
    wanted, called = (name, "artifact's name") if version is None else (version, "version")
    confirm_by_typing(wanted, called, "purge", undone)


def _describe_purge(report: PurgeReport) -> str:
    aliases = f", {format_count(len(report.aliases), 'alias', 'aliases')}" if report.aliases else ""
    return (
        f"{format_count(len(report.versions), 'version')}{aliases}, {format_count(report.objects, 'object')} "
        f"with {format_size(report.bytes)}"
    )
