"""How far a transfer is: a bar on stderr for those who watch it at a terminal, nothing for all others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from holdall.cli.output import escape
from holdall.cli.phrase import format_size


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
