"""``holdall models stubs``: what a type checker without plugins needs to know of keys."""

from __future__ import annotations

from pathlib import Path

import click

from holdall.cli.module import load_models, models_argument
from holdall.cli.output import Refusal, say
from holdall.cli.phrase import format_count


@click.command(name="stubs")
@models_argument
@click.option(
    "--output",
    metavar="DIRECTORY",
    default="typings",
    help="The directory to write to. By default, it is where pyright looks.",
)
@click.option("--check", is_flag=True, help="Write nothing, and fail if a stub is missing or outdated.")
def write_model_stubs(names: tuple[str, ...], output: str, check: bool) -> None:
    """Write stubs that let pyright check keys and index names.

    The stubs describe some of Holdall's own modules, with signatures for the given models. pyright then reports wrong
    names and types in get, get_one, get_by, query, update, update_all, delete_all and Order.key(...), as uses of a
    deprecated method: set reportDeprecated to "error". Write them again when a model or Holdall changes.

    MODULE stands for all models that it defines. mypy needs no stubs: it has the plugin holdall.mypy.
    """
    from holdall.cli.models.stub import write_stubs

    found = load_models(names)
    stubs = {Path(output, path): text for path, text in write_stubs(found).items()}
    outdated = [path for path, text in stubs.items() if _read(path) != text]
    if check:
        if outdated:
            words = " ".join(["holdall models stubs", *names])
            raise Refusal(f"{outdated[0]} is missing or outdated", f"run `{words}`")
        return
    for path in outdated:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(stubs[path], encoding="utf-8")
        except OSError as error:
            raise Refusal(f"{path} cannot be written: {error.strerror}") from error
    say(
        f"{output}: stubs for {format_count(len(found), 'model')}, {format_count(len(outdated), 'file')} written"
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
