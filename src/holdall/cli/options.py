"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
restart_option = click.option(
    "--restart", is_flag=True, help="Start over instead of continuing an earlier run."
)


def combine(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator; the command's help lists them in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def limit_option(things: str) -> Callable[[F], F]:
    """``--limit`` of a list."""
    return click.option("--limit", type=click.IntRange(1), default=100, help=f"The most {things} to list.")


def segments_option(default: int, text: str = "the table to process") -> Callable[[F], F]:
    """``--segments`` of a run over a table."""
    return click.option(
        "--segments",
        type=click.IntRange(1, 1000),
        default=default,
        help=f"How many parts of {text} in parallel.",
    )


def rate_option(text: str) -> Callable[[F], F]:
    """``--rate`` of a run over a table."""
    return click.option(
        "--rate", type=click.FloatRange(0, min_open=True), help=f"The most {text} per second."
    )
