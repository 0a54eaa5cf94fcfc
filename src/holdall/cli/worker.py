"""``holdall worker``: run jobs until a signal stops it or, with ``--drain``, until no due job is left.

The first SIGTERM or SIGINT lets running jobs finish; the second returns them to their queues at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from holdall.cli.exit_status import ExitStatus
from holdall.cli.module import load_function, load_module
from holdall.cli.output import Refusal, escape_lines, json_option, say, show_json
from holdall.cli.phrase import format_count
from holdall.cli.session import command_text, open_database, url_option
from holdall.cli.suggestion import suggest_queue

if TYPE_CHECKING:
    from holdall.jobs import Job
    from holdall.worker import WorkerArguments, WorkerMetrics

    AnyJob = Job[*tuple[Any, ...]]

_SHARDS = 16


@click.command()
@click.argument("modules", metavar="[MODULE...]", nargs=-1)
@click.option(
    "--queue",
    "queues",
    metavar="NAME",
    shell_complete=suggest_queue,
    multiple=True,
    default=("default",),
    help="A queue to take jobs from; can be given several times, in order of priority.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=10,
    help="The most jobs to run at the same time.",
)
@click.option(
    "--lease",
    type=click.FloatRange(0.01, 86400),
    default=30.0,
    help="Seconds after which another worker may take the jobs of a worker that died.",
)
@click.option(
    "--poll-interval",
    type=click.FloatRange(0.01, 86400),
    default=1.0,
    help="Seconds between two checks of an empty queue.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0, 86400),
    default=25.0,
    help="Seconds that running jobs have to finish after a signal.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 1000),
    help="The most processes for jobs declared with process=True.  [default: one per processor]",
)
@click.option("--drain", is_flag=True, help="Run the jobs that are due, then exit.")
@click.option(
    "--hook",
    "hooks",
    metavar="MODULE:FUNCTION",
    multiple=True,
    help="A function to call with each event; can be given several times.",
)
@json_option
@click.option(
    "-v", "--verbose", count=True, show_default=False, help="Log every job that ends; -vv logs every step."
)
@url_option
@click.pass_context
def worker(
    context: click.Context,
    /,
    modules: tuple[str, ...],
    hooks: tuple[str, ...],
    drain: bool,
    as_json: bool,
    verbose: int,
    **options: Any,
) -> None:
    """Run jobs.

    MODULE declares the jobs, or imports modules that do; the working directory is searched first, as Python does. Jobs
    that no MODULE declares are left for other workers; run as many workers as you like. Without a MODULE, only
    Holdall's own jobs run, which advance rollouts and copy files to mirrors, for example; every worker runs those.

    SIGTERM or Ctrl-C lets running jobs finish for up to --grace seconds; then they are returned to their queues. A
    second signal returns them at once.

    The exit status is 0 after a signal. With --drain it is 1 if a job failed for good, so that cron reports it.
    """
    import asyncio

    jobs = _load_jobs(modules)
    options["hooks"] = [load_function(hook) for hook in hooks]
    _configure_logging(verbose)
    metrics, hurried = asyncio.run(_work(jobs, options, drain))  # type: ignore[arg-type]
    say(f"done: {_summary(metrics)}")
    if as_json:
        show_json(metrics.as_dict())
    if drain and metrics.dead:
        raise Refusal(
            f"{format_count(metrics.dead, 'job')} failed for good",
            f"{command_text('jobs list --state dead')} lists dead jobs, and {command_text('jobs show ID')} shows why "
            "one failed",
        )
    context.exit(1 if hurried else 0)


async def _work(jobs: dict[str, AnyJob], options: WorkerArguments, drain: bool) -> tuple[WorkerMetrics, bool]:
    """Run jobs; returns the metrics, and whether a second signal forced the worker to stop."""
    import asyncio

    async with open_database().aio as db:
        await db.table.layout()  # fail now if the database is unreachable; later the worker waits for it
        worker = db.worker(**options)
        working = asyncio.ensure_future(worker.drain() if drain else worker.run())
        signals = 0

        def stop(name: str) -> None:
            nonlocal signals
            signals += 1
            if signals == 1:
                say(f"{name}: {_farewell(worker.metrics.running, options['grace'])}")
                worker.stop()
            else:
                working.cancel()

        on_signals(stop)
        _announce(jobs, worker.queues, options["concurrency"], options["poll_interval"], drain)
        try:
            await working
        except asyncio.CancelledError:
            if signals < 2:
                raise
        return worker.metrics, signals > 1


def on_signals(stop: Callable[[str], None]) -> None:
    """Call ``stop`` with the name of each signal that asks the process to end."""
    import asyncio
    import signal

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number.name)


# --- messages ---------------------------------------------------------------------------------------------


def _load_jobs(modules: Sequence[str]) -> dict[str, AnyJob]:
    """The jobs that modules declare, by name."""
    for module in modules:
        load_module(module)
    from holdall.jobs import declared_jobs

    yours = [name for name in declared_jobs() if not _is_ours(name)]
    if modules and not yours:
        raise Refusal(
            f"no job is declared in {', '.join(modules)}",
            'name the modules that declare jobs with @holdall.job("name"), or one that imports them',
            status=ExitStatus.USAGE,
        )
    return declared_jobs()


def _is_ours(name: str) -> bool:
    """Whether a job is one of Holdall's own, which are not listed."""
    return name.startswith("holdall.")


def _announce(
    jobs: dict[str, AnyJob], queues: Sequence[str], concurrency: int, poll_interval: float, drain: bool
) -> None:
    yours = sorted(name for name in jobs if not _is_ours(name))
    say(f"jobs: {', '.join(_describe_job(jobs[name]) for name in yours) or 'only those of Holdall itself'}")
    say(f"queues: {', '.join(queues)}; up to {format_count(concurrency, 'job')} at a time")
    if not drain:
        idle = _SHARDS * 60 / poll_interval * len(queues)
        say(f"when idle: at most {idle:,.0f} requests per minute")
    elsewhere = sorted({job.options.queue for job in jobs.values()} - {*queues})
    for queue in elsewhere:
        names = ", ".join(sorted(job.name for job in jobs.values() if job.options.queue == queue))
        say(f"note: this worker does not serve queue {queue}; its jobs: {names}")


def _describe_job(job: AnyJob) -> str:
    return job.name if job.schedule is None else f"{job.name} ({job.schedule.text})"


def _farewell(running: int, grace: float) -> str:
    if not running:
        return "no job is running"
    return (
        f"{format_count(running, 'job')} may take up to {grace:g} s to finish; "
        "signal again to return them to their queues at once"
    )


def _summary(metrics: WorkerMetrics) -> str:
    counts = metrics.as_dict()
    names = ("succeeded", "failed", "dead", "dropped", "superseded", "lost", "released")
    ended = [f"{counts[name]:,} {name}" for name in names if counts[name]]
    return f"{format_count(metrics.started, 'job')} started" + "".join(f", {text}" for text in ended)


def _configure_logging(verbose: int) -> None:
    """Log to stderr unless the application has configured logging; other packages log at INFO at most."""
    import logging

    class Lines(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return escape_lines(super().format(record))

    level = (logging.WARNING, logging.INFO)[min(verbose, 1)]
    lines = logging.StreamHandler()
    lines.setFormatter(Lines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[lines])
    logging.getLogger("holdall").setLevel(logging.DEBUG if verbose > 1 else level)
