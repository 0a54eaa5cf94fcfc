"""``holdall completion``: the script with which a shell completes commands, and what it asks of this program.

click answers zsh and fish. For bash it does not suffice: bash breaks words at colons, as in ``shop:Order``.
"""

from __future__ import annotations

import click
from click.shell_completion import (
    CompletionItem,
    FishComplete,
    add_completion_class,
    get_completion_class,
)

from holdall.cli.output import show

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" word broken="" response type value
    word="${line##*[[:space:]]}"
    # bash breaks words at colons, and replaces only what follows the last one
    [[ $COMP_WORDBREAKS == *:* ]] && broken="${word%%"${word##*:}"}"
    for response in $(COMP_WORDS="$line" COMP_CWORD="$word" %(complete_var)s=bash_complete "$1" 2>/dev/null); do
        type="${response%%%%,*}" value="${response#*,}"
        case "$type" in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) printf -v value %%q "${value#"$broken"}"; COMPREPLY+=("$value") ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s 2>/dev/null || complete -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class BashCompletion(FishComplete):
    """Completion for bash. Like fish, it passes the line and its last word as they were typed."""

    name = "bash"
    source_template = _BASH

    def format_completion(self, item: CompletionItem) -> str:
        """Return the line that the script reads."""
        return f"{item.type},{item.value}"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands in your shell.

    \b
    bash   add to ~/.bashrc:   eval "$(holdall completion bash)"
    zsh    add to ~/.zshrc:    eval "$(holdall completion zsh)"
    fish   run once:           holdall completion fish > ~/.config/fish/completions/holdall.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    root = context.find_root().command
    show(found(root, {}, "holdall", "_HOLDALL_COMPLETE").source().strip() + "\n")
