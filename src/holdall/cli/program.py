"""The root of the command line: global options, the groups, and errors as messages."""

from __future__ import annotations

from typing import Any

import click

import holdall
from holdall.cli.migrate import migrate
from holdall.cli.output import Refusal, escape_lines, show
from holdall.cli.session import url_option
from holdall.cli.table import table
from holdall.errors import HoldallError
from holdall.features import FEATURES, load


class Program(click.Group):
    """The root group. A Holdall error ends the program with its message and exit status, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except HoldallError as error:
            raise Refusal.of(error) from error
        except click.UsageError as error:
            text = error.format_message()
            if escape_lines(text) == text:
                raise
            raise click.UsageError(escape_lines(text), error.ctx) from error


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(holdall.__version__, message="%(prog)s %(version)s")
@url_option
def program() -> None:
    """Look after a Holdall database.

    The database is the one that --url names, else HOLDALL_URL, else url in ./holdall.toml, else embedded:holdall.db.
    Other settings come from the URL's query, from HOLDALL_... variables and from holdall.toml.
    """


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's script for completing commands and options.

    \b
    bash   put in ~/.bashrc:   eval "$(holdall completion bash)"
    zsh    put in ~/.zshrc:    eval "$(holdall completion zsh)"
    fish   run once:           holdall completion fish > ~/.config/fish/completions/holdall.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    root = context.find_root().command
    show(found(root, {}, "holdall", "_HOLDALL_COMPLETE").source().strip() + "\n")


for _command in (table, migrate, completion, *(load(place) for each in FEATURES for place in each.commands)):
    program.add_command(_command)
