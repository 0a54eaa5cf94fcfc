"""``holdall jobs``: list and show jobs, retry dead ones, resume paused ones, delete them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from holdall.cli.confirmation import confirm
from holdall.cli.exit_status import ExitStatus
from holdall.cli.options import limit_option, yes_option
from holdall.cli.output import (
    Refusal,
    format_time,
    json_option,
    say,
    show,
    show_json,
    show_pairs,
    show_table,
)
from holdall.cli.phrase import format_count
from holdall.cli.session import open_database, url_option
from holdall.cli.suggestion import suggest_queue
from holdall.cli.times import duration, moment
from holdall.errors import JobBusyError, JobNotFoundError, MalformedJobError

if TYPE_CHECKING:
    from holdall import Database
    from holdall.jobs import JobRecord

_MANY = 10_000
"""The most jobs counted before the user is asked whether to delete them."""


_queue_option = click.option(
    "--queue", metavar="NAME", shell_complete=suggest_queue, help="Only jobs in this queue."
)
_name_option = click.option("--name", metavar="NAME", help="Only jobs with this name.")


@click.group()
def jobs() -> None:
    """List and show jobs, retry dead ones, resume paused ones, and delete them.

    A job is waiting (for a worker, or for its scheduled time), running (a worker has taken it), dead (its last
    permitted attempt failed), or paused (it was copied from another database). Jobs that succeed are deleted.
    """


@jobs.command("list")
@_queue_option
@click.option(
    "--state",
    type=click.Choice(["waiting", "running", "dead", "paused"]),
    help="Only jobs in this state.",
)
@_name_option
@limit_option("jobs")
@json_option
@url_option
def list_(limit: int, as_json: bool, **chosen: Any) -> None:
    """List jobs: first by when they are due, then the dead ones."""
    with open_database() as db:
        found = db.jobs.list(limit=limit + 1, **chosen)
    listed = found[:limit]
    if as_json:
        show_json({"jobs": [_facts(record) for record in listed], "more": len(found) > limit})
        return
    if not listed:
        say("no job matches" if any(chosen.values()) else "there are no jobs")
        return
    show_table(("id", "job", "queue", "state", "attempts", "due or died"), [_row(each) for each in listed])
    if len(found) > limit:
        say(f"there are more than {limit:,}; raise --limit to see them")


@jobs.command()
@_queue_option
@json_option
@url_option
def counts(queue: str | None, as_json: bool) -> None:
    """Count the jobs in each queue. This reads every job."""
    with open_database() as db:
        found = db.jobs.counts(queue=queue)
    if as_json:
        show_json({"queues": {name: count._asdict() for name, count in found.items()}})
        return
    if not found:
        say("there are no queues")
        return
    rows = [(name, *(f"{number:,}" for number in count)) for name, count in found.items()]
    show_table(("queue", "waiting", "running", "dead", "paused"), rows)


@jobs.command("show")
@click.argument("id")
@json_option
@url_option
def show_job(id: str, as_json: bool) -> None:
    """Show a job with its arguments and the error of its last attempt.

    If the stored item is not a valid job, the whole item is shown.
    """
    with open_database() as db:
        record = db.jobs.get(id)
    if record is None:
        raise Refusal(
            f"there is no job {id!r}",
            "jobs that succeeded are deleted",
            status=ExitStatus.NOT_FOUND,
            code=JobNotFoundError.code,
        )
    if as_json:
        show_json(_facts(record))
        return
    show_pairs(_words(record))
    if record.error is not None:
        show(f"\n{record.error}\n")
    if record.raw is not None:
        show("\nthe stored item:\n")
        show_json(record.raw)


@jobs.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Retry all dead jobs that match --queue and --name.")
@_queue_option
@_name_option
@url_option
def retry(ids: tuple[str, ...], every: bool, queue: str | None, name: str | None) -> None:
    """Run dead jobs again, with all their attempts restored.

    A waiting job that you name by its ID becomes due now. A dead job stays dead if another job has taken its key in
    the meantime.
    """
    if every == bool(ids):
        raise click.UsageError("name the jobs by their IDs, or pass --all")
    if not every and (queue or name):
        raise click.UsageError("--queue and --name need --all")
    with open_database() as db:
        if every:
            say(f"{format_count(db.jobs.retry_all(queue=queue, name=name), 'job')} will be retried")
        else:
            _each(ids, db.jobs.retry, "will be retried")


@jobs.command()
@_queue_option
@_name_option
@url_option
def resume(queue: str | None, name: str | None) -> None:
    """Let paused jobs run: those that `holdall copy` brought here, or those that match the options.

    A job is deleted instead if another one with its key is already waiting here.
    """
    with open_database() as db:
        say(f"{format_count(db.jobs.resume(queue=queue, name=name), 'job')} resumed")


@jobs.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@url_option
def delete(ids: tuple[str, ...]) -> None:
    """Delete jobs by their IDs, unless they are running. To delete many at once, use purge."""
    with open_database() as db:
        _each(ids, db.jobs.delete, "deleted")


@jobs.command()
@click.option(
    "--state",
    type=click.Choice(["dead", "waiting", "paused"]),
    default="dead",
    help="Which jobs to delete.",
)
@_queue_option
@_name_option
@click.option(
    "--before", callback=moment, metavar="TIME", help="Only jobs that died, or were due, before this time."
)
@click.option(
    "--older-than",
    callback=duration,
    metavar="DURATION",
    help="Only jobs that died, or were due, longer ago than this: 12h, 7d, 2w.",
)
@yes_option
@url_option
def purge(before: datetime | None, older_than: timedelta | None, yes: bool, **chosen: Any) -> None:
    """Delete all dead jobs, or all waiting or paused ones, that match the options.

    You are asked for confirmation. Without a terminal, nothing is deleted unless you pass --yes.
    """
    if older_than is not None:
        if before is not None:
            raise click.UsageError("--before and --older-than were both given; pass one or the other")
        before = datetime.now(UTC) - older_than
    with open_database() as db:
        if not yes and not _confirm(db, before, chosen):
            return
        purged = db.jobs.purge(before=before, **chosen)
    say(f"{format_count(purged, 'job')} deleted")


# --- doing ------------------------------------------------------------------------------------------------


def _each(ids: Sequence[str], change: Callable[[str], object], done: str) -> None:
    """Change jobs one by one; report a job that cannot be changed, and still change the others."""
    failures: list[Refusal] = []
    for id in dict.fromkeys(ids):
        try:
            change(id)
        except (JobBusyError, JobNotFoundError, MalformedJobError) as error:
            failures.append(Refusal.of(error))
            failures[-1].show()
        else:
            say(f"job {id} {done}")
    if failures:
        click.get_current_context().exit(failures[0].exit_code)


def _confirm(db: Database, before: datetime | None, chosen: dict[str, Any]) -> bool:
    """Ask whether to delete the jobs, after counting them; False if there are none."""
    found = db.jobs.list(limit=_MANY + 1, **chosen)
    count = sum(before is None or (record.died or record.due) < before for record in found)
    if count == 0:
        say("no job matches: nothing to delete")
        return False
    many = f"more than {_MANY:,} jobs" if count > _MANY else format_count(count, "job")
    confirm(f"Delete {many}? This cannot be undone.", f"{many} not deleted")
    return True


# --- showing ----------------------------------------------------------------------------------------------


def _facts(record: JobRecord) -> dict[str, Any]:
    """A job as JSON data; programs rely on these names."""
    return {
        "id": record.id,
        "name": record.name,
        "queue": record.queue,
        "state": record.state,
        "attempts": record.attempts,
        "arguments": record.arguments,
        "key": record.key,
        "once_for": record.once_for,
        "enqueued": record.enqueued.isoformat(),
        "due": record.due.isoformat(),
        "lease_until": None if record.lease is None else record.lease.until.isoformat(),
        "lease_seconds": None if record.lease is None else record.lease.seconds,
        "died": None if record.died is None else record.died.isoformat(),
        "error": record.error,
        "raw": record.raw,
    }


def _words(record: JobRecord) -> dict[str, str]:
    words = {
        "id": record.id,
        "job": record.name,
        "arguments": record.arguments,
        "queue": record.queue,
        "state": record.state,
        "attempts": f"{record.attempts:,}",
        "enqueued": format_time(record.enqueued),
        "due": format_time(record.due),
    }
    if record.key is not None:
        kept = "" if record.once_for is None else f", remembered for {record.once_for:g} s after success"
        words["key"] = f"{record.key}{kept}"
    if record.lease is not None:
        words["lease"] = (
            f"{record.lease.seconds:g} s, until {format_time(record.lease.until)} unless extended"
        )
    if record.died is not None:
        words["died"] = format_time(record.died)
    return words


def _row(record: JobRecord) -> tuple[str, ...]:
    moment = format_time(record.died or record.due)
    return record.id, record.name, record.queue, record.state, f"{record.attempts:,}", moment
