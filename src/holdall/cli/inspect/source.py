"""The source of a model for a table that other programs use, from its description and a sample of its items.

Pure: text from values. The model has ``layout="plain"``, so its fields are the table's attributes, unless the sample
shows a single-table design. What the sample cannot prove is listed in a comment at the top.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from textwrap import wrap

from holdall.cli.inspect.stored_guess import REASONS
from holdall.cli.inspect.table_sample import (
    SampledAttribute,
    TableSample,
    find_attributes,
    name_fields,
    quote,
)
from holdall.cli.inspect.template_guess import TYPE_ATTRIBUTES, Design, Placeholder, Text, find_designs
from holdall.core import IndexSchema, Item, KeyAttribute

_MOST_TYPES = 20
_SHOWN_TYPES = 5
_KINDS = {
    "S": "text",
    "N": "number",
    "B": "binary",
    "BOOL": "boolean",
    "NULL": "null",
    "L": "list",
    "M": "map",
    "SS": "set of texts",
    "NS": "set of numbers",
    "BS": "binary set",
}
_IMPORTS = {"Decimal": "decimal", "date": "datetime", "datetime": "datetime", "Any": "typing"}
_OWN_NAMES = {"Index", "Key", "Model", "SortKey", "Template", "field"}
_OPTIONS = {"key", "pk", "sk", "type", "casing", "local", "indexes"}
_WIDTH = 100


def name_class(table: str) -> str:
    """Return the name of a model for a table: ``order-lines`` becomes OrderLines."""
    name = "".join(word[0].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", table))
    return name if is_class_name(name) else f"Table{name}"


def is_class_name(name: str) -> bool:
    """Whether the model can have this name."""
    taken = iskeyword(name) or name in {*_OWN_NAMES, *_IMPORTS}
    return re.fullmatch("[A-Z][A-Za-z0-9]*", name) is not None and not taken


def recognize_layout(sample: TableSample) -> str | None:
    """Explain how Holdall itself laid out the table; None if another program did."""
    schema = sample.schema
    if [key.name for key in schema.keys] in (["_id"], ["_id", "_sk"]):
        return "declare its model with table= and without layout="
    types = {_text(item, "_type") for item in sample.items} - {None}
    heads = {(_text(item, schema.partition.name) or "").partition("#")[0] for item in sample.items}
    models = sorted(text for text in types & heads if text)
    if not models or schema.sort is None:
        return None
    return f"declare its models without table= and layout=; the sample has items of {', '.join(models)}"


def write_source(sample: TableSample, class_name: str) -> str:
    """Return the module with the model; for an obvious single-table design, with a model for each kind of items.

    ``class_name`` is the name of a single model; several have the names of their kinds.
    """
    designs = find_designs(sample.schema, sample.items)
    notes = _Notes()
    names = _name_kinds(designs) if len(designs) > 1 else [class_name]
    kinds: list[Design | None] = [*designs] or [None]
    models = [
        _Source(name, sample, design, notes, f"{name}." if len(designs) > 1 else "")
        for name, design in zip(names, kinds, strict=True)
    ]
    lines = [*_write_comment(sample, notes, designs), "", *_write_imports(models)]
    for model in models:
        lines += ["", "", *model.write()]
    return "\n".join(lines) + "\n"


def _name_kinds(designs: Sequence[Design]) -> list[str]:
    names: list[str] = []
    for design in designs:
        name = name_class(design.name or "")
        while name in names:
            name += "2"
        names.append(name)
    return names


class _Source:
    """One model: its attributes, the names of its fields, and what its class declares."""

    def __init__(
        self, name: str, sample: TableSample, design: Design | None, notes: _Notes, place: str
    ) -> None:
        self.name = name
        self.attributes = find_attributes(sample, design)
        for attribute in self.attributes.values():
            notes.add_attribute(attribute, place)
        self.used = {
            word
            for attribute in self.attributes.values()
            for word in re.findall(r"\w+", attribute.annotation)
        }
        self.fields = name_fields(self.attributes, {*self.used, *_OWN_NAMES})
        self.arguments = ["Model", f"table={quote(sample.name)}"]
        found: list[_IndexSource | None] = []
        if design is None:
            self.arguments.append('layout="plain"')
            found = [_write_index(index, self.attributes, notes) for index in sample.schema.indexes]
        else:
            self.arguments.append(f"layout={_write_template(design, self.fields)}")
            named = design.name is None or design.name == name or design.constants
            self.arguments += [] if named else [f"name={quote(design.name or '')}"]
        self.indexes = [index.write(self.fields) for index in found if index is not None]
        expiry = _find_expiry(sample, self.attributes, notes)
        self.arguments += [] if expiry is None else [f"ttl={quote(self.fields[expiry])}"]

    def write(self) -> list[str]:
        """The lines of the class."""
        head = _write_class(self.name, self.arguments, self.indexes)
        return [*head, *(attribute.write(self.fields[name]) for name, attribute in self.attributes.items())]


def _write_template(design: Design, fields: Mapping[str, str]) -> str:
    """The layout of a kind of items, on one line if it fits."""
    key = {name: _write_text(text, fields) for name, text in design.key.items()}
    parts = [f"{name}={text}" for name, text in key.items()]
    if [*key] != ["pk", "sk"][: len(key)]:
        parts = [_write_texts(key)]
    indexes = {}
    for index, texts in design.indexes.items():
        written = {name: _write_text(text, fields) for name, text in texts.items()}
        usual = [*written] == [f"{index}pk", f"{index}sk"]
        indexes[index] = f"({', '.join(written.values())})" if usual else _write_texts(written)
    keywords = {
        index for index in indexes if index.isidentifier() and not iskeyword(index) and index not in _OPTIONS
    }
    parts += [f"{index}={texts}" for index, texts in indexes.items() if index in keywords]
    if others := {index: texts for index, texts in indexes.items() if index not in keywords}:
        parts.append(f"indexes={_write_texts(others)}")
    if design.local:
        local = {
            index: _write_texts({name: _write_text(text, fields) for name, text in texts.items()})
            for index, texts in design.local.items()
        }
        parts.append(f"local={_write_texts(local)}")
    if design.type is not None and design.constants:
        types = {design.type: design.name or "", **design.constants}
        parts.append(f"type={_write_texts({name: quote(text) for name, text in types.items()})}")
    elif design.type is not None:
        parts.append(f"type={quote(design.type)}")
    parts += [] if design.casing is None else [f"casing={quote(design.casing)}"]
    line = f"Template({', '.join(parts)})"
    if len(line) < _WIDTH - len("    layout=,"):
        return line
    return "\n".join(["Template(", *(f"        {part}," for part in parts), "    )"])


def _write_texts(texts: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{quote(name)}: {text}" for name, text in texts.items()) + "}"


def _write_text(text: Text, fields: Mapping[str, str]) -> str:
    pieces = [piece if isinstance(piece, str) else _write_placeholder(piece, fields) for piece in text]
    return quote("".join(pieces))


def _write_placeholder(placeholder: Placeholder, fields: Mapping[str, str]) -> str:
    return (
        f"{{{fields[placeholder.attribute]}{'' if placeholder.width is None else f':0{placeholder.width}d'}}}"
    )


# --- indexes and expiry -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _IndexSource:
    schema: IndexSchema
    included: Sequence[str] | None

    def write(self, fields: Mapping[str, str]) -> str:
        parts = [quote(self.schema.name)]
        if not self.schema.local:
            parts.append(f"key=[{_quote_fields(fields, self.schema.partitions)}]")
        if self.schema.sort is not None:
            parts.append(f"sort_key=[{_quote_fields(fields, self.schema.sorts)}]")
        if self.included is not None:
            parts.append(f"include=[{', '.join(quote(fields[name]) for name in self.included)}]")
        if self.schema.local:
            parts.append("local=True")
        return f"Index({', '.join(parts)})"


def _quote_fields(fields: Mapping[str, str], keys: Sequence[KeyAttribute]) -> str:
    return ", ".join(quote(fields[key.name]) for key in keys)


def _write_index(
    index: IndexSchema, attributes: Mapping[str, SampledAttribute], notes: _Notes
) -> _IndexSource | None:
    mixed = [key.name for key in index.keys if attributes[key.name].kinds.keys() - {key.type}]
    if mixed:
        notes.add(
            f"index {index.name} is left out: not all values of {', '.join(map(_show, mixed))} can be its key"
        )
        return None
    if index.projection.kind == "ALL":
        return _IndexSource(index, None)
    keys = {key.name for key in index.keys}
    return _IndexSource(
        index, [name for name in index.projection.names if not attributes[name].role and name not in keys]
    )


def _find_expiry(
    sample: TableSample, attributes: Mapping[str, SampledAttribute], notes: _Notes
) -> str | None:
    if sample.ttl is None or sample.ttl not in attributes:
        return None
    if attributes[sample.ttl].annotation in ("int", "Decimal", "datetime"):
        return sample.ttl
    notes.add(f"items expire by {_show(sample.ttl)}, which is not always a number; ttl= is left out")
    return None


# --- the text -----------------------------------------------------------------------------------------------


class _Notes:
    """What the sample does not prove, one sentence each."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._guesses: dict[str, list[str]] = {}

    def add(self, line: str) -> None:
        """Add a sentence."""
        self.lines.append(line)

    def add_attribute(self, attribute: SampledAttribute, place: str) -> None:
        """Add what is uncertain about one attribute; ``place`` comes before its name."""
        name, kinds = f"{place}{_show(attribute.name)}", attribute.kinds
        if not kinds:
            self.add(f"{name} is in no item of the sample")
        elif kinds.keys() == {"NULL"}:
            self.add(f"{name} is null in every item that has it")
        elif attribute.annotation == "Any":
            counts = ", ".join(f"{_KINDS[kind]} ({count})" for kind, count in sorted(kinds.items()))
            self.add(f"{name} has no single type: {counts}")
        elif attribute.stored is not None:
            self._guesses.setdefault(attribute.stored, []).append(name)
        elif attribute.annotation in ("int", "datetime", "date"):
            self._guesses.setdefault(attribute.annotation, []).append(name)
        if (
            attribute.annotation == "int"
            and not attribute.role
            and attribute.name.lower().endswith("version")
        ):
            self.add(
                f"{name}: if another program counts the writes of an item in it, as PynamoDB's VersionAttribute does, "
                "declare it with field(default=0, version=True), so that neither program overwrites the other's changes"
            )
        if attribute.has_other_moments:
            self.add(
                f"{name} holds times; as datetime it would be read, but written as 2026-01-31T09:30:00.000000Z"
            )

    def all(self) -> list[str]:
        """Every sentence, guesses of types first."""
        reasons = {
            "int": "all sampled numbers are whole, so the type is int, not Decimal",
            "datetime": "all sampled texts are times in Holdall's own form, so the type is datetime",
            "date": "all sampled texts are dates, so the type is date",
            **{form: f'{reason}, so it has stored="{form}"' for form, reason in REASONS.items()},
        }
        guesses = [
            f"{', '.join(self._guesses[kind])}: {reasons[kind]}" for kind in reasons if kind in self._guesses
        ]
        return [*guesses, *self.lines]


def _write_comment(sample: TableSample, notes: _Notes, designs: Sequence[Design]) -> list[str]:
    schema, count = sample.schema, len(sample.items)
    keys = " and ".join(f"{_show(key.name)} ({key.type})" for key in schema.keys)
    items = "1 item" if count == 1 else f"{count:,} items"
    sampled = f"{items}; the table {'has no others' if sample.complete else 'can have more'}"
    lines = [
        f"# The table {sample.name}, as `holdall models inspect` found it.",
        f"# Key: {keys}. Sample: {sampled}.",
    ]
    uncertain = notes.all()
    if not sample.complete:
        uncertain.append(
            "items outside the sample can lack required attributes, or have others or other types"
        )
    if designs:
        uncertain.append(
            "the templates explain the keys of every sampled item; other items can have other keys"
        )
    else:
        uncertain += _suggest_template(sample)
    if uncertain:
        lines += ["#", "# Please check:", *(part for line in uncertain for part in _wrap(line))]
    return lines


def _wrap(line: str) -> list[str]:
    return wrap(
        line,
        _WIDTH,
        initial_indent="# - ",
        subsequent_indent="#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _suggest_template(sample: TableSample) -> list[str]:
    for name in TYPE_ATTRIBUTES:
        values = Counter(text for item in sample.items if (text := _text(item, name)) is not None)
        if 1 < len(values) <= min(_MOST_TYPES, len(sample.items) - 1) and max(map(len, values)) <= 60:
            shown = ", ".join(quote(value) for value in sorted(values)[:_SHOWN_TYPES])
            more = len(values) - _SHOWN_TYPES
            shown += f" and {more} more" if more > 0 else ""
            return [
                f"{name} is {shown}: if these are different kinds of items, declare one model for each,"
                f' with layout=Template(..., type="{name}")'
            ]
    return []


def _write_imports(models: Sequence[_Source]) -> list[str]:
    standard: dict[str, list[str]] = {}
    for name in sorted({word for model in models for word in model.used} & _IMPORTS.keys()):
        standard.setdefault(_IMPORTS[name], []).append(name)
    text = "\n".join(line for model in models for line in model.write())
    own = [name for name in sorted(_OWN_NAMES) if re.search(rf"\b{name}[\[(,]", text)]
    lines = [f"from {module} import {', '.join(names)}" for module, names in sorted(standard.items())]
    return [*lines, *([""] if lines else []), f"from holdall import {', '.join(own)}"]


def _write_class(name: str, arguments: Sequence[str], indexes: Sequence[str]) -> list[str]:
    line = f"class {name}({', '.join(arguments)}):"
    if not indexes and len(line) <= _WIDTH and "\n" not in line:
        return [line]
    lines = [f"class {name}(", *(f"    {argument}," for argument in arguments)]
    if indexes:
        lines += ["    indexes=[", *(f"        {index}," for index in indexes), "    ],"]
    return [*lines, "):"]


def _show(name: str) -> str:
    return name if name.isidentifier() else quote(name)


def _text(item: Item, name: str) -> str | None:
    attribute = item.get(name)
    return None if attribute is None else attribute.get("S")
