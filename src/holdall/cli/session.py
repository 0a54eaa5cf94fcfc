"""The database that a command works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from holdall import Database
    from holdall.artifacts import ArtifactSettings

_URL = "holdall.url"

F = TypeVar("F", bound=Callable[..., Any])


def _remember(context: click.Context, parameter: click.Parameter, url: str | None) -> None:
    if url is not None:
        context.meta[_URL] = url


def url_option(function: F) -> F:
    """``--url``, before or after the command's name; the last one wins."""
    return click.option(
        "--url",
        metavar="URL",
        expose_value=False,
        callback=_remember,
        help="The database: embedded:PATH or dynamodb://TABLE?region=...",
    )(function)


def open_database(artifacts: ArtifactSettings | None = None) -> Database:
    """The database of this command. Opening it creates no table; only the commands meant for that do."""
    from holdall import Database

    return Database(_url(), manage_table=False, artifacts=artifacts)


def settings_only() -> Database:
    """A database with the settings of this command, but without a store: it opens no file and no connection."""
    from holdall import Database

    return Database(_url(), manage_table=False, backend=_Nothing())


class _Nothing:
    """A stand-in for the store, for commands that only need the settings."""

    def send_blocking(self, request: object) -> NoReturn:
        raise NotImplementedError("this command does not contact the store")

    async def send_awaiting(self, request: object) -> NoReturn:
        raise NotImplementedError("this command does not contact the store")

    def close(self) -> None:
        """Nothing to close."""


def command_text(words: str) -> str:
    """A command on this command's database, for a hint; settings from the environment apply to it, too."""
    from shlex import quote

    url = _url()
    return f"`holdall {words}`" if url is None else f"`holdall --url {quote(url)} {words}`"


def _url() -> str | None:
    found: str | None = click.get_current_context().meta.get(_URL)
    return found
