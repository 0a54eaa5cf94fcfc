"""Shared by the commands for artifacts: where artifacts are stored, the arguments that name an alias, and the options
of a change, such as the modules whose event handlers run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdall.cli.module import load_module
from holdall.cli.options import combine
from holdall.cli.session import open_database, settings_only, url_option
from holdall.cli.suggestion import suggest_alias, suggest_artifact

if TYPE_CHECKING:
    from holdall import Database

F = TypeVar("F", bound=Callable[..., Any])

_PLACE = "holdall.artifacts"


def _remember(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta.setdefault(_PLACE, {})[parameter.name] = value


def _place_option(name: str, metavar: str, text: str) -> Callable[[F], F]:
    return click.option(name, metavar=metavar, expose_value=False, callback=_remember, help=text)


place_options = combine(
    url_option,
    _place_option("--table", "NAME", "A separate table for artifacts, instead of the database's table."),
    _place_option("--prefix", "TEXT", "The prefix of object keys."),
    _place_option("--suffix", "TEXT", "The suffix of object keys, like .zip."),
    _place_option("--service", "NAME", "The file service that stores the artifacts' bytes."),
)
"""``--url`` and where artifacts are stored, before or after the command's name; the last one wins."""


def open_artifacts() -> Database:
    """The database of this command; options that say where artifacts are stored override the settings."""
    given: dict[str, Any] | None = click.get_current_context().meta.get(_PLACE)
    if not given:
        return open_database()
    from dataclasses import replace

    with settings_only() as db:
        known = db.artifacts.settings  # options that were not given keep their settings
    return open_database(artifacts=replace(known, **given))


app_option = click.option(
    "--app",
    "modules",
    metavar="MODULE",
    multiple=True,
    help="A module whose event handlers are called for this change; can be given several times.",
)
allow_protected_option = click.option(
    "--allow-protected", is_flag=True, help="Allow changes to protected aliases."
)
expect_revision_option = click.option(
    "--expect-revision", metavar="TEXT", help="Fail unless it still has this revision."
)
because = combine(
    click.option("--by", metavar="TEXT", help="Who makes the change, for the history."),
    click.option("--reason", metavar="TEXT", help="Why you make the change, for the history."),
)
change_options = combine(allow_protected_option, expect_revision_option, because, app_option)
"""The options of a change to an alias: protection, its revision, who and why, and event handlers."""

alias_arguments = combine(
    click.argument("name", shell_complete=suggest_artifact),
    click.argument("alias", shell_complete=suggest_alias),
)


def open_for_change(modules: Sequence[str] = ()) -> Database:
    """The database, for a change that calls the event handlers of these modules."""
    for module in modules:
        load_module(module)
    return open_artifacts()


def pairs(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """The values of an option that is given as NAME=VALUE any number of times."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} must have the form NAME=VALUE")
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice")
        found[name] = value
    return found
