"""``holdall completion``: what a shell needs to complete our commands."""

from __future__ import annotations

import click

from holdall.cli.output import show


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
