"""How far a transfer, or a run over a table, is: a bar on stderr at a terminal; elsewhere a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from holdall.cli.output import escape, say
from holdall.cli.phrase import format_size

if TYPE_CHECKING:
    from holdall import Database, Model

_LINE_EVERY = 1000
"""Items between two lines of progress, where there is no terminal."""


class RunReport(Protocol):
    """How far a run over a table has come."""

    @property
    def scanned(self) -> int:
        """The items that were looked at."""


R = TypeVar("R", bound=RunReport)


@contextmanager
def transfer(label: str) -> Iterator[Callable[[int, int | None], None] | None]:
    """A function to be told how many bytes are done, and of how many; None where nobody watches."""
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

    known: dict[str, Any] = {"iterable": _nobody_knows()} if total is None else {"length": total}
    return click.progressbar(**known, label=escape(label), item_show_func=size, file=sys.stderr)


def _nobody_knows() -> Iterator[int]:
    """Something to go through whose length cannot be told."""
    yield from ()


@contextmanager
def run_progress(name: str, total: int | None, phrase: Callable[[R], str]) -> Iterator[Callable[[R], None]]:
    """A function to be told how far a run is; ``phrase`` is what it has done. Segments may report at once."""
    from threading import Lock

    lock = Lock()
    if not sys.stderr.isatty():
        yield _print_lines(name, phrase, lock)
        return
    length: dict[str, Any] = {"iterable": _nobody_knows()} if total is None else {"length": total}
    with click.progressbar(
        **length, label=escape(name), show_pos=True, item_show_func=lambda text: text, file=sys.stderr
    ) as bar:

        def update(report: R) -> None:
            with lock:
                if bar.length is not None:
                    bar.length = max(bar.length, report.scanned)
                bar.update(max(0, report.scanned - bar.pos), phrase(report))

        yield update
        if bar.length is not None:
            bar.length = bar.pos  # the store counts now and then, and may have been mistaken
            bar.update(0)


def _print_lines(name: str, phrase: Callable[[R], str], lock: Any) -> Callable[[R], None]:
    told = 0

    def update(report: R) -> None:
        nonlocal told
        with lock:
            if report.scanned - told >= _LINE_EVERY:
                told = report.scanned
                say(f"{name}: {report.scanned:,} items looked at, {phrase(report)}")

    return update


def count_roughly(db: Database, model: type[Model]) -> int | None:
    """About how many items there are to look at; None where nobody knows."""
    if not db.table.exists() or db.table.name not in {
        each.name for each in db.table.plan(models=[model]).tables
    }:
        return None
    return db.table.describe().item_count


@contextmanager
def interruptible(dry_run: bool) -> Iterator[None]:
    """Say, when the user stops a run over a table, that the next one goes on there."""
    try:
        yield
    except KeyboardInterrupt:
        if not dry_run:
            say("stopped: the same command goes on from about here")
        raise
