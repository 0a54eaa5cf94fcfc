"""The database that a command works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from pathlib import Path

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


def open_database(
    artifacts: ArtifactSettings | None = None,
    *,
    missing: Literal["refuse", "create", "empty"] = "refuse",
    default_secret: str | None = None,
) -> Database:
    """The database of this command. Opening it creates no table; only the commands meant for that do.

    ``missing`` is for an embedded database without a file, as in the wrong directory: the command is refused, works as
    on an empty database, or creates the file. ``default_secret`` signs tokens and URLs if the settings have no secret.
    """
    secret = None if default_secret is None or _has_secret() else default_secret
    return open_at(_url(), missing=missing, artifacts=artifacts, secret=secret)


def open_at(url: str | None, *, missing: Literal["refuse", "create", "empty"], **options: Any) -> Database:
    """The database of a URL, for commands that name several; ``missing`` is as for `open_database`."""
    from holdall import Database

    if missing == "create" or (path := _find_missing_file(url)) is None:
        # which creates the file when it is first written to
        return Database(url, manage_table=False, **options)
    if missing == "empty":
        from holdall.backends.embedded import EmbeddedBackend

        return Database(url, manage_table=False, backend=EmbeddedBackend(None), **options)
    from holdall.errors import TableNotFoundError

    with _without_store(url) as db:
        name = db.table.name
    raise TableNotFoundError(
        f"there is no table {name}, because there is no file {path}",
        hint=f"run {_format_command(url, 'table create')} to create both, or this command where the file is",
    )


def _has_secret() -> bool:
    from holdall.errors import ConfigurationError

    try:
        settings_only().blobs.signed_id("probe", purpose="attach")
    except ConfigurationError:
        return False
    return True


def _find_missing_file(url: str | None) -> Path | None:
    """The file that an embedded database should have; None if it exists, or if it cannot exist there."""
    from pathlib import Path

    with _without_store(url) as db:
        path = None if db.path is None else Path(db.path).absolute()
    if path is None or path.exists():
        return None
    there = next(parent for parent in path.parents if parent.exists())
    return path if there.is_dir() else None


def settings_only() -> Database:
    """A database with the settings of this command, but without a store: it opens no file and no connection."""
    return _without_store(_url())


def _without_store(url: str | None) -> Database:
    from holdall import Database

    return Database(url, manage_table=False, backend=_Nothing())


class _Nothing:
    """A stand-in for the store, for commands that only need the settings."""

    def send_blocking(self, request: object) -> NoReturn:
        raise NotImplementedError("this command does not contact the store")

    async def send_awaiting(self, request: object) -> NoReturn:
        raise NotImplementedError("this command does not contact the store")

    def close(self) -> None:
        """Nothing to close."""


def refuse_url(hint: str) -> None:
    """Refuse --url before the name of a command that does not use it."""
    if _url() is not None:
        raise click.UsageError(f"--url is not an option of this command; {hint}")


def command_text(words: str) -> str:
    """A command on this command's database, for a hint; settings from the environment apply to it, too."""
    return _format_command(_url(), words)


def _format_command(url: str | None, words: str) -> str:
    from shlex import quote

    return f"`holdall {words}`" if url is None else f"`holdall --url {quote(url)} {words}`"


def _url() -> str | None:
    found: str | None = click.get_current_context().meta.get(_URL)
    return found
