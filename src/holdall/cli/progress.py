"""The progress of transfers and of runs over a table, and how a run ends that was interrupted or could not do all.

At a terminal, progress is a bar on stderr; elsewhere it is a line now and then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from holdall.cli.output import Refusal, escape, say
from holdall.cli.phrase import format_count, format_size

if TYPE_CHECKING:
    from holdall import Database, Model

_LINE_EVERY = 1000
"""Items between the first lines of progress when there is no terminal; later, a line comes with every tenth more."""


class RunReport(Protocol):
    """The progress of a run over a table."""

    @property
    def scanned(self) -> int:
        """The number of items read so far."""


R = TypeVar("R", bound=RunReport)


@contextmanager
def transfer(label: str) -> Iterator[Callable[[int, int | None], None] | None]:
    """A function to call with the bytes transferred so far and the total; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as stack:
        bar: Any = None

        def update(done: int, total: int | None) -> None:
            nonlocal bar
            if bar is None:
                bar = stack.enter_context(_bar(label, total))
            bar.length = total
            bar.current_item = done
            bar.update(done - bar.pos, done)

        yield update


def _bar(label: str, total: int | None) -> Any:
    def size(done: int | None) -> str:
        return format_size(done or 0)

    return click.progressbar(**_length(total), label=escape(label), item_show_func=size, file=sys.stderr)


def _length(total: int | None) -> dict[str, Any]:
    """The length argument of a bar; an iterator without a length hint stands for an unknown length."""
    return {"iterable": filter(None, ())} if total is None else {"length": total}


@contextmanager
def run_progress(
    name: str, total: int | Callable[[R], int | None] | None, phrase: Callable[[R], str]
) -> Iterator[Callable[[R], None]]:
    """A function to call with the report of a run; ``phrase`` words it. Segments may call it concurrently.

    ``total`` is about how many items there are to read, or a function that finds that in the report; then the phrase
    has the time left.
    """
    from threading import Lock

    lock = Lock()
    if not sys.stderr.isatty():
        yield _print_lines(name, phrase, lock)
        return
    known = None if callable(total) else total
    with click.progressbar(
        **_length(known),
        label=escape(name),
        show_pos=True,
        show_eta=not callable(total),
        item_show_func=lambda text: text,
        file=sys.stderr,
    ) as bar:

        def update(report: R) -> None:
            with lock:
                if callable(total):
                    bar.length = total(report)
                if bar.length is not None:
                    bar.length = max(bar.length, report.scanned)
                bar.update(max(0, report.scanned - bar.pos), phrase(report))

        yield update
        if bar.length is not None:
            bar.length = bar.pos  # the store counts its items only now and then, so the total was a guess
            bar.update(0)


def _print_lines(name: str, phrase: Callable[[R], str], lock: Any) -> Callable[[R], None]:
    printed = 0

    def update(report: R) -> None:
        nonlocal printed
        with lock:
            if report.scanned - printed >= max(_LINE_EVERY, printed // 10):
                printed = report.scanned
                say(f"{name}: {report.scanned:,} items read, {phrase(report)}")

    return update


def count_roughly(db: Database, model: type[Model]) -> int | None:
    """About how many items there are to read; None if unknown."""
    if not db.table.exists() or db.table.name not in {
        each.name for each in db.table.plan(models=[model]).tables
    }:
        return None
    return db.table.describe().item_count


def refuse_failures(
    failed: int, problems: Mapping[str, Sequence[str]], outcome: str, hint: str = "remove the cause"
) -> None:
    """If items failed, list the first problems of each model, and end the program.

    ``outcome`` completes "3 items ..."; ``hint`` completes "... and run the same command again".
    """
    if not failed:
        return
    lines = [f"{name}: {problem}" for name, each in problems.items() for problem in each]
    for line in lines:
        say(f"problem: {line}")
    if lines and failed > len(lines):
        say(f"… and {failed - len(lines):,} more")
    raise Refusal(f"{format_count(failed, 'item')} {outcome}", f"{hint} and run the same command again")


@contextmanager
def interruptible(dry_run: bool) -> Iterator[None]:
    """When the user stops a run over a table, print that the next run continues from there."""
    try:
        yield
    except KeyboardInterrupt:
        if not dry_run:
            say("stopped: run the same command again to continue from about here")
        raise
