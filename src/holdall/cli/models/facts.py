"""``holdall models list`` and ``holdall models show``: how models are declared and stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdall.cli.module import load_model, load_models, model_argument, models_argument
from holdall.cli.output import json_option, show, show_json, show_pairs, show_table

if TYPE_CHECKING:
    from holdall.models import FieldFacts, IndexFacts, KeyFacts, ModelFacts

_LAYOUTS = {
    "shared": "Holdall's, in the database's table",
    "own": "Holdall's, in a table of its own",
    "plain": "plain: the key fields are the table's key",
    "template": "template: the key fields are parts of the table's key",
}


@click.command(name="list")
@models_argument
@json_option
def list_models(names: tuple[str, ...], as_json: bool) -> None:
    """List models with their tables, keys and indexes.

    MODULE stands for all models that it defines. No connection is made.
    """
    from holdall.models import describe_model

    found = [describe_model(model) for model in load_models(names)]
    if as_json:
        show_json({"models": found})
        return
    show_table(("model", "table", "layout", "key", "fields", "indexes"), [_row(each) for each in found])


@click.command(name="show")
@model_argument
@json_option
def show_model(name: str, as_json: bool) -> None:
    """Show a model: its key, fields with their stored forms, indexes and more.

    This is what the class declares. No connection is made; `holdall table plan --models` compares models with tables.
    """
    from holdall.models import describe_model

    facts = describe_model(load_model(name))
    if as_json:
        show_json(facts)
        return
    show_pairs(_words(facts))
    show("\n")
    heads = ("field", "type", "attribute", "stored as", "")
    show_table(heads, [_field_row(each) for each in facts["fields"]])


def _row(facts: ModelFacts) -> tuple[str, ...]:
    return (
        facts["model"],
        facts["table"] or "-",
        facts["layout"],
        ", ".join((*facts["key"], *facts["sort_key"])),
        str(len(facts["fields"])),
        ", ".join(index["name"] for index in facts["indexes"]) or "-",
    )


def _words(facts: ModelFacts) -> dict[str, str]:
    words = {
        "model": facts["model"],
        "name": facts["name"],
        "derived from": facts["base"],
        "table": facts["table"] or "the database's table",
        "layout": _LAYOUTS[facts["layout"]],
        "collection": facts["collection"],
        "partition key": _key_words(facts["key"], facts["attributes"][0]),
        "sort key": _key_words(facts["sort_key"], facts["attributes"][1]) if _has_sort_key(facts) else None,
        "type attribute": facts["type_attribute"],
        "unique": ", ".join(facts["unique"]),
        "expires by": facts["expires_by"],
        "version": facts["version"],
        "attachments": ", ".join(facts["attachments"]),
        "archive": "yes" if facts["archive"] else None,
        "migrations": ", ".join(facts["migrations"]),
        "hooks": ", ".join(facts["hooks"]),
    }
    words |= {f"index {index['name']}": _index_words(index) for index in facts["indexes"]}
    return {label: text for label, text in words.items() if text}


def _has_sort_key(facts: ModelFacts) -> bool:
    """Whether the sort key is the model's business: in the database's table, one without fields is always the same."""
    own = bool(facts["sort_key"] or facts["collection"]) or facts["layout"] == "template"
    return len(facts["attributes"]) > 1 and own


def _key_words(fields: list[str], key: KeyFacts) -> str:
    stored = " ".join(filter(None, (key["attribute"], key["template"] and f'"{key["template"]}"')))
    return f"{', '.join(fields) or 'none'}; stored as {stored} ({key['type']})"


def _index_words(index: IndexFacts) -> str:
    keys = ", ".join(f"{key['attribute']} ({key['type']})" for key in index["attributes"])
    fields = "; ".join(filter(None, (", ".join(index["key"]), ", ".join(index["sort_key"]))))
    holds = "" if index["include"] is None else f"; holds {', '.join(index['include']) or 'only keys'}"
    return f"{fields}; {index['table_index']}: {keys}{holds}{'; local' if index['local'] else ''}"


def _field_row(field: FieldFacts) -> tuple[str, ...]:
    form = field["kind"] or "any"
    notes = [
        f"{field['key']} key" if field["key"] else "",
        "required" if field["required"] and not field["key"] else "",
        f"default {field['default']}" if field["default"] not in (None, "None") else "",
        "unique" if field["unique"] else "",
        "read-only" if field["read_only"] else "",
        "counts writes" if field["version"] else "",
        f"set on {field['now']}" if field["now"] else "",
        f"computed from {', '.join(field['computed'])}" if field["computed"] else "",
        "hidden" if field["hidden"] else "",
        f"in {field['casing']} case" if field["casing"] else "",
        f"formerly {', '.join(field['aliases'])}" if field["aliases"] else "",
    ]
    return (
        field["name"],
        field["type"],
        field["attribute"] or "only in the key",
        f"{form}, {field['stored']}" if field["stored"] else form,
        "; ".join(filter(None, notes)),
    )
