"""``holdall copy``: copy a whole database to another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from holdall.cli.exit_status import ExitStatus
from holdall.cli.module import load_models, models_option
from holdall.cli.options import rate_option
from holdall.cli.output import Refusal, json_option, say, show, show_json
from holdall.cli.phrase import format_count, format_duration, format_money, format_size, parse_size
from holdall.cli.progress import interruptible, run_progress
from holdall.cli.session import open_at, refuse_url

if TYPE_CHECKING:
    from holdall.maintenance import CopiedPart, CopyReport

_COUNTS = {
    "copied": ("would be copied", "copied"),
    "unchanged": ("unchanged since the last pass", "unchanged since the last pass"),
    "same": ("already there", "already there"),
    "differing": ("changed in the target", "changed in the target and left alone"),
    "failed": ("would fail", "failed"),
    "left_out": ("left out", "left out"),
    "deleted": ("would be deleted from the target", "deleted from the target"),
    "gone": ("only in the target now", "only in the target now"),
}


def _parse_bandwidth(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    size = None if text is None else parse_size(text)
    if text is not None and not size:
        raise click.BadParameter(f"{text!r} is not a number of bytes above 0, such as 500kB or 20MB")
    return size


@click.command(name="copy")
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@models_option()
@click.option(
    "--table", "tables", metavar="NAME", multiple=True, help="Another table to copy; can be repeated."
)
@click.option("--source-files", metavar="URL", help="Where the source's files are, unless its URL says so.")
@click.option("--target-files", metavar="URL", help="Where the target's files are, unless its URL says so.")
@click.option("--no-files", is_flag=True, help="Copy tables only.")
@click.option(
    "--create", is_flag=True, help="Create tables that DST lacks; an embedded DST needs no such permission."
)
@click.option("--delete", is_flag=True, help="Delete from DST what came from SRC and is no longer there.")
@click.option("--overwrite", is_flag=True, help="Replace what another program has changed in DST.")
@click.option("--no-verify", is_flag=True, help="Do not read both sides again at the end.")
@click.option(
    "--segments",
    type=click.IntRange(1, 1000),
    help="How many parts of a table to copy in parallel; by default 4 if one of the databases is in DynamoDB.",
)
@rate_option("items to write or delete")
@click.option(
    "--bandwidth",
    metavar="SIZE",
    callback=_parse_bandwidth,
    help="The most bytes of files to read per second, such as 500kB or 20MB; S3's own copies are not limited.",
)
@click.option("--manifest", metavar="FILE", help="The file that records what was copied.")
@click.option("--restart", is_flag=True, help="Forget what earlier runs recorded, and compare everything.")
@click.option(
    "--dry-run", is_flag=True, help="Write nothing; report what would be copied, and what it would cost."
)
@json_option
def copy_database(
    source: str,
    target: str,
    names: tuple[str, ...],
    source_files: str | None,
    target_files: str | None,
    no_files: bool,
    create: bool,
    no_verify: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Copy everything in the database SRC to the database DST: tables, jobs and files.

    SRC and DST are URLs like embedded:app.db or dynamodb://my-app?region=eu-central-1. SRC is not changed. Models with
    tables of their own are named by --models.

    You can run it while programs use SRC, and as often as you like: each run copies what has changed since the last
    one, which a manifest in the current directory records. After an interruption, the same command continues where it
    stopped. Jobs arrive paused: `holdall jobs resume` lets them run.

    The exit status is 1 if something could not be copied, was changed in DST by another program, or is missing there.
    """
    refuse_url("name both databases as SRC and DST")
    models = load_models(names)
    with (
        open_at(source, files=source_files, missing="refuse") as ours,
        open_at(target, files=target_files, missing="empty" if dry_run else "create") as theirs,
        _progress() as progress,
        interruptible(dry_run),
    ):
        report = ours.copy_to(
            theirs,
            models=models,
            files=not no_files,
            create=create or theirs.path is not None or target == "memory:",
            verify=not no_verify,
            dry_run=dry_run,
            progress=progress,
            **options,
        )
    if as_json:
        parts = [part._asdict() for part in report.parts]
        show_json({"source": source, "target": target, **report._asdict(), "parts": parts})
    else:
        for part in report.parts:
            show(_summarize(part, dry_run))
        if dry_run:
            show(_estimate(report))
    _explain(report, target)


class _Progress(NamedTuple):
    """How many items and files were read so far, and the report."""

    scanned: int
    report: CopyReport


@contextmanager
def _progress() -> Iterator[Callable[[CopyReport], None]]:
    """Progress with the rate of what was read, also for verification, and the time left."""
    from time import monotonic

    first: list[tuple[int, float]] = []

    def phrase(progress: _Progress) -> str:
        read, report = progress
        begun, moment = first[0]
        rate = (read - begun) / max(monotonic() - moment, 0.001)
        words = f"{report.copied:,} {'to copy' if report.dry_run else 'copied'}"
        if report.expected is None or not rate:
            return words
        return f"{words}, {rate:,.0f}/s, {format_duration(max(report.expected - read, 0) / rate)} left"

    with run_progress("copy", lambda progress: progress.report.expected, phrase) as update:

        def show_report(report: CopyReport) -> None:
            if not first:  # after an interruption, this is not where the copy began
                first.append((report.read, monotonic()))
            update(_Progress(report.read, report))

        yield show_report


def _summarize(part: CopiedPart, dry_run: bool) -> str:
    facts: dict[str, Any] = part._asdict()
    noun = "item" if part.kind == "table" else "file"
    counts = [f"{facts[name]:,} {words[not dry_run]}" for name, words in _COUNTS.items() if facts[name]]
    lines = [", ".join([f"{part.kind} {part.name}: {format_count(part.scanned, noun)}", *counts])]
    if part.paused:
        held = f"; {part.leased:,} of them held by a worker in the source" if part.leased else ""
        lines.append(f"{format_count(part.paused, 'waiting job')}, paused in the target until resumed{held}")
    if part.verified is not None:
        lines.append(f"verified: {format_count(part.verified, noun)} equal on both sides")
        if part.newer:
            lines.append(
                f"{format_count(part.newer, noun)} changed in the source since: run the same command again"
            )
    return "".join(f"{line}\n" for line in lines)


def _estimate(report: CopyReport) -> str:
    """What the copy would cost if the target were in AWS."""
    from holdall.archive import Prices

    prices = Prices()
    tables = [part for part in report.parts if part.kind == "table"]
    units, size = sum(part.write_units for part in tables), sum(part.copied_bytes for part in tables)
    files = [part for part in report.parts if part.kind == "files"]
    puts, bytes_ = sum(part.copied for part in files), sum(part.copied_bytes for part in files)
    return (
        f"to DynamoDB: {format_size(size)}, about {format_count(units, 'write unit')}, "
        f"{format_money(units * prices.table_write)}\n"
        f"to S3: {format_size(bytes_)}, {format_count(puts, 'request')} or more, "
        f"{format_money(puts * prices.object_put)}\n"
        f"(on demand, prices of {prices.date} in {prices.region}, without transfer and reads)\n"
    )


def _explain(report: CopyReport, target: str) -> None:
    """Print what needs attention, and end the program if the copy is not complete."""
    from shlex import quote

    for part in report.parts:
        for name in part.leased_jobs:
            say(f"held by a worker in the source: job {name}")
        for line in (*part.differences, *part.problems):
            say(f"{part.kind} {part.name}: {line.replace('create=True', '--create')}")
    if any(part.paused for part in report.parts) and not report.dry_run:
        say(f"when the source is no longer used, run: holdall --url {quote(target)} jobs resume")
    if not report.is_complete:
        raise Refusal(
            "the copy is not complete",
            "look at the lines above; --overwrite replaces what was changed in the target, and the next run copies "
            "what is missing there",
            status=ExitStatus.ERROR,
        )
