"""``holdall artifacts``: put them, publish versions, look at them, hand them out, and delete what is old."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdall.cli.output import Refusal, escape, json_option, say, show, show_json, show_pairs, show_table
from holdall.cli.phrase import (
    artifact_row,
    artifact_words,
    format_count,
    format_size,
    size_of,
    tell_artifact,
    what_is,
)
from holdall.cli.place import (
    app_option,
    expect_revision_option,
    open_artifacts,
    open_for_change,
    pairs,
    place_options,
)
from holdall.cli.progress import transfer
from holdall.cli.retention import delete, prune, purge, restore
from holdall.cli.times import moment
from holdall.errors import HoldallError

if TYPE_CHECKING:
    from holdall import Database
    from holdall.artifacts.version.lookup import Where

F = TypeVar("F", bound=Callable[..., Any])

_key_option = click.option(
    "--key", metavar="TEXT", help="Who asks: decides what an alias with several versions serves."
)


def _content_options(function: F) -> F:
    """Options that are kept with content."""
    function = click.option(
        "--tag",
        "tags",
        metavar="NAME=VALUE",
        multiple=True,
        callback=pairs,
        help="A tag of the object; may be repeated.",
    )(function)
    function = click.option(
        "--metadata",
        metavar="NAME=VALUE",
        multiple=True,
        callback=pairs,
        help="Kept with it; may be repeated.",
    )(function)
    return click.option("--content-type", metavar="TYPE", help="What it is, like application/zip.")(function)


def _expectation_options(function: F) -> F:
    """Options that a change demands of the artifact."""
    function = expect_revision_option(function)
    function = click.option(
        "--expect-version", metavar="N", help="Only if this is the newest version; 0: if there is none."
    )(function)
    return click.option("--expect-sha256", metavar="HEX", help="Only if LATEST has this digest.")(function)


def _content(source: str) -> Any:
    return sys.stdin.buffer if source == "-" else source


@click.group()
@place_options
def artifacts() -> None:
    """Put artifacts, publish them as numbered versions, and look after those there are.

    What was put last is LATEST. Publishing turns it into the next version, which never changes. `holdall alias` decides
    which versions are served.
    """


@artifacts.command()
@json_option
@place_options
def init(as_json: bool) -> None:
    """Create the bucket and the table for artifacts, where they are missing, and say so.

    The bucket is made in the region of its service, with what S3 sets by itself. What is there stays as it is, so
    running it again is harmless.
    """
    with open_artifacts() as db:
        buckets = db.create_buckets(db.artifacts.settings.service)
        existed = _table_exists(db)
        table = db.artifacts.create_table()
    for bucket, made in buckets.items():
        say(f"bucket {bucket} was {'made' if made else 'there already'}")
    say(f"table {table} was {'there already' if existed else 'made'}")
    if as_json:
        show_json({"buckets": buckets, "table": table, "table_created": not existed})


@artifacts.command()
@click.argument("name")
@click.argument("source")
@_content_options
@_expectation_options
@json_option
@place_options
def put(name: str, source: str, as_json: bool, **options: Any) -> None:
    """Make a file or a directory the LATEST of an artifact; SOURCE may be - for stdin.

    When that is LATEST already, nothing is uploaded.
    """
    with open_for_change() as db, _local_files(), transfer(name) as progress:
        found = db.artifacts.put(name, _content(source), progress=progress, **options)
    tell_artifact(found, "is", as_json)


@artifacts.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Also when nothing changed since the newest version.")
@click.option(
    "--from",
    "source",
    metavar="PATH",
    help="A file or directory to publish, - for stdin; it also becomes LATEST.",
)
@_content_options
@_expectation_options
@app_option
@json_option
@place_options
def publish(name: str, source: str | None, modules: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Publish LATEST as the next version, which never changes; with --from, publish a file or a directory.

    If the newest version already has the same content, type, metadata and tags, it is shown, and no version is made.
    """
    if source is None:
        if any(options.pop(each) for each in ("content_type", "metadata", "tags")):
            raise click.UsageError("--content-type, --metadata and --tag need --from")
        with open_for_change(modules) as db:
            found = db.artifacts.publish(name, **options)
    else:
        with open_for_change(modules) as db, _local_files(), transfer(name) as progress:
            found = db.artifacts.publish(name, _content(source), progress=progress, **options)
    tell_artifact(found, "is published:", as_json)


@artifacts.command("list")
@click.argument("name", required=False)
@click.option("--starting-with", metavar="TEXT", default="", help="Only names that begin so.")
@click.option("--deleted", is_flag=True, help="Also deleted versions, or artifacts of which all are.")
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
@click.option("--since", callback=moment, metavar="TIME", help="Only versions made at or after.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="The most to list.")
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
    """List the names of all artifacts, or, with a NAME, its versions: LATEST first, then the newest first."""
    if name is None:
        if tags or metadata or since:
            raise click.UsageError("--tag, --metadata and --since are for the versions of a NAME")
        _list_names(starting_with, deleted, limit, as_json)
        return
    if starting_with:
        raise click.UsageError("--starting-with is for names: give no NAME")
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
        say(f"there are no such versions of {name}")
        return
    heads = ("version", "size", "made", "sha256", "aliases")
    show_table((*heads, "deleted") if deleted else heads, [artifact_row(each, deleted) for each in listed])
    if more:
        say(f"there are more than {limit:,}: say --limit to see them")


@artifacts.command("show")
@click.argument("name")
@click.argument("reference", metavar="[VERSION_OR_ALIAS]", required=False)
@_key_option
@click.option("--deleted", is_flag=True, help="Also if it is deleted.")
@json_option
@place_options
def show_artifact(name: str, reference: str | None, key: str | None, deleted: bool, as_json: bool) -> None:
    """Show a version, or what an alias serves; LATEST without either."""
    with open_artifacts() as db:
        found = db.artifacts.get(name, reference, key=key, deleted=deleted)
    if as_json:
        show_json(found.describe())
    else:
        show_pairs(artifact_words(found))


@artifacts.command()
@click.argument("name")
@click.argument("reference", metavar="[VERSION_OR_ALIAS]", required=False)
@click.option("--to", metavar="PATH", required=True, help="The path to write to; - for stdout.")
@_key_option
@click.option("--resume", is_flag=True, help="Go on with a download to the same path that was broken off.")
@click.option("--no-cache", is_flag=True, help="Go past the cache that the settings name.")
@json_option
@place_options
def download(
    name: str, reference: str | None, to: str, key: str | None, resume: bool, no_cache: bool, as_json: bool
) -> None:
    """Write a version, or what an alias serves, to a path or to stdout; LATEST without either.

    All of it is checked against its digest. A file or directory appears when it is complete and right; a directory
    needs a path where nothing is yet.
    """
    if to == "-" and as_json:
        raise click.UsageError("stdout cannot have the bytes and the JSON: give a path")
    target: Any = sys.stdout.buffer if to == "-" else to
    with open_artifacts() as db, _local_files(), transfer(name) as progress:
        found = db.artifacts.get(name, reference, key=key)
        cache = False if no_cache else None
        db.artifacts.download(name, found.version, target, progress=progress, resume=resume, cache=cache)
    if as_json:
        show_json({**found.describe(), "path": to})
    if to != "-":
        say(f"{what_is(name, found.version)} is in {to}: {size_of(found)}")


for _command in (delete, restore, prune, purge):
    artifacts.add_command(_command)


@artifacts.command()
@json_option
@place_options
def reindex(as_json: bool) -> None:
    """List artifacts anew, those too that the package versioned has made. The whole table is read for it.

    What uploads that died long ago have left in the service is deleted.
    """
    with open_artifacts() as db:
        found = db.artifacts.reindex()
    if as_json:
        show_json(
            {
                "artifacts": found.artifacts,
                "added": found.added,
                "removed": found.removed,
                "objects": found.objects,
                "bytes": found.bytes,
            }
        )
        return
    say(
        f"{format_count(found.artifacts, 'artifact')}: {found.added:,} added to the list, {found.removed:,} removed"
    )
    if found.objects:
        say(
            f"{format_count(found.objects, 'object')} with {format_size(found.bytes)} deleted, "
            "which belonged to nothing"
        )


# --- doing ------------------------------------------------------------------------------------------------


@contextmanager
def _local_files() -> Iterator[None]:
    """What this machine has against reading or writing a file is a refusal; that nobody reads on is not."""
    try:
        yield
    except (HoldallError, BrokenPipeError):
        raise
    except OSError as error:
        raise Refusal(f"{error.filename or 'a file'}: {error.strerror or error}") from error


def _table_exists(db: Database) -> bool:
    from holdall.core import DescribeTable
    from holdall.errors import TableNotFoundError

    own = db.artifacts.settings.table
    if own is None:
        return db.table.exists()
    try:
        db.send(DescribeTable(own))
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
        say("there are no such artifacts" if prefix else "there are no artifacts")
    for each in listed:
        show(f"{escape(each)}\n")
    if more:
        say(f"there are more than {limit:,}: say --limit to see them")
