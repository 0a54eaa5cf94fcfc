"""The root of the command line: global options, command groups, and errors printed as messages."""

from __future__ import annotations

from typing import Any

import click

import holdall
from holdall.cli.backup import backup, restore
from holdall.cli.completion import completion
from holdall.cli.copy import copy_database
from holdall.cli.doctor import doctor
from holdall.cli.dump import dump
from holdall.cli.dump import load as load_items
from holdall.cli.exit_status import ExitStatus
from holdall.cli.items.items import items
from holdall.cli.migrate import migrate
from holdall.cli.models.models import models
from holdall.cli.output import JSON, Refusal, escape_lines
from holdall.cli.server import serve
from holdall.cli.session import url_option
from holdall.cli.table import table
from holdall.errors import HoldallError
from holdall.features import FEATURES, load


class Program(click.Group):
    """The root group. An error of Holdall, or of a local file, ends the program with a message, without a traceback."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look for --json before the command's other options, any of which can be wrong."""
        if "--json" in args:
            ctx.meta[JSON] = True
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except HoldallError as error:
            raise Refusal.of(error) from error
        except BrokenPipeError:
            raise  # the reader of stdout has enough
        except FileNotFoundError as error:
            if error.filename is None:
                problem, hint = error.strerror or str(error), "the working directory may have been deleted"
            else:
                problem, hint = f"there is no file {error.filename}", None
            raise Refusal(problem, hint, status=ExitStatus.USAGE) from error
        except OSError as error:
            raise Refusal(f"{error.filename or 'a file'}: {error.strerror or error}") from error
        except click.UsageError as error:
            text = error.format_message()
            if JSON in ctx.meta:
                raise Refusal(text, status=ExitStatus.USAGE) from error
            if escape_lines(text) == text:
                raise
            raise click.UsageError(escape_lines(text), error.ctx) from error


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(holdall.__version__, message="%(prog)s %(version)s")
@url_option
def program() -> None:
    """Manage a Holdall database: its table, jobs, files, artifacts and archive.

    The database is given by --url, else by the variable HOLDALL_URL, else by url in ./holdall.toml; the default is
    embedded:holdall.db. Other settings come from the URL's query, from HOLDALL_... variables and from holdall.toml.
    """


for _command in (
    table,
    models,
    items,
    migrate,
    copy_database,
    dump,
    load_items,
    serve,
    doctor,
    backup,
    restore,
    completion,
    *(load(place) for each in FEATURES for place in each.commands),
):
    program.add_command(_command)
