"""What the commands about artifacts share: where those are, whose handlers hear of a change, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdall.cli.module import load_module
from holdall.cli.output import Refusal
from holdall.cli.session import open_database, settings_only, url_option
from holdall.errors import ArtifactInUseError, ProtectedAliasError

if TYPE_CHECKING:
    from holdall import Database

F = TypeVar("F", bound=Callable[..., Any])

_PLACE = "holdall.artifacts"


def _remember(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta.setdefault(_PLACE, {})[parameter.name] = value


def place_options(function: F) -> F:
    """``--url`` and where the artifacts are, before or after the command's name; the last one counts."""
    options = {
        "--service": ("NAME", "The service of files that has their bytes."),
        "--suffix": ("TEXT", "What objects' keys end with, like .zip."),
        "--prefix": ("TEXT", "What objects' keys begin with."),
        "--table": ("NAME", "A table of artifacts alone, in place of the database's."),
    }
    for name, (metavar, text) in options.items():
        function = click.option(name, metavar=metavar, expose_value=False, callback=_remember, help=text)(
            function
        )
    return url_option(function)


def open_artifacts() -> Database:
    """The database of this command line, its artifacts where the options say; else where the settings do."""
    given: dict[str, Any] | None = click.get_current_context().meta.get(_PLACE)
    if not given:
        return open_database()
    from dataclasses import replace

    with settings_only() as db:
        known = db.artifacts.settings  # what is not said here stays as it is set elsewhere
    return open_database(artifacts=replace(known, **given))


def app_option(function: F) -> F:
    """``--app``: whose handlers hear of the change."""
    return click.option(
        "--app",
        "modules",
        metavar="MODULE",
        multiple=True,
        help="A module with handlers that are to hear of it; can be given several times.",
    )(function)


def allow_protected_option(function: F) -> F:
    """``--allow-protected``."""
    return click.option("--allow-protected", is_flag=True, help="Also if the alias is protected.")(function)


def expect_revision_option(function: F) -> F:
    """``--expect-revision``."""
    return click.option("--expect-revision", metavar="TEXT", help="Only if it still has this revision.")(
        function
    )


@contextmanager
def open_for_change(modules: Sequence[str] = ()) -> Iterator[Database]:
    """The database, for a change that the handlers of these modules hear of; refusals name options, not arguments."""
    for module in modules:
        load_module(module)
    with open_artifacts() as db:
        try:
            yield db
        except ProtectedAliasError as error:
            raise Refusal.of(error, "add --allow-protected if you mean it") from error
        except ArtifactInUseError as error:
            raise Refusal.of(
                error, "point them elsewhere first, or add --drop-aliases to delete them with it"
            ) from error


def pairs(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """What was given as NAME=VALUE, any number of times."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} is no pair; write name=value")
        if name in found:
            raise click.BadParameter(f"{name!r} is there twice")
        found[name] = value
    return found
