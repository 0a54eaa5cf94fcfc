"""``holdall artifacts``: put artifacts, publish versions, list, show and download them, and delete old ones."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from holdall.cli.artifacts.place import (
    app_option,
    expect_revision_option,
    open_artifacts,
    open_for_change,
    pairs,
    place_options,
)
from holdall.cli.artifacts.retention import delete, prune, purge, restore
from holdall.cli.options import combine, limit_option
from holdall.cli.output import escape, json_option, say, show, show_json, show_pairs, show_table
from holdall.cli.phrase import (
    artifact_row,
    artifact_words,
    format_count,
    format_size,
    print_artifact,
    size_of,
    what_is,
)
from holdall.cli.progress import transfer
from holdall.cli.suggestion import suggest_artifact, suggest_reference
from holdall.cli.times import moment

if TYPE_CHECKING:
    from holdall import Database
    from holdall.artifacts import Where

_key_option = click.option(
    "--key",
    metavar="TEXT",
    help="A stable key, like a user's ID, that selects a version if an alias splits traffic.",
)
_content_options = combine(
    click.option("--content-type", metavar="TYPE", help="The content type, like application/zip."),
    click.option(
        "--metadata",
        metavar="NAME=VALUE",
        multiple=True,
        callback=pairs,
        help="Metadata to store with it; can be given several times.",
    ),
    click.option(
        "--tag",
        "tags",
        metavar="NAME=VALUE",
        multiple=True,
        callback=pairs,
        help="A tag for the object; can be given several times.",
    ),
)
_expectation_options = combine(
    click.option("--expect-sha256", metavar="HEX", help="Fail unless LATEST has this digest."),
    click.option(
        "--expect-version",
        metavar="N",
        help="Fail unless this is the newest version; 0 means that there is none yet.",
    ),
    expect_revision_option,
)


def _content(source: str) -> Any:
    return sys.stdin.buffer if source == "-" else source


@click.group()
@place_options
def artifacts() -> None:
    """Store artifacts, and publish them as numbered versions.

    The content that was stored last is called LATEST. Publishing makes it the next version, which never changes.
    `holdall alias` decides which versions are served.
    """


@artifacts.command()
@json_option
@place_options
def init(as_json: bool) -> None:
    """Create the bucket and the table for artifacts.

    The bucket is created in the region of its service, with S3's default settings. What already exists is not changed,
    so you can safely run it again.
    """
    with open_artifacts() as db:
        buckets = db.create_buckets(db.artifacts.settings.service)
        existed = _table_exists(db)
        table = db.artifacts.create_table()
    for bucket, made in buckets.items():
        say(f"bucket {bucket} {'created' if made else 'already exists'}")
    say(f"table {table} {'already exists' if existed else 'created'}")
    if as_json:
        show_json({"buckets": buckets, "table": table, "table_created": not existed})


@artifacts.command()
@click.argument("name", shell_complete=suggest_artifact)
@click.argument("source")
@_content_options
@_expectation_options
@json_option
@place_options
def put(name: str, source: str, as_json: bool, **options: Any) -> None:
    """Store a file or a directory as LATEST of an artifact. SOURCE is a path, or - for stdin.

    If LATEST already has this content, nothing is uploaded.
    """
    with open_for_change() as db, transfer(name) as progress:
        found = db.artifacts.put(name, _content(source), progress=progress, **options)
    print_artifact(found, "is", as_json)


@artifacts.command()
@click.argument("name", shell_complete=suggest_artifact)
@click.option("--force", is_flag=True, help="Publish even if nothing has changed since the newest version.")
@click.option(
    "--from",
    "source",
    metavar="PATH",
    help="A file or directory to publish, or - for stdin; it also becomes LATEST.",
)
@_content_options
@_expectation_options
@app_option
@json_option
@place_options
def publish(name: str, source: str | None, modules: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Publish LATEST as the next version, which never changes.

    With --from, publish a file or a directory instead. If the newest version already has the same content, type,
    metadata and tags, no version is created, and that one is shown.
    """
    if source is None:
        if any(options.pop(each) for each in ("content_type", "metadata", "tags")):
            raise click.UsageError("--content-type, --metadata and --tag need --from")
        with open_for_change(modules) as db:
            found = db.artifacts.publish(name, **options)
    else:
        with open_for_change(modules) as db, transfer(name) as progress:
            found = db.artifacts.publish(name, _content(source), progress=progress, **options)
    print_artifact(found, "published:", as_json)


@artifacts.command("list")
@click.argument("name", required=False, shell_complete=suggest_artifact)
@click.option(
    "--starting-with", metavar="TEXT", default="", show_default=False, help="Only names with this prefix."
)
@click.option(
    "--deleted", is_flag=True, help="Include deleted versions, and artifacts with only deleted versions."
)
@click.option(
    "--tag", "tags", metavar="NAME=VALUE", multiple=True, callback=pairs, help="Only versions with this tag."
)
@click.option(
    "--metadata",
    metavar="NAME=VALUE",
    multiple=True,
    callback=pairs,
    help="Only versions with this metadata.",
)
@click.option("--since", callback=moment, metavar="TIME", help="Only versions created at this time or later.")
@limit_option("entries")
@json_option
@place_options
def list_(
    name: str | None,
    starting_with: str,
    deleted: bool,
    tags: dict[str, str],
    metadata: dict[str, str],
    since: datetime | None,
    limit: int,
    as_json: bool,
) -> None:
    """List all artifacts, or the versions of one. LATEST comes first, then the newest version."""
    if name is None:
        if tags or metadata or since:
            raise click.UsageError("--tag, --metadata and --since need a NAME, whose versions they select")
        _list_names(starting_with, deleted, limit, as_json)
        return
    if starting_with:
        raise click.UsageError("--starting-with selects names, so it cannot be combined with a NAME")
    where: Where = {"deleted": None if deleted else False}
    if tags:
        where["tags"] = tags
    if metadata:
        where["metadata"] = metadata
    if since is not None:
        where["after"] = since
    with open_artifacts() as db:
        found = list(db.artifacts.versions(name, where=where, limit=limit + 1))
    listed, more = found[:limit], len(found) > limit
    if as_json:
        show_json({"versions": [each.describe() for each in listed], "more": more})
        return
    if not listed:
        say(f"no version of {name} matches" if tags or metadata or since else f"{name} has no versions")
        return
    heads = ("version", "size", "created", "sha256", "aliases")
    show_table((*heads, "deleted") if deleted else heads, [artifact_row(each, deleted) for each in listed])
    if more:
        say(f"there are more than {limit:,}; raise --limit to see them")


@artifacts.command("show")
@click.argument("name", shell_complete=suggest_artifact)
@click.argument("reference", metavar="[VERSION_OR_ALIAS]", required=False, shell_complete=suggest_reference)
@_key_option
@click.option("--deleted", is_flag=True, help="Show it even if it is deleted.")
@json_option
@place_options
def show_artifact(name: str, reference: str | None, key: str | None, deleted: bool, as_json: bool) -> None:
    """Show a version, or the one that an alias serves. The default is LATEST."""
    with open_artifacts() as db:
        found = db.artifacts.get(name, reference, key=key, deleted=deleted)
    if as_json:
        show_json(found.describe())
    else:
        show_pairs(artifact_words(found))


@artifacts.command()
@click.argument("name", shell_complete=suggest_artifact)
@click.argument("reference", metavar="[VERSION_OR_ALIAS]", required=False, shell_complete=suggest_reference)
@click.option("--to", metavar="PATH", required=True, help="The path to write to, or - for stdout.")
@_key_option
@click.option("--resume", is_flag=True, help="Continue an interrupted download to the same path.")
@click.option("--no-cache", is_flag=True, help="Do not use the cache that the settings name.")
@json_option
@place_options
def download(
    name: str, reference: str | None, to: str, key: str | None, resume: bool, no_cache: bool, as_json: bool
) -> None:
    """Write a version to a file, a directory or stdout.

    Name a version, or an alias to get the version that it serves; the default is LATEST. Everything is checked against
    its digest. The file or directory appears only when it is complete and correct; for a directory, the path must not
    exist yet.
    """
    if to == "-" and as_json:
        raise click.UsageError("--json prints to stdout, so --to must be a path")
    target: Any = sys.stdout.buffer if to == "-" else to
    with open_artifacts() as db, transfer(name) as progress:
        found = db.artifacts.get(name, reference, key=key)
        cache = False if no_cache else None
        db.artifacts.download(name, found.version, target, progress=progress, resume=resume, cache=cache)
    if as_json:
        show_json({**found.describe(), "path": to})
    if to != "-":
        say(f"{what_is(name, found.version)} written to {to}: {size_of(found)}")


for _command in (delete, restore, prune, purge):
    artifacts.add_command(_command)


@artifacts.command()
@json_option
@place_options
def reindex(as_json: bool) -> None:
    """Rebuild the list of artifacts.

    The new list includes artifacts made with the package `versioned`. This reads the whole table. It also deletes
    objects that interrupted uploads left behind long ago.
    """
    with open_artifacts() as db:
        found = db.artifacts.reindex()
    if as_json:
        show_json(asdict(found))
        return
    say(
        f"{format_count(found.artifacts, 'artifact')}: {found.added:,} added to the list, {found.removed:,} removed"
    )
    if found.objects:
        say(
            f"{format_count(found.objects, 'object')} ({format_size(found.bytes)}) deleted, "
            "left by interrupted uploads"
        )


# --- doing ------------------------------------------------------------------------------------------------


def _table_exists(db: Database) -> bool:
    from holdall.core import DescribeTable
    from holdall.errors import TableNotFoundError

    own = db.artifacts.settings.table
    if own is None:
        return db.table.exists()
    try:
        db.send(DescribeTable(own, counts=False))
    except TableNotFoundError:
        return False
    return True


def _list_names(prefix: str, deleted: bool, limit: int, as_json: bool) -> None:
    from itertools import islice

    with open_artifacts() as db:
        found = list(islice(db.artifacts.names(prefix, deleted=deleted), limit + 1))
    listed, more = found[:limit], len(found) > limit
    if as_json:
        show_json({"names": listed, "more": more})
        return
    if not listed:
        say(f"no artifact's name starts with {prefix}" if prefix else "there are no artifacts")
    for each in listed:
        show(f"{escape(each)}\n")
    if more:
        say(f"there are more than {limit:,}; raise --limit to see them")
