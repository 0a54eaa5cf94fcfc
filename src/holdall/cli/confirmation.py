"""Questions before something is lost. Without a terminal to ask on, a command needs ``--yes``."""

from __future__ import annotations

import sys

import click

from holdall.cli.exit_status import ExitStatus
from holdall.cli.output import Refusal


def require_terminal(undone: str) -> None:
    """Refuse to go on unless there is a terminal on which to ask; ``undone`` says what has not happened."""
    if not sys.stdin.isatty():
        raise Refusal(
            f"{undone}: there is no terminal to ask for confirmation",
            "add --yes if you are sure",
            status=ExitStatus.REFUSED,
        )


def confirm(question: str, unasked: str, undone: str = "nothing was deleted") -> None:
    """Ask, and end the program unless the answer is yes. ``unasked`` is the message without a terminal."""
    require_terminal(unasked)
    if not click.confirm(question, err=True):
        raise Refusal(undone, status=ExitStatus.REFUSED)


def confirm_by_typing(text: str, called: str, verb: str, undone: str) -> None:
    """Ask the user to type the name of what is lost, and end the program unless it is that ``text``."""
    require_terminal(undone)
    typed = click.prompt(f"Type the {called} to {verb} it", default="", show_default=False, err=True)
    if typed != text:
        raise Refusal(f"{undone}: you did not type the {called}", status=ExitStatus.REFUSED)
