"""The models that archive commands name, and files with the keys of their items."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

import click

from holdall.cli.exit_status import ExitStatus
from holdall.cli.items.values import parse_key
from holdall.cli.module import load_models, name_roots
from holdall.cli.output import Refusal, read_text

if TYPE_CHECKING:
    from holdall import Model, ModelKey

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Change nothing; only report what the command would do."
)


def find_archived(names: Sequence[str]) -> dict[str, type[Model]]:
    """The models with these names, or a module's models that have an archive; derived models count with their base."""
    from holdall.archive import find_archive

    named = load_models([name for name in names if ":" in name])
    found = [*named, *(model for model in load_models(names) if find_archive(model) is not None)]
    if not found:
        raise Refusal(
            f"no model in {', '.join(names)} has an archive",
            "declare one, as in class Order(Model, archive=Archive(timestamp=...))",
            status=ExitStatus.USAGE,
        )
    return name_roots(found)


def read_keys(model: type[Model], file: IO[str]) -> list[ModelKey[Any]]:
    """Keys as JSON, one per line."""
    found = []
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if not line.strip():
            continue
        try:
            key = json.loads(line)
            texts = {name: text if isinstance(text, str) else json.dumps(text) for name, text in key.items()}
        except (ValueError, AttributeError):
            raise click.BadParameter(f"line {number} is not a JSON object", param_hint="--keys") from None
        found.append(parse_key(model, texts))
    return found
